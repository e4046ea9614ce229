//! The kernels that faer supplies, compiled once per element type.
//!
//! faer's algorithms are generic and large: their code for four element types takes minutes to
//! compile. Calling them through these methods of concrete types keeps it in this crate, which
//! depends on nothing that changes.
#![forbid(unsafe_code)]

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd::{
    self, ComputeEigenvectors, EvdParams, self_adjoint_evd, self_adjoint_evd_scratch,
};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply,
};
use faer::linalg::lu::{full_pivoting::factor as full, partial_pivoting::factor as partial};
use faer::linalg::qr::{col_pivoting::factor as pivoting, no_pivoting::factor as householder};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::linalg::triangular_solve as triangular;
use faer::traits::ComplexField;
use faer::{Accum, Conj, MatMut, MatRef, Par, Spec};
use num_complex::Complex;

#[allow(non_camel_case_types)]
type c32 = Complex<f32>;
#[allow(non_camel_case_types)]
type c64 = Complex<f64>;

/// Which vectors a decomposition computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// None.
    Values,
    /// As many as there are values.
    Thin,
    /// A complete basis.
    Full,
}

/// Row order and its inverse, then column order and its inverse, as faer writes them.
pub type Orders<'a> = [&'a mut [usize]; 4];

macro_rules! kernels {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)?;
    )*) => {
        /// Factorisation kernels of one element type. A buffer comes from the `_scratch` function
        /// for the same sizes.
        pub trait Kernels: ComplexField {
            $($(#[$doc])* #[doc(hidden)] fn $name($($arg: $ty),*) $(-> $out)?;)*
        }
        kernels!(@impl f32 [$(($name ($($arg: $ty),*) ($($out)?)))*]);
        kernels!(@impl f64 [$(($name ($($arg: $ty),*) ($($out)?)))*]);
        kernels!(@impl c32 [$(($name ($($arg: $ty),*) ($($out)?)))*]);
        kernels!(@impl c64 [$(($name ($($arg: $ty),*) ($($out)?)))*]);
    };
    (@impl $t:ident [$(($name:ident ($($arg:ident: $ty:ty),*) ($($out:ty)?)))*]) => {
        impl Kernels for $t {
            $(fn $name($($arg: $ty),*) $(-> $out)? {
                generic::$name::<Self>($($arg),*)
            })*
        }
    };
}

kernels! {
    /// Scratch of [`Kernels::svd`].
    fn svd_scratch(m: usize, n: usize, extent: Extent, par: Par) -> MemBuffer;
    /// Singular values, `U` and `V`; `false` without convergence.
    fn svd(
        a: MatRef<'_, Self>,
        s: &mut [Self],
        uv: Option<(MatMut<'_, Self>, MatMut<'_, Self>)>,
        par: Par,
        memory: &mut MemBuffer,
    ) -> bool;
    /// Scratch of [`Kernels::eigh`].
    fn eigh_scratch(n: usize, vectors: bool, par: Par) -> MemBuffer;
    /// Eigenvalues and vectors from the lower triangle; `false` without convergence.
    fn eigh(
        a: MatRef<'_, Self>,
        values: &mut [Self],
        vectors: Option<MatMut<'_, Self>>,
        par: Par,
        memory: &mut MemBuffer,
    ) -> bool;
    /// Scratch of [`Kernels::cholesky`].
    fn cholesky_scratch(n: usize, par: Par) -> MemBuffer;
    /// `L` over the lower triangle; the index of the pivot that is not positive.
    fn cholesky(a: MatMut<'_, Self>, par: Par, memory: &mut MemBuffer) -> Result<(), usize>;
    /// Householder block size for [`Kernels::qr`].
    fn qr_block(m: usize, n: usize) -> usize;
    /// Scratch of [`Kernels::qr`] and [`Kernels::apply_q`].
    fn qr_scratch(m: usize, n: usize, block: usize, width: usize, par: Par) -> MemBuffer;
    /// Householder QR over `a`, with column orders if pivoted.
    fn qr(
        a: MatMut<'_, Self>,
        coefficients: MatMut<'_, Self>,
        columns: Option<[&mut [usize]; 2]>,
        par: Par,
        memory: &mut MemBuffer,
    );
    /// `X ← Q X`.
    fn apply_q(
        basis: MatRef<'_, Self>,
        coefficients: MatRef<'_, Self>,
        x: MatMut<'_, Self>,
        par: Par,
        memory: &mut MemBuffer,
    );
    /// Scratch of [`Kernels::lu`].
    fn lu_scratch(m: usize, n: usize, full_pivoting: bool, par: Par) -> MemBuffer;
    /// Packed `L` and `U` over `a`.
    fn lu(
        a: MatMut<'_, Self>,
        orders: Orders<'_>,
        full_pivoting: bool,
        par: Par,
        memory: &mut MemBuffer,
    );
    /// `X ← T⁻¹ X`, or `T̄⁻¹ X`.
    fn solve_triangular(
        t: MatRef<'_, Self>,
        conj: bool,
        upper: bool,
        unit: bool,
        x: MatMut<'_, Self>,
        par: Par,
    );
    /// `C ← A B`.
    fn matmul(c: MatMut<'_, Self>, a: MatRef<'_, Self>, b: MatRef<'_, Self>, par: Par);
}

mod generic {
    use super::*;

    pub(super) fn svd_scratch<T: ComplexField>(
        m: usize,
        n: usize,
        extent: Extent,
        par: Par,
    ) -> MemBuffer {
        let vectors = match extent {
            Extent::Values => ComputeSvdVectors::No,
            Extent::Thin => ComputeSvdVectors::Thin,
            Extent::Full => ComputeSvdVectors::Full,
        };
        let params = Spec::default();
        MemBuffer::new(super::svd_scratch::<T>(m, n, vectors, vectors, par, params))
    }

    pub(super) fn svd<T: ComplexField>(
        a: MatRef<'_, T>,
        s: &mut [T],
        uv: Option<(MatMut<'_, T>, MatMut<'_, T>)>,
        par: Par,
        memory: &mut MemBuffer,
    ) -> bool {
        let (u, v) = uv.map_or((None, None), |(u, v)| (Some(u), Some(v)));
        let s = DiagMut::from_slice_mut(s);
        super::svd(a, s, u, v, par, MemStack::new(memory), Spec::default()).is_ok()
    }

    pub(super) fn eigh_scratch<T: ComplexField>(n: usize, vectors: bool, par: Par) -> MemBuffer {
        if n == 0 {
            return MemBuffer::new(StackReq::EMPTY);
        }
        let compute = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
        MemBuffer::new(self_adjoint_evd_scratch::<T>(n, compute, par, Spec::default()))
    }

    pub(super) fn eigh<T: ComplexField>(
        a: MatRef<'_, T>,
        values: &mut [T],
        vectors: Option<MatMut<'_, T>>,
        par: Par,
        memory: &mut MemBuffer,
    ) -> bool {
        let values = DiagMut::from_slice_mut(values);
        let stack = MemStack::new(memory);
        self_adjoint_evd(a, values, vectors, par, stack, Spec::default()).is_ok()
    }

    pub(super) fn cholesky_scratch<T: ComplexField>(n: usize, par: Par) -> MemBuffer {
        MemBuffer::new(llt::cholesky_in_place_scratch::<T>(n, par, Spec::default()))
    }

    pub(super) fn cholesky<T: ComplexField>(
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

    pub(super) fn qr_block<T: ComplexField>(m: usize, n: usize) -> usize {
        householder::recommended_block_size::<T>(m, n).max(1)
    }

    pub(super) fn qr_scratch<T: ComplexField>(
        m: usize,
        n: usize,
        block: usize,
        width: usize,
        par: Par,
    ) -> MemBuffer {
        let plain = householder::qr_in_place_scratch::<T>(m, n, block, par, Spec::default());
        let pivoted = pivoting::qr_in_place_scratch::<usize, T>(m, n, block, par, Spec::default());
        let form = apply_scratch::<T>(m, block, width);
        MemBuffer::new(StackReq::any_of(&[plain, pivoted, form]))
    }

    pub(super) fn qr<T: ComplexField>(
        a: MatMut<'_, T>,
        coefficients: MatMut<'_, T>,
        columns: Option<[&mut [usize]; 2]>,
        par: Par,
        memory: &mut MemBuffer,
    ) {
        let stack = MemStack::new(memory);
        match columns {
            Some([order, inverse]) => {
                let params = Spec::default();
                pivoting::qr_in_place(a, coefficients, order, inverse, par, stack, params);
            }
            None => {
                householder::qr_in_place(a, coefficients, par, stack, Spec::default());
            }
        }
    }

    pub(super) fn apply_q<T: ComplexField>(
        basis: MatRef<'_, T>,
        coefficients: MatRef<'_, T>,
        x: MatMut<'_, T>,
        par: Par,
        memory: &mut MemBuffer,
    ) {
        apply(basis, coefficients, Conj::No, x, par, MemStack::new(memory));
    }

    pub(super) fn lu_scratch<T: ComplexField>(
        m: usize,
        n: usize,
        full_pivoting: bool,
        par: Par,
    ) -> MemBuffer {
        MemBuffer::new(match full_pivoting {
            true => full::lu_in_place_scratch::<usize, T>(m, n, par, Spec::default()),
            false => partial::lu_in_place_scratch::<usize, T>(m, n, par, Spec::default()),
        })
    }

    pub(super) fn lu<T: ComplexField>(
        a: MatMut<'_, T>,
        orders: Orders<'_>,
        full_pivoting: bool,
        par: Par,
        memory: &mut MemBuffer,
    ) {
        let [rows, rows_inverse, cols, cols_inverse] = orders;
        let stack = MemStack::new(memory);
        if full_pivoting {
            let params = Spec::default();
            full::lu_in_place(a, rows, rows_inverse, cols, cols_inverse, par, stack, params);
        } else {
            partial::lu_in_place(a, rows, rows_inverse, par, stack, Spec::default());
        }
    }

    pub(super) fn solve_triangular<T: ComplexField>(
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

    pub(super) fn matmul<T: ComplexField>(
        c: MatMut<'_, T>,
        a: MatRef<'_, T>,
        b: MatRef<'_, T>,
        par: Par,
    ) {
        faer::linalg::matmul::matmul(c, Accum::Replace, a, b, T::one_impl(), par);
    }

    /// Scratch of a general eigendecomposition.
    pub(super) fn eigen_scratch<T: ComplexField>(n: usize, vectors: bool, par: Par) -> MemBuffer {
        let right = if vectors { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
        let params = Spec::<EvdParams, T>::default();
        MemBuffer::new(evd::evd_scratch::<T>(n, ComputeEigenvectors::No, right, par, params))
    }
}

/// The general eigendecomposition, where real and complex matrices differ.
pub trait Eigen: ComplexField {
    /// The complex type of eigenvalues.
    type Value: ComplexField;

    /// Eigenvalues and right eigenvectors, the latter not normalised; `false` without
    /// convergence.
    #[doc(hidden)]
    fn eigen(
        a: MatRef<'_, Self>,
        values: &mut [Self::Value],
        vectors: Option<MatMut<'_, Self::Value>>,
        par: Par,
    ) -> bool;
}

macro_rules! eigen {
    ($($r:ident $c:ident),*) => {$(
        impl Eigen for $r {
            type Value = $c;

            fn eigen(
                a: MatRef<'_, $r>,
                values: &mut [$c],
                vectors: Option<MatMut<'_, $c>>,
                par: Par,
            ) -> bool {
                let n = a.nrows();
                let (mut re, mut im) = (vec![0.0; n], vec![0.0; n]);
                let mut packed = vectors.is_some().then(|| faer::Mat::<$r>::zeros(n, n));
                let mut memory = generic::eigen_scratch::<$r>(n, packed.is_some(), par);
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
                    *value = $c::new(re[k], im[k]);
                }
                let (Some(packed), Some(mut vectors)) = (packed, vectors) else {
                    return converged;
                };
                // Columns (j, j + 1) hold the real and the imaginary part of a conjugate pair.
                let mut j = 0;
                while j < n {
                    let pair = im[j] != 0.0 && j + 1 < n;
                    for i in 0..n {
                        let y = if pair { packed[(i, j + 1)] } else { 0.0 };
                        vectors[(i, j)] = $c::new(packed[(i, j)], y);
                        if pair {
                            vectors[(i, j + 1)] = $c::new(packed[(i, j)], -y);
                        }
                    }
                    j += if pair { 2 } else { 1 };
                }
                converged
            }
        }

        impl Eigen for $c {
            type Value = $c;

            fn eigen(
                a: MatRef<'_, $c>,
                values: &mut [$c],
                vectors: Option<MatMut<'_, $c>>,
                par: Par,
            ) -> bool {
                let mut memory = generic::eigen_scratch::<$c>(a.nrows(), vectors.is_some(), par);
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
        }
    )*};
}

eigen!(f32 c32, f64 c64);
