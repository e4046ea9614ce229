//! Products of entries and values of a diagonal tensor.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use t4a_diff::array::Kernel;
use t4a_diff::{Array, Cotangents, Keep, Meta, Operation, Outcome, Reverse, Value};

use super::{Rearrange, check, one, rearrange, shared};
use crate::error::{Result, StructuredError};
use crate::plan::Rearrangement;

/// `y = x ∘ R v`: each entry times one of the values of a bond. Complex entries are a pair of arrays, followed by the
/// real values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScaleBond {
    /// `R` broadcasts the values to the entries.
    #[serde(with = "shared")]
    pub plan: Arc<Rearrangement>,
    /// True if the entries are a pair of arrays.
    pub complex: bool,
}

impl ScaleBond {
    fn arrays(&self) -> usize {
        1 + usize::from(self.complex)
    }

    fn factors<A: Array>(&self, v: &A) -> Result<A> {
        one(&Rearrange { plan: self.plan.clone() }, &[v])
    }
}

impl Operation for ScaleBond {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "scale_bond"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([self.arrays() + 1, self.arrays()])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let mut lens = vec![self.plan.to_len(); self.arrays()];
        lens.push(self.plan.from_len());
        check(self.name(), &lens, inputs)?;
        Ok(inputs[..self.arrays()].to_vec())
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        let (n, keep) = (self.arrays(), Keep::default());
        let keep = if tracked[..n].contains(&true) { keep.inputs(&[n]) } else { keep };
        if tracked[n] { keep.inputs(&[0, n - 1]) } else { keep }
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        rearrange::kernels(&self.plan)
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let n = self.arrays();
        let factors = self.factors(inputs[n].float())?;
        let scaled = inputs[..n].iter().map(|x| x.float().mul(&factors));
        Ok(Outcome::new(scaled.collect()))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (n, kept) = (self.arrays(), reverse.kept);
        let mut all: Cotangents<A> = vec![None; n + 1];
        if reverse.wanted[..n].contains(&true) {
            let factors = self.factors(kept.float(n))?;
            for (to, g) in all.iter_mut().zip(reverse.cotangents) {
                *to = g.as_ref().map(|g| g.mul(&factors));
            }
        }
        if reverse.wanted[n] {
            let products = reverse.cotangents.iter().enumerate();
            let products = products.filter_map(|(i, g)| Some(g.as_ref()?.mul(kept.float(i))));
            let sum = products.reduce(|a, b| a.plus(&b));
            let back = Rearrange { plan: self.plan.adjoint() };
            all[n] = sum.map(|sum| one(&back, &[&sum])).transpose()?;
        }
        Ok(all)
    }
}
