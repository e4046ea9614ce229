//! Linear systems, least squares, determinants and inverses.

use crate::Result;
use crate::call::{OperationResults, Pair};
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

use super::call::{Composition, ResultsOf, functions, one, parts, plain, row};
use super::matrix::{Matrix, RightHandSide};
use super::systems::systems;

systems!(
    SolveOp, SolveTriangularOp, LstsqOp, LstsqMinNormOp:
    RightHandSide::into_columns, RightHandSide::from_columns
);

functions! {
    LstsqResidualsOp: (M, M, M) -> M::RealVector = row::<F, M>;
    InvOp: M -> M = one;
    PinvOp: M -> M = one;
    DetOp: M -> M::Number = determinant::<F, M>;
    SlogdetOp: M -> (M::Number, M::RealNumber) = logarithm::<F, M>;
}

/// Solution of `A X = B`: `[…, n, n]`, `[…, n, r]` → `[…, n, r]`, or of `A x = b` for vectors `[…, n]`. Batches
/// broadcast ([`RightHandSide`]). The solution for a matrix that is singular up to rounding has no correct digits;
/// its [`rcond`](super::rcond) is about the machine epsilon.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `Singular`, and `Overflow` for a solution beyond
/// the range of the type, with the batch index.
pub fn solve<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<R> {
    plain(SolveOp, (a, b))
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
    plain(SolveTriangularOp { triangle }, (t, b))
}

/// `X` with minimal `‖A X − B‖`, and minimal `‖X‖` if `A` is wide: `[…, m, n]`, `[…, m, r]` → `[…, n, r]`. `A` must
/// have full rank; for other matrices see [`lstsq_min_norm`].
///
/// # Errors
/// `Tensor` if the shapes do not match; `NonFinite`, `RankDeficient` with the batch index.
pub fn lstsq<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<R> {
    plain(LstsqOp, (a, b))
}

struct Residuals;

impl MatrixProgram for Residuals {
    const NAME: &'static str = "lstsq_residuals";

    fn run<A: Matrices>(&self, inputs: &[A]) -> Part<A> {
        Part::Real(residuals(&inputs[0], &inputs[1], &inputs[2]))
    }
}

/// `A`, `B`, `X` → `Σᵢ |A X − B|²ᵢⱼ`.
#[derive(Clone, Copy, Debug)]
pub struct LstsqResidualsOp;

impl Composition for LstsqResidualsOp {
    fn name(&self) -> &'static str {
        Residuals::NAME
    }

    fn run<A: Array>(&self, operands: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        let [a, b, x] = [0, 1, 2].map(|i| operands[i].shape());
        check_rows(self.name(), &operands[0], &operands[1])?;
        let batch = a.len() - 2;
        if x[..batch] != a[..batch] || x[batch] != a[batch + 1] || x[batch + 1] != b[batch + 1] {
            let required = "a solution […, n, r]";
            return Err(TensorError::shapes(self.name(), &a, &x, required).into());
        }
        Ok(OperationResults::one(program::run(&Residuals, &operands)?))
    }
}

/// The residual `Σᵢ |A X − B|²ᵢⱼ` of each right-hand side of [`lstsq`]: `[…, m, n]`, `[…, m, r]`,
/// `[…, n, r]` → `[…, r]`.
///
/// # Errors
/// `Tensor` if the shapes do not match.
pub fn lstsq_residuals<F, M: Matrix<F>>(a: M, b: M, x: M) -> Result<M::RealVector> {
    plain(LstsqResidualsOp, (a, b, x))
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
    plain(LstsqMinNormOp { rtol }, (a, b))
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
    plain(InvOp, a)
}

/// Pseudoinverse `[…, n, m]`; singular values up to `rtol` times the largest are dropped, with `None` those that are
/// zero up to rounding. Its derivative is that at constant rank.
///
/// # Errors
/// `NonFinite`, `NoConvergence` with the batch index; `Tensor` for a cutoff below zero.
pub fn pinv<F, M: Matrix<F>>(a: M, rtol: Option<f64>) -> Result<M> {
    plain(PinvOp { rtol }, a)
}

/// Determinant `det A`, `[…]`. Singular matrices have derivatives of every order too.
///
/// # Errors
/// `NotSquare`; `NonFinite` with the batch index.
pub fn det<F, M: Matrix<F>>(a: M) -> Result<M::Number> {
    plain(DetOp, a)
}

fn determinant<F, M: Matrix<F>>(out: ResultsOf<F, M>) -> Result<M::Number> {
    let [det] = parts(out);
    Ok(M::number(det))
}

/// Sign (a phase, if complex) of `det A` and `ln|det A|`, each `[…]`; 0 and −∞ for a singular matrix, which has no
/// gradient.
///
/// # Errors
/// As [`det`].
pub fn slogdet<F, M: Matrix<F>>(a: M) -> Result<(M::Number, M::RealNumber)> {
    plain(SlogdetOp, a)
}

fn logarithm<F, M: Matrix<F>>(out: ResultsOf<F, M>) -> Result<(M::Number, M::RealNumber)> {
    let [sign, log] = parts(out);
    Ok((M::number(sign), M::real_number(log)))
}
