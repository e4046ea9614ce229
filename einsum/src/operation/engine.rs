//! Contractions of engine tensors with a run-time dtype; the only match on the dtype.

use t4a_algebra::{Standard, c32, c64};
use t4a_tensor::{AnyTensor, DType, Element, Tensor, TensorError, with_dtype};

use super::semiring::ArraySemiring;
use crate::error::Result;
use crate::plan::Plan;

fn not_a_float<R>(dtype: DType) -> Result<R> {
    Err(TensorError::DTypeUnsupported { op: "einsum", dtype, expected: "a float" }.into())
}

fn typed<'a, T: Element>(operands: &[&'a AnyTensor]) -> Result<Vec<&'a Tensor<T>>> {
    Ok(operands.iter().map(|x| x.typed::<T>()).collect::<Result<_, TensorError>>()?)
}

pub(super) fn contract<S: ArraySemiring>(
    plan: &Plan,
    operands: &[&AnyTensor],
) -> Result<AnyTensor> {
    let dtype = operands[0].dtype();
    with_dtype!(dtype, T in float => {
        Ok(plan.contract::<S, T>(&typed(operands)?)?.into())
    }, else => not_a_float(dtype))
}

/// [`contract`] over (+, ×) of complex numbers.
pub(super) fn contract_complex(plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
    match operands[0].dtype() {
        DType::C32 => Ok(plan.contract::<Standard, c32>(&typed(operands)?)?.into()),
        DType::C64 => Ok(plan.contract::<Standard, c64>(&typed(operands)?)?.into()),
        dtype => not_a_float(dtype),
    }
}

pub(super) fn contract_argmax<S: ArraySemiring>(
    plan: &Plan,
    operands: &[&AnyTensor],
) -> Result<(AnyTensor, Option<AnyTensor>)> {
    let dtype = operands[0].dtype();
    with_dtype!(dtype, T in float => {
        let (c, argmax) = plan.contract_argmax::<S, T>(&typed(operands)?)?;
        Ok((c.into(), argmax.map(AnyTensor::from)))
    }, else => not_a_float(dtype))
}

pub(super) fn vjp<S: ArraySemiring>(
    plan: &Plan,
    operands: &[&AnyTensor],
    argmax: Option<&AnyTensor>,
    cotangent: &AnyTensor,
) -> Result<Vec<AnyTensor>> {
    let dtype = operands[0].dtype();
    with_dtype!(dtype, T in float => {
        let argmax = argmax.map(|x| x.typed::<u32>()).transpose()?;
        let all = plan.vjp_from::<S, T>(&typed(operands)?, argmax, cotangent.typed::<T>()?)?;
        Ok(all.into_iter().map(AnyTensor::from).collect())
    }, else => not_a_float(dtype))
}

pub(super) fn jvp<S: ArraySemiring>(
    plan: &Plan,
    operands: &[&AnyTensor],
    tangents: &[&AnyTensor],
) -> Result<(AnyTensor, AnyTensor)> {
    let dtype = operands[0].dtype();
    with_dtype!(dtype, T in float => {
        let (y, dy) = plan.jvp::<S, T>(&typed(operands)?, &typed(tangents)?)?;
        Ok((y.into(), dy.into()))
    }, else => not_a_float(dtype))
}
