//! Factorisations of batches of small matrices, and triangular systems.

use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::*;

use crate::error::{CubeError, Result};
use crate::kernels::factor::cholesky::cholesky_kernel;
use crate::kernels::factor::eigh::eigh_kernel;
use crate::kernels::factor::lu::lu_kernel;
use crate::kernels::factor::qr::qr_kernel;
use crate::kernels::factor::svd::svd_kernel;
use crate::kernels::factor::triangular::triangular_kernel;
use crate::launch::{Operand, elements, grid, reach};

/// Factorisations with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factorisation {
    /// `L` with (A + Aᵀ)/2 = L Lᵀ.
    Cholesky,
    /// `L` and `U` with `A[p] = L U`, packed in one matrix.
    Lu,
    /// Thin `Q` and `R` with a nonnegative diagonal.
    Qr,
    /// Eigenvalues `[β, 1, n]` in nondecreasing order, and eigenvectors, of (A + Aᵀ)/2.
    Eigh,
    /// Thin `U`, singular values `[β, 1, k]` in nonincreasing order, and `Vᵀ`.
    Svd,
}

/// Number of units of a cube that compute the inner products of a pair of columns.
const LANES: usize = 4;

impl Factorisation {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cholesky => "cholesky",
            Self::Lu => "lu",
            Self::Qr => "qr",
            Self::Eigh => "eigh",
            Self::Svd => "svd",
        }
    }

    /// Returns true if a kernel exists for matrices of this size, which must fit in shared memory.
    pub fn fits(self, m: usize, n: usize) -> bool {
        let largest = match self {
            Self::Cholesky | Self::Lu | Self::Qr => 64,
            Self::Eigh | Self::Svd => 32,
        };
        (1..=largest).contains(&m) && (1..=largest).contains(&n)
    }
}

/// Returns true if a kernel exists for triangular systems of this size.
pub fn fits_triangular(n: usize) -> bool {
    (1..=64).contains(&n)
}

/// Results of a factorisation.
pub struct Factors {
    /// The factors, each of shape `[β, …, …]`; those of small matrices are contiguous.
    pub factors: Vec<Operand>,
    /// Permutation `p` of [`Factorisation::Lu`], shape `[β, m]`, `i32`.
    pub rows: Option<Operand>,
    /// Status, shape `[β]`, `i32`: 0 for success; the number (from 1) of a pivot that is not positive (Cholesky) or
    /// zero (LU); −1 if rotations did not converge; −2 if entries are not finite, or so large that factors may
    /// overflow.
    pub status: Operand,
}

pub(crate) const INDEX: StorageType = StorageType::Scalar(ElemType::Int(IntKind::I32));

/// Returns sizes and strides of a batch of matrices `[β, m, n]`.
///
/// # Errors
/// `Sizes`, `DType`, `TooLarge`.
pub(crate) fn matrices(kernel: &'static str, a: &Operand) -> Result<([usize; 3], [usize; 3])> {
    let (&[batch, m, n], &[stride, row, column]) = (&a.shape[..], &a.strides[..]) else {
        let given = [a.shape.clone(), Vec::new()];
        return Err(CubeError::Sizes { kernel, required: "[β, m, n]", given });
    };
    if !matches!(a.dtype, StorageType::Scalar(ElemType::Float(FloatKind::F32 | FloatKind::F64))) {
        return Err(CubeError::DType { kernel, dtype: a.dtype.to_string() });
    }
    reach(kernel, &a.shape, &a.strides)?;
    elements(kernel, &a.shape)?;
    Ok(([batch, m, n], [stride, row, column]))
}

/// Size of the smallest kernel for matrices of size `n`; shared memory is allocated for this size.
fn bucket(n: usize) -> usize {
    [8, 16, 32].into_iter().find(|&size| n <= size).unwrap_or(64)
}

pub(crate) fn double(dtype: StorageType) -> bool {
    dtype == StorageType::Scalar(ElemType::Float(FloatKind::F64))
}

/// Factorises each matrix of a batch, with any strides.
///
/// # Errors
/// `Sizes` for matrices larger than [`Factorisation::fits`] permits, and for matrices that must be square and are
/// not; `DType`, `TooLarge`.
pub fn factor<R: Runtime>(
    client: &ComputeClient<R>,
    of: Factorisation,
    a: Operand,
) -> Result<Factors> {
    let kernel = of.name();
    let ([batch, m, n], [stride, row, column]) = matrices(kernel, &a)?;
    let square = matches!(of, Factorisation::Cholesky | Factorisation::Eigh);
    if !of.fits(m, n) || (square && m != n) {
        let required = if square { "small square matrices" } else { "small matrices" };
        return Err(CubeError::Sizes { kernel, required, given: [a.shape, Vec::new()] });
    }
    let dtype = a.dtype;
    let new = |shape: &[usize]| Operand::empty(client, shape, dtype);
    let status = Operand::empty(client, &[batch], INDEX);
    let k = m.min(n);
    let (factors, rows) = match of {
        Factorisation::Cholesky => (vec![new(&[batch, n, n])], None),
        Factorisation::Lu => {
            (vec![new(&[batch, m, n])], Some(Operand::empty(client, &[batch, m], INDEX)))
        }
        Factorisation::Qr => (vec![new(&[batch, m, k]), new(&[batch, k, n])], None),
        Factorisation::Eigh => (vec![new(&[batch, 1, n]), new(&[batch, n, n])], None),
        Factorisation::Svd => {
            (vec![new(&[batch, m, k]), new(&[batch, 1, k]), new(&[batch, k, n])], None)
        }
    };
    let result = Factors { factors, rows, status };
    if batch == 0 {
        return Ok(result);
    }
    let Factors { factors, rows, status } = &result;
    let (cubes, infinite) = (grid(batch), InputScalar::new(f64::INFINITY, dtype));
    let size = bucket(m.max(n));
    let units = size.max(32);
    let dim = CubeDim::new_1d(units as u32);
    // Jacobi rotations converge quadratically, from about the fourth sweep on.
    let (sweeps, epsilon) = if double(dtype) { (11, f64::EPSILON) } else { (9, 1.2e-7) };
    let out = |i: usize| factors[i].clone().arg();
    let (a, status) = (a.arg(), status.clone().arg());
    // SAFETY: sizes and strides were checked; cubes after the last matrix return.
    unsafe {
        match (of, rows) {
            (Factorisation::Cholesky, _) => cholesky_kernel::launch_unchecked::<R>(
                client,
                cubes,
                dim,
                a,
                out(0),
                status,
                batch,
                n,
                stride,
                row,
                column,
                infinite,
                size,
                units,
                dtype,
            ),
            (Factorisation::Lu, Some(rows)) => lu_kernel::launch_unchecked::<R>(
                client,
                cubes,
                dim,
                a,
                out(0),
                rows.clone().arg(),
                status,
                batch,
                m,
                n,
                stride,
                row,
                column,
                infinite,
                size,
                units,
                dtype,
            ),
            (Factorisation::Lu | Factorisation::Qr, _) => qr_kernel::launch_unchecked::<R>(
                client,
                cubes,
                dim,
                a,
                out(0),
                out(1),
                status,
                batch,
                m,
                n,
                stride,
                row,
                column,
                infinite,
                size,
                units,
                dtype,
            ),
            (Factorisation::Eigh, _) => eigh_kernel::launch_unchecked::<R>(
                client,
                cubes,
                dim,
                a,
                out(0),
                out(1),
                status,
                batch,
                n,
                stride,
                row,
                column,
                sweeps,
                infinite,
                InputScalar::new(epsilon / 8.0, dtype),
                size,
                units,
                dtype,
            ),
            (Factorisation::Svd, _) => {
                // The factors of a wide matrix are computed from its transpose.
                let wide = m < n;
                let (p, q) = if wide { (n, m) } else { (m, n) };
                let (row, column) = if wide { (column, row) } else { (row, column) };
                let (left, right) = if wide { (2, 0) } else { (0, 2) };
                let ([ur, uc], [vr, vc]) = if wide { ([1, n], [m, 1]) } else { ([n, 1], [1, n]) };
                let size = bucket(q);
                svd_kernel::launch_unchecked::<R>(
                    client,
                    cubes,
                    CubeDim::new_1d((size / 2 * LANES) as u32),
                    a,
                    out(left),
                    out(1),
                    out(right),
                    status,
                    batch,
                    p,
                    q,
                    stride,
                    row,
                    column,
                    ur,
                    uc,
                    vr,
                    vc,
                    sweeps,
                    infinite,
                    InputScalar::new(epsilon, dtype),
                    InputScalar::new(if double(dtype) { 1e-140 } else { 1e-18 }, dtype),
                    size,
                    bucket(p),
                    LANES,
                    dtype,
                );
            }
        }
    }
    Ok(result)
}

/// Triangle of a matrix that is used in a triangular solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// Upper triangle; otherwise the lower one.
    pub upper: bool,
    /// Unit diagonal; stored diagonal elements are ignored.
    pub unit: bool,
    /// Solve with the transpose of the triangle.
    pub transposed: bool,
}

/// Solves `op(T) X = B` for batches `[β, n, n]` and `[β, n, r]` with any strides. The status is that of [`Factors`]
/// with one element per 64 columns of B: the number (from 1) of a zero on the diagonal.
///
/// # Errors
/// `Sizes` for sizes that do not match or exceed [`fits_triangular`]; `DType`, `TooLarge`.
pub fn solve_triangular<R: Runtime>(
    client: &ComputeClient<R>,
    [t, b]: [Operand; 2],
    triangle: Triangle,
) -> Result<(Operand, Operand)> {
    const KERNEL: &str = "solve_triangular";
    let ([batch, m, n], [t_stride, row, column]) = matrices(KERNEL, &t)?;
    let ([batches, rows, columns], [b_stride, b_row, b_column]) = matrices(KERNEL, &b)?;
    if batch != batches || m != n || rows != n || t.dtype != b.dtype || !fits_triangular(n) {
        let required = "small [β, n, n] and [β, n, r] of one type";
        return Err(CubeError::Sizes { kernel: KERNEL, required, given: [t.shape, b.shape] });
    }
    let dtype = t.dtype;
    let size = bucket(n);
    let units = 64;
    let blocks = columns.div_ceil(units).max(1);
    let x = Operand::empty(client, &[batch, n, columns], dtype);
    let status = Operand::empty(client, &[batch, blocks], INDEX);
    if batch == 0 {
        return Ok((x, status));
    }
    // The transpose of an upper triangle is a lower triangle.
    let (row, column) = if triangle.transposed { (column, row) } else { (row, column) };
    let mirrored = triangle.upper != triangle.transposed;
    // SAFETY: sizes and strides were checked; cubes after the last matrix return.
    unsafe {
        triangular_kernel::launch_unchecked::<R>(
            client,
            grid(batch * blocks),
            CubeDim::new_1d(units as u32),
            t.arg(),
            b.arg(),
            x.clone().arg(),
            status.clone().arg(),
            batch,
            blocks,
            n,
            columns,
            t_stride,
            row,
            column,
            b_stride,
            b_row,
            b_column,
            InputScalar::new(f64::INFINITY, dtype),
            mirrored,
            triangle.unit,
            size,
            units,
            dtype,
        );
    }
    Ok((x, status))
}
