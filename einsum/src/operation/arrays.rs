//! Contractions of arrays, recorded if the arrays are tracked by a tape.

use t4a_diff::Array;
use t4a_diff::array::first_error;
use t4a_tensor::DType;

use super::{Contraction, FloatSemiring};
use crate::einsum::Einsum;
use crate::error::Result;

/// The einsum of arrays over a semiring, with a cached plan.
///
/// # Errors
/// Those of [`Einsum::plan`] and of the [`Contraction`]; the first error carried by an operand.
pub fn contract_arrays<A: Array>(
    semiring: FloatSemiring,
    subscripts: &str,
    operands: &[&A],
) -> Result<A> {
    let shapes: Vec<Vec<usize>> = operands.iter().map(|x| x.shape()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let element = operands.first().map_or(DType::F64, |x| x.dtype()).size();
    let plan = Einsum::new(subscripts)?.plan(&shapes, element);
    let plan = plan.map_err(|error| first_error(operands, error))?;
    let operands: Vec<A> = operands.iter().map(|&x| x.clone()).collect();
    Contraction { plan, semiring }.one(&operands)
}
