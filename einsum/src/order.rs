//! Contraction orders as pairs of slots, and their estimated time.

use crate::network::{Ids, LabelId};

/// Pairs of slots to contract. Operands are slots 0, 1, …; step s writes slot `operands + s`.
pub(crate) type SlotPairs = Vec<(usize, usize)>;

/// Labels of the product of two tensors: the labels for which `keep` holds, without duplicates.
pub(crate) fn product_ids(a: &Ids, b: &Ids, keep: impl Fn(LabelId) -> bool) -> Ids {
    let mut out: Ids = a.iter().copied().filter(|&id| keep(id)).collect();
    out.extend(b.iter().copied().filter(|id| keep(*id) && !a.contains(id)));
    out
}

pub(crate) fn join(left: usize, right: usize, operands: usize, pairs: &mut SlotPairs) -> usize {
    pairs.push((left, right));
    operands + pairs.len() - 1
}

/// A contraction order.
pub(crate) struct ContractionOrder {
    pub(crate) pairs: SlotPairs,
    /// True if a work limit stopped the search because of the size of the network.
    pub(crate) cut: bool,
}

/// Contracts neighbours, then neighbouring pairs, and so on. If labels are kept, the tensors of all steps together have
/// n log n labels; a sequential order has n².
pub(crate) fn in_rounds(operands: usize) -> ContractionOrder {
    ContractionOrder {
        pairs: (1..operands).map(|step| (2 * step - 2, 2 * step - 1)).collect(),
        cut: false,
    }
}

/// Time to move one element, in multiply-adds.
const MOVE: f64 = 8.0;

/// Estimated time of a contraction order, in multiply-adds.
pub(crate) struct Measure<'a> {
    pub(crate) inputs: &'a [Ids],
    pub(crate) output: &'a [LabelId],
    pub(crate) sizes: &'a [usize],
}

impl Measure<'_> {
    pub(crate) fn size(&self, id: LabelId) -> f64 {
        self.sizes[id as usize] as f64
    }

    pub(crate) fn volume(&self, ids: &[LabelId]) -> f64 {
        ids.iter().map(|&id| self.size(id)).product()
    }

    /// One contraction, given the number of elements over all its labels and those of the operands and of the result.
    pub(crate) fn of_volumes(&self, all: f64, parts: [f64; 3]) -> f64 {
        all + MOVE * (parts[0] + parts[1] + parts[2])
    }

    /// One contraction.
    pub(crate) fn step(&self, a: &Ids, b: &Ids, out: &Ids) -> f64 {
        let all = self.volume(&product_ids(a, b, |_| true));
        self.of_volumes(all, [a, b, out].map(|ids| self.volume(ids)))
    }

    /// Labels of every slot.
    pub(crate) fn slots(&self, pairs: &SlotPairs) -> Vec<Ids> {
        let mut uses = vec![0usize; self.sizes.len()];
        let named = self.inputs.iter().flatten().chain(self.output);
        named.for_each(|&id| uses[id as usize] += 1);
        let mut seen = vec![usize::MAX; self.sizes.len()];
        let mut slots = self.inputs.to_vec();
        for (step, &(a, b)) in pairs.iter().enumerate() {
            let mut out: Ids = slots[a].iter().chain(&slots[b]).copied().collect();
            out.iter().for_each(|&id| uses[id as usize] -= 1);
            // Labels still used elsewhere, without duplicates.
            out.retain(|id| {
                let first = std::mem::replace(&mut seen[*id as usize], step) != step;
                first && uses[*id as usize] > 0
            });
            out.iter().for_each(|&id| uses[id as usize] += 1);
            slots.push(out);
        }
        slots
    }

    /// Estimated time of a whole order.
    pub(crate) fn price(&self, pairs: &SlotPairs) -> f64 {
        let slots = self.slots(pairs);
        let volumes: Vec<f64> = slots.iter().map(|ids| self.volume(ids)).collect();
        let mut seen = vec![usize::MAX; self.sizes.len()];
        let step = |(step, &(a, b)): (usize, &(usize, usize))| {
            let mut all = 1.0;
            for &id in slots[a].iter().chain(&slots[b]) {
                if std::mem::replace(&mut seen[id as usize], step) != step {
                    all *= self.size(id);
                }
            }
            let parts = [a, b, self.inputs.len() + step].map(|slot| volumes[slot]);
            self.of_volumes(all, parts)
        };
        pairs.iter().enumerate().map(step).sum()
    }
}
