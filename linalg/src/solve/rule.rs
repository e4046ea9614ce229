//! Derivatives of `X = A⁻¹ B`, from the packed factors `A[p] = L U`.
//!
//! `B̄ = A⁻ᴴ X̄`, `Ā = −B̄ Xᴴ`; `dX = A⁻¹ (dB − dA X)`. If the factors are operands, the two triangular systems are
//! differentiated one after another.

use crate::error::Result;
use crate::permutation::Permutation;
use crate::triangular::Triangle;
use crate::vocabulary::Matrices;

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
pub fn vjp<M: Matrices>(packed: &M, rows: &Permutation, x: &M, x_cotangent: &M) -> Result<(M, M)> {
    let b_cotangent = apply_inverse_adjoint(packed, rows, x_cotangent)?;
    Ok((b_cotangent.matmul(&x.adjoint()).neg(), b_cotangent))
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
