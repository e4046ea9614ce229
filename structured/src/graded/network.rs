//! Einsum of graded tensors.

use t4a_diff::Array;

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::operation::{ContractionNetwork, apply};
use crate::sector::Sector;
use crate::spec::Spec;

/// Einsum of graded tensors as one operation; see [`Spec::einsum`]. The result is complex if any operand is.
///
/// # Errors
/// As [`Spec::einsum`]; `DType`.
pub fn einsum<S: Sector, A: Array>(
    subscripts: &str,
    operands: &[&GradedTensor<S, A>],
) -> Result<GradedTensor<S, A>> {
    let specs: Vec<&Spec<S>> = operands.iter().map(|x| &x.spec).collect();
    let (spec, plan) = Spec::einsum(subscripts, &specs)?;
    let complex = operands.iter().any(|x| x.im.is_some());
    let mut arrays = Vec::new();
    for x in operands {
        let (op, required, given) = ("einsum", operands[0].re.dtype(), x.re.dtype());
        if required != given {
            return Err(StructuredError::DType { op, required, given });
        }
        arrays.push(x.re.clone());
        arrays.extend(complex.then(|| x.imaginary()));
    }
    let results =
        apply(&ContractionNetwork { complex, ..plan }, &arrays.iter().collect::<Vec<_>>())?;
    GradedTensor::of_results(spec, results)
}
