//! Elementwise functions of structured tensors, and the check that entries outside of the structure vanish.

use t4a_diff::Array;
use t4a_einsum::{FloatSemiring, contract_arrays};
use t4a_tensor::DType;

use crate::error::{Result, StructuredError};

/// Applies `f` to all entries after checking `f(0) = 0`.
pub(crate) fn mapped<A: Array>(op: &'static str, x: &A, f: impl Fn(&A) -> A) -> Result<A> {
    let zero = f(&x.full(&[1], 0.0).detach()).elements()?.cast(DType::F64)?;
    let zero = zero.typed::<f64>()?.to_vec()?;
    if zero != [0.0] {
        let message = format!(
            "a function with f(0) = {zero:?}: entries that are not stored would change; \
                               make the tensor dense first"
        );
        return Err(StructuredError::Invalid { op, message });
    }
    let y = f(x);
    if y.shape() != x.shape() {
        let (required, given) = (x.shape(), y.shape());
        return Err(StructuredError::Shape { op, required, given });
    }
    Ok(y)
}

/// Zero of a semiring: its empty sum.
pub(crate) fn zero_of(semiring: FloatSemiring) -> Result<f64> {
    let none = |shape: &[usize]| -> Result<t4a_diff::Eager> {
        Ok(t4a_tensor::AnyTensor::zeros(shape, DType::F64)?.into())
    };
    let sum = contract_arrays(semiring, "ij,jk->ik", &[&none(&[1, 0])?, &none(&[0, 1])?])?;
    let sum = sum.into_tensor()?;
    Ok(sum.typed::<f64>()?.to_vec()?[0])
}

/// Returns an error with the first entry that is not stored and exceeds the tolerance.
pub(crate) fn check_stored<A: Array>(
    op: &'static str,
    dense: &A,
    stored: &[bool],
    tolerance: f64,
) -> Result<()> {
    let (shape, wide) = (dense.shape(), dense.elements()?.cast(DType::F64)?.to_contiguous()?);
    let values = wide.typed::<f64>()?.to_vec()?;
    // NaN exceeds every tolerance.
    let exceeds = |x: f64| x.is_nan() || x.abs() > tolerance;
    let found = values.iter().zip(stored).position(|(&x, &stored)| !stored && exceeds(x));
    let Some(position) = found else { return Ok(()) };
    let (mut rest, mut index) = (position, vec![0; shape.len()]);
    for axis in (0..shape.len()).rev() {
        index[axis] = rest % shape[axis];
        rest /= shape[axis];
    }
    Err(StructuredError::NotStored { op, index, value: values[position] })
}
