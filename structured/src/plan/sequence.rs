//! Sequence of rearrangements and contractions of operands and of earlier results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ContractionPlan, Rearrangement};
use crate::error::{Result, StructuredError};

/// Step of a sequence. Slots are the operands, followed by the results of the steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SequenceStep {
    /// Rearrangement of one slot.
    Rearrange(u32, Arc<Rearrangement>),
    /// Contraction of two slots.
    Contract([u32; 2], Arc<ContractionPlan>),
}

impl SequenceStep {
    /// Slots that the step consumes.
    pub fn slots(&self) -> &[u32] {
        match self {
            SequenceStep::Rearrange(x, _) => std::slice::from_ref(x),
            SequenceStep::Contract(both, _) => both,
        }
    }

    fn fits(&self, lens: &[usize]) -> bool {
        let len = |&slot: &u32| lens[slot as usize];
        match self {
            SequenceStep::Rearrange(x, plan) => len(x) == plan.from_len(),
            SequenceStep::Contract([x, y], plan) => [len(x), len(y)] == plan.lens()[..2],
        }
    }

    fn len(&self) -> usize {
        match self {
            SequenceStep::Rearrange(_, plan) => plan.to_len(),
            SequenceStep::Contract(_, plan) => plan.lens()[2],
        }
    }
}

/// Tree of steps: every slot except the last is consumed once. Without steps, the only operand is the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "SequenceData", into = "SequenceData")]
pub struct SequencePlan {
    operands: usize,
    /// Number of elements of each slot.
    lens: Vec<usize>,
    steps: Vec<SequenceStep>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StepData {
    Rearrange(u32, Rearrangement),
    Contract([u32; 2], ContractionPlan),
}

#[derive(Serialize, Deserialize)]
struct SequenceData {
    operands: Vec<usize>,
    steps: Vec<StepData>,
}

impl From<SequencePlan> for SequenceData {
    fn from(SequencePlan { operands, mut lens, steps }: SequencePlan) -> Self {
        lens.truncate(operands);
        let step = |step| match step {
            SequenceStep::Rearrange(x, plan) => StepData::Rearrange(x, Arc::unwrap_or_clone(plan)),
            SequenceStep::Contract(both, plan) => {
                StepData::Contract(both, Arc::unwrap_or_clone(plan))
            }
        };
        Self { operands: lens, steps: steps.into_iter().map(step).collect() }
    }
}

impl TryFrom<SequenceData> for SequencePlan {
    type Error = StructuredError;

    fn try_from(SequenceData { operands, steps }: SequenceData) -> Result<Self> {
        let step = |step| match step {
            StepData::Rearrange(x, plan) => SequenceStep::Rearrange(x, Arc::new(plan)),
            StepData::Contract(both, plan) => SequenceStep::Contract(both, Arc::new(plan)),
        };
        Self::new(operands, steps.into_iter().map(step).collect())
    }
}

impl SequencePlan {
    /// Sequence of steps on operands of these lengths.
    ///
    /// # Errors
    /// `Corrupt` for a step with a slot that does not exist, is consumed twice or has another length, and if more
    /// than one slot remains.
    pub fn new(operands: Vec<usize>, steps: Vec<SequenceStep>) -> Result<Self> {
        let corrupt = |what| Err(StructuredError::Corrupt { what });
        let (count, mut lens) = (operands.len(), operands);
        let mut taken = vec![false; count + steps.len()];
        for step in &steps {
            for &slot in step.slots() {
                let slot = slot as usize;
                if slot >= lens.len() || std::mem::replace(&mut taken[slot], true) {
                    return corrupt("a step of what is not there, or twice");
                }
            }
            if !step.fits(&lens) {
                return corrupt("a step of a buffer that does not fit");
            }
            lens.push(step.len());
        }
        match taken.iter().filter(|&&taken| !taken).count() {
            1 => Ok(Self { operands: count, lens, steps }),
            _ => corrupt("steps that leave several results, or none"),
        }
    }

    /// Numbers of elements of the operands.
    pub fn operands(&self) -> &[usize] {
        &self.lens[..self.operands]
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[SequenceStep] {
        &self.steps
    }

    /// Number of elements of the result.
    pub fn result(&self) -> usize {
        self.lens.last().copied().unwrap_or(0)
    }

    /// Largest number of elements of the results that are in memory at once, operands not counted.
    pub fn peak(&self) -> usize {
        let (mut live, mut most) = (0usize, 0usize);
        for (step, &len) in self.steps.iter().zip(&self.lens[self.operands..]) {
            live = live.saturating_add(len);
            most = most.max(live);
            let consumed = step.slots().iter().map(|&slot| slot as usize);
            let freed = consumed.filter(|&slot| slot >= self.operands).map(|slot| self.lens[slot]);
            live = live.saturating_sub(freed.sum());
        }
        most
    }

    pub(crate) fn bytes(&self) -> usize {
        let step = |step: &SequenceStep| match step {
            SequenceStep::Rearrange(_, plan) => 2 * plan.bytes(),
            SequenceStep::Contract(_, plan) => plan.bytes(),
        };
        size_of::<Self>() + self.steps.iter().map(step).sum::<usize>()
    }
}
