//! The three forms of an operation: plain, with the status of each matrix, and with a tangent ([`crate::call`]).
//!
//! A function of this module combines a form, an operation and a conversion of its results.

use crate::call::{self, OperationResults, Pair};
use crate::{MatrixOp, Result};

use super::matrix::Matrix;

/// Results of an operation.
pub(super) type ResultsOf<F, M> = Vec<ResultOf<F, M>>;
/// One result.
pub(super) type ResultOf<F, M> = Pair<<M as Matrix<F>>::Array>;
/// Results and permutations of an operation.
pub(super) type OutcomeOf<F, M> = OperationResults<<M as Matrix<F>>::Array>;

fn pairs<F, M: Matrix<F>, const N: usize>(inputs: [M; N]) -> ResultsOf<F, M> {
    inputs.into_iter().map(M::into_pair).collect()
}

/// Results and permutations of `op`.
pub(super) fn results<F, M: Matrix<F>, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
) -> Result<OutcomeOf<F, M>> {
    call::run(op, &pairs(inputs))
}

/// Results of `op`.
pub(super) fn plain<F, M: Matrix<F>, R, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
    read: impl Fn(ResultsOf<F, M>) -> R,
) -> Result<R> {
    Ok(read(results(op, inputs)?.results))
}

/// [`status`] with the permutations.
pub(super) fn results_ex<F, M: Matrix<F>, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
) -> Result<(OutcomeOf<F, M>, M::Info)> {
    let inputs = pairs(inputs);
    let like = inputs[0].re.clone();
    let (out, info) = call::with_status(op, inputs)?;
    Ok((out, M::info(&info, &like)?))
}

/// Results of `op`, with NaN for failed matrices, and the status of each matrix.
pub(super) fn status<F, M: Matrix<F>, R, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
    read: impl Fn(ResultsOf<F, M>) -> R,
) -> Result<(R, M::Info)> {
    let (out, info) = results_ex(op, inputs)?;
    Ok((read(out.results), info))
}

/// [`jvp`] with the permutations.
pub(super) fn results_jvp<F, M: Matrix<F>, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
    tangents: [M; N],
) -> Result<(OutcomeOf<F, M>, ResultsOf<F, M>)> {
    call::with_tangents(op, &pairs(inputs), &pairs(tangents))
}

/// Results of `op` and their tangents, which are differentiable too.
pub(super) fn jvp<F, M: Matrix<F>, R, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
    tangents: [M; N],
    read: impl Fn(ResultsOf<F, M>) -> R,
) -> Result<(R, R)> {
    let (out, tangents) = results_jvp(op, inputs, tangents)?;
    Ok((read(out.results), read(tangents)))
}

/// Matrix of an operation with one result.
pub(super) fn one<F, M: Matrix<F>>(mut parts: ResultsOf<F, M>) -> M {
    M::from_pair(parts.swap_remove(0))
}
