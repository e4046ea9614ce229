//! Structured operations as values over flat arrays: shapes, portable definitions, rules.
//!
//! ```text
//! Rearrange   y = R x: permute, fuse, split, trace, signs, dense conversion; the vjp is Rᵀ
//! Contract    matrix products of coupled sectors; the vjp is two of them
//! ```
//!
//! They know no sectors: those are in the structures beside the arrays.

mod contract;
mod rearrange;

pub use contract::Contract;
pub use rearrange::Rearrange;

use t4a_diff::{Array, Meta, Operation, Value};

use crate::error::{Result, StructuredError};

/// Plans that operations share, as data.
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

/// Checks flat operands of these lengths and of one float dtype.
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

/// The results of an operation on these arrays.
pub(crate) fn apply<A: Array, O: Operation<Error = StructuredError>>(
    op: &O,
    inputs: &[&A],
) -> Result<Vec<A>> {
    let inputs: Vec<Value<A>> = inputs.iter().map(|&x| Value::Float(x.clone())).collect();
    let tracked = vec![false; inputs.len()];
    Ok(A::apply(op, &inputs, &tracked)?.results)
}

/// The result of an operation that has one.
pub(crate) fn one<A: Array, O: Operation<Error = StructuredError>>(
    op: &O,
    inputs: &[&A],
) -> Result<A> {
    let results = apply(op, inputs)?;
    Ok(results.into_iter().next().unwrap_or_else(|| unreachable!("one result")))
}
