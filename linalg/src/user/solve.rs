//! Linear systems, least squares, determinants and inverses.

use crate::Result;
use crate::call::Pair;
use crate::det::{DetOp, SlogdetOp};
use crate::inverse::InvOp;
use crate::lstsq::{LstsqMinNormOp, LstsqOp, residuals};
use crate::operation::Part;
use crate::pinv::PinvOp;
use crate::program::{self, MatrixProgram};
use crate::solve::SolveOp;
use crate::triangular::{SolveTriangularOp, Triangle};
use crate::vocabulary::Matrices;
use t4a_diff::Array;
use t4a_tensor::TensorError;

use super::call::{ResultsOf, jvp, one, plain, status};
use super::matrix::Matrix;
use super::matrix::RightHandSide;
use super::systems;

/// Solution of `A X = B`: `[…, n, n]`, `[…, n, r]` → `[…, n, r]`, or of `A x = b` for vectors `[…, n]`. Batches
/// broadcast ([`RightHandSide`]). The solution for a matrix that is singular up to rounding has no correct digits;
/// its [`rcond`](super::rcond) is about the machine epsilon.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `Singular`, and `Overflow` for a solution beyond
/// the range of the type, with the batch index.
pub fn solve<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<R> {
    systems::plain(SolveOp, a, b)
}

/// [`solve`] with the status of each system instead of an error: 0, or `i + 1` if pivot `i` is zero. The solution of
/// a failed system is NaN, its gradient is zero. A matrix that is singular up to rounding is not a failure; see
/// [`rcond`](super::rcond).
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn solve_ex<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<(R, M::Info)> {
    systems::status(SolveOp, a, b)
}

/// The solution and its tangent along `dA` and `dB`.
///
/// # Errors
/// As [`solve`].
pub fn solve_jvp<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    a: M,
    b: R,
    da: M,
    db: R,
) -> Result<(R, R)> {
    systems::jvp(SolveOp, a, b, da, db)
}

/// Solution of `op(T) X = B`; only the selected triangle is read.
///
/// # Errors
/// As [`solve`].
pub fn solve_triangular<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    t: M,
    b: R,
    triangle: Triangle,
) -> Result<R> {
    systems::plain(SolveTriangularOp { triangle }, t, b)
}

/// As [`solve_triangular`], with the status of each system as in [`solve_ex`].
///
/// # Errors
/// As [`solve_ex`].
pub fn solve_triangular_ex<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    t: M,
    b: R,
    triangle: Triangle,
) -> Result<(R, M::Info)> {
    systems::status(SolveTriangularOp { triangle }, t, b)
}

/// The solution and its tangent along `dT` and `dB`.
///
/// # Errors
/// As [`solve`].
pub fn solve_triangular_jvp<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    t: M,
    b: R,
    dt: M,
    db: R,
    triangle: Triangle,
) -> Result<(R, R)> {
    systems::jvp(SolveTriangularOp { triangle }, t, b, dt, db)
}

/// `X` with minimal `‖A X − B‖`, and minimal `‖X‖` if `A` is wide: `[…, m, n]`, `[…, m, r]` → `[…, n, r]`. `A` must
/// have full rank; for other matrices see [`lstsq_min_norm`].
///
/// # Errors
/// `Tensor` if the shapes do not match; `NonFinite`, `RankDeficient` with the batch index.
pub fn lstsq<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<R> {
    systems::plain(LstsqOp, a, b)
}

/// As [`lstsq`], with the status of each system: `i + 1` if diagonal entry `i` of `R` in a QR
/// factorisation is zero to rounding.
///
/// # Errors
/// As [`solve_ex`].
pub fn lstsq_ex<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<(R, M::Info)> {
    systems::status(LstsqOp, a, b)
}

/// The solution and its tangent along `dA` and `dB`.
///
/// # Errors
/// As [`lstsq`].
pub fn lstsq_jvp<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    a: M,
    b: R,
    da: M,
    db: R,
) -> Result<(R, R)> {
    systems::jvp(LstsqOp, a, b, da, db)
}

struct LstsqResiduals;

impl MatrixProgram for LstsqResiduals {
    const NAME: &'static str = "lstsq_residuals";

    fn run<A: Matrices>(&self, inputs: &[A]) -> Part<A> {
        Part::Real(residuals(&inputs[0], &inputs[1], &inputs[2]))
    }
}

/// The residual `Σᵢ |A X − B|²ᵢⱼ` of each right-hand side of [`lstsq`]: `[…, m, n]`, `[…, m, r]`,
/// `[…, n, r]` → `[…, r]`.
///
/// # Errors
/// `Tensor` if the shapes do not match.
pub fn lstsq_residuals<F, M: Matrix<F>>(a: M, b: M, x: M) -> Result<M::RealVector> {
    let inputs = [a.into_pair(), b.into_pair(), x.into_pair()];
    check_residuals(&inputs)?;
    Ok(M::real_vector(program::run(&LstsqResiduals, &inputs)?))
}

/// The residuals and their tangents along `dA`, `dB` and `dX`.
///
/// # Errors
/// As [`lstsq_residuals`]; `Tensor` if the shapes differ.
pub fn lstsq_residuals_jvp<F, M: Matrix<F>>(
    [a, b, x]: [M; 3],
    [da, db, dx]: [M; 3],
) -> Result<(M::RealVector, M::RealVector)> {
    let inputs = [a.into_pair(), b.into_pair(), x.into_pair()];
    check_residuals(&inputs)?;
    let tangents = [da.into_pair(), db.into_pair(), dx.into_pair()];
    let (value, tangent) = program::with_tangents(&LstsqResiduals, &inputs, &tangents)?;
    Ok((M::real_vector(value), M::real_vector(tangent)))
}

fn check_residuals<A: Array>(inputs: &[Pair<A>; 3]) -> Result<()> {
    let [a, b, x] = [&inputs[0], &inputs[1], &inputs[2]].map(Pair::shape);
    check_rows(LstsqResiduals::NAME, &inputs[0], &inputs[1])?;
    let batch = a.len() - 2;
    if x[..batch] != a[..batch] || x[batch] != a[batch + 1] || x[batch + 1] != b[batch + 1] {
        let required = "a solution […, n, r]";
        return Err(TensorError::shapes(LstsqResiduals::NAME, &a, &x, required).into());
    }
    Ok(())
}

/// Minimum-norm solution `X = A⁺ B`, for any rank; `rtol` as in [`pinv`].
///
/// # Errors
/// As [`pinv`]; `Tensor` if the shapes do not match.
pub fn lstsq_min_norm<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    a: M,
    b: R,
    rtol: Option<f64>,
) -> Result<R> {
    systems::plain(LstsqMinNormOp { rtol }, a, b)
}

/// As [`lstsq_min_norm`], with the status of each system.
///
/// # Errors
/// As [`solve_ex`].
pub fn lstsq_min_norm_ex<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    a: M,
    b: R,
    rtol: Option<f64>,
) -> Result<(R, M::Info)> {
    systems::status(LstsqMinNormOp { rtol }, a, b)
}

/// The solution and its tangent along `dA` and `dB`, at constant rank.
///
/// # Errors
/// As [`lstsq_min_norm`].
pub fn lstsq_min_norm_jvp<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    a: M,
    b: R,
    da: M,
    db: R,
    rtol: Option<f64>,
) -> Result<(R, R)> {
    systems::jvp(LstsqMinNormOp { rtol }, a, b, da, db)
}

/// Checks that right-hand sides have the batch and the rows of `a`.
pub(super) fn check_rows<A: Array>(op: &'static str, a: &Pair<A>, b: &Pair<A>) -> Result<()> {
    let (a, b) = (a.shape(), b.shape());
    let last = a.len() - 1;
    match a[..last] == b[..last] {
        true => Ok(()),
        false => Err(TensorError::shapes(op, &a, &b, "[…, m, n] and […, m, r]").into()),
    }
}

/// Inverse `A⁻¹`. Prefer [`solve`] to a product with an inverse. The inverse of a matrix that is singular up to
/// rounding has no correct digits; see [`rcond`](super::rcond).
///
/// # Errors
/// As [`solve`].
pub fn inv<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(InvOp, [a], one)
}

/// As [`inv`], with the status of each matrix as in [`solve_ex`].
///
/// # Errors
/// As [`solve_ex`].
pub fn inv_ex<F, M: Matrix<F>>(a: M) -> Result<(M, M::Info)> {
    status(InvOp, [a], one)
}

/// `A⁻¹` and its tangent along `dA`.
///
/// # Errors
/// As [`solve`].
pub fn inv_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M, M)> {
    jvp(InvOp, [a], [da], one)
}

/// Pseudoinverse `[…, n, m]`; singular values up to `rtol` times the largest are dropped, with `None` those that are
/// zero up to rounding. Its derivative is that at constant rank.
///
/// # Errors
/// `NonFinite`, `NoConvergence` with the batch index; `Tensor` for a cutoff below zero.
pub fn pinv<F, M: Matrix<F>>(a: M, rtol: Option<f64>) -> Result<M> {
    plain(PinvOp { rtol }, [a], one)
}

/// As [`pinv`], with the status of each matrix as in [`solve_ex`].
///
/// # Errors
/// As [`solve_ex`].
pub fn pinv_ex<F, M: Matrix<F>>(a: M, rtol: Option<f64>) -> Result<(M, M::Info)> {
    status(PinvOp { rtol }, [a], one)
}

/// The pseudoinverse and its tangent along `dA`.
///
/// # Errors
/// As [`pinv`].
pub fn pinv_jvp<F, M: Matrix<F>>(a: M, da: M, rtol: Option<f64>) -> Result<(M, M)> {
    jvp(PinvOp { rtol }, [a], [da], one)
}

/// Determinant `det A`, `[…]`. Singular matrices have derivatives of every order too.
///
/// # Errors
/// `NotSquare`; `NonFinite` with the batch index.
pub fn det<F, M: Matrix<F>>(a: M) -> Result<M::Number> {
    plain(DetOp, [a], number::<F, M>)
}

fn number<F, M: Matrix<F>>(mut parts: ResultsOf<F, M>) -> M::Number {
    M::number(parts.swap_remove(0))
}

/// [`det`] with the status of each matrix; a singular matrix is not a failure.
///
/// # Errors
/// As [`solve_ex`].
pub fn det_ex<F, M: Matrix<F>>(a: M) -> Result<(M::Number, M::Info)> {
    status(DetOp, [a], number::<F, M>)
}

/// `det A` and its tangent along `dA`.
///
/// # Errors
/// As [`det`].
pub fn det_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M::Number, M::Number)> {
    jvp(DetOp, [a], [da], number::<F, M>)
}

/// Sign (a phase, if complex) of `det A` and `ln|det A|`, each `[…]`; 0 and −∞ for a singular matrix, which has no
/// gradient.
///
/// # Errors
/// As [`det`].
pub fn slogdet<F, M: Matrix<F>>(a: M) -> Result<(M::Number, M::RealNumber)> {
    plain(SlogdetOp, [a], numbers::<F, M>)
}

/// [`slogdet`] with the status of each matrix; a singular matrix is not a failure.
///
/// # Errors
/// As [`solve_ex`].
#[allow(clippy::type_complexity)]
pub fn slogdet_ex<F, M: Matrix<F>>(a: M) -> Result<((M::Number, M::RealNumber), M::Info)> {
    status(SlogdetOp, [a], numbers::<F, M>)
}

/// Sign and logarithm of the determinant, and the tangents of both along `dA`.
///
/// # Errors
/// As [`slogdet`]; `RankDeficient`.
#[allow(clippy::type_complexity)]
pub fn slogdet_jvp<F, M: Matrix<F>>(
    a: M,
    da: M,
) -> Result<((M::Number, M::RealNumber), (M::Number, M::RealNumber))> {
    jvp(SlogdetOp, [a], [da], numbers::<F, M>)
}

fn numbers<F, M: Matrix<F>>(parts: ResultsOf<F, M>) -> (M::Number, M::RealNumber) {
    let [sign, log] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    (M::number(sign), M::real_number(log))
}
