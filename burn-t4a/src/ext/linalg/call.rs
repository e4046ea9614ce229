//! An operation in its three forms: plain, with the status of each matrix, with a tangent.
//!
//! A function of this module is one of these forms, an [`Op`] and a way to read the parts of its
//! result.

use burn_backend::tensor::{BoolTensor, Device, FloatTensor};
use burn_backend::{FloatDType, Scalar, Shape, TensorData, TensorMetadata, get_device_settings};
use t4a_linalg::{LinalgError, Op, Result};
use t4a_tensor::{Tensor, TensorError};

use super::matrix::Matrix;
use super::ops::LinalgOps;
use super::value::{Results, Value};
use crate::v0_21::engine_dtype;

/// The parts of a result.
pub(super) type Parts<M> = Vec<Value<<M as Matrix>::Backend>>;

fn values<M: Matrix, const N: usize>(inputs: [M; N]) -> Parts<M> {
    inputs.into_iter().map(M::into_value).collect()
}

/// All that `op` returns.
pub(super) fn results<M: Matrix, const N: usize>(
    op: Op,
    inputs: [M; N],
) -> Result<Results<M::Backend>> {
    M::Backend::linalg_forward(&op, &values(inputs), false)
}

/// The results of `op`.
pub(super) fn plain<M: Matrix, R, const N: usize>(
    op: Op,
    inputs: [M; N],
    read: impl Fn(Parts<M>) -> R,
) -> Result<R> {
    Ok(read(results(op, inputs)?.parts))
}

/// The results of `op`, those of failed matrices NaN, and the status of each matrix.
pub(super) fn status<M: Matrix, R, const N: usize>(
    op: Op,
    inputs: [M; N],
    read: impl Fn(Parts<M>) -> R,
) -> Result<(R, M::Info)> {
    let (out, info) = results_ex(op, inputs)?;
    Ok((read(out.parts), info))
}

/// The results of `op` and their tangents, which are differentiable in turn.
pub(super) fn along<M: Matrix, R, const N: usize>(
    op: Op,
    inputs: [M; N],
    tangents: [M; N],
    read: impl Fn(Parts<M>) -> R,
) -> Result<(R, R)> {
    let (out, moved) = results_along(op, inputs, tangents)?;
    Ok((read(out.parts), read(moved)))
}

/// As [`along`], with all that `op` returns.
pub(super) fn results_along<M: Matrix, const N: usize>(
    op: Op,
    inputs: [M; N],
    tangents: [M; N],
) -> Result<(Results<M::Backend>, Parts<M>)> {
    moved(&op, &values(inputs), &values(tangents))
}

/// The results of `op` and their tangents.
pub(super) fn moved<B: LinalgOps>(
    op: &Op,
    inputs: &[Value<B>],
    tangents: &[Value<B>],
) -> Result<(Results<B>, Vec<Value<B>>)> {
    check_tangents(op.name(), inputs, tangents)?;
    let out = B::linalg_forward(op, inputs, true)?;
    let moved = B::linalg_jvp(op, inputs, &out, tangents)?;
    Ok((out, moved))
}

/// Tangents have the shapes and dtypes of their inputs.
pub(super) fn check_tangents<B: LinalgOps>(
    op: &'static str,
    inputs: &[Value<B>],
    tangents: &[Value<B>],
) -> Result<()> {
    for (x, dx) in inputs.iter().zip(tangents) {
        if x.shape() != dx.shape() {
            let required = "a tangent has the shape of its input";
            return Err(TensorError::shapes(op, &x.shape(), &dx.shape(), required).into());
        }
        let (lhs, rhs) = (x.dtype(), dx.dtype());
        if lhs != rhs {
            let (lhs, rhs) = (engine_dtype(lhs)?, engine_dtype(rhs)?);
            return Err(TensorError::DTypeMismatch { op, lhs, rhs }.into());
        }
    }
    Ok(())
}

/// As [`status`], with all that `op` returns.
pub(super) fn results_ex<M: Matrix, const N: usize>(
    op: Op,
    inputs: [M; N],
) -> Result<(Results<M::Backend>, M::Info)> {
    let inputs = values(inputs);
    let device = inputs.first().map(Value::device).unwrap_or_default();
    let (out, info) = isolated(
        inputs,
        |inputs| M::Backend::linalg_forward(&op, inputs, false),
        |inputs| M::Backend::linalg_info(&op, inputs),
    )?;
    Ok((out, M::info(&info, &device)?))
}

/// The results of `forward`, those of failed matrices NaN, and the codes of `info`.
///
/// Failed matrices are replaced by regular ones before the operation and their results by NaN
/// after it: their gradient is zero, and the gradients of the others are what they would be alone.
/// Cost: that of the plain operation if nothing fails, three times that otherwise.
pub(super) fn isolated<B: LinalgOps>(
    inputs: Vec<Value<B>>,
    forward: impl Fn(&[Value<B>]) -> Result<Results<B>>,
    info: impl Fn(&[Value<B>]) -> Result<Tensor<i32>>,
) -> Result<(Results<B>, Tensor<i32>)> {
    let failed = match forward(&inputs) {
        Ok(out) => {
            let shape = inputs[0].shape();
            let info = Tensor::zeros(&shape[..shape.len() - 2])?;
            return Ok((out, info));
        }
        Err(error) if error.batch().is_some() => error,
        Err(error) => return Err(error),
    };
    let info = info(&inputs)?;
    if info.to_vec()?.iter().all(|&code| code == 0) {
        // An operation and its status disagree: an error is the safe answer.
        return Err(failed);
    }
    let mask = Failed::<B>::new(&info, &inputs[0].device())?;
    let regular = inputs.into_iter().enumerate().map(|(i, input)| {
        input.try_map::<B, LinalgError>(|x| match i {
            0 => mask.regular(x),
            _ => Ok(mask.fill(x, 0.0)),
        })
    });
    let regular = regular.collect::<Result<Vec<Value<B>>>>()?;
    let mut out = forward(&regular)?;
    let spoil = |part: Value<B>| part.map::<B>(|x| mask.fill(x, f64::NAN));
    out.parts = out.parts.into_iter().map(spoil).collect();
    Ok((out, info))
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
