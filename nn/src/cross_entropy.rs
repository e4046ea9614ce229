//! Cross-entropy of softmax, row by row.

use t4a_diff::{
    Array, Cotangents, Eager, Integers, Keep, Kind, Meta, OnBatch, Operation, Outcome, Reverse,
    Value,
};
use t4a_tensor::{Result, TensorError};

use crate::{LogSoftmax, Softmax, kept_tensor, operands, tensor};

/// `ln Σ eˣ − x[target]` of every row. The rule: `x̄ = ȳ (softmax(x) − δ)`.
///
/// Operands: logits `[N, C]` and targets `[N]` with values in `0..C`; the result is `[N]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CrossEntropy;

impl Operation for CrossEntropy {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn kind(&self, operand: usize) -> Kind {
        if operand == 1 { Kind::Integers } else { Kind::Float }
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([2, 1])
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

    fn on_batch(&self, _: usize, _: &[bool]) -> Option<OnBatch<Self>> {
        Some(OnBatch::Joined { operands: vec![Some(0); 2], results: vec![Some(0)] })
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (kept, dy) = (reverse.kept, reverse.cotangent());
        let targets = kept.input(1).integers();
        let column = [targets.shape()[0], 1];
        let dy = dy.reshape(&column);
        let softmax = Softmax { axis: 1 }.portable(&[kept.input(0).clone()], &[true])?;
        let p = softmax.results[0].mul(&dy);
        Ok(vec![Some(p.scatter_add(1, &targets.reshape(&column), &dy.neg())), None])
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let (kept, dy) = (reverse.kept, reverse.cotangent());
        let (x, targets) = (kept_tensor(kept, 0)?, kept_tensor(kept, 1)?);
        let dx = x.cross_entropy_vjp(targets, kept.result(0).tensor()?, dy.tensor()?)?;
        Ok(vec![Some(dx.into()), None])
    }
}
