//! Scaled dot-product attention.
//!
//! ```text
//! S = cap·tanh(scale·Q·Kᵀ/cap), −∞ where masked, + bias      P = softmax(S)      O = P·V
//! V̄ = Pᵀ·Ō      S̄ = P ∘ (Ō·Vᵀ − Σ P ∘ Ō·Vᵀ)      Q̄ = scale·S̄ ∘ (1 − tanh²)·K      K̄ alike
//! ```

use t4a_diff::{
    Array, Cotangents, Eager, Flags, Integers, Keep, Kind, Meta, OnBatch, Operation, Outcome,
    Reverse, Value,
};
use t4a_tensor::{Result, TensorError};

use crate::{AttentionOptions, given, kept_tensor, same_dtype, tensor};

/// `softmax(scores)·V`; zeros for a query whose keys are all masked.
///
/// Operands: queries `[B, H, L, d]`, keys `[B, H, S, d]`, values `[B, H, S, e]`, then optionally a mask (true hides a
/// key) and a bias; both broadcast to `[B, H, L, S]`. The result is `[B, H, L, e]`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Attention {
    /// Scale, soft cap and causal mask of the scores.
    #[cfg_attr(feature = "serde", serde(with = "SerializedOptions"))]
    pub options: AttentionOptions,
    /// The operands include a mask.
    pub masked: bool,
    /// The operands include a bias.
    pub biased: bool,
}

by_bits! {
    Attention: |x| {
        let AttentionOptions { scale, softcap, causal } = x.options;
        (scale.map(f64::to_bits), softcap.map(f64::to_bits), causal, x.masked, x.biased)
    };
}

/// Serialised form of [`AttentionOptions`].
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(remote = "AttentionOptions")]
struct SerializedOptions {
    scale: Option<f64>,
    softcap: Option<f64>,
    causal: bool,
}

impl Attention {
    fn mask(&self) -> Option<usize> {
        self.masked.then_some(3)
    }

    fn bias(&self) -> Option<usize> {
        self.biased.then_some(3 + usize::from(self.masked))
    }

    fn count(&self) -> usize {
        3 + usize::from(self.masked) + usize::from(self.biased)
    }

    fn scale(&self, features: usize) -> f64 {
        self.options.scale.unwrap_or(1.0 / (features.max(1) as f64).sqrt())
    }

    /// P, and `1 − tanh²` if the scores are capped.
    fn weights<A: Array>(
        &self,
        [q, k]: [&A; 2],
        mask: Option<&A::Flags>,
        bias: Option<&A>,
    ) -> (A, Option<A>) {
        let scores = q.matmul(&k.transpose()).scale(self.scale(q.shape()[3]));
        let (mut s, slope) = match self.options.softcap {
            None => (scores, None),
            Some(cap) => {
                let t = scores.scale(1.0 / cap).tanh();
                let slope = t.mul(&t).neg().shift(1.0);
                (t.scale(cap), Some(slope))
            }
        };
        let shape = s.shape();
        if let Some(mask) = mask {
            s = s.fill(&mask.expand(&shape), f64::NEG_INFINITY);
        }
        if self.options.causal {
            s = s.fill(&causal(&s), f64::NEG_INFINITY);
        }
        if let Some(bias) = bias {
            s = s.add(bias);
        }
        // Fully masked rows have P = 0.
        let top = s.detach().max(3);
        let hidden = top.equals(f64::NEG_INFINITY);
        let e = s.sub(&top.fill(&hidden, 0.0)).exp();
        let total = e.sum(3).fill(&hidden, 1.0);
        (e.div(&total), slope)
    }
}

/// Mask of the keys j that follow query i, with both aligned at the last position.
fn causal<A: Array>(scores: &A) -> A::Flags {
    let shape = scores.shape();
    let (queries, keys) = (shape[2], shape[3]);
    let last = scores.counting(queries).shift(keys as i64 - queries as i64);
    let last = last.reshape(&[1, 1, queries, 1]).expand(&shape);
    let key = scores.counting(keys).reshape(&[1, 1, 1, keys]).expand(&shape);
    key.greater(&last)
}

impl Operation for Attention {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "attention"
    }

    fn kind(&self, operand: usize) -> Kind {
        if self.mask() == Some(operand) { Kind::Flags } else { Kind::Float }
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([self.count(), 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let op = self.name();
        if inputs.len() != self.count() {
            let message = format!("required {} operands, given {}", self.count(), inputs.len());
            return Err(TensorError::value(op, message));
        }
        let [q, k, v] = [&inputs[0], &inputs[1], &inputs[2]];
        same_dtype(op, &[q, k, v])?;
        if [q, k, v].iter().any(|x| x.shape.len() != 4)
            || q.shape[..2] != k.shape[..2]
            || k.shape[..3] != v.shape[..3]
            || q.shape[3] != k.shape[3]
        {
            let message = format!(
                "queries {:?}, keys {:?}, values {:?}; required [B, H, L, d], [B, H, S, d] and \
                 [B, H, S, e]",
                q.shape, k.shape, v.shape
            );
            return Err(TensorError::value(op, message));
        }
        let scores = [q.shape[0], q.shape[1], q.shape[2], k.shape[2]];
        for given in [self.mask(), self.bias()].into_iter().flatten().map(|i| &inputs[i]) {
            let fits = |(&x, s): (&usize, usize)| x == s || x == 1;
            if given.shape.len() != 4 || !given.shape.iter().zip(scores).all(fits) {
                let required = "a mask or bias that broadcasts to [B, H, L, S]";
                return Err(TensorError::shapes(op, &given.shape, &scores, required));
            }
        }
        if let Some(bias) = self.bias() {
            same_dtype(op, &[q, &inputs[bias]])?;
        }
        let mut shape = q.shape.clone();
        shape[3] = v.shape[3];
        Ok(vec![Meta { shape, dtype: q.dtype }])
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let mask = self.mask().map(|i| inputs[i].flags());
        let bias = self.bias().map(|i| inputs[i].float());
        let (p, _) = self.weights([inputs[0].float(), inputs[1].float()], mask, bias);
        Ok(p.matmul(inputs[2].float()).into())
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let [q, k, v] = [tensor(&inputs[0])?, tensor(&inputs[1])?, tensor(&inputs[2])?];
        let operand = |i: Option<usize>| i.map_or(Ok(None), |i| given(inputs, i));
        let (mask, bias) = (operand(self.mask())?, operand(self.bias())?);
        Ok(Eager::from(q.attention(k, v, mask, bias, &self.options)).into())
    }

    /// A broadcast bias has a cotangent that is summed over examples, so such operations are not merged into one batch.
    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let operands = vec![Some(0); differ.len()];
        (!self.biased).then(|| OnBatch::Joined { operands, results: vec![Some(0)] })
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (kept, dy) = (reverse.kept, reverse.cotangent());
        let [q, k, v] = [kept.float(0), kept.float(1), kept.float(2)];
        let mask = self.mask().map(|i| kept.input(i).flags());
        let bias = self.bias().map(|i| kept.float(i));
        let (p, slope) = self.weights([q, k], mask, bias);
        let dv = p.transpose().matmul(dy);
        let dp = dy.matmul(&v.transpose());
        let ds = p.mul(&dp.sub(&p.mul(&dp).sum(3)));
        let dbias = bias.map(|bias| ds.sum_to(&bias.shape()));
        let ds = slope.map_or(ds.clone(), |slope| ds.mul(&slope));
        let ds = ds.scale(self.scale(q.shape()[3]));
        let (dq, dk) = (ds.matmul(k), ds.transpose().matmul(q));
        Ok(self.cotangents([dq, dk, dv], dbias))
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let (kept, dy) = (reverse.kept, reverse.cotangent());
        let operand = |i: Option<usize>| i.map(|i| kept_tensor(kept, i)).transpose();
        let (mask, bias) = (operand(self.mask())?, operand(self.bias())?);
        let others = [kept_tensor(kept, 1)?, kept_tensor(kept, 2)?, dy.tensor()?];
        let with_bias = self.bias().is_some_and(|i| reverse.wanted[i]);
        let q = kept_tensor(kept, 0)?;
        let (operands, dbias) = q.attention_vjp(others, mask, bias, &self.options, with_bias)?;
        Ok(self.cotangents(operands.map(Eager::from), dbias.map(Eager::from)))
    }
}

impl Attention {
    /// Cotangents in the order of the operands.
    fn cotangents<A: Array>(&self, operands: [A; 3], bias: Option<A>) -> Cotangents<A> {
        let mut all: Cotangents<A> = operands.map(Some).into();
        all.extend(self.masked.then_some(None));
        all.extend(self.biased.then_some(bias));
        all
    }
}
