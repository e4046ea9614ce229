//! Networks of flat arrays as one operation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use t4a_diff::array::Kernel;
use t4a_diff::{Array, Cotangents, Keep, Meta, Operation, Outcome, Pairs, Reverse, Value, vjp_of};

use super::{Contract, Rearrange, apply, check, kernels_of, one, rearrange, shared};
use crate::error::{Result, StructuredError};
use crate::plan::{ContractionPlan, SequencePlan, SequenceStep};

/// Sequence of rearrangements and contractions. Intermediates are hidden results; the vjp runs through them in
/// reverse order and is itself differentiable.
///
/// Complex operands are pairs of consecutive arrays; the result is a pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContractionNetwork {
    /// Steps of the sequence.
    #[serde(with = "shared")]
    pub plan: Arc<SequencePlan>,
    /// True if operands are pairs of arrays.
    pub complex: bool,
}

/// Value of a slot: one array, or a complex pair.
type SlotValue<A> = Vec<A>;

impl ContractionNetwork {
    fn arrays(&self) -> usize {
        1 + usize::from(self.complex)
    }

    /// Cotangents of both operands of a contraction.
    fn contract_vjp<A: Array>(
        &self,
        plan: &Arc<ContractionPlan>,
        operands: [&SlotValue<A>; 2],
        g: &[Option<A>],
        wanted: [bool; 2],
    ) -> Result<Vec<Cotangents<A>>> {
        let operands: Vec<&A> = operands.into_iter().flatten().collect();
        let op = Contract { plan: plan.clone() };
        let all = match self.complex {
            true => vjp_of(&Pairs::new(op), &operands, g, &wanted.map(|x| [x; 2]).concat()),
            false => vjp_of(&op, &operands, g, &wanted),
        };
        Ok(all?.chunks(self.arrays()).map(<[_]>::to_vec).collect())
    }

    fn step<A: Array>(&self, step: &SequenceStep, slots: &[SlotValue<A>]) -> Result<SlotValue<A>> {
        match step {
            SequenceStep::Rearrange(x, plan) => {
                let op = Rearrange { plan: plan.clone() };
                slots[*x as usize].iter().map(|x| one(&op, &[x])).collect()
            }
            SequenceStep::Contract([x, y], plan) => {
                let operands = slots[*x as usize].iter().chain(&slots[*y as usize]);
                let operands: Vec<&A> = operands.collect();
                let op = Contract { plan: plan.clone() };
                match self.complex {
                    true => apply(&Pairs::new(op), &operands),
                    false => apply(&op, &operands),
                }
            }
        }
    }
}

impl Operation for ContractionNetwork {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "network"
    }

    fn kernels(&self, inputs: &[Meta]) -> Vec<Kernel> {
        let of = |step: &SequenceStep| match step {
            SequenceStep::Rearrange(_, plan) => rearrange::kernels(plan),
            SequenceStep::Contract(_, plan) => Contract { plan: plan.clone() }.kernels(inputs),
        };
        kernels_of(self.plan.steps().iter().map(of))
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([self.plan.operands().len() * self.arrays(), self.arrays()])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let n = self.arrays();
        let lens: Vec<usize> = self.plan.operands().iter().flat_map(|&len| vec![len; n]).collect();
        check(self.name(), &lens, inputs)?;
        Ok(vec![Meta { shape: vec![self.plan.result()], dtype: inputs[0].dtype }; n])
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], tracked: &[bool]) -> Result<Outcome<A>> {
        let (n, steps) = (self.arrays(), self.plan.steps());
        let slot = |x: &[Value<A>]| x.iter().map(|x| x.float().clone()).collect();
        let mut slots: Vec<SlotValue<A>> = inputs.chunks(n).map(slot).collect();
        let (operands, keeps) = (slots.len(), tracked.contains(&true));
        for step in steps {
            slots.push(self.step(step, &slots)?);
            if !keeps {
                // Each slot is consumed once: its memory is released.
                step.slots().iter().for_each(|&slot| slots[slot as usize].clear());
            }
        }
        let mut out = Outcome::new(slots.pop().unwrap_or_default());
        if keeps {
            out.hidden = slots.into_iter().skip(operands).flatten().collect();
        }
        Ok(out)
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (n, steps) = (self.arrays(), self.plan.steps());
        let count = self.plan.operands().len();
        let operand = |i: usize| (0..n).map(|k| reverse.kept.float(n * i + k).clone()).collect();
        let hidden = reverse.kept.hidden.chunks(n).map(<[A]>::to_vec);
        let slots: Vec<SlotValue<A>> = (0..count).map(operand).chain(hidden).collect();
        let mut wanted: Vec<bool> =
            reverse.wanted.chunks(n).map(|all| all.contains(&true)).collect();
        for step in steps {
            wanted.push(step.slots().iter().any(|&slot| wanted[slot as usize]));
        }
        // Cotangents of all slots. Those of hidden results are given only when this rule itself is differentiated.
        let mut all: Vec<Vec<Option<A>>> = vec![vec![None; n]; count + steps.len()];
        for (slot, given) in all[count..].iter_mut().zip(reverse.hidden.chunks(n)) {
            slot.clone_from_slice(given);
        }
        if let Some(last) = all.last_mut() {
            last.clone_from_slice(reverse.cotangents);
        }
        let add = |to: &mut Vec<Option<A>>, own: Vec<Option<A>>| {
            for (to, own) in to.iter_mut().zip(own) {
                *to = match (to.take(), own) {
                    (Some(a), Some(b)) => Some(a.plus(&b)),
                    (a, b) => a.or(b),
                };
            }
        };
        for (s, step) in steps.iter().enumerate().rev() {
            let g = std::mem::take(&mut all[count + s]);
            if !wanted[count + s] || g.iter().all(Option::is_none) {
                continue;
            }
            match step {
                SequenceStep::Rearrange(x, plan) => {
                    let back = Rearrange { plan: plan.adjoint() };
                    let own = g.iter().map(|g| g.as_ref().map(|g| one(&back, &[g])).transpose());
                    add(&mut all[*x as usize], own.collect::<Result<_>>()?);
                }
                &SequenceStep::Contract([x, y], ref plan) => {
                    let [x, y] = [x, y].map(|slot| slot as usize);
                    let both = [wanted[x], wanted[y]];
                    let own = self.contract_vjp(plan, [&slots[x], &slots[y]], &g, both)?;
                    for (slot, own) in [x, y].into_iter().zip(own) {
                        add(&mut all[slot], own);
                    }
                }
            }
        }
        all.truncate(count);
        Ok(all.into_iter().flatten().collect())
    }
}
