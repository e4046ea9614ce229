//! Diagonals and traces.

use crate::operation::Part;
use crate::program::{self, MatrixProgram};
use crate::vocabulary::Matrices;
use crate::{LinalgError, Result};

use super::matrix::Matrix;

struct DiagonalOf;

impl MatrixProgram for DiagonalOf {
    const NAME: &'static str = "diag";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Full(inputs[0].diagonal())
    }
}

/// Diagonal of each matrix, `[…, m, n]` → `[…, min(m, n)]`. Linear: its tangent is the diagonal of the tangent. Cost
/// `O(m n)`.
///
/// # Errors
/// `Tensor` for lack of memory.
pub fn diag<F, M: Matrix<F>>(a: M) -> Result<M::Vector> {
    Ok(M::vectors(program::run(&DiagonalOf, &[a.into_pair()])?))
}

struct Embedded;

impl MatrixProgram for Embedded {
    const NAME: &'static str = "diag_embed";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Full(inputs[0].diagonal_matrix())
    }
}

/// Diagonal matrix of each vector, `[…, n]` → `[…, n, n]`. Linear.
///
/// # Errors
/// `Tensor` for lack of memory.
pub fn diag_embed<F, M: Matrix<F>>(diagonal: M::Vector) -> Result<M> {
    Ok(M::from_pair(program::run(&Embedded, &[M::rows(diagonal)])?))
}

struct Trace;

impl MatrixProgram for Trace {
    const NAME: &'static str = "trace";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Full(inputs[0].trace())
    }
}

/// Trace of each matrix, `[…, n, n]` → `[…]`. Linear.
///
/// # Errors
/// `NotSquare`.
pub fn trace<F, M: Matrix<F>>(a: M) -> Result<M::Number> {
    let a = a.into_pair();
    let shape = a.shape();
    match shape[shape.len() - 2..] {
        [m, n] if m == n => Ok(M::number(program::run(&Trace, &[a])?)),
        _ => Err(LinalgError::NotSquare { op: Trace::NAME, shape }),
    }
}
