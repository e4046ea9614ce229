//! An operation in its three forms: plain, with the status of each matrix, with a tangent
//! ([`t4a_linalg::call`]).
//!
//! A function of this module is one of these forms, an operation and a way to read its results.

use t4a_linalg::call::{self, Found, Pair};
use t4a_linalg::{MatrixOp, Result};

use super::matrix::Matrix;
use crate::ext::primitive::Floats;

/// The results of an operation.
pub(super) type Parts<M> = Vec<Part<M>>;
/// One of them.
pub(super) type Part<M> = Pair<Floats<<M as Matrix>::Backend>>;
/// All that an operation returns.
pub(super) type Outcome<M> = Found<Floats<<M as Matrix>::Backend>>;

fn pairs<M: Matrix, const N: usize>(inputs: [M; N]) -> Parts<M> {
    inputs.into_iter().map(M::into_pair).collect()
}

/// All that `op` returns.
pub(super) fn results<M: Matrix, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
) -> Result<Outcome<M>> {
    call::run(op, &pairs(inputs))
}

/// The results of `op`.
pub(super) fn plain<M: Matrix, R, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
    read: impl Fn(Parts<M>) -> R,
) -> Result<R> {
    Ok(read(results(op, inputs)?.results))
}

/// As [`status`], with all that `op` returns.
pub(super) fn results_ex<M: Matrix, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
) -> Result<(Outcome<M>, M::Info)> {
    let inputs = pairs(inputs);
    let like = inputs[0].re.clone();
    let (out, info) = call::with_status(op, inputs)?;
    Ok((out, M::info(&info, &like)?))
}

/// The results of `op`, those of failed matrices NaN, and the status of each matrix.
pub(super) fn status<M: Matrix, R, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
    read: impl Fn(Parts<M>) -> R,
) -> Result<(R, M::Info)> {
    let (out, info) = results_ex(op, inputs)?;
    Ok((read(out.results), info))
}

/// As [`jvp`], with all that `op` returns.
pub(super) fn results_jvp<M: Matrix, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
    tangents: [M; N],
) -> Result<(Outcome<M>, Parts<M>)> {
    call::with_tangents(op, &pairs(inputs), &pairs(tangents))
}

/// The results of `op` and their tangents, which are differentiable in turn.
pub(super) fn jvp<M: Matrix, R, const N: usize>(
    op: impl Into<MatrixOp>,
    inputs: [M; N],
    tangents: [M; N],
    read: impl Fn(Parts<M>) -> R,
) -> Result<(R, R)> {
    let (out, tangents) = results_jvp(op, inputs, tangents)?;
    Ok((read(out.results), read(tangents)))
}
