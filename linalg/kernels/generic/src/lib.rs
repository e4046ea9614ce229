//! faer's dense factorisations as functions of one signature, and the table of them.
//!
//! The functions are generic and not compiled here: each element type has a crate that instantiates them.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

mod householder;
mod table;

use std::ops::Neg;

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd::{
    self, ComputeEigenvectors, EvdParams, SelfAdjointEvdParams, self_adjoint_evd,
    self_adjoint_evd_scratch,
};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply,
    apply_block_householder_sequence_transpose_on_the_left_in_place_scratch as apply_adjoint_scratch,
    apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj as apply_adjoint,
};
use faer::linalg::lu::partial_pivoting::factor as partial;
use faer::linalg::qr::{col_pivoting::factor as pivoting, no_pivoting::factor as qr};
use faer::linalg::svd::{
    ComputeSvdVectors, SvdParams, svd as faer_svd, svd_scratch as faer_svd_scratch,
};
use faer::linalg::triangular_solve as triangular;
use faer::traits::{ComplexField, RealField};
use faer::{Accum, Auto, Conj, MatMut, MatRef, Par, Spec};
use num_complex::Complex;

pub use householder::qr_every_column;

/// Singular vectors or eigenvectors that a decomposition computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeVectors {
    /// No vectors.
    Values,
    /// As many vectors as values.
    Thin,
    /// A complete basis.
    Full,
}

pub fn svd_scratch<T: ComplexField>(
    m: usize,
    n: usize,
    extent: ComputeVectors,
    par: Par,
) -> MemBuffer {
    let vectors = match extent {
        ComputeVectors::Values => ComputeSvdVectors::No,
        ComputeVectors::Thin => ComputeSvdVectors::Thin,
        ComputeVectors::Full => ComputeSvdVectors::Full,
    };
    MemBuffer::new(faer_svd_scratch::<T>(m, n, vectors, vectors, par, svd_params()))
}

/// Size from which bidiagonal matrices are divided (divide and conquer) instead of iterated on. With faer's 128, singular
/// values and vectors take up to 1.2 times as long (f64, n = 64: 1.09, 123: 1.19; Zen 4, AVX-512).
const DIVIDE_BIDIAGONAL: usize = 48;
/// The same for tridiagonal matrices. With 48, eigenvectors take 1.08 times as long for n = 64, 1.03 for 96, 1.04 for 128
/// and 1.01 for 256 (f64, Zen 5).
const DIVIDE_TRIDIAGONAL: usize = 100;

/// Disables the preceding QR factorisation, which drops nearly dependent columns (see [`householder`]): singular
/// values that should be zero would be as large as the dropped part.
fn svd_params<T: ComplexField>() -> Spec<SvdParams, T> {
    let params = <SvdParams as Auto<T>>::auto();
    Spec::new(SvdParams {
        recursion_threshold: DIVIDE_BIDIAGONAL,
        qr_ratio_threshold: f64::INFINITY,
        ..params
    })
}

fn eigh_params<T: ComplexField>() -> Spec<SelfAdjointEvdParams, T> {
    let params = <SelfAdjointEvdParams as Auto<T>>::auto();
    Spec::new(SelfAdjointEvdParams { recursion_threshold: DIVIDE_TRIDIAGONAL, ..params })
}

pub fn svd<T: ComplexField>(
    a: MatRef<'_, T>,
    s: &mut [T],
    uv: Option<(MatMut<'_, T>, MatMut<'_, T>)>,
    par: Par,
    memory: &mut MemBuffer,
) -> bool {
    let (u, v) = uv.map_or((None, None), |(u, v)| (Some(u), Some(v)));
    let s = DiagMut::from_slice_mut(s);
    faer_svd(a, s, u, v, par, MemStack::new(memory), svd_params()).is_ok()
}

pub fn eigh_scratch<T: ComplexField>(n: usize, vectors: bool, par: Par) -> MemBuffer {
    if n == 0 {
        return MemBuffer::new(StackReq::EMPTY);
    }
    let compute = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    MemBuffer::new(self_adjoint_evd_scratch::<T>(n, compute, par, eigh_params()))
}

pub fn eigh<T: ComplexField>(
    a: MatRef<'_, T>,
    values: &mut [T],
    vectors: Option<MatMut<'_, T>>,
    par: Par,
    memory: &mut MemBuffer,
) -> bool {
    let values = DiagMut::from_slice_mut(values);
    let stack = MemStack::new(memory);
    self_adjoint_evd(a, values, vectors, par, stack, eigh_params()).is_ok()
}

pub fn cholesky_scratch<T: ComplexField>(n: usize, par: Par) -> MemBuffer {
    MemBuffer::new(llt::cholesky_in_place_scratch::<T>(n, par, Spec::default()))
}

pub fn cholesky<T: ComplexField>(
    a: MatMut<'_, T>,
    par: Par,
    memory: &mut MemBuffer,
) -> Result<(), usize> {
    let regularization = llt::LltRegularization::default();
    let stack = MemStack::new(memory);
    match llt::cholesky_in_place(a, regularization, par, stack, Spec::default()) {
        Ok(_) => Ok(()),
        Err(llt::LltError::NonPositivePivot { index }) => Err(index),
    }
}

pub fn qr_block<T: ComplexField>(m: usize, n: usize) -> usize {
    qr::recommended_block_size::<T>(m, n).max(1)
}

pub fn qr_scratch<T: ComplexField>(
    m: usize,
    n: usize,
    block: usize,
    width: usize,
    par: Par,
) -> MemBuffer {
    let plain = qr::qr_in_place_scratch::<T>(m, n, block, par, Spec::default());
    let pivoted = pivoting::qr_in_place_scratch::<usize, T>(m, n, block, par, Spec::default());
    let rest = apply_adjoint_scratch::<T>(m, block, n.saturating_sub(m));
    let form = apply_scratch::<T>(m, block, width);
    MemBuffer::new(StackReq::any_of(&[plain, pivoted, rest, form]))
}

pub fn qr<T: ComplexField>(
    a: MatMut<'_, T>,
    coefficients: MatMut<'_, T>,
    columns: Option<[&mut [usize]; 2]>,
    par: Par,
    memory: &mut MemBuffer,
) -> bool {
    let (stack, k) = (MemStack::new(memory), coefficients.ncols());
    match columns {
        Some([order, inverse]) => {
            let params = Spec::default();
            pivoting::qr_in_place(a, coefficients, order, inverse, par, stack, params);
            true
        }
        None => {
            // The norms of columns beyond the first k must not replace that of a dropped one.
            let (mut basis, rest) = a.split_at_col_mut(k);
            let params = Spec::default();
            let mut coefficients = coefficients;
            let (left, factor) = (basis.as_mut(), coefficients.as_mut());
            if qr::qr_in_place(left, factor, par, stack, params).rank < k {
                return false;
            }
            if rest.ncols() > 0 {
                let (basis, factor) = (basis.as_ref(), coefficients.as_ref());
                apply_adjoint(basis, factor, Conj::Yes, rest, par, stack);
            }
            true
        }
    }
}

pub fn apply_q<T: ComplexField>(
    basis: MatRef<'_, T>,
    coefficients: MatRef<'_, T>,
    x: MatMut<'_, T>,
    par: Par,
    memory: &mut MemBuffer,
) {
    apply(basis, coefficients, Conj::No, x, par, MemStack::new(memory));
}

pub fn lu_scratch<T: ComplexField>(m: usize, n: usize, par: Par) -> MemBuffer {
    MemBuffer::new(partial::lu_in_place_scratch::<usize, T>(m, n, par, Spec::default()))
}

pub fn lu<T: ComplexField>(
    a: MatMut<'_, T>,
    rows: [&mut [usize]; 2],
    par: Par,
    memory: &mut MemBuffer,
) {
    let [order, inverse] = rows;
    partial::lu_in_place(a, order, inverse, par, MemStack::new(memory), Spec::default());
}

pub fn solve_triangular<T: ComplexField>(
    t: MatRef<'_, T>,
    conj: bool,
    upper: bool,
    unit: bool,
    x: MatMut<'_, T>,
    par: Par,
) {
    let conj = if conj { Conj::Yes } else { Conj::No };
    match (upper, unit) {
        (false, false) => {
            triangular::solve_lower_triangular_in_place_with_conj(t, conj, x, par);
        }
        (false, true) => {
            triangular::solve_unit_lower_triangular_in_place_with_conj(t, conj, x, par);
        }
        (true, false) => {
            triangular::solve_upper_triangular_in_place_with_conj(t, conj, x, par);
        }
        (true, true) => {
            triangular::solve_unit_upper_triangular_in_place_with_conj(t, conj, x, par);
        }
    }
}

pub fn matmul<T: ComplexField>(c: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>, par: Par) {
    faer::linalg::matmul::matmul(c, Accum::Replace, a, b, T::one_impl(), par);
}

/// Scratch memory of a general eigendecomposition.
pub fn eigen_scratch<T: ComplexField>(n: usize, vectors: bool, par: Par) -> MemBuffer {
    let right = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let params = Spec::<EvdParams, T>::default();
    MemBuffer::new(evd::evd_scratch::<T>(n, ComputeEigenvectors::No, right, par, params))
}

/// Eigenvalues and right eigenvectors of a real matrix; the vectors are not normalised. Returns `false` without
/// convergence.
pub fn eigen_real<T: RealField + Copy + Neg<Output = T>>(
    a: MatRef<'_, T>,
    values: &mut [Complex<T>],
    vectors: Option<MatMut<'_, Complex<T>>>,
    par: Par,
) -> bool {
    let (n, zero) = (a.nrows(), T::zero_impl());
    let (mut re, mut im) = (vec![zero; n], vec![zero; n]);
    let mut packed = vectors.is_some().then(|| faer::Mat::<T>::zeros(n, n));
    let mut memory = eigen_scratch::<T>(n, packed.is_some(), par);
    let converged = evd::evd_real(
        a,
        DiagMut::from_slice_mut(&mut re),
        DiagMut::from_slice_mut(&mut im),
        None,
        packed.as_mut().map(|v| v.as_mut()),
        par,
        MemStack::new(&mut memory),
        Spec::default(),
    )
    .is_ok();
    for (k, value) in values.iter_mut().enumerate() {
        *value = Complex::new(re[k], im[k]);
    }
    let (Some(packed), Some(mut vectors)) = (packed, vectors) else {
        return converged;
    };
    // Columns (j, j + 1) hold the real and imaginary part of the eigenvector of a conjugate pair.
    let mut j = 0;
    while j < n {
        let pair = im[j] != zero && j + 1 < n;
        for i in 0..n {
            let y = if pair { packed[(i, j + 1)] } else { zero };
            vectors[(i, j)] = Complex::new(packed[(i, j)], y);
            if pair {
                vectors[(i, j + 1)] = Complex::new(packed[(i, j)], -y);
            }
        }
        j += if pair { 2 } else { 1 };
    }
    converged
}

/// [`eigen_real`] for complex matrices.
pub fn eigen_complex<T: RealField>(
    a: MatRef<'_, Complex<T>>,
    values: &mut [Complex<T>],
    vectors: Option<MatMut<'_, Complex<T>>>,
    par: Par,
) -> bool {
    let mut memory = eigen_scratch::<Complex<T>>(a.nrows(), vectors.is_some(), par);
    evd::evd_cplx(
        a,
        DiagMut::from_slice_mut(values),
        None,
        vectors,
        par,
        MemStack::new(&mut memory),
        Spec::default(),
    )
    .is_ok()
}
