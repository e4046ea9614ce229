//! Sylvester and Lyapunov equations.

use crate::call::Pair;
use crate::lyapunov::LyapunovPositiveOp;
use crate::operation::Signature;
use crate::sylvester::SylvesterOp;
use crate::{MatrixOp, Result};
use t4a_diff::Array;

use super::call::{Arranged, functions, one, plain};
use super::matrix::Matrix;

functions! {
    SylvesterOp: (M, M, M) -> M = one;
    LyapunovOp: (M, M) -> M = one;
    LyapunovPositiveOp: (M, M) -> M = one;
}

/// The solution of `A X + X B = C`: `[…, m, m]`, `[…, n, n]`, `[…, m, n]` → `[…, m, n]`.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `NoConvergence`, `Overflow`, and
/// `CommonEigenvalue` if an eigenvalue of `A` is the negative of one of `B` to rounding, with the batch index.
pub fn sylvester<F, M: Matrix<F>>(a: M, b: M, c: M) -> Result<M> {
    plain(SylvesterOp, (a, b, c))
}

/// `A`, `C` → `X` with `A X + X Aᴴ = C`.
#[derive(Clone, Copy, Debug)]
pub struct LyapunovOp;

impl Arranged for LyapunovOp {
    fn name(&self) -> &'static str {
        "lyapunov"
    }
    fn op(&self) -> MatrixOp {
        SylvesterOp.into()
    }
    fn before<A: Array>(&self, operands: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        let [a, c] = [&operands[0], &operands[1]];
        Signature::Squares.check(Arranged::name(self), &[&a.shape(), &c.shape()])?;
        Ok(vec![a.clone(), a.adjoint(), c.clone()])
    }
}

/// The solution of the Lyapunov equation `A X + X Aᴴ = C`, `[…, n, n]`, `[…, n, n]` → `[…, n, n]`, Hermitian to
/// rounding for Hermitian `C`.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `NoConvergence`, `Overflow`, and
/// `CommonEigenvalue` if two eigenvalues of `A` have a sum `λᵢ + λ̄ⱼ` that is zero to rounding, with the batch
/// index.
pub fn lyapunov<F, M: Matrix<F>>(a: M, c: M) -> Result<M> {
    plain(LyapunovOp, (a, c))
}

/// The solution of `P X + X P = B` with positive definite Hermitian `P`; reads `(P + Pᴴ)/2`. Faster than
/// [`lyapunov`].
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `NoConvergence`, and `RankDeficient` if `P`
/// is not positive definite to rounding, with the batch index.
pub fn lyapunov_positive<F, M: Matrix<F>>(p: M, b: M) -> Result<M> {
    plain(LyapunovPositiveOp, (p, b))
}
