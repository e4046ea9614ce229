//! Sylvester and Lyapunov equations.

use crate::lyapunov::LyapunovPositiveOp;
use crate::operation::Signature;
use crate::sylvester::SylvesterOp;
use crate::{LinalgError, Result};

use super::call::{jvp, one, plain, status};
use super::matrix::Matrix;

/// The solution of `A X + X B = C`: `[…, m, m]`, `[…, n, n]`, `[…, m, n]` → `[…, m, n]`.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `NoConvergence`, `Overflow`, and
/// `CommonEigenvalue` if an eigenvalue of `A` is the negative of one of `B` to rounding, with the batch index.
pub fn sylvester<F, M: Matrix<F>>(a: M, b: M, c: M) -> Result<M> {
    plain(SylvesterOp, [a, b, c], one)
}

/// As [`sylvester`], with the status of each equation as in [`solve_ex`](super::solve_ex).
///
/// # Errors
/// Errors that do not concern a single equation: shapes, dtypes, memory.
pub fn sylvester_ex<F, M: Matrix<F>>(a: M, b: M, c: M) -> Result<(M, M::Info)> {
    status(SylvesterOp, [a, b, c], one)
}

/// The solution and its tangent along `dA`, `dB` and `dC`.
///
/// # Errors
/// As [`sylvester`].
pub fn sylvester_jvp<F, M: Matrix<F>>([a, b, c]: [M; 3], [da, db, dc]: [M; 3]) -> Result<(M, M)> {
    jvp(SylvesterOp, [a, b, c], [da, db, dc], one)
}

const LYAPUNOV: &str = "lyapunov";

/// `A` and `Aᴴ`, the first two matrices of the Sylvester equation.
fn with_adjoint<F, M: Matrix<F>>(a: M) -> [M; 2] {
    let a = a.into_pair();
    [M::from_pair(a.clone()), M::from_pair(a.adjoint())]
}

/// Renames the operation in errors.
fn named(error: LinalgError) -> LinalgError {
    error.of(LYAPUNOV)
}

/// Checks that the operands are square and of equal size.
fn check<F, M: Matrix<F>>(a: M, c: M) -> Result<[M; 2]> {
    let (a, c) = (a.into_pair(), c.into_pair());
    Signature::Squares.check(LYAPUNOV, &[&a.shape(), &c.shape()])?;
    Ok([M::from_pair(a), M::from_pair(c)])
}

/// The solution of the Lyapunov equation `A X + X Aᴴ = C`, `[…, n, n]`, `[…, n, n]` → `[…, n, n]`, Hermitian to
/// rounding for Hermitian `C`.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `NoConvergence`, `Overflow`, and
/// `CommonEigenvalue` if two eigenvalues of `A` have a sum `λᵢ + λ̄ⱼ` that is zero to rounding, with the batch
/// index.
pub fn lyapunov<F, M: Matrix<F>>(a: M, c: M) -> Result<M> {
    let [a, c] = check(a, c)?;
    let [a, b] = with_adjoint(a);
    plain(SylvesterOp, [a, b, c], one).map_err(named)
}

/// As [`lyapunov`], with the status of each equation as in [`solve_ex`](super::solve_ex).
///
/// # Errors
/// Errors that do not concern a single equation: shapes, dtypes, memory.
pub fn lyapunov_ex<F, M: Matrix<F>>(a: M, c: M) -> Result<(M, M::Info)> {
    let [a, c] = check(a, c)?;
    let [a, b] = with_adjoint(a);
    status(SylvesterOp, [a, b, c], one).map_err(named)
}

/// The solution and its tangent along `dA` and `dC`.
///
/// # Errors
/// As [`lyapunov`].
pub fn lyapunov_jvp<F, M: Matrix<F>>(a: M, c: M, da: M, dc: M) -> Result<(M, M)> {
    let [a, c] = check(a, c)?;
    let ([a, b], [da, db]) = (with_adjoint(a), with_adjoint(da));
    jvp(SylvesterOp, [a, b, c], [da, db, dc], one).map_err(named)
}

/// The solution of `P X + X P = B` with positive definite Hermitian `P`; reads `(P + Pᴴ)/2`. Faster than
/// [`lyapunov`].
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `NoConvergence`, and `RankDeficient` if `P`
/// is not positive definite to rounding, with the batch index.
pub fn lyapunov_positive<F, M: Matrix<F>>(p: M, b: M) -> Result<M> {
    plain(LyapunovPositiveOp, [p, b], one)
}

/// As [`lyapunov_positive`], with the status of each equation: `r + 1` if only `r` eigenvalues of `P` are
/// positive.
///
/// # Errors
/// Errors that do not concern a single equation: shapes, dtypes, memory.
pub fn lyapunov_positive_ex<F, M: Matrix<F>>(p: M, b: M) -> Result<(M, M::Info)> {
    status(LyapunovPositiveOp, [p, b], one)
}

/// The solution and its tangent along `(dP + dPᴴ)/2` and `dB`.
///
/// # Errors
/// As [`lyapunov_positive`].
pub fn lyapunov_positive_jvp<F, M: Matrix<F>>(p: M, b: M, dp: M, db: M) -> Result<(M, M)> {
    jvp(LyapunovPositiveOp, [p, b], [dp, db], one)
}
