//! Functions written in the vocabulary, on arrays: a tape records each of their operations, so they
//! have gradients of any order; on duals they have tangents.

use t4a_diff::Array;

use crate::call::{Pair, check_tangents, duals, parted};
use crate::error::Result;
use crate::operation::{Over, Part, PartKind};
use crate::vocabulary::{ComplexMatrix, Matrices, RealMatrix};

/// A function of matrices.
pub trait Program {
    /// Its name in errors.
    const NAME: &'static str;

    /// The value.
    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M>;
}

fn value<A: Array, M: Over<A>, P: Program>(program: &P, inputs: &[Pair<A>]) -> Result<Pair<A>> {
    let mut arrays = inputs.iter().flat_map(Pair::arrays);
    let inputs = inputs.iter().map(|_| Ok(M::read(PartKind::Full, &mut arrays)?.into_full()));
    let inputs = inputs.collect::<Result<Vec<M>>>()?;
    let mut out = Vec::new();
    M::write(program.run(&inputs), &mut out)?;
    Ok(Pair::read(out.len() == 2, &mut out.into_iter()))
}

/// The value.
///
/// # Errors
/// Those of the operations it consists of.
pub fn run<A: Array, P: Program>(program: &P, inputs: &[Pair<A>]) -> Result<Pair<A>> {
    match inputs.iter().any(Pair::is_complex) {
        true => value::<A, ComplexMatrix<A>, P>(program, inputs),
        false => value::<A, RealMatrix<A>, P>(program, inputs),
    }
    .map_err(|error| error.of(P::NAME))
}

/// The value and its tangent.
///
/// # Errors
/// As [`run`]; `Tensor` for tangents of other shapes or dtypes.
pub fn with_tangents<A: Array, P: Program>(
    program: &P,
    inputs: &[Pair<A>],
    tangents: &[Pair<A>],
) -> Result<(Pair<A>, Pair<A>)> {
    check_tangents(P::NAME, inputs, tangents)?;
    run(program, &duals(inputs, tangents)).map(parted)
}
