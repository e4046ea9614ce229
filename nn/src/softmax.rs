//! Softmax and its logarithm along an axis.

use t4a_diff::array::Kernel;
use t4a_diff::{Array, Cotangents, Eager, Keep, Meta, OnBatch, Operation, Outcome, Reverse, Value};
use t4a_tensor::{Result, TensorError};

use crate::operands;

/// `y = eˣ / Σ eˣ` along an axis. The rule: `x̄ = y (ȳ − Σ y ȳ)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Softmax {
    /// The axis of the sums.
    pub axis: usize,
}

/// `y = x − ln Σ eˣ` along an axis. The rule: `x̄ = ȳ − e^y Σ ȳ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogSoftmax {
    /// The axis of the sums.
    pub axis: usize,
}

fn results(op: &'static str, inputs: &[Meta], axis: usize) -> Result<Vec<Meta>> {
    let [x] = operands(op, inputs)?;
    if axis >= x.shape.len() {
        return Err(TensorError::Axis { op, axis, rank: x.shape.len() });
    }
    Ok(vec![x.clone()])
}

/// `x − max x`, which avoids overflow and changes neither function; the maximum is detached.
fn shifted<A: Array>(x: &A, axis: usize) -> A {
    x.sub(&x.detach().max(axis))
}

impl Operation for Softmax {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "softmax"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([1, 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        results(self.name(), inputs, self.axis)
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().results(&[0])
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let e = shifted(inputs[0].float(), self.axis).exp();
        Ok(e.div(&e.sum(self.axis)).into())
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        vec![Kernel::Reduction]
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        Ok(Eager::from(inputs[0].float().tensor()?.softmax(self.axis)).into())
    }

    fn on_batch(&self, _: usize, _: &[bool]) -> Option<OnBatch<Self>> {
        Some(OnBatch::front(Self { axis: self.axis + 1 }))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (y, dy) = (reverse.kept.result(0), reverse.cotangent());
        Ok(vec![Some(y.mul(&dy.sub(&y.mul(dy).sum(self.axis))))])
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let (y, dy) = (reverse.kept.result(0), reverse.cotangent());
        Ok(vec![Some(y.tensor()?.softmax_vjp(dy.tensor()?, self.axis).into())])
    }
}

impl Operation for LogSoftmax {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "log_softmax"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([1, 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        results(self.name(), inputs, self.axis)
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().results(&[0])
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let x = shifted(inputs[0].float(), self.axis);
        Ok(x.sub(&x.exp().sum(self.axis).ln()).into())
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        vec![Kernel::Reduction]
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        Ok(Eager::from(inputs[0].float().tensor()?.log_softmax(self.axis)).into())
    }

    fn on_batch(&self, _: usize, _: &[bool]) -> Option<OnBatch<Self>> {
        Some(OnBatch::front(Self { axis: self.axis + 1 }))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (y, dy) = (reverse.kept.result(0), reverse.cotangent());
        Ok(vec![Some(dy.sub(&y.exp().mul(&dy.sum(self.axis))))])
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let (y, dy) = (reverse.kept.result(0), reverse.cotangent());
        Ok(vec![Some(y.tensor()?.log_softmax_vjp(dy.tensor()?, self.axis).into())])
    }
}
