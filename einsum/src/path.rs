//! Contraction paths.
//!
//! A path is a list of steps as in opt_einsum: a step names positions in the list of remaining tensors, removes these
//! tensors and appends their product.

use hashbrown::HashMap;

use crate::error::{EinsumError, Result};
use crate::network::{Ids, LabelId};
use crate::order::{ContractionOrder, SlotPairs, join, product_ids};
use crate::search::{Optimizer, search};

/// Contraction path in the convention of opt_einsum.
///
/// ```
/// use t4a_einsum::Path;
/// let path = Path::from([[0, 1], [0, 1]]);
/// assert_eq!(path.steps().len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Path(Vec<Vec<usize>>);

impl Path {
    /// A path from steps; each step lists positions among the remaining tensors.
    pub fn new(steps: Vec<Vec<usize>>) -> Self {
        Self(steps)
    }

    /// The steps.
    pub fn steps(&self) -> &[Vec<usize>] {
        &self.0
    }
}

impl<const N: usize> From<[[usize; 2]; N]> for Path {
    fn from(pairs: [[usize; 2]; N]) -> Self {
        Self(pairs.iter().map(|pair| pair.to_vec()).collect())
    }
}

/// Remaining slots, indexed by position. Slot numbers are unchanged by removals.
struct Left {
    /// Fenwick tree of the counts of remaining slots.
    counts: Vec<usize>,
    slots: usize,
    left: usize,
}

impl Left {
    /// The first `operands` of `slots` slots; the others are appended later.
    fn new(operands: usize, slots: usize) -> Self {
        let mut counts = vec![0; slots + 1];
        for i in 1..=slots {
            counts[i] += usize::from(i <= operands);
            let parent = i + (i & i.wrapping_neg());
            if parent <= slots {
                counts[parent] += counts[i];
            }
        }
        Self { counts, slots: operands, left: operands }
    }

    fn add(&mut self, slot: usize, by: isize) {
        let mut i = slot + 1;
        while i < self.counts.len() {
            self.counts[i] = self.counts[i].wrapping_add_signed(by);
            i += i & i.wrapping_neg();
        }
        self.left = self.left.wrapping_add_signed(by);
    }

    fn take(&mut self, slot: usize) {
        self.add(slot, -1);
    }

    /// Appends the next slot at the last position.
    fn push(&mut self) -> usize {
        self.add(self.slots, 1);
        self.slots += 1;
        self.slots - 1
    }

    /// Number of remaining slots before a slot.
    fn position(&self, slot: usize) -> usize {
        let (mut i, mut before) = (slot, 0);
        while i > 0 {
            before += self.counts[i];
            i &= i - 1;
        }
        before
    }

    /// The slot at a position below `left`.
    fn at(&self, position: usize) -> usize {
        let (mut slot, mut rest) = (0, position);
        let mut step = self.counts.len().next_power_of_two();
        while step > 0 {
            if slot + step < self.counts.len() && self.counts[slot + step] <= rest {
                slot += step;
                rest -= self.counts[slot];
            }
            step /= 2;
        }
        slot
    }
}

/// Validates a path and splits steps with more than two tensors into pairs.
pub(crate) fn resolve(
    path: &Path,
    inputs: &[Ids],
    output: &[LabelId],
    sizes: &[usize],
) -> Result<ContractionOrder> {
    let mut left = Left::new(inputs.len(), inputs.len() + path.steps().len());
    // Slot and labels of every entry of the list.
    let mut entries: Vec<(usize, Ids)> = inputs.iter().cloned().enumerate().collect();
    let mut uses = vec![0usize; sizes.len()];
    inputs.iter().flatten().chain(output).for_each(|&id| uses[id as usize] += 1);
    let (mut pairs, mut cut) = (SlotPairs::new(), false);
    for (step, indices) in path.steps().iter().enumerate() {
        let remaining = left.left;
        let mut order = indices.clone();
        order.sort_unstable();
        let distinct = order.windows(2).all(|w| w[0] != w[1]);
        if order.is_empty() || !distinct || order.iter().any(|&i| i >= remaining) {
            return Err(EinsumError::PathStep { step, indices: indices.clone(), remaining });
        }
        // With two operands the order is kept: ⊗ need not commute.
        let named = if inputs.len() == 2 { &order } else { indices };
        let group: Vec<usize> = named.iter().map(|&i| left.at(i)).collect();
        let mut slots = Vec::with_capacity(2 * group.len());
        let mut ids = Vec::with_capacity(group.len());
        for entry in group {
            left.take(entry);
            let (slot, labels) = std::mem::take(&mut entries[entry]);
            labels.iter().for_each(|&id| uses[id as usize] -= 1);
            slots.push(slot);
            ids.push(labels);
        }
        let keep = |id: LabelId| uses[id as usize] > 0;
        let kept = ids.iter().fold(Ids::new(), |all, ids| product_ids(&all, ids, keep));
        let found = search_group(&ids, &kept, sizes)?;
        cut |= found.cut;
        for (a, b) in found.pairs {
            let slot = join(slots[a], slots[b], inputs.len(), &mut pairs);
            slots.push(slot);
        }
        kept.iter().for_each(|&id| uses[id as usize] += 1);
        // The product is last; a step with one tensor moves it to the end.
        entries.push((slots[slots.len() - 1], kept));
        left.push();
    }
    match left.left {
        0 | 1 => Ok(ContractionOrder { pairs, cut }),
        remaining => Err(EinsumError::PathIncomplete { remaining }),
    }
}

/// Searches for the order of one step over renumbered labels, so that a path with many steps over three tensors does
/// not traverse all labels in each step.
fn search_group(group: &[Ids], kept: &Ids, sizes: &[usize]) -> Result<ContractionOrder> {
    let mut numbers: HashMap<LabelId, LabelId> = HashMap::new();
    let mut of_group = Vec::new();
    let mut renumbered = |ids: &Ids| -> Ids {
        let number = |&id: &LabelId| {
            *numbers.entry(id).or_insert_with(|| {
                of_group.push(sizes[id as usize]);
                of_group.len() as LabelId - 1
            })
        };
        ids.iter().map(number).collect()
    };
    let inputs: Vec<Ids> = group.iter().map(&mut renumbered).collect();
    let output = renumbered(kept);
    search(&inputs, &output, &of_group, Optimizer::Greedy)
}

/// The path equivalent to a list of pairs.
pub(crate) fn to_path(operands: usize, pairs: &SlotPairs) -> Path {
    let mut left = Left::new(operands, operands + pairs.len());
    let step = |&(a, b): &(usize, usize)| {
        let indices = vec![left.position(a), left.position(b)];
        left.take(a);
        left.take(b);
        left.push();
        indices
    };
    Path(pairs.iter().map(step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference: a list from which taken slots are removed.
    #[test]
    fn positions_are_those_of_a_list() {
        let mut state = 11u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        for operands in 1..40 {
            let (mut tree, mut list) = (Left::new(operands, 2 * operands), Vec::new());
            list.extend(0..operands);
            for _ in 0..operands {
                for (at, &slot) in list.iter().enumerate() {
                    assert_eq!((tree.at(at), tree.position(slot)), (slot, at));
                }
                if list.is_empty() {
                    break;
                }
                let taken = list.remove(next(list.len()));
                tree.take(taken);
                if next(3) > 0 {
                    list.push(tree.push());
                }
                assert_eq!(tree.left, list.len());
            }
        }
    }
}
