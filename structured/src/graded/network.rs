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
///
/// ```
/// use t4a_diff::check;
/// use t4a_structured::{Direction, GradedTensor, Leg, U1, einsum};
/// use t4a_tensor::DType;
///
/// // The trace of the identity of two spins that conserves their magnetisation.
/// let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
/// let one = GradedTensor::identity(&[spin.clone(), spin], DType::F64)?;
/// let trace = einsum("abcd,cdab->", &[&one, &one])?;
/// assert_eq!(check::elements(&trace.to_dense()?.0), [4.0]);
/// # Ok::<(), t4a_structured::StructuredError>(())
/// ```
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
