//! A greedy search for a contraction order.
//!
//! In each iteration the pair with the smallest `|c| − gain·(|a| + |b|)` is contracted, where `|x|` is the number of
//! elements. Candidates are pairs that share a label. Among the tensors along one label only the [`NEIGHBOURS`]
//! smallest are candidates for a tensor, so n tensors that share a label take n log n time instead of n³. Tensors
//! without shared labels are multiplied last, smallest first.
//!
//! The order is a deterministic function of the network; ties are broken by age.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::network::{Ids, LabelId};
use crate::order::SlotPairs;

/// Candidates of a tensor along one label.
const NEIGHBOURS: usize = 16;

/// Cost of evaluating and storing a candidate, in addition to the cost per label.
const CANDIDATE: usize = 100;
/// Number of labels from which on a tensor exceeds any memory, regardless of slicing.
pub(crate) const MOST_LABELS: usize = 126;

/// Tie-breaking rule for two pairs with equal loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    /// The pair of the older tensors first: all parts of the network shrink evenly.
    Oldest,
    /// The pair of the younger tensors first: one tensor grows, and few tensors are alive at a time.
    Youngest,
}

/// Two slots and the loss of their contraction; compact, because heaps of candidates are traversed.
struct Candidate {
    loss: f64,
    /// Encoded pair; among equal losses the greater value is taken first.
    pair: u64,
}

impl Ties {
    fn pair(self, a: usize, b: usize) -> u64 {
        let (older, younger) = (a.min(b) as u64, a.max(b) as u64);
        match self {
            Self::Oldest => !(older << 32 | younger),
            Self::Youngest => younger << 32 | older,
        }
    }

    /// The slots of a pair, the older one first.
    fn slots(self, pair: u64) -> (usize, usize) {
        let halves = |pair: u64| ((pair >> 32) as usize, pair as u32 as usize);
        match self {
            Self::Oldest => halves(!pair),
            Self::Youngest => halves(pair.rotate_left(32)),
        }
    }
}

impl Ord for Candidate {
    /// Reversed order: the maximum of the heap is the candidate with the smallest loss.
    fn cmp(&self, other: &Self) -> Ordering {
        other.loss.total_cmp(&self.loss).then(self.pair.cmp(&other.pair))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// The remaining tensors.
struct GreedyState<'a> {
    sizes: &'a [f64],
    gain: f64,
    ties: Ties,
    /// Labels of every slot; `None` after it is contracted.
    tensors: Vec<Option<Ids>>,
    volumes: Vec<f64>,
    /// Number of tensors with each label; the output counts as one.
    uses: Vec<usize>,
    /// Volume and slot of the tensors along each label, the smallest and youngest last.
    along: Vec<Vec<(f64, usize)>>,
    candidates: BinaryHeap<Candidate>,
    /// Number of candidates per slot, and number of candidates whose slots are contracted.
    made: Vec<usize>,
    stale: usize,
    /// Per label, the slot last compared; per slot, the slot with which it was last paired.
    marked: Vec<usize>,
    seen: Vec<usize>,
    work: usize,
    neighbours: usize,
}

/// Descending by volume; equal volumes ascending by slot.
fn before(a: &(f64, usize), b: &(f64, usize)) -> Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// A contraction order for labels of sizes ≥ 1. `None` if an intermediate would exceed any memory.
///
/// `work` counts in units of about one nanosecond; after `most` units only one neighbour along each label is
/// considered.
pub(crate) fn order(
    (inputs, output, sizes): (&[Ids], &[LabelId], &[f64]),
    gain: f64,
    ties: Ties,
    (work, most): (&mut usize, usize),
) -> Option<SlotPairs> {
    if u32::try_from(2 * inputs.len()).is_err() {
        return None;
    }
    let mut state = GreedyState::new(inputs, output, sizes, gain, ties);
    let most = work.saturating_add(most);
    state.work = *work;
    let mut pairs = SlotPairs::with_capacity(inputs.len().saturating_sub(1));
    (0..inputs.len()).for_each(|slot| state.compare(slot, true));
    let pairs = state.run(&mut pairs, most).then_some(pairs);
    *work = state.work;
    pairs
}

impl<'a> GreedyState<'a> {
    fn new(inputs: &[Ids], output: &[LabelId], sizes: &'a [f64], gain: f64, ties: Ties) -> Self {
        let mut uses = vec![0; sizes.len()];
        inputs.iter().flatten().chain(output).for_each(|&id| uses[id as usize] += 1);
        let mut state = Self {
            sizes,
            gain,
            ties,
            tensors: Vec::with_capacity(2 * inputs.len()),
            volumes: Vec::with_capacity(2 * inputs.len()),
            along: vec![Vec::new(); sizes.len()],
            uses,
            work: 0,
            neighbours: NEIGHBOURS,
            candidates: BinaryHeap::new(),
            made: Vec::with_capacity(2 * inputs.len()),
            stale: 0,
            marked: vec![usize::MAX; sizes.len()],
            seen: Vec::with_capacity(2 * inputs.len()),
        };
        for ids in inputs {
            // A label of a single tensor is summed independently of the order.
            let shared = ids.iter().copied().filter(|&id| state.uses[id as usize] > 1);
            let shared: Ids = shared.collect();
            state.push(shared);
        }
        state.along.iter_mut().for_each(|slots| slots.sort_unstable_by(before));
        state
    }

    /// Contracts all tensors; returns false if an intermediate would exceed any memory.
    fn run(&mut self, pairs: &mut SlotPairs, most: usize) -> bool {
        while let Some(Candidate { pair, .. }) = self.candidates.pop() {
            let (left, right) = self.ties.slots(pair);
            if self.tensors[left].is_none() || self.tensors[right].is_none() {
                continue;
            }
            let slot = self.contract(left, right);
            pairs.push((left, right));
            if self.tensors[slot].as_ref().is_some_and(|ids| ids.len() > MOST_LABELS) {
                return false;
            }
            if self.work > most {
                self.neighbours = 1;
            }
            self.compare(slot, false);
            // Removing stale candidates in bulk avoids a logarithmic heap operation for each.
            if self.stale > self.candidates.len() / 2 + 64 {
                let left = |slot: usize| self.tensors[slot].is_some();
                self.candidates.retain(|candidate| {
                    let (a, b) = self.ties.slots(candidate.pair);
                    left(a) && left(b)
                });
                self.stale = 0;
            }
        }
        self.rest(pairs);
        true
    }

    fn volume(&self, ids: &[LabelId]) -> f64 {
        ids.iter().map(|&id| self.sizes[id as usize]).product()
    }

    /// Appends a tensor, at the end of the list of each of its labels.
    fn push(&mut self, ids: Ids) -> usize {
        let (slot, volume) = (self.tensors.len(), self.volume(&ids));
        ids.iter().for_each(|&id| self.along[id as usize].push((volume, slot)));
        self.tensors.push(Some(ids));
        self.volumes.push(volume);
        self.seen.push(usize::MAX);
        self.made.push(0);
        slot
    }

    /// Adds the candidate pairs of a tensor with its neighbours; with `all`, a mutual pair is added by the younger
    /// tensor only.
    fn compare(&mut self, slot: usize, all: bool) {
        let Some(ids) = self.tensors[slot].take() else { return };
        ids.iter().for_each(|&id| self.marked[id as usize] = slot);
        self.seen[slot] = slot;
        for &id in &ids {
            let along = &self.along[id as usize];
            self.work += self.neighbours.min(along.len());
            let mutual = all && along.len() <= self.neighbours + 1;
            for &(_, other) in along.iter().rev().take(self.neighbours + 1) {
                if (mutual && other > slot)
                    || std::mem::replace(&mut self.seen[other], slot) == slot
                {
                    continue;
                }
                let Some(others) = &self.tensors[other] else { continue };
                self.work += CANDIDATE + ids.len() + others.len();
                let mine = ids.iter().filter(|id| {
                    // Summed in this contraction: the label is in no other tensor and not in the output.
                    let uses = self.uses[**id as usize];
                    uses > 2 || !others.contains(id)
                });
                let theirs = others.iter().filter(|id| self.marked[**id as usize] != slot);
                let size = |id: &LabelId| self.sizes[*id as usize];
                let product: f64 = mine.chain(theirs).map(size).product();
                let loss = product - self.gain * (self.volumes[slot] + self.volumes[other]);
                // ∞ − ∞ is treated as infinite loss.
                let loss = if loss.is_nan() { f64::INFINITY } else { loss };
                self.candidates.push(Candidate { loss, pair: self.ties.pair(slot, other) });
                self.made[slot] += 1;
                self.made[other] += 1;
            }
        }
        self.tensors[slot] = Some(ids);
    }

    /// Replaces two tensors by their product.
    fn contract(&mut self, left: usize, right: usize) -> usize {
        let mut both = Ids::new();
        for slot in [left, right] {
            self.stale += std::mem::take(&mut self.made[slot]);
            let place = (self.volumes[slot], slot);
            for id in self.tensors[slot].take().unwrap_or_default() {
                let along = &mut self.along[id as usize];
                if let Ok(at) = along.binary_search_by(|known| before(known, &place)) {
                    along.remove(at);
                }
                self.uses[id as usize] -= 1;
                both.push(id);
            }
        }
        // Labels of the product, without duplicates.
        let new = self.tensors.len();
        both.retain(|id| {
            let first = std::mem::replace(&mut self.marked[*id as usize], new) != new;
            first && self.uses[*id as usize] > 0
        });
        let slot = self.push(both);
        for &id in self.tensors[slot].iter().flatten() {
            self.uses[id as usize] += 1;
            let along = &mut self.along[id as usize];
            if let Some(last) = along.pop() {
                let at = along.partition_point(|known| before(known, &last) == Ordering::Less);
                along.insert(at, last);
            }
        }
        slot
    }

    /// Multiplies the remaining tensors, which share no labels.
    fn rest(&mut self, pairs: &mut SlotPairs) {
        let place = |loss, slot| Candidate { loss, pair: Ties::Oldest.pair(slot, slot) };
        let left = (0..self.tensors.len()).filter(|&slot| self.tensors[slot].is_some());
        let mut left: BinaryHeap<_> = left.map(|slot| place(self.volumes[slot], slot)).collect();
        while let (Some(a), Some(b)) = (left.pop(), left.pop()) {
            let ((x, _), (y, _)) = (Ties::Oldest.slots(a.pair), Ties::Oldest.slots(b.pair));
            pairs.push((x.min(y), x.max(y)));
            self.volumes.push(a.loss * b.loss);
            left.push(place(a.loss * b.loss, self.volumes.len() - 1));
        }
    }
}
