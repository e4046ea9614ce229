//! Cholesky factorisation `A = L Lᴴ` of positive definite Hermitian matrices.
//!
//! The operation reads `(A + Aᴴ)/2`; the diagonal of `L` is real and positive.

mod op;
mod rule;
#[cfg(test)]
mod tests;

use faer::MatMut;
use t4a_tensor::Tensor;

use crate::batch::{BatchShape, MatrixStatus, ResultBuffer, Views, flops, load_hermitian, run};
use crate::error::{NON_POSITIVE, Result, check};
use crate::scalar::LinalgScalar;
use crate::threads::Work;
use crate::vocabulary::{Batched, Matrices};

pub use op::CholeskyOp;
pub use rule::{jvp, vjp};

/// The lower triangular `L` with positive diagonal and `(A + Aᴴ)/2 = L Lᴴ`.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost n³/3 flops. The upper factor is
/// [`cholesky_upper`].
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `NonPositivePivot` with the batch index.
///
/// ```
/// use t4a_linalg::cholesky::{cholesky, cholesky_ex, cholesky_upper};
/// use t4a_tensor::Tensor;
///
/// let a = Tensor::from_vec(vec![4.0, 2.0, 2.0, 10.0], &[2, 2])?;
/// assert_eq!(cholesky(&a)?.to_vec()?, [2.0, 0.0, 1.0, 3.0]);
/// assert_eq!(cholesky_upper(&a)?.to_vec()?, [2.0, 1.0, 0.0, 3.0]);
/// // The second matrix is not positive definite; the first one is factorised.
/// let both = Tensor::from_vec(vec![9.0, -1.0], &[2, 1, 1])?;
/// let (l, info) = cholesky_ex(&both)?;
/// assert_eq!((l.to_vec()?[0], info.to_vec()?), (3.0, vec![0, 1]));
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn cholesky<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    let (l, info) = cholesky_ex(a)?;
    check("cholesky", &info, NON_POSITIVE)?;
    Ok(l)
}

/// The upper triangular `U = Lᴴ` with positive diagonal and `(A + Aᴴ)/2 = Uᴴ U`.
///
/// # Errors
/// As [`cholesky`].
pub fn cholesky_upper<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    let l = cholesky(a).map_err(|error| error.of("cholesky_upper"))?;
    Batched::new(&l).adjoint().into_tensor()
}

/// As [`cholesky`], with an info tensor of the batch's shape instead of an error: 0, or `i + 1` if
/// pivot `i` is not positive, or [`NON_FINITE`](crate::error::NON_FINITE). The factor of a matrix
/// that failed is NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn cholesky_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<i32>)> {
    let shape = BatchShape::square("cholesky", a)?;
    let n = shape.n;
    let mut out = ResultBuffer::<T>::new(shape.batch, n, n)?;
    let slots = out.slices()?;
    let views = Views::of("cholesky", a)?;
    let info = run(
        shape.batch,
        slots,
        Work::columns(n, flops(&[n, n, n]) / 3),
        |par| Ok(T::cholesky_scratch(n, par)),
        |memory, index, l, par| {
            if !load_hermitian(views.get(index), l) {
                return MatrixStatus::NonFinite;
            }
            if let Err(index) =
                T::cholesky(MatMut::from_column_major_slice_mut(l, n, n), par, memory)
            {
                return MatrixStatus::Pivot(index);
            }
            // faer leaves intermediate results above the diagonal.
            (1..n).for_each(|j| l[j * n..j * n + j].fill(T::ZERO));
            MatrixStatus::Done
        },
    )?;
    Ok((out.matrices(info.route())?, info))
}
