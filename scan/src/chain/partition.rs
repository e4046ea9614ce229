//! ln Z of linear chains as one operation.

use t4a_diff::{Array, Cotangents, Eager, Keep, Meta, Operation, Outcome, Reverse, Value};
use t4a_einsum::{EinsumError, FloatSemiring, contract_arrays};

use super::messages::{LinearChain, OP, Result, check};
use super::{kernel, marginals};
use crate::operand;

/// `ln Σ_y exp(Σ_t x[b, t, y_t] + Σ_t W[y_{t−1}, y_t])` over all sequences of tags, of emissions
/// `x[batch, length, tags]` and transitions `W[tags, tags]`; past its length a sequence is ignored.
///
/// Rule, with the forward messages a and backward messages b of [`LinearChain`], as probabilities of tags and of pairs
/// of tags:
///
/// ```text
/// x̄[b, t, j] = z̄_b exp(a_t[j] + b_t[j] − L_t)
/// W̄[i, j]    = Σ_b z̄_b exp(W[i, j] + ln Σ_t exp(a_{t−1}[i] + x_t[j] + b_t[j] − L'_t))
/// ```
///
/// where L and L' are the log-sum-exp over tags and over pairs of tags: ln Z minus the normalisations of the messages,
/// which stay small. If no sequence has a finite score, ln Z is −∞ and probabilities are 0. Recorded step by step,
/// every slice of the emissions would have a cotangent of the size of all emissions.
///
/// Cost: `batch · length · tags²` multiply-adds; the rule has three times as many and keeps the operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogPartition {
    /// Length of each sequence, at least 1.
    pub lengths: Vec<usize>,
}

impl LogPartition {
    fn chain<A: Array>(&self, emissions: &A, transitions: &A) -> Result<LinearChain<A>> {
        LinearChain::new(emissions.clone(), transitions.clone(), Some(&self.lengths))
    }
}

impl Operation for LogPartition {
    type Error = EinsumError;

    fn name(&self) -> &'static str {
        "log_partition"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([2, 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        operand::count(OP, inputs, 2)?;
        let [batch, ..] = check(&inputs[0], &inputs[1], &self.lengths)?;
        Ok(vec![Meta { shape: vec![batch], dtype: inputs[0].dtype }])
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let chain = self.chain(inputs[0].float(), inputs[1].float())?;
        let ahead = chain.ahead(FloatSemiring::LogSumExp)?;
        let sum = contract_arrays(FloatSemiring::LogSumExp, "bi->b", &[ahead.last()])?;
        Ok(ahead.with_all(sum).into())
    }

    fn forward(&self, inputs: &[Value<Eager>], tracked: &[bool]) -> Result<Outcome<Eager>> {
        let (x, w) = (inputs[0].float(), inputs[1].float());
        match kernel::log_partition(x, w, &self.lengths)? {
            Some(z) => Ok(Eager::from(z).into()),
            None => self.portable(inputs, tracked),
        }
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let (x, w) = (reverse.kept.float(0), reverse.kept.float(1));
        let wanted = [reverse.wanted[0], reverse.wanted[1]];
        match marginals::cotangents(x, w, &self.lengths, reverse.cotangent(), wanted)? {
            Some(all) => Ok(all.map(|of| of.map(Eager::from)).into()),
            None => self.vjp(reverse),
        }
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let chain = self.chain(reverse.kept.float(0), reverse.kept.float(1))?;
        let [batch, length, tags] = chain.sizes;
        let of = chain.posterior()?;
        let given = reverse.cotangent().reshape(&[batch, 1, 1]);
        let emissions = match reverse.wanted[0] {
            false => None,
            true => Some(of.tags.mul(&given)),
        };
        let transitions = match reverse.wanted[1] {
            false => None,
            true if length == 1 => Some(chain.transitions.full(&[tags, tags], 0.0)),
            true => {
                let onward = chain.emissions.add(&of.behind).sub(&of.total);
                let onward = chain.without_past(onward, f64::NEG_INFINITY)?;
                let from = of.ahead.narrow(1, 0, length - 1);
                let onward = onward.narrow(1, 1, length - 1);
                let semiring = FloatSemiring::LogSumExp;
                let pairs = contract_arrays(semiring, "bti,btj->bij", &[&from, &onward])?;
                let between = chain.transitions.reshape(&[1, tags, tags]);
                let p = pairs.add(&between).exp();
                Some(p.mul(&given).sum(0).reshape(&[tags, tags]))
            }
        };
        Ok(vec![emissions, transitions])
    }
}
