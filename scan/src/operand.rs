//! Operands: checks before any work, and conversion of engine tensors to contiguous elements of one type.

use t4a_diff::{Eager, Meta};
use t4a_tensor::route::{Path, Route};
use t4a_tensor::{AnyTensor, DType, Element, Result, Tensor, TensorError};

/// Checks the number of operands.
pub(crate) fn count(op: &'static str, inputs: &[Meta], wanted: usize) -> Result<()> {
    if inputs.len() == wanted {
        return Ok(());
    }
    let message = format!("required {wanted} operands, given {}", inputs.len());
    Err(TensorError::value(op, message))
}

/// Checks that operands are floats of one dtype.
pub(crate) fn floats(op: &'static str, inputs: &[Meta]) -> Result<()> {
    let first = inputs[0].dtype;
    if !first.is_float() {
        return Err(TensorError::DTypeUnsupported { op, dtype: first, expected: "a float" });
    }
    match inputs.iter().find(|x| x.dtype != first) {
        Some(other) => Err(TensorError::DTypeMismatch { op, lhs: first, rhs: other.dtype }),
        None => Ok(()),
    }
}

/// Checks that the axis exists.
pub(crate) fn axis(op: &'static str, axis: usize, shape: &[usize]) -> Result<()> {
    let rank = shape.len();
    if axis < rank { Ok(()) } else { Err(TensorError::Axis { op, axis, rank }) }
}

/// Checks that operands have the shape of the first.
pub(crate) fn same_shape(op: &'static str, inputs: &[Meta], required: &'static str) -> Result<()> {
    let first = &inputs[0].shape;
    match inputs.iter().find(|x| x.shape != *first) {
        Some(other) => Err(TensorError::shapes(op, first, &other.shape, required)),
        None => Ok(()),
    }
}

/// Operands converted to the compute type of their dtype, row-major.
pub(crate) fn wide<T: Element, const N: usize>(operands: [&Eager; N]) -> Result<[Tensor<T>; N]> {
    let one = |x: &Eager| x.tensor()?.clone().cast(T::DTYPE)?.to_contiguous()?.into_typed::<T>();
    let all = operands.into_iter().map(one).collect::<Result<Vec<_>>>()?;
    Ok(all.try_into().unwrap_or_else(|_| unreachable!("N of them")))
}

/// The elements of a contiguous tensor.
pub(crate) fn elements<T: Element>(x: &Tensor<T>) -> &[T] {
    x.as_slice().unwrap_or_else(|| unreachable!("the tensor is contiguous"))
}

/// Converts a result of a fused kernel to its shape and dtype.
pub(crate) fn narrow<T: Element>(
    result: Tensor<T>,
    shape: &[usize],
    dtype: DType,
) -> Result<AnyTensor> {
    let route = Route::promoted(Path::Fused, dtype != T::DTYPE);
    Ok(AnyTensor::from(result).cast(dtype)?.reshape(shape)?.with_route(route))
}

/// Binds `$t` to the compute type of a float dtype.
macro_rules! computed_in {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {{
        let dtype: t4a_tensor::DType = $dtype;
        t4a_tensor::with_dtype!(dtype.accumulator(), $t in [float] => $body, else => {
            Err(t4a_tensor::TensorError::DTypeUnsupported { op: $op, dtype, expected: "a float" })
        })
    }};
}
pub(crate) use computed_in;
