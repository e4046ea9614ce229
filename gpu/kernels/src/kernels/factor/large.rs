//! Steps before and after factorisations of large matrices by a library, one unit per element.
//!
//! ```text
//! row-major      A[i, j] at i · n + j
//! column-major   A[i, j] at j · m + i
//! ```
//!
//! All units that set a flag write the same value.

use cubecl::prelude::*;

/// Copies matrices to row-major or column-major order, as (A + Aᵀ)/2 if `symmetric`. Sets three flags per matrix to
/// 1: an entry is not less than `large` in modulus, or is NaN; an entry is greater than `small`; an entry is not zero.
#[cube(launch_unchecked)]
pub(crate) fn stage_kernel<F: Float>(
    a: &Tensor<F>,
    staged: &mut Tensor<F>,
    flags: &mut Tensor<i32>,
    len: usize,
    m: usize,
    n: usize,
    stride: usize,
    row: usize,
    column: usize,
    large: InputScalar,
    small: InputScalar,
    #[comptime] columns: bool,
    #[comptime] symmetric: bool,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS >= len {
        terminate!();
    }
    let matrix = ABSOLUTE_POS / (m * n);
    let e = ABSOLUTE_POS % (m * n);
    let mut i = e / n;
    let mut j = e % n;
    if comptime!(columns) {
        i = e % m;
        j = e / m;
    }
    let mut x = a[matrix * stride + i * row + j * column];
    if comptime!(symmetric) {
        let half = F::new(0.5);
        x = half * x + half * a[matrix * stride + j * row + i * column];
    }
    staged[ABSOLUTE_POS] = x;
    let modulus = x.abs();
    if modulus < large.get::<F>() {
        if modulus > small.get::<F>() {
            flags[matrix * 3 + 1] = 1i32;
        }
        if modulus > F::new(0.0) {
            flags[matrix * 3 + 2] = 1i32;
        }
    } else {
        flags[matrix * 3] = 1i32;
    }
}

/// Sets `flags[matrix]` to 1 if an entry of a triangle is not less than `large` in modulus, or is NaN, and
/// `zeros[matrix, i]` to 1 if the diagonal entry i is zero, otherwise to 0. With `unit`, the diagonal is ignored.
#[cube(launch_unchecked)]
pub(crate) fn inspect_kernel<F: Float>(
    t: &Tensor<F>,
    flags: &mut Tensor<i32>,
    zeros: &mut Tensor<i32>,
    len: usize,
    n: usize,
    stride: usize,
    row: usize,
    column: usize,
    large: InputScalar,
    #[comptime] upper: bool,
    #[comptime] unit: bool,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS >= len {
        terminate!();
    }
    let matrix = ABSOLUTE_POS / (n * n);
    let i = ABSOLUTE_POS % (n * n) / n;
    let j = ABSOLUTE_POS % n;
    let x = t[matrix * stride + i * row + j * column];
    let inside = if comptime!(upper) { i < j } else { j < i };
    let finite = x.abs() < large.get::<F>();
    if i == j {
        if comptime!(unit) {
            zeros[matrix * n + i] = 0i32;
        } else {
            zeros[matrix * n + i] = select(x == F::new(0.0), 1i32, 0i32);
            if !finite {
                flags[matrix] = 1i32;
            }
        }
    } else if inside && !finite {
        flags[matrix] = 1i32;
    }
}

/// Sets `status[matrix]` to −2 if an entry is not less than `large` in modulus, or is NaN. Matrices are contiguous
/// and have `size` entries.
#[cube(launch_unchecked)]
pub(crate) fn finite_kernel<F: Float>(
    x: &Tensor<F>,
    status: &mut Tensor<i32>,
    len: usize,
    size: usize,
    large: InputScalar,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS >= len {
        terminate!();
    }
    let finite = x[ABSOLUTE_POS].abs() < large.get::<F>();
    if !finite {
        status[ABSOLUTE_POS / size] = -2i32;
    }
}

/// Sets entries of row-major matrices above the diagonal to zero.
#[cube(launch_unchecked)]
pub(crate) fn lower_kernel<F: Float>(
    l: &mut Tensor<F>,
    len: usize,
    n: usize,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS >= len {
        terminate!();
    }
    if ABSOLUTE_POS % n > ABSOLUTE_POS % (n * n) / n {
        l[ABSOLUTE_POS] = F::new(0.0);
    }
}

/// Row-major `R` of size `k × n`, with a nonnegative diagonal, from the upper triangle of column-major matrices of
/// size `m × n`.
#[cube(launch_unchecked)]
pub(crate) fn upper_kernel<F: Float>(
    packed: &Tensor<F>,
    r: &mut Tensor<F>,
    len: usize,
    m: usize,
    n: usize,
    k: usize,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS >= len {
        terminate!();
    }
    let base = ABSOLUTE_POS / (k * n) * (m * n);
    let i = ABSOLUTE_POS % (k * n) / n;
    let j = ABSOLUTE_POS % n;
    let zero = F::new(0.0);
    let x = packed[base + j * m + i];
    let x = select(packed[base + i * m + i] < zero, zero - x, x);
    r[ABSOLUTE_POS] = select(j < i, zero, x);
}

/// Changes the sign of each column of `Q`, column-major of size `m × k`, where the diagonal entry of the packed
/// column-major matrix of size `m × n` is negative.
#[cube(launch_unchecked)]
pub(crate) fn sign_kernel<F: Float>(
    packed: &Tensor<F>,
    q: &mut Tensor<F>,
    len: usize,
    m: usize,
    n: usize,
    k: usize,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS >= len {
        terminate!();
    }
    let j = ABSOLUTE_POS % (m * k) / m;
    let zero = F::new(0.0);
    if packed[ABSOLUTE_POS / (m * k) * (m * n) + j * m + j] < zero {
        let x = q[ABSOLUTE_POS];
        q[ABSOLUTE_POS] = zero - x;
    }
}
