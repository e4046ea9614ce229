//! Norms along the last axis.
//!
//! With `x̂ = c r`, `r = 1/√(mean(c²) + ε)` and `g = γ ȳ` the rules are
//!
//! ```text
//! x̄ = r (g′ − x̂ mean(g x̂))      γ̄ = Σ ȳ x̂      β̄ = Σ ȳ       (sums over rows)
//! ```
//!
//! where in [`LayerNorm`] c is x minus its mean and g′ is g minus its mean, and in [`RmsNorm`] c = x and g′ = g.

use t4a_diff::array::Kernel;
use t4a_diff::{Array, Cotangents, Eager, Keep, Meta, OnBatch, Operation, Outcome, Reverse, Value};
use t4a_tensor::{Result, TensorError};

use crate::{given, kept_tensor, operands, same_dtype};

/// `γ (x − μ)/√(σ² + ε) + β` along the last axis, with its mean μ and biased variance σ² (Ba, Kiros,
/// Hinton 2016).
///
/// Operands: x `[…, d]`, γ `[d]`, and β `[d]` if there is one.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LayerNorm {
    /// ε.
    pub epsilon: f64,
}

/// `γ x/√(mean(x²) + ε)` along the last axis (Zhang, Sennrich 2019).
///
/// Operands: x `[…, d]`, γ `[d]`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RmsNorm {
    /// ε.
    pub epsilon: f64,
}

by_bits! {
    LayerNorm: |x| x.epsilon.to_bits();
    RmsNorm: |x| x.epsilon.to_bits();
}

fn results(op: &'static str, x: &Meta, weights: &[&Meta]) -> Result<Vec<Meta>> {
    let Some(d) = x.shape.last() else {
        return Err(TensorError::shape(op, &x.shape, "at least one axis"));
    };
    for weight in weights {
        same_dtype(op, &[x, weight])?;
        if weight.shape != [*d] {
            let required = "as many weights as the last axis has elements";
            return Err(TensorError::shapes(op, &x.shape, &weight.shape, required));
        }
    }
    Ok(vec![x.clone()])
}

fn last<A: Array>(x: &A) -> usize {
    x.shape().len() - 1
}

/// x minus its mean along the last axis.
fn centred<A: Array>(x: &A) -> A {
    x.sub(&x.mean(last(x)))
}

/// `c r` and `r = 1/√(mean(c²) + ε)` along the last axis.
fn normalised<A: Array>(c: &A, epsilon: f64) -> [A; 2] {
    let r = c.mul(c).mean(last(c)).shift(epsilon).sqrt().recip();
    [c.mul(&r), r]
}

/// A weight `[d]` reshaped to broadcast along the last of `rank` axes.
fn along_last<A: Array>(weight: &A, rank: usize) -> A {
    let mut shape = vec![1; rank];
    shape[rank - 1] = weight.shape()[0];
    weight.reshape(&shape)
}

/// The sum over all axes but the last.
fn per_column<A: Array>(x: &A) -> A {
    let mut sum = x.clone();
    for axis in 0..last(x) {
        sum = sum.sum(axis);
    }
    sum.reshape(&[x.shape()[last(x)]])
}

/// Cotangents of x and γ, given c; with `mean` the derivative of the mean is included.
fn rule<A: Array>(c: &A, gamma: &A, dy: &A, epsilon: f64, mean: bool) -> [A; 2] {
    let [hat, r] = normalised(c, epsilon);
    let g = dy.mul(&along_last(gamma, c.shape().len()));
    let slope = hat.mul(&g.mul(&hat).mean(last(c)));
    let through = if mean { centred(&g) } else { g };
    [through.sub(&slope).mul(&r), per_column(&dy.mul(&hat))]
}

impl Operation for LayerNorm {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        match inputs {
            [x, gamma, beta] => results(self.name(), x, &[gamma, beta]),
            _ => {
                let [x, gamma] = operands(self.name(), inputs)?;
                results(self.name(), x, &[gamma])
            }
        }
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().inputs(&[0, 1])
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let (x, gamma) = (inputs[0].float(), inputs[1].float());
        let rank = x.shape().len();
        let [hat, _] = normalised(&centred(x), self.epsilon);
        let y = hat.mul(&along_last(gamma, rank));
        Ok(match inputs.get(2) {
            Some(beta) => y.add(&along_last(beta.float(), rank)).into(),
            None => y.into(),
        })
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        vec![Kernel::Reduction]
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let (x, gamma) = (inputs[0].float().tensor()?, inputs[1].float().tensor()?);
        Ok(Eager::from(x.layer_norm(gamma, given(inputs, 2)?, self.epsilon)).into())
    }

    /// Batched only if the weights are shared: per-example weights would need a batch axis.
    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        (!differ[1..].contains(&true)).then_some(OnBatch::front(*self))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (kept, dy) = (reverse.kept, reverse.cotangent());
        let c = centred(kept.float(0));
        let [dx, dgamma] = rule(&c, kept.float(1), dy, self.epsilon, true);
        Ok([Some(dx), Some(dgamma), reverse.wanted.get(2).map(|_| per_column(dy))]
            .into_iter()
            .take(reverse.wanted.len())
            .collect())
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let (kept, dy) = (reverse.kept, reverse.cotangent());
        let (x, gamma) = (kept_tensor(kept, 0)?, kept_tensor(kept, 1)?);
        let all = x.layer_norm_vjp(gamma, self.epsilon, dy.tensor()?)?;
        Ok(all.into_iter().map(|x| Some(x.into())).take(reverse.wanted.len()).collect())
    }
}

impl Operation for RmsNorm {
    type Error = TensorError;

    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([2, 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let [x, gamma] = operands(self.name(), inputs)?;
        results(self.name(), x, &[gamma])
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().inputs(&[0, 1])
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let (x, gamma) = (inputs[0].float(), inputs[1].float());
        let [hat, _] = normalised(x, self.epsilon);
        Ok(hat.mul(&along_last(gamma, x.shape().len())).into())
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        vec![Kernel::Reduction]
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let (x, gamma) = (inputs[0].float().tensor()?, inputs[1].float().tensor()?);
        Ok(Eager::from(x.rms_norm(gamma, self.epsilon)).into())
    }

    /// Batched only if the weights are shared: per-example weights would need a batch axis.
    fn on_batch(&self, _: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        (!differ[1..].contains(&true)).then_some(OnBatch::front(*self))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (kept, dy) = (reverse.kept, reverse.cotangent());
        Ok(rule(kept.float(0), kept.float(1), dy, self.epsilon, false).map(Some).into())
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let (kept, dy) = (reverse.kept, reverse.cotangent());
        let (x, gamma) = (kept_tensor(kept, 0)?, kept_tensor(kept, 1)?);
        let both = x.rms_norm_vjp(gamma, self.epsilon, dy.tensor()?)?;
        Ok(both.map(|x| Some(x.into())).into())
    }
}
