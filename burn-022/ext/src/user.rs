//! Operations on tensors, whatever backend they are on.

use burn_backend::TensorMetadata;
use burn_dispatch::{Dispatch, DispatchTensor};
use burn_tensor::{Bool, Int, Tensor};
use t4a_diff::{Meta, Operation, Value};
use t4a_tensor::TensorError;

use crate::operation::{Operand, Operations, apply, meta};
use crate::primitive::{Bools, Floats, Indices};

/// A tensor as an operand; one that is quantized, dequantized.
pub fn float<const D: usize>(x: Tensor<D>) -> Operand<Dispatch> {
    Value::Float(Floats(primitive(x)))
}

/// Integers as an operand.
pub fn integers<const D: usize>(x: Tensor<D, Int>) -> Operand<Dispatch> {
    Value::Integers(Indices(x.into_dispatch()))
}

/// Booleans as an operand.
pub fn flags<const D: usize>(x: Tensor<D, Bool>) -> Operand<Dispatch> {
    Value::Flags(Bools(x.into_dispatch()))
}

pub(crate) fn primitive<const D: usize>(x: Tensor<D>) -> DispatchTensor {
    let x = if matches!(x.dtype(), burn_backend::DType::QFloat(_)) { x.dequantize() } else { x };
    x.into_dispatch()
}

impl<const D: usize> From<Tensor<D>> for Floats<Dispatch> {
    fn from(x: Tensor<D>) -> Self {
        Self(primitive(x))
    }
}

impl Floats<Dispatch> {
    /// The tensor of rank `D` that these are.
    ///
    /// # Errors
    /// If they have another rank.
    pub fn tensor<const D: usize>(&self) -> Result<Tensor<D>, TensorError> {
        let shape = self.0.shape();
        if shape.num_dims() != D {
            let message = format!("rank {D} is asked for, the shape is {shape:?}");
            return Err(TensorError::value("tensor", message));
        }
        Ok(tensor(self.clone()))
    }
}

pub(crate) fn tensor<const D: usize>(x: Floats<Dispatch>) -> Tensor<D> {
    Tensor::from_dispatch(x.0)
}

/// [`apply`] for an operation with one result, of rank `D`.
///
/// # Errors
/// As [`apply`].
pub fn call<O: Operation, const D: usize>(
    op: &O,
    inputs: &[Operand<Dispatch>],
) -> Result<Tensor<D>, O::Error> {
    let result = apply(op, inputs)?.results.into_iter().next();
    Ok(tensor(result.unwrap_or_else(|| unreachable!("one result"))))
}

/// [`call`], and the tangent of the result along tangents of the operands; `None` stands for zero.
///
/// # Errors
/// As [`apply`]; those of the rule.
///
/// # Panics
/// Unless there is a tangent, or none, for each operand, floats for floats.
pub fn call_jvp<O: Operation, const D: usize>(
    op: &O,
    inputs: &[Operand<Dispatch>],
    tangents: &[Option<Operand<Dispatch>>],
) -> Result<(Tensor<D>, Tensor<D>), O::Error> {
    assert_eq!(inputs.len(), tangents.len(), "{}: operands and tangents", op.name());
    let metas: Vec<Meta> = inputs.iter().map(meta).collect();
    op.results(&metas)?;
    let dual = |(x, t): (&Operand<Dispatch>, &Option<Operand<Dispatch>>)| {
        x.clone().dual(t.as_ref().map(|t| t.float().clone()))
    };
    let duals: Vec<_> = inputs.iter().zip(tangents).map(dual).collect();
    let tracked: Vec<bool> = duals.iter().map(Value::moves).collect();
    let result = Dispatch::jvp(op, &duals, &tracked)?.results.into_iter().next();
    let result = result.unwrap_or_else(|| unreachable!("one result"));
    Ok((tensor(result.value.clone()), tensor(result.into_tangent())))
}
