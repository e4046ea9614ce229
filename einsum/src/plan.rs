//! Shape-only plans: batch, kept and summed labels of each step.
//!
//! A plan depends on shapes and subscripts, never on data, element type, strides or semiring.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::direct::DirectProduct;
use crate::error::{EinsumError, Result};
use crate::network::{Ids, LabelId, Network};
use crate::order::{ContractionOrder, SlotPairs, product_ids};
use crate::path::{Path, to_path};

/// Maximum number of step labels visited while one label to slice is chosen: some hundredths of a second.
const LOOKED_AT: usize = 4_000_000;
/// Minimum number of labels tried for a slice.
const FEWEST_TRIED: usize = 8;
/// Maximum number of elements of a tensor: the limit of the engine.
const MOST_ELEMENTS: f64 = (1u64 << 48) as f64;
/// Maximum number of slices: 2⁶³ with a margin for rounding.
const MOST_SLICES: f64 = 9e18;

/// Cost of a contraction, computed from shapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Multiply-adds, over all slices.
    pub flops: f64,
    /// Elements of the largest intermediate or result.
    pub largest: f64,
    /// Maximum number of elements of intermediates, result and operand copies alive at the same time.
    pub peak: f64,
    /// Number of contractions of the network.
    pub slices: f64,
}

impl Cost {
    /// Bytes of memory at the peak for elements of this size, operands not counted.
    pub fn bytes(&self, element: usize) -> f64 {
        self.peak * element as f64
    }
}

/// Labels of one pairwise contraction, classified by role.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PairLabels {
    pub(crate) lhs: usize,
    pub(crate) rhs: usize,
    /// In one operand, summed before the product.
    pub(crate) lone_left: Ids,
    pub(crate) lone_right: Ids,
    /// In both, kept.
    pub(crate) batch: Ids,
    /// In one operand, kept.
    pub(crate) left: Ids,
    pub(crate) right: Ids,
    /// In both, summed.
    pub(crate) sum: Ids,
}

/// One step of a plan: the tensors that it reads and their contraction.
#[derive(Clone, Debug, PartialEq)]
pub struct PairwiseStep {
    /// Slots that the step reads: two, or one if the plan has one operand. Every slot is read once.
    pub slots: SmallVec<[usize; 2]>,
    /// The contraction of these slots. Operands have their original shape and axis order; results of earlier steps have
    /// the axes of [`Plan::result_labels`] of their step.
    pub plan: Arc<Plan>,
}

/// Cached plans of the cotangents of both operands.
pub(crate) type CotangentPlans = [OnceLock<Arc<Plan>>; 2];

/// A compiled contraction: order, labels of every step, sliced labels.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) network: Network,
    pub(crate) steps: Vec<PairLabels>,
    /// Labels of a single operand that are summed.
    pub(crate) lone: Ids,
    /// Labels fixed in an outer loop.
    pub(crate) sliced: Ids,
    path: Path,
    cost: Cost,
    cut: bool,
    /// The memory budget set by the caller, if the slices serve it.
    budget: Option<usize>,
    /// Cached result of [`Plan::steps`].
    pub(crate) taken_apart: OnceLock<Vec<PairwiseStep>>,
    /// Cached result of [`Plan::cotangent`].
    pub(crate) cotangents: CotangentPlans,
    /// Cached result of [`Plan::direct`].
    direct: OnceLock<Option<DirectProduct>>,
}

/// The fields that determine a plan.
type PlanIdentity<'a> = (&'a Network, &'a Path, &'a Ids, Option<usize>);

impl Plan {
    fn identity(&self) -> PlanIdentity<'_> {
        (&self.network, &self.path, &self.sliced, self.budget)
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Plan {}

impl Hash for Plan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

fn volume(ids: &[LabelId], sizes: &[usize]) -> f64 {
    ids.iter().map(|&id| sizes[id as usize] as f64).product()
}

/// Cost of a plan, and the step at its memory peak.
struct Estimate {
    cost: Cost,
    /// The step with the memory peak; `None` if the peak is outside of the steps.
    at: Option<usize>,
}

impl Plan {
    pub(crate) fn new(network: Network, ContractionOrder { pairs, cut }: ContractionOrder) -> Self {
        let path = to_path(network.inputs.len(), &pairs);
        let (steps, lone) = classify(&network, &pairs);
        let cost = Cost { flops: 0.0, largest: 0.0, peak: 0.0, slices: 1.0 };
        let mut plan = Self {
            network,
            steps,
            lone,
            sliced: Ids::new(),
            path,
            cost,
            cut,
            budget: None,
            taken_apart: OnceLock::new(),
            cotangents: CotangentPlans::default(),
            direct: OnceLock::new(),
        };
        plan.cost = plan.estimate(&[]).cost;
        plan
    }

    /// Checks that no size of the contraction exceeds the limit.
    ///
    /// # Errors
    /// [`EinsumError::IntermediateOverflow`].
    pub(crate) fn check_sizes(&self) -> Result<()> {
        // Operands and result are checked with the shapes, and views of tensors are smaller.
        let elements = self.cost.largest;
        if elements <= MOST_ELEMENTS {
            return Ok(());
        }
        Err(EinsumError::IntermediateOverflow { elements })
    }

    /// The order of contraction, for reuse.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Multiply-adds and memory, before running.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// True if an operand (so that sums are empty) or the result has no elements: every result and intermediate is the
    /// zero of the semiring, regardless of the other operands.
    pub fn is_empty(&self) -> bool {
        self.network.is_empty
    }

    /// True if the search for the order, or for labels to slice, stopped early because the network is large: an
    /// external search, given as a [`Path`], may find a cheaper plan.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The budget in bytes for which labels are sliced, if the caller set one; `None` for a plan that slices to fit
    /// into free memory.
    pub fn budget(&self) -> Option<usize> {
        self.budget
    }

    /// The labels of axes with size other than 1, in the order of first occurrence in the subscripts.
    ///
    /// The terms of a sum are numbered in this order, last label fastest. Ties resolve to the smallest number.
    pub fn labels(&self) -> &[crate::Label] {
        &self.network.names
    }

    /// Shape of the result.
    pub fn shape(&self) -> Vec<usize> {
        self.network.result_shape()
    }

    /// Labels that are sliced to fit the memory budget.
    pub fn sliced(&self) -> Vec<crate::Label> {
        self.sliced.iter().map(|&id| self.network.names[id as usize]).collect()
    }

    /// Checks that the plan may run without its slices: an error if they serve a budget set by the caller.
    ///
    /// # Errors
    /// [`EinsumError::NotSliced`].
    pub fn check_unsliced(&self) -> Result<()> {
        if self.sliced.is_empty() || self.budget.is_none() {
            return Ok(());
        }
        let labels: Vec<String> = self.sliced().iter().map(|label| label.to_string()).collect();
        Err(EinsumError::NotSliced { labels: labels.join(", ") })
    }

    /// The contraction as one matrix product of row-major operands, if it is one.
    pub(crate) fn direct(&self) -> Option<&DirectProduct> {
        let direct = self.direct.get_or_init(|| DirectProduct::of(self));
        direct.as_ref().filter(|_| self.sliced.is_empty())
    }

    /// For each slot, true if it depends on the given labels.
    pub(crate) fn varies(&self, sliced: &[LabelId]) -> Vec<bool> {
        let reached = |ids: &Ids| !sliced.is_empty() && ids.iter().any(|id| sliced.contains(id));
        let mut varies: Vec<bool> = self.network.inputs.iter().map(reached).collect();
        for step in &self.steps {
            varies.push(varies[step.lhs] || varies[step.rhs]);
        }
        varies
    }

    /// Steps in execution order: those independent of the sliced labels first, executed once.
    fn running_order(&self, varies: &[bool]) -> impl Iterator<Item = usize> {
        let of_steps = &varies[self.network.inputs.len()..];
        let steps = |varies| (0..of_steps.len()).filter(move |&s| of_steps[s] == varies);
        steps(false).chain(steps(true))
    }

    /// Cost with the given labels fixed in an outer loop.
    fn estimate(&self, sliced: &[LabelId]) -> Estimate {
        let network = &self.network;
        let mut sizes = network.sizes.clone();
        let slices: f64 = volume(sliced, &sizes);
        let whole = if network.is_empty && network.result_shape().contains(&0) {
            0.0
        } else {
            volume(&network.output, &sizes)
        };
        // For repeated output labels the result is written to the diagonal of a tensor of zeros.
        let written: f64 = if network.repeats() {
            network.result_shape().iter().map(|&n| n as f64).product()
        } else {
            0.0
        };
        if network.is_empty {
            let elements = whole.max(written);
            let cost = Cost { flops: 0.0, largest: elements, peak: elements, slices: 1.0 };
            return Estimate { cost, at: None };
        }
        sliced.iter().for_each(|&id| sizes[id as usize] = 1);
        let operands = network.inputs.len();
        let varies = self.varies(sliced);
        let mut held = vec![0.0; varies.len()];
        // Slices are accumulated in one part of the result and written to the whole.
        let mut live = match sliced {
            [] => 0.0,
            _ => whole + volume(&network.output, &sizes),
        };
        let (mut flops, mut peak, mut largest): (f64, f64, f64) = (0.0, live, whole.max(written));
        let mut at = None;
        for s in self.running_order(&varies) {
            let step = &self.steps[s];
            let size = |ids: &Ids| volume(ids, &sizes);
            let (b, l, r, k) =
                (size(&step.batch), size(&step.left), size(&step.right), size(&step.sum));
            let (out, lhs, rhs) = (b * l * r, b * l * k, b * k * r);
            let lone = |ids: &Ids, rest: f64| if ids.is_empty() { 0.0 } else { rest * size(ids) };
            let work = out * k + lone(&step.lone_left, lhs) + lone(&step.lone_right, rhs);
            flops += work * if varies[operands + s] { slices } else { 1.0 };
            if live + out + lhs + rhs > peak {
                (peak, at) = (live + out + lhs + rhs, Some(s));
            }
            live += out;
            for slot in [step.lhs, step.rhs] {
                if varies[slot] || !varies[operands + s] {
                    live -= held[slot];
                }
            }
            held[operands + s] = out;
            largest = largest.max(out);
        }
        if self.steps.is_empty() {
            let size = network.inputs.iter().map(|ids| volume(ids, &sizes)).sum::<f64>();
            flops = if self.lone.is_empty() { 0.0 } else { size * slices };
            peak = peak.max(live + size);
        }
        let cost = Cost { flops, largest, peak: peak.max(whole + written), slices };
        Estimate { cost, at }
    }

    /// Labels that can be sliced, those with the most memory at the peak first.
    fn labels_at(&self, peak: Option<usize>) -> Vec<LabelId> {
        let mut sizes = self.network.sizes.clone();
        self.sliced.iter().for_each(|&id| sizes[id as usize] = 1);
        let mut weights = vec![0.0; sizes.len()];
        let mut add = |parts: &[&Ids]| {
            let elements: f64 = parts.iter().map(|ids| volume(ids, &sizes)).product();
            parts.iter().copied().flatten().for_each(|&id| weights[id as usize] += elements);
        };
        add(&[&self.network.output]);
        self.network.inputs.iter().filter(|_| self.steps.is_empty()).for_each(|ids| add(&[ids]));
        let (varies, operands) = (self.varies(&self.sliced), self.network.inputs.len());
        let mut held = vec![false; varies.len()];
        for s in self.running_order(&varies) {
            let step = &self.steps[s];
            if Some(s) == peak {
                let PairLabels { batch, left, right, sum, .. } = step;
                [[batch, left, sum], [batch, sum, right], [batch, left, right]]
                    .iter()
                    .for_each(|parts| add(parts));
                for (s, step) in self.steps.iter().enumerate() {
                    if held[operands + s] {
                        add(&[&step.batch, &step.left, &step.right]);
                    }
                }
                break;
            }
            held[operands + s] = true;
            for slot in [step.lhs, step.rhs] {
                held[slot] &= !varies[slot] && varies[operands + s];
            }
        }
        let open = |&id: &LabelId| sizes[id as usize] > 1 && weights[id as usize] > 0.0;
        let mut labels: Vec<LabelId> = (0..sizes.len() as LabelId).filter(open).collect();
        labels.sort_by(|&a, &b| weights[b as usize].total_cmp(&weights[a as usize]));
        labels
    }

    /// The plan with these labels fixed in outer loops, in this order.
    ///
    /// # Errors
    /// [`EinsumError::DuplicateSize`] for a repeated label; `BudgetTooSmall` if the number of slices exceeds its limit.
    #[cfg(feature = "serde")]
    pub(crate) fn with_slices(mut self, sliced: Ids, budget: Option<usize>) -> Result<Self> {
        for (i, &id) in sliced.iter().enumerate() {
            if sliced[..i].contains(&id) {
                let (label, size) =
                    (self.network.names[id as usize], self.network.sizes[id as usize]);
                return Err(EinsumError::DuplicateSize { label, first: size, second: 1 });
            }
        }
        self.cost = self.estimate(&sliced).cost;
        if self.cost.slices > MOST_SLICES {
            let budget = budget.unwrap_or(0);
            return Err(EinsumError::BudgetTooSmall { budget, needed: usize::MAX });
        }
        (self.sliced, self.budget) = (sliced, budget);
        Ok(self)
    }

    /// Slices labels until the peak fits into `budget` bytes. Each iteration takes the label with the largest reduction
    /// of the peak per added multiply-add.
    ///
    /// # Errors
    /// [`EinsumError::BudgetTooSmall`].
    pub(crate) fn slice(mut self, budget: usize, element: usize, given: bool) -> Result<Self> {
        self.budget = given.then_some(budget);
        let labels =
            |x: &PairLabels| 4 + x.batch.len() + x.left.len() + x.right.len() + x.sum.len();
        let labels: usize = self.steps.iter().map(labels).sum();
        let most = (LOOKED_AT / labels.max(1)).max(FEWEST_TRIED);
        let mut at = self.estimate(&[]).at;
        while self.cost.bytes(element) > budget as f64 {
            let mut labels = self.labels_at(at);
            self.cut |= labels.len() > most;
            labels.truncate(most);
            let trial = |id: LabelId| {
                let mut sliced = self.sliced.clone();
                sliced.push(id);
                let Estimate { cost, at } = self.estimate(&sliced);
                let gain = (self.cost.peak / cost.peak).ln();
                let price = (cost.flops / self.cost.flops.max(1.0)).max(1.0).ln();
                (gain / (price + 0.1), sliced, cost, at)
            };
            // The peak exceeds the budget for any number of slices.
            if self.cost.peak > MOST_ELEMENTS * MOST_SLICES {
                labels.clear();
            }
            let fits = |cost: &Cost| cost.peak <= self.cost.peak && cost.slices <= MOST_SLICES;
            let trials = labels.into_iter().map(trial).filter(|(_, _, cost, _)| fits(cost));
            let Some((_, sliced, cost, next)) = trials.max_by(|a, b| a.0.total_cmp(&b.0)) else {
                let needed = self.cost.bytes(element) as usize;
                return Err(EinsumError::BudgetTooSmall { budget, needed });
            };
            (self.sliced, self.cost, at) = (sliced, cost, next);
        }
        // Output labels are the outer loops; summed labels follow in the order of the terms.
        let output = &self.network.output;
        self.sliced.sort_by_key(|id| (!output.contains(id), *id));
        Ok(self)
    }
}

/// Classifies the labels of each pair; summed labels are in the order of the terms.
fn classify(network: &Network, pairs: &SlotPairs) -> (Vec<PairLabels>, Ids) {
    let mut slots: Vec<Ids> = network.inputs.clone();
    // Number of remaining tensors with each label; the output counts as one.
    let mut uses = vec![0usize; network.sizes.len()];
    let all = network.inputs.iter().flatten().chain(&network.output);
    all.for_each(|&id| uses[id as usize] += 1);
    let mut steps = Vec::with_capacity(pairs.len());
    for &(lhs, rhs) in pairs {
        let (a, b) = (slots[lhs].clone(), slots[rhs].clone());
        a.iter().chain(&b).for_each(|&id| uses[id as usize] -= 1);
        let keep = |id: LabelId| uses[id as usize] > 0;
        let pick = |from: &Ids, other: &Ids, shared: bool, kept: bool| -> Ids {
            let fits = |id: &LabelId| keep(*id) == kept && other.contains(id) == shared;
            let mut ids: Ids = from.iter().copied().filter(fits).collect();
            if !kept {
                ids.sort_unstable();
            }
            ids
        };
        steps.push(PairLabels {
            lhs,
            rhs,
            lone_left: pick(&a, &b, false, false),
            lone_right: pick(&b, &a, false, false),
            batch: pick(&a, &b, true, true),
            left: pick(&a, &b, false, true),
            right: pick(&b, &a, false, true),
            sum: pick(&a, &b, true, false),
        });
        let out = product_ids(&a, &b, keep);
        out.iter().for_each(|&id| uses[id as usize] += 1);
        slots.push(out);
    }
    let mut lone: Ids = match slots.last() {
        Some(ids) => ids.iter().copied().filter(|id| !network.output.contains(id)).collect(),
        None => Ids::new(),
    };
    lone.sort_unstable();
    (steps, lone)
}
