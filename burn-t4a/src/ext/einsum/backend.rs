//! What a backend contracts with: the engine, nodes of the tape, or ordinary operations.

use std::any::TypeId;
use std::sync::Arc;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend, Shape, TensorMetadata};
use burn_flex::Flex;
use t4a_algebra::Standard;
use t4a_einsum::Plan;
use t4a_tensor::{AnyTensor, Tensor, TensorError, with_dtype};

use super::semiring::TensorSemiring;
use super::{portable, transposed};
use crate::boundary::accept;
use crate::ext::error::Result;
use crate::ext::tape::{self, Tracked};
use crate::v0_21::{BurnT4a, T4aTensor};
use portable::check_unsliced;

/// Contractions over semirings on a backend.
///
/// Both methods have bodies in ordinary Burn operations: an empty `impl` makes einsum work on a
/// backend. Over (+, ×) that is batched `matmul`; over other semirings a step takes memory for
/// all its multiply-adds. Operands have the shapes of the plan, one float dtype and one device;
/// a scalar has shape `[1]`.
pub trait EinsumOps: Backend {
    /// Whether [`EinsumOps::einsum`] and [`EinsumOps::einsum_vjp`] take plans that slice labels,
    /// with any number of operands.
    const SLICES: bool = false;

    /// The contraction that `plan` describes.
    ///
    /// # Errors
    /// [`ExtError::NotSliced`](crate::ext::ExtError::NotSliced) if the plan slices labels to fit a
    /// budget that was given, and this backend runs it step by step. A plan that slices because
    /// little memory is free runs as a whole.
    fn einsum<S: TensorSemiring>(
        plan: &Arc<Plan>,
        operands: Vec<FloatTensor<Self>>,
    ) -> Result<FloatTensor<Self>> {
        check_unsliced(plan)?;
        if operands.len() > 2 {
            return portable::by_steps::<S, Self>(plan, operands);
        }
        Ok(portable::contract::<S, Self>(plan, operands))
    }

    /// Cotangents of one or two operands, given that of their contraction; of all operands if the
    /// plan is sliced.
    ///
    /// # Errors
    /// Of the contractions that it consists of.
    fn einsum_vjp<S: TensorSemiring>(
        step: &Arc<Plan>,
        operands: Vec<FloatTensor<Self>>,
        cotangent: FloatTensor<Self>,
        wanted: &[bool],
    ) -> Result<Vec<Option<FloatTensor<Self>>>> {
        if step.is_empty() {
            return Ok(zeros::<Self>(&operands, wanted));
        }
        if TypeId::of::<S>() == TypeId::of::<Standard>() {
            return transposed::vjp::<Self>(step, operands, cotangent, wanted);
        }
        let cotangents = portable::vjp::<S, Self>(step, operands, cotangent);
        Ok(cotangents.into_iter().zip(wanted).map(|(g, &wanted)| wanted.then_some(g)).collect())
    }
}

/// Cotangents of operands of an empty sum.
fn zeros<B: Backend>(operands: &[FloatTensor<B>], wanted: &[bool]) -> Vec<Option<FloatTensor<B>>> {
    let zeros =
        |x: &FloatTensor<B>| B::float_zeros(x.shape(), &B::float_device(x), x.dtype().into());
    operands.iter().zip(wanted).map(|(x, &wanted)| wanted.then(|| zeros(x))).collect()
}

impl EinsumOps for Flex {}

#[cfg(feature = "ndarray")]
impl EinsumOps for burn_ndarray::NdArray {}

#[cfg(feature = "router")]
impl<R: burn_router::RunnerChannel> EinsumOps for burn_router::BackendRouter<R> {}

/// On the engine: the whole plan at once, intermediates recycled, labels sliced to the budget.
impl EinsumOps for BurnT4a {
    const SLICES: bool = true;

    fn einsum<S: TensorSemiring>(plan: &Arc<Plan>, operands: Vec<T4aTensor>) -> Result<T4aTensor> {
        let operands = entered(plan, operands)?;
        let dtype = operands[0].dtype();
        let result: AnyTensor = with_dtype!(dtype, T in float => {
            let typed = typed::<T>(&operands)?;
            plan.contract::<S, T>(&typed)?.into()
        }, else => return Err(not_a_float(dtype)));
        leave(result)
    }

    /// By the rules of the engine, which need memory for the operands only, and for the
    /// intermediates of one slice if there are several.
    fn einsum_vjp<S: TensorSemiring>(
        step: &Arc<Plan>,
        operands: Vec<T4aTensor>,
        cotangent: T4aTensor,
        wanted: &[bool],
    ) -> Result<Vec<Option<T4aTensor>>> {
        if step.is_empty() {
            return Ok(zeros::<Self>(&operands, wanted));
        }
        if TypeId::of::<S>() == TypeId::of::<Standard>() && step.sliced().is_empty() {
            return transposed::vjp::<Self>(step, operands, cotangent, wanted);
        }
        let operands = entered(step, operands)?;
        let cotangent = reshaped(cotangent.into_any(), &step.shape())?;
        let dtype = operands[0].dtype();
        let cotangents: Vec<AnyTensor> = with_dtype!(dtype, T in float => {
            let typed = typed::<T>(&operands)?;
            let cotangents = step.vjp::<S, T>(&typed, cotangent.typed::<T>()?)?;
            cotangents.into_iter().map(Into::into).collect()
        }, else => return Err(not_a_float(dtype)));
        let leave = |(g, &wanted): (AnyTensor, &bool)| wanted.then(|| leave(g)).transpose();
        cotangents.into_iter().zip(wanted).map(leave).collect()
    }
}

fn not_a_float(dtype: t4a_tensor::DType) -> crate::ext::ExtError {
    TensorError::DTypeUnsupported { op: "einsum", dtype, expected: "a float" }.into()
}

fn typed<T: t4a_tensor::Element>(operands: &[AnyTensor]) -> Result<Vec<&Tensor<T>>> {
    Ok(operands.iter().map(|x| x.typed::<T>()).collect::<Result<_, TensorError>>()?)
}

/// Engine tensors in the shapes of the plan: scalars of shape `[1]` lose their axis.
fn entered(plan: &Plan, operands: Vec<T4aTensor>) -> Result<Vec<AnyTensor>> {
    let shape = |i| plan.operand_shape(i).unwrap_or(&[]);
    let operands = operands.into_iter().enumerate();
    operands.map(|(i, x)| reshaped(x.into_any(), shape(i))).collect()
}

fn reshaped(x: AnyTensor, shape: &[usize]) -> Result<AnyTensor> {
    if shape.is_empty() { Ok(x.reshape(&[])?) } else { Ok(x) }
}

fn leave(x: AnyTensor) -> Result<T4aTensor> {
    let x = if x.rank() == 0 { x.reshape(&[1])? } else { x };
    Ok(T4aTensor::new(x)?)
}

/// One node per pairwise step, and for sliced plans a single one; the inner backend at once where
/// nothing is tracked.
impl<B: EinsumOps, C: CheckpointStrategy> EinsumOps for Autodiff<B, C> {
    fn einsum<S: TensorSemiring>(
        plan: &Arc<Plan>,
        operands: Vec<Tracked<B, C>>,
    ) -> Result<Tracked<B, C>> {
        if !operands.iter().any(tape::is_tracked::<B, C>) {
            let operands = operands.into_iter().map(Self::inner).collect();
            return Ok(Self::from_inner(B::einsum::<S>(plan, operands)?));
        }
        if !B::SLICES {
            check_unsliced(plan)?;
        }
        match operands.len() {
            1 => node::<S, B, C, 1>(plan, operands),
            2 => node::<S, B, C, 2>(plan, operands),
            _ if B::SLICES && !plan.sliced().is_empty() => sliced::<S, B, C>(plan, operands),
            _ => portable::by_steps::<S, Self>(plan, operands),
        }
    }
}

fn node<S: TensorSemiring, B: EinsumOps, C: CheckpointStrategy, const N: usize>(
    plan: &Arc<Plan>,
    operands: Vec<Tracked<B, C>>,
) -> Result<Tracked<B, C>> {
    let Ok(operands) = <[Tracked<B, C>; N]>::try_from(operands) else {
        unreachable!("the number of operands was matched on");
    };
    let step = plan.clone();
    tape::record::<B, C, _, _, N>(
        operands,
        |operands, _| Ok((B::einsum::<S>(plan, operands.to_vec())?, operands)),
        move |operands, cotangent, wanted| {
            let cotangents = B::einsum_vjp::<S>(&step, operands.to_vec(), cotangent, &wanted);
            let mut cotangents = accept(cotangents).into_iter();
            std::array::from_fn(|_| cotangents.next().flatten())
        },
    )
}

/// The operands enter a node of one input side by side: their number is free.
fn sliced<S: TensorSemiring, B: EinsumOps, C: CheckpointStrategy>(
    plan: &Arc<Plan>,
    operands: Vec<Tracked<B, C>>,
) -> Result<Tracked<B, C>> {
    let shapes: Vec<Shape> = operands.iter().map(TensorMetadata::shape).collect();
    let whole = plan.clone();
    tape::record::<B, C, _, _, 1>(
        [tape::pack::<Autodiff<B, C>>(operands)],
        |[packed], _| {
            let operands: Vec<_> = shapes.into_iter().map(tape::unpack::<B>(packed)).collect();
            Ok((B::einsum::<S>(plan, operands.clone())?, operands))
        },
        move |operands, cotangent, _| {
            let wanted = vec![true; operands.len()];
            let cotangents = accept(B::einsum_vjp::<S>(&whole, operands, cotangent, &wanted));
            [Some(tape::pack::<B>(cotangents.into_iter().flatten()))]
        },
    )
}
