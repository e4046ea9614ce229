//! Derivatives of `X = A⁻¹ B`, from the packed factors `A[p] = L U`.
//!
//! `B̄ = A⁻ᴴ X̄`, `Ā = −B̄ Xᴴ`; `dX = A⁻¹ (dB − dA X)`.

use t4a_tensor::Tensor;

use crate::error::Result;
use crate::lu::LuFactors;
use crate::permutation::Permutation;
use crate::scalar::LinalgScalar;
use crate::triangular::Triangle;
use crate::vocabulary::{Batched, Matrices};

const LOWER: Triangle = Triangle::LOWER.unit();
const UPPER: Triangle = Triangle::UPPER;

/// `A⁻¹ B` from packed factors.
pub(crate) fn apply_inverse<M: Matrices>(packed: &M, rows: &Permutation, b: &M) -> M {
    let y = packed.solve_triangular(&b.permute_rows(rows), LOWER);
    packed.solve_triangular(&y, UPPER)
}

/// `A⁻ᴴ B` from packed factors.
pub(crate) fn apply_inverse_adjoint<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    b: &M,
) -> Result<M> {
    let y = packed.solve_triangular(b, UPPER.adjoint());
    Ok(packed.solve_triangular(&y, LOWER.adjoint()).permute_rows(&rows.inverse()?))
}

/// `(Ā, B̄)` from the solution and its cotangent.
///
/// # Errors
/// `OutOfMemory`.
pub fn vjp<M: Matrices>(packed: &M, rows: &Permutation, x: &M, x_bar: &M) -> Result<(M, M)> {
    let b_bar = apply_inverse_adjoint(packed, rows, x_bar)?;
    Ok((b_bar.matmul(&x.adjoint()).neg(), b_bar))
}

/// `dX` along `dA` and `dB`; `None` is zero.
pub fn jvp<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    x: &M,
    da: Option<&M>,
    db: Option<&M>,
) -> M {
    let rhs = match (db, da.map(|da| da.matmul(x))) {
        (Some(db), Some(moved)) => db.sub(&moved),
        (Some(db), None) => db.clone(),
        (None, Some(moved)) => moved.neg(),
        (None, None) => x.constant(x.rows(), x.cols(), 0.0),
    };
    apply_inverse(packed, rows, &rhs)
}

/// `(Ā, B̄)` from the solution `X` of `A X = B` and its cotangent. Cost: two triangular solves and
/// one product.
///
/// # Errors
/// `Singular`; `Tensor` if shapes do not match.
pub fn solve_vjp<T: LinalgScalar>(
    factors: &LuFactors<T>,
    x: &Tensor<T>,
    x_bar: &Tensor<T>,
) -> Result<(Tensor<T>, Tensor<T>)> {
    let packed = Batched::new(&factors.packed);
    let (a, b) = vjp(&packed, &factors.rows, &Batched::new(x), &Batched::new(x_bar))?;
    Ok((a.into_tensor()?, b.into_tensor()?))
}

/// `dX` along `dA` and `dB`; `None` is zero.
///
/// # Errors
/// As [`solve_vjp`].
pub fn solve_jvp<T: LinalgScalar>(
    factors: &LuFactors<T>,
    x: &Tensor<T>,
    da: Option<&Tensor<T>>,
    db: Option<&Tensor<T>>,
) -> Result<Tensor<T>> {
    let (da, db) = (da.map(Batched::new), db.map(Batched::new));
    let packed = Batched::new(&factors.packed);
    jvp(&packed, &factors.rows, &Batched::new(x), da.as_ref(), db.as_ref()).into_tensor()
}
