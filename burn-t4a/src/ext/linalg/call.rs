//! An operation in its three forms: plain, with the status of each matrix, with a tangent.

use burn_backend::tensor::{BoolTensor, Device, FloatTensor};
use burn_backend::{FloatDType, Scalar, Shape, TensorData, TensorMetadata, get_device_settings};
use t4a_linalg::{LinalgError, Op, Result};
use t4a_tensor::{Tensor, TensorError};

use super::ops::LinalgOps;
use super::value::Value;

/// The results of `op`.
pub(super) fn call<B: LinalgOps>(op: Op, inputs: Vec<Value<B>>) -> Result<Vec<Value<B>>> {
    Ok(B::linalg_forward(&op, &inputs, false)?.parts)
}

/// The only result of `op`.
pub(super) fn call_one<B: LinalgOps>(op: Op, inputs: Vec<Value<B>>) -> Result<Value<B>> {
    Ok(call(op, inputs)?.swap_remove(0))
}

/// The results of `op` and their tangents, which are differentiable in turn.
pub(super) fn call_jvp<B: LinalgOps>(
    op: Op,
    inputs: Vec<Value<B>>,
    tangents: Vec<Value<B>>,
) -> Result<[Vec<Value<B>>; 2]> {
    for (x, dx) in inputs.iter().zip(&tangents) {
        if x.shape() != dx.shape() {
            let required = "a tangent has the shape of its input";
            let (x, dx) = (x.shape(), dx.shape());
            return Err(TensorError::shapes(op.name(), &x, &dx, required).into());
        }
    }
    let out = B::linalg_forward(&op, &inputs, true)?;
    let moved = B::linalg_jvp(&op, &inputs, &out, &tangents)?;
    Ok([out.parts, moved])
}

/// The results of `op`, those of failed matrices NaN, and the status of each matrix.
///
/// Failed matrices are replaced by regular ones before the operation and their results by NaN
/// after it: their gradient is zero, and the gradients of the others are what they would be alone.
/// Cost: that of the plain operation if nothing fails, three times that otherwise.
#[allow(clippy::type_complexity)]
pub(super) fn call_ex<B: LinalgOps>(
    op: Op,
    inputs: Vec<Value<B>>,
) -> Result<(Vec<Value<B>>, Tensor<i32>, Device<B>)> {
    let device = inputs.first().map(Value::device).unwrap_or_default();
    let failed = match B::linalg_forward(&op, &inputs, false) {
        Ok(out) => {
            let shape = inputs[0].shape();
            let info = Tensor::zeros(&shape[..shape.len() - 2])?;
            return Ok((out.parts, info, device));
        }
        Err(error) if error.batch().is_some() => error,
        Err(error) => return Err(error),
    };
    let info = B::linalg_info(&op, &inputs)?;
    if info.to_vec()?.iter().all(|&code| code == 0) {
        // An operation and its status disagree: an error is the safe answer.
        return Err(failed);
    }
    let mask = Failed::<B>::new(&info, &device)?;
    let regular = inputs.into_iter().enumerate().map(|(i, input)| {
        input.try_map::<B, LinalgError>(|x| match i {
            0 => mask.regular(x),
            _ => Ok(mask.fill(x, 0.0)),
        })
    });
    let regular = regular.collect::<Result<Vec<Value<B>>>>()?;
    let spoil = |part: Value<B>| part.map::<B>(|x| mask.fill(x, f64::NAN));
    let parts = call(op, regular)?.into_iter().map(spoil);
    Ok((parts.collect(), info, device))
}

/// Which matrices of a batch have failed.
struct Failed<B: LinalgOps> {
    mask: BoolTensor<B>,
    device: Device<B>,
}

impl<B: LinalgOps> Failed<B> {
    fn new(info: &Tensor<i32>, device: &Device<B>) -> Result<Self> {
        let flags: Vec<bool> = info.to_vec()?.iter().map(|&code| code != 0).collect();
        let shape: Vec<usize> = info.shape().iter().copied().chain([1, 1]).collect();
        let bools = get_device_settings::<B>(device).bool_dtype;
        let data = TensorData::new(flags, shape).convert_dtype(bools.into());
        Ok(Self { mask: B::bool_from_data(data, device), device: device.clone() })
    }

    fn whole(&self, shape: Shape) -> BoolTensor<B> {
        B::bool_expand(self.mask.clone(), shape)
    }

    fn fill(&self, x: FloatTensor<B>, value: f64) -> FloatTensor<B> {
        let mask = self.whole(x.shape());
        B::float_mask_fill(x, mask, Scalar::Float(value))
    }

    /// A matrix that every operation accepts in place of the failed ones: diagonal, positive,
    /// entries different and between 1 and 2.
    fn regular(&self, x: FloatTensor<B>) -> Result<FloatTensor<B>> {
        let shape = x.shape();
        let rank = shape.num_dims();
        let (m, n) = (shape[rank - 2], shape[rank - 1]);
        let entry = |at: usize| match at / n == at % n {
            true => 2.0 - (at / n) as f64 / n as f64,
            false => 0.0,
        };
        let entries: Vec<f64> = (0..m * n).map(entry).collect();
        let one: Vec<usize> = (0..rank - 2).map(|_| 1).chain([m, n]).collect();
        let dtype: FloatDType = x.dtype().into();
        let data = TensorData::new(entries, one).convert_dtype(dtype.into());
        let diagonal = B::float_from_data(data, &self.device);
        let mask = self.whole(shape.clone());
        Ok(B::float_mask_where(x, mask, B::float_expand(diagonal, shape)))
    }
}
