//! Execution of functions generic over [`Matrices`] on arrays. A tape records each of their operations, so they have
//! gradients of any order; on dual numbers they have tangents.

use t4a_diff::Array;

use crate::call::Pair;
use crate::error::Result;
use crate::operation::{Over, Part, PartKind};
use crate::vocabulary::{ComplexMatrix, Matrices, RealMatrix};

/// Function of matrices, generic over [`Matrices`].
pub trait MatrixProgram {
    /// Name in errors.
    const NAME: &'static str;

    /// Value of the function.
    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M>;
}

fn value<A: Array, M: Over<A>, P: MatrixProgram>(
    program: &P,
    inputs: &[Pair<A>],
) -> Result<Pair<A>> {
    let mut arrays = inputs.iter().flat_map(Pair::arrays);
    let inputs = inputs.iter().map(|_| Ok(M::read(PartKind::Full, &mut arrays)?.into_full()));
    let inputs = inputs.collect::<Result<Vec<M>>>()?;
    let mut out = Vec::new();
    M::write(program.run(&inputs), &mut out)?;
    Ok(Pair::read(out.len() == 2, &mut out.into_iter()))
}

/// Value of a program.
///
/// # Errors
/// Errors of its operations.
pub fn run<A: Array, P: MatrixProgram>(program: &P, inputs: &[Pair<A>]) -> Result<Pair<A>> {
    match inputs.iter().any(Pair::is_complex) {
        true => value::<A, ComplexMatrix<A>, P>(program, inputs),
        false => value::<A, RealMatrix<A>, P>(program, inputs),
    }
    .map_err(|error| error.of(P::NAME))
}
