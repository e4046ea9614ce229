//! Functions written in the vocabulary, on the primitives of a backend: on a tape each of their
//! operations is recorded, so they have gradients of any order; on duals they have tangents.

use t4a_linalg::Result;
use t4a_linalg::op::Part;
use t4a_linalg::vocabulary::{Dual, Matrices};
use t4a_tensor::TensorError;

use super::matrices::{ComplexMatrix, Entries, RealMatrix};
use super::ops::LinalgOps;
use super::rules::{matrices, value};
use super::value::Value;
use crate::v0_21::engine_dtype;

/// A function of matrices.
pub(super) trait Program {
    /// Its name in errors.
    const NAME: &'static str;

    /// The value.
    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M>;
}

/// The value.
pub(super) fn run<B: LinalgOps, P: Program>(program: &P, inputs: &[Value<B>]) -> Result<Value<B>> {
    fn on<B: LinalgOps, A: Entries<B>, P: Program>(
        program: &P,
        inputs: &[Value<B>],
    ) -> Result<Value<B>> {
        value(program.run(&matrices::<B, A>(inputs)))
    }
    match inputs.iter().any(Value::is_complex) {
        true => on::<B, ComplexMatrix<B>, P>(program, inputs),
        false => on::<B, RealMatrix<B>, P>(program, inputs),
    }
    .map_err(|error| error.of(P::NAME))
}

/// The value and its tangent.
pub(super) fn along<B: LinalgOps, P: Program>(
    program: &P,
    inputs: &[Value<B>],
    tangents: &[Value<B>],
) -> Result<(Value<B>, Value<B>)> {
    fn on<B: LinalgOps, A: Entries<B>, P: Program>(
        program: &P,
        inputs: &[Value<B>],
        tangents: &[Value<B>],
    ) -> Result<(Value<B>, Value<B>)> {
        let pairs = matrices::<B, A>(inputs).into_iter().zip(matrices::<B, A>(tangents));
        let duals: Vec<Dual<A>> = pairs.map(|(x, dx)| Dual::new(x, dx)).collect();
        Ok(match program.run(&duals) {
            Part::Full(y) => (y.value.clone().into_value()?, y.into_tangent().into_value()?),
            Part::Real(y) => (y.value.clone().into_value()?, y.into_tangent().into_value()?),
            Part::Complex(y) => (y.value.clone().into_value()?, y.into_tangent().into_value()?),
        })
    }
    for (x, dx) in inputs.iter().zip(tangents) {
        if x.shape() != dx.shape() {
            let required = "a tangent has the shape of its input";
            return Err(TensorError::shapes(P::NAME, &x.shape(), &dx.shape(), required).into());
        }
        let (lhs, rhs) = (engine_dtype(x.dtype())?, engine_dtype(dx.dtype())?);
        if lhs != rhs {
            return Err(TensorError::DTypeMismatch { op: P::NAME, lhs, rhs }.into());
        }
    }
    match inputs.iter().any(Value::is_complex) {
        true => on::<B, ComplexMatrix<B>, P>(program, inputs, tangents),
        false => on::<B, RealMatrix<B>, P>(program, inputs, tangents),
    }
    .map_err(|error| error.of(P::NAME))
}
