//! The inverse of a square matrix.
//!
//! `dA⁻¹ = −A⁻¹ dA A⁻¹`, so with `B = A⁻¹`: `Ā = −Bᴴ B̄ Bᴴ`. Prefer [`solve`](crate::solve::solve)
//! to a product with an inverse.

mod op;
#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use crate::batch::BatchShape;
use crate::error::{Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::solve::solve_ex;
use crate::systems::tensor_inverse;
use crate::vocabulary::{Batched, Matrices};

pub use op::InvOp;

/// `A⁻¹`.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost 8/3·n³ flops.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `Singular` with the batch index.
///
/// ```
/// use t4a_linalg::inverse::inv;
/// use t4a_tensor::Tensor;
///
/// let a = Tensor::from_vec(vec![2.0, 0.0, 0.0, 4.0], &[2, 2])?;
/// assert_eq!(inv(&a)?.to_vec()?, [0.5, 0.0, 0.0, 0.25]);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn inv<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    let (out, info) = inv_ex(a)?;
    check("inv", &info, SINGULAR)?;
    Ok(out)
}

/// As [`inv`], with an info tensor of the batch's shape instead of an error: 0, or `i + 1` if
/// pivot `i` is zero, or [`NON_FINITE`](crate::error::NON_FINITE). The inverse of a matrix that
/// failed is NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn inv_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<i32>)> {
    let n = BatchShape::square("inv", a)?.n;
    let unit = Batched::new(a).identity(n).into_tensor()?;
    let (out, _, info) = solve_ex(a, &unit)?;
    Ok((out, info))
}

/// `Ā = −Bᴴ B̄ Bᴴ` from the inverse `B` and its cotangent.
pub fn vjp<M: Matrices>(b: &M, b_cotangent: &M) -> M {
    let bh = b.adjoint();
    bh.matmul(b_cotangent).matmul(&bh).neg()
}

/// `dB = −B dA B`.
pub fn jvp<M: Matrices>(b: &M, da: &M) -> M {
    b.matmul(da).matmul(b).neg()
}

/// `B` with `Σ A[i…, j…] B[j…, k…] = δ[i…, k…]`: inverse of the tensor of [`tensorsolve`](crate::solve::tensorsolve)
/// whose first `left` axes are `i…`.
///
/// Shapes `[i…, j…]` → `[j…, i…]` with as many elements in `i…` as in `j…`. Cost that of
/// [`inv`].
///
/// # Errors
/// `Tensor` if the shapes do not match; `NonFinite`, `Singular`.
pub fn tensorinv<T: LinalgScalar>(a: &Tensor<T>, left: usize) -> Result<Tensor<T>> {
    let (n, shape) = tensor_inverse(a.shape(), left)?;
    let out = inv(&a.reshape(&[n, n])?).map_err(|error| error.of("tensorinv"))?;
    Ok(out.reshape(&shape)?)
}
