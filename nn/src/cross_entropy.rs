//! Cross-entropy of softmax, row by row.

use t4a_diff::{Array, Eager, Integers, Keep, Kept, Meta, Operation, Outcome, Value};
use t4a_tensor::{Result, TensorError};

use crate::{LogSoftmax, Softmax, cotangent, kept, operands, tensor};

/// `ln Σ eˣ − x[target]` of every row. The rule: `x̄ = ȳ (softmax(x) − δ)`.
///
/// Operands: logits `[N, C]` and targets `[N]` with values in `0..C`; the result is `[N]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CrossEntropy;

impl Operation for CrossEntropy {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let op = self.name();
        let [x, targets] = operands(op, inputs)?;
        if !targets.dtype.is_int() {
            let (dtype, expected) = (targets.dtype, "an integer");
            return Err(TensorError::DTypeUnsupported { op, dtype, expected });
        }
        match (&x.shape[..], &targets.shape[..]) {
            ([n, _], [rows]) if n == rows => {
                Ok(vec![Meta { shape: targets.shape.clone(), dtype: x.dtype }])
            }
            (x, t) => Err(TensorError::shapes(op, x, t, "logits [N, C] and targets [N]")),
        }
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().inputs(&[0, 1]).results(&[0])
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], tracked: &[bool]) -> Result<Outcome<A>> {
        let targets = inputs[1].integers();
        let rows = targets.shape()[0];
        let out = LogSoftmax { axis: 1 }.portable(&inputs[..1], &tracked[..1])?;
        let picked = out.results[0].gather(1, &targets.reshape(&[rows, 1]));
        Ok(picked.neg().reshape(&[rows]).into())
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let (x, targets) = (tensor(&inputs[0])?, tensor(&inputs[1])?);
        Ok(Eager::from(x.cross_entropy(targets)).into())
    }

    fn vjp<A: Array>(
        &self,
        kept: &Kept<A>,
        cotangents: &[Option<A>],
        wanted: &[bool],
    ) -> Result<Vec<Option<A>>> {
        let Some(dy) = cotangent(cotangents) else { return Ok(vec![None; wanted.len()]) };
        let targets = kept.input(1).integers();
        let column = [targets.shape()[0], 1];
        let dy = dy.reshape(&column);
        let softmax = Softmax { axis: 1 }.portable(&[kept.input(0).clone()], &[true])?;
        let p = softmax.results[0].mul(&dy);
        Ok(vec![Some(p.scatter_add(1, &targets.reshape(&column), &dy.neg())), None])
    }

    fn fused_vjp(
        &self,
        inputs: &Kept<Eager>,
        cotangents: &[Option<Eager>],
        wanted: &[bool],
    ) -> Result<Vec<Option<Eager>>> {
        let Some(dy) = cotangent(cotangents) else { return Ok(vec![None; wanted.len()]) };
        let (x, targets) = (kept(inputs, 0)?, kept(inputs, 1)?);
        let dx = x.cross_entropy_vjp(targets, inputs.result(0).tensor()?, dy.tensor()?)?;
        Ok(vec![Some(dx.into()), None])
    }
}
