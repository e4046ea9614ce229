//! Integer powers of square matrices by repeated squaring.
//!
//! Generic over [`Matrices`]: on dual numbers it is the Fréchet derivative `L(A, E) = Σⱼ Aʲ E Aᵏ⁻¹⁻ʲ`, and `Ā = L(Aᴴ,
//! B̄)`.

#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use crate::batch::BatchShape;
use crate::error::Result;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, DualMatrix, Matrices};

/// `Aᵏ` for any implementor of [`Matrices`].
pub fn power<M: Matrices>(a: &M, k: i64) -> M {
    let unit = a.identity(a.rows());
    let mut square = if k < 0 { a.solve(&unit) } else { a.clone() };
    let mut product: Option<M> = None;
    let mut rest = k.unsigned_abs();
    while rest > 0 {
        if rest & 1 == 1 {
            product = Some(product.map_or_else(|| square.clone(), |p| p.matmul(&square)));
        }
        rest >>= 1;
        if rest > 0 {
            square = square.matmul(&square);
        }
    }
    product.unwrap_or(unit)
}

/// `L(A, dA)` for any implementor of [`Matrices`]. Cost three times that of the power.
pub fn jvp<M: Matrices>(a: &M, da: &M, k: i64) -> M {
    power(&DualMatrix::new(a.clone(), da.clone()), k).into_tangent()
}

/// `Ā = L(Aᴴ, B̄)` for any implementor of [`Matrices`].
pub fn vjp<M: Matrices>(a: &M, b_cotangent: &M, k: i64) -> M {
    jvp(&a.adjoint(), b_cotangent, k)
}

/// Matrix power `Aᵏ`; the inverse of `A⁻ᵏ` for `k < 0`, the unit matrix for `k = 0`.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost at most 2 log₂ k products, and an inverse for negative `k`. Overflow and
/// NaN propagate as in a product.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; for negative `k` also `NonFinite`, `Singular` with the batch index.
///
/// ```
/// use t4a_linalg::power::matrix_power;
/// use t4a_tensor::Tensor;
///
/// // Fibonacci numbers.
/// let a = Tensor::from_vec(vec![1.0, 1.0, 1.0, 0.0], &[2, 2])?;
/// assert_eq!(matrix_power(&a, 10)?.get(&[0, 1]).unwrap(), 55.0);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn matrix_power<T: LinalgScalar>(a: &Tensor<T>, k: i64) -> Result<Tensor<T>> {
    BatchShape::square("matrix_power", a)?;
    power(&Batched::new(a), k).into_tensor().map_err(|error| error.of("matrix_power"))
}
