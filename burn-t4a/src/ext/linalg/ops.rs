//! [`LinalgOps`]: the operations of [`t4a_linalg`] on a Burn backend.
//!
//! The default computes factorisations in our engine, through host data, and derivative rules in
//! the backend's own operations. [`BurnT4a`] runs both in the engine, without copies of real
//! matrices.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, TensorData, try_read_sync};
use burn_flex::Flex;
use t4a_linalg::op::{AnyOutcome, complex_from_parts, complex_into_parts};
use t4a_linalg::{LinalgError, Op, Result};
use t4a_tensor::{AnyTensor, Tensor, TensorError};

use super::rules;
use super::value::{Results, Value};
use crate::v0_21::{BurnT4a, T4aTensor};

/// Linear algebra on a backend. `impl LinalgOps for MyBackend {}` is enough for any backend that
/// can hand its data to the host.
pub trait LinalgOps: Backend {
    /// Runs an operation; with `keep`, also what its rules need is kept.
    ///
    /// # Errors
    /// Those of the operation, with the batch index; `Tensor` for dtypes other than f32 and f64.
    fn linalg_forward(op: &Op, inputs: &[Value<Self>], keep: bool) -> Result<Results<Self>> {
        let device = inputs.first().map(Value::device).unwrap_or_default();
        let out = BurnT4a::linalg_forward(op, &to_host(inputs)?, keep)?;
        out.try_map(|t| from_host::<Self>(t, &device))
    }

    /// Which matrices an operation cannot serve: 0, or the code of
    /// [`t4a_linalg::error`]. On the host, of the batch's shape.
    ///
    /// # Errors
    /// Those that do not belong to one matrix: shapes, dtypes.
    fn linalg_info(op: &Op, inputs: &[Value<Self>]) -> Result<Tensor<i32>> {
        BurnT4a::linalg_info(op, &to_host(inputs)?)
    }

    /// Cotangents of the inputs from those of the results.
    ///
    /// # Errors
    /// `GaugeIllDefined`, `RankDeficient`, `Singular`.
    fn linalg_vjp(
        op: &Op,
        inputs: &[Value<Self>],
        out: &Results<Self>,
        bars: &[Option<Value<Self>>],
    ) -> Result<Vec<Value<Self>>> {
        rules::vjp(op, inputs, out, bars)
    }

    /// Tangents of the results along tangents of the inputs.
    ///
    /// # Errors
    /// As [`LinalgOps::linalg_vjp`].
    fn linalg_jvp(
        op: &Op,
        inputs: &[Value<Self>],
        out: &Results<Self>,
        tangents: &[Value<Self>],
    ) -> Result<Vec<Value<Self>>> {
        rules::jvp(op, inputs, out, tangents)
    }
}

impl LinalgOps for Flex {}

impl LinalgOps for BurnT4a {
    fn linalg_forward(op: &Op, inputs: &[Value<Self>], keep: bool) -> Result<Results<Self>> {
        let out = op.forward_any(&engine(inputs)?, keep)?;
        let saved = out.saved.map(|(op, parts)| -> Result<_> { Ok((op, values(parts)?)) });
        let (parts, saved) = (values(out.parts)?, saved.transpose()?);
        Ok(Results { parts, saved, rows: out.rows, cols: out.cols })
    }

    fn linalg_info(op: &Op, inputs: &[Value<Self>]) -> Result<Tensor<i32>> {
        op.info_any(&engine(inputs)?)
    }

    fn linalg_vjp(
        op: &Op,
        inputs: &[Value<Self>],
        out: &Results<Self>,
        bars: &[Option<Value<Self>>],
    ) -> Result<Vec<Value<Self>>> {
        let bars = bars.iter().map(|bar| bar.as_ref().map(any).transpose());
        let bars = bars.collect::<Result<Vec<_>>>()?;
        values(op.vjp_any(&engine(inputs)?, &outcome(out)?, &bars)?)
    }

    fn linalg_jvp(
        op: &Op,
        inputs: &[Value<Self>],
        out: &Results<Self>,
        tangents: &[Value<Self>],
    ) -> Result<Vec<Value<Self>>> {
        values(op.jvp_any(&engine(inputs)?, &outcome(out)?, &engine(tangents)?)?)
    }
}

/// The engine tensor of a value.
fn any(value: &Value<BurnT4a>) -> Result<AnyTensor> {
    match value {
        Value::Real(x) => Ok(x.any().clone()),
        Value::Complex { re, im } => complex_from_parts(re.any(), im.any()),
    }
}

fn engine(values: &[Value<BurnT4a>]) -> Result<Vec<AnyTensor>> {
    values.iter().map(any).collect()
}

fn values(parts: Vec<AnyTensor>) -> Result<Vec<Value<BurnT4a>>> {
    let value = |part: AnyTensor| -> Result<_> {
        match part.dtype().is_complex() {
            true => {
                let (re, im) = complex_into_parts(&part)?;
                Ok(Value::Complex { re: T4aTensor::new(re)?, im: T4aTensor::new(im)? })
            }
            false => Ok(Value::Real(T4aTensor::new(part)?)),
        }
    };
    parts.into_iter().map(value).collect()
}

fn outcome(out: &Results<BurnT4a>) -> Result<AnyOutcome> {
    let saved = out.saved.as_ref();
    let saved = saved.map(|(op, parts)| -> Result<_> { Ok((*op, engine(parts)?)) }).transpose()?;
    let (rows, cols) = (out.rows.clone(), out.cols.clone());
    Ok(AnyOutcome { parts: engine(&out.parts)?, saved, rows, cols })
}

/// The elements on the host.
pub(super) fn read<B: Backend>(x: FloatTensor<B>) -> Result<TensorData> {
    let failed = |message: String| LinalgError::from(TensorError::value("linalg", message));
    match try_read_sync(B::float_into_data(x)) {
        Some(Ok(data)) => Ok(data),
        Some(Err(error)) => Err(failed(format!("the backend could not hand out data: {error:?}"))),
        None => Err(failed("the backend hands out data asynchronously only".into())),
    }
}

fn to_host<B: Backend>(values: &[Value<B>]) -> Result<Vec<Value<BurnT4a>>> {
    let one = |x| Ok(T4aTensor::from_data(read::<B>(x)?)?);
    values.iter().cloned().map(|value| value.try_map(one)).collect()
}

fn from_host<B: Backend>(x: T4aTensor, device: &B::Device) -> Result<FloatTensor<B>> {
    Ok(B::float_from_data(x.into_data()?, device))
}
