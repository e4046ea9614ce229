//! Structured operations on flat arrays as values: shapes, portable definitions, derivative rules.
//!
//! ```text
//! Rearrange      y = R x: permute, fuse, split, trace, signs, dense conversion; the vjp is Rᵀ
//! Contract       matrix products of coupled sectors; the vjp is two contractions
//! ContractOver   contraction over another semiring
//! Network        sequence of rearrangements and contractions as one operation
//! ByMatrix       factorisations and functions of each matrix
//! ScaleBond      entries times the values of a diagonal tensor on a leg
//! Inner, Norm    inner product and norm of all entries
//! ```
//!
//! The operations contain no sectors; these are in the structures stored next to the arrays. Sums, multiples and
//! elementwise functions of tensors with one structure are those of their arrays.

mod by_matrix;
mod contract;
mod network;
mod number;
mod rearrange;
mod scale;
mod semiring;

pub use by_matrix::ByMatrix;
pub use contract::Contract;
pub use network::ContractionNetwork;
pub use number::{FrobeniusNorm, InnerProduct};
pub use rearrange::Rearrange;
pub use scale::ScaleBond;
pub use semiring::ContractOver;

use t4a_diff::array::Kernel;
use t4a_diff::{Array, Meta, Operation, Value};

use crate::error::{Result, StructuredError};

/// Serialisation of plans, which operations share through `Arc`.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        plan: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        T::serialize(plan, serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// Checks that the operands are flat, of these lengths and of one float dtype.
fn check(op: &'static str, lens: &[usize], inputs: &[Meta]) -> Result<()> {
    if inputs.len() != lens.len() {
        let message = format!("{} operands are required, given {}", lens.len(), inputs.len());
        return Err(StructuredError::Invalid { op, message });
    }
    for (&required, Meta { shape, dtype }) in lens.iter().zip(inputs) {
        if shape[..] != [required] {
            let (required, given) = (vec![required], shape.clone());
            return Err(StructuredError::Shape { op, required, given });
        }
        if *dtype != inputs[0].dtype {
            let (required, given) = (inputs[0].dtype, *dtype);
            return Err(StructuredError::DType { op, required, given });
        }
    }
    match inputs.first() {
        Some(first) if !first.dtype.is_float() => Err(crate::kernels::unsupported(op, first.dtype)),
        _ => Ok(()),
    }
}

/// Kernels of a definition with these parts; none if a part is not a kernel.
fn kernels_of(parts: impl Iterator<Item = Vec<Kernel>>) -> Vec<Kernel> {
    let all: Vec<Vec<Kernel>> = parts.collect();
    if all.iter().any(Vec::is_empty) { Vec::new() } else { all.concat() }
}

/// Applies an operation to these arrays; returns all results.
pub(crate) fn apply<A: Array, O: Operation<Error = StructuredError>>(
    op: &O,
    inputs: &[&A],
) -> Result<Vec<A>> {
    let inputs: Vec<Value<A>> = inputs.iter().map(|&x| Value::Float(x.clone())).collect();
    let tracked = vec![false; inputs.len()];
    Ok(A::apply(op, &inputs, &tracked)?.results)
}

/// Applies an operation with one result.
pub(crate) fn one<A: Array, O: Operation<Error = StructuredError>>(
    op: &O,
    inputs: &[&A],
) -> Result<A> {
    let results = apply(op, inputs)?;
    Ok(results.into_iter().next().unwrap_or_else(|| unreachable!("one result")))
}
