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

/// The factorisations of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factorisation {
    /// `L` of (A + Aᵀ)/2 = L Lᵀ.
    Cholesky,
    /// `L` and `U` packed in one matrix, of `A[p] = L U`.
    Lu,
    /// Thin `Q` and `R`, whose diagonal is ≥ 0.
    Qr,
    /// Eigenvalues `[β, 1, n]` in nondecreasing order and eigenvectors of (A + Aᵀ)/2.
    Eigh,
    /// Thin `U`, singular values `[β, 1, k]` in nonincreasing order, and `Vᵀ`.
    Svd,
}

/// Units of a cube that share the sums of a pair of columns.
const LANES: usize = 4;

impl Factorisation {
    const fn name(self) -> &'static str {
        match self {
            Self::Cholesky => "cholesky",
            Self::Lu => "lu",
            Self::Qr => "qr",
            Self::Eigh => "eigh",
            Self::Svd => "svd",
        }
    }

    /// True if there is a kernel for matrices of this size: these fit shared memory.
    pub fn fits(self, m: usize, n: usize) -> bool {
        let largest = match self {
            Self::Cholesky | Self::Lu | Self::Qr => 64,
            Self::Eigh | Self::Svd => 32,
        };
        (1..=largest).contains(&m) && (1..=largest).contains(&n)
    }
}

/// True if there is a kernel for triangular systems of this size.
pub fn fits_triangular(n: usize) -> bool {
    (1..=64).contains(&n)
}

/// Results of a factorisation, contiguous.
pub struct Factors {
    /// The factors `[β, …, …]`.
    pub factors: Vec<Operand>,
    /// `p` of [`Factorisation::Lu`], `[β, m]`, 32-bit integers.
    pub rows: Option<Operand>,
    /// `[β]`, 32-bit integers: 0, or the number from 1 of a pivot that is not positive (Cholesky) or zero (LU), −1
    /// for rotations that did not converge, −2 for matrices with entries that are not finite or so large that factors may
    /// not be.
    pub status: Operand,
}

const INDEX: StorageType = StorageType::Scalar(ElemType::Int(IntKind::I32));

/// Sizes and strides of a batch of matrices `[β, m, n]`.
///
/// # Errors
/// `Sizes`, `DType`, `TooLarge`.
fn matrices(kernel: &'static str, a: &Operand) -> Result<([usize; 3], [usize; 3])> {
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

/// The smallest size of shared memory that there is a kernel for.
fn bucket(n: usize) -> usize {
    [8, 16, 32].into_iter().find(|&size| n <= size).unwrap_or(64)
}

fn double(dtype: StorageType) -> bool {
    dtype == StorageType::Scalar(ElemType::Float(FloatKind::F64))
}

/// A factorisation of each matrix of a batch, with any strides.
///
/// # Errors
/// `Sizes` for matrices beyond [`Factorisation::fits`] and for those that are not square where they have to be;
/// `DType`, `TooLarge`.
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
    // Rotations converge quadratically, from the fourth sweep or so.
    let (sweeps, epsilon) = if double(dtype) { (11, f64::EPSILON) } else { (9, 1.2e-7) };
    let out = |i: usize| factors[i].clone().arg();
    let (a, status) = (a.arg(), status.clone().arg());
    // SAFETY: sizes and strides were checked; cubes beyond the last matrix end.
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
                // The factors of a wide matrix are those of its transpose.
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

/// A triangle of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// The upper one.
    pub upper: bool,
    /// Ones on the diagonal, whatever is stored there.
    pub unit: bool,
    /// The transpose of the triangle is solved for.
    pub transposed: bool,
}

/// `op(T)⁻¹ B` of batches `[β, n, n]` and `[β, n, r]` with any strides, and the status as in [`Factors`], one for each
/// 64 columns of B: the number from 1 of a zero on the diagonal.
///
/// # Errors
/// `Sizes` for sizes that do not go together or are beyond [`fits_triangular`]; `DType`, `TooLarge`.
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
    // The transpose of an upper triangle is a lower one.
    let (row, column) = if triangle.transposed { (column, row) } else { (row, column) };
    let mirrored = triangle.upper != triangle.transposed;
    // SAFETY: sizes and strides were checked; cubes beyond the last matrix end.
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
