//! Shape-only plans: which labels each step batches, keeps and sums.
//!
//! A plan depends on shapes and subscripts, never on data, element type, strides or semiring.

use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::error::{EinsumError, Result};
use crate::network::{Id, Ids, Network};
use crate::path::{Pairs, Path, product_ids, to_path};
use crate::step::Step;

/// What a contraction takes, known before it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Multiply-adds, over all slices.
    pub flops: f64,
    /// Elements of the largest intermediate or result.
    pub largest: f64,
    /// Elements of intermediates, result and operand copies that live at the same time, at most.
    pub peak: f64,
    /// How many times the network is contracted.
    pub slices: f64,
}

impl Cost {
    /// Bytes of memory at the peak for elements of this size, operands not counted.
    pub fn bytes(&self, element: usize) -> f64 {
        self.peak * element as f64
    }
}

/// Labels of one pairwise contraction by what becomes of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
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

/// A compiled contraction: order, labels of every step, slices.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(crate) network: Network,
    pub(crate) steps: Vec<Pair>,
    /// Labels of a single operand that are summed.
    pub(crate) lone: Ids,
    /// Labels that are fixed in an outer loop.
    pub(crate) sliced: Ids,
    path: Path,
    cost: Cost,
    /// What [`Plan::steps`] gives, once it was asked for.
    pub(crate) taken_apart: OnceLock<Vec<Step>>,
}

fn volume(ids: &[Id], sizes: &[usize]) -> f64 {
    ids.iter().map(|&id| sizes[id as usize] as f64).product()
}

impl Plan {
    pub(crate) fn new(network: Network, pairs: &Pairs) -> Result<Self> {
        let shape = network.result_shape();
        if t4a_tensor::layout::checked_numel(&shape).is_none() {
            return Err(EinsumError::SizeOverflow { shape });
        }
        let path = to_path(network.inputs.len(), pairs);
        let (steps, lone) = classify(&network, pairs);
        let none = Cost { flops: 0.0, largest: 0.0, peak: 0.0, slices: 1.0 };
        let (sliced, taken_apart) = (Ids::new(), OnceLock::new());
        let mut plan = Self { network, steps, lone, sliced, path, cost: none, taken_apart };
        plan.cost = plan.estimate(&[]);
        Ok(plan)
    }

    /// The order of contraction, for reuse.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Multiply-adds and memory, before running.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Shape of the result.
    pub fn shape(&self) -> Vec<usize> {
        self.network.result_shape()
    }

    /// Labels that are sliced to fit the memory budget.
    pub fn sliced(&self) -> Vec<crate::Label> {
        self.sliced.iter().map(|&id| self.network.names[id as usize]).collect()
    }

    /// Which slots depend on the given labels.
    pub(crate) fn varies(&self, sliced: &[Id]) -> Vec<bool> {
        let reached = |ids: &Ids| ids.iter().any(|id| sliced.contains(id));
        let mut varies: Vec<bool> = self.network.inputs.iter().map(reached).collect();
        for step in &self.steps {
            varies.push(varies[step.lhs] || varies[step.rhs]);
        }
        varies
    }

    /// Cost if the given labels are fixed in an outer loop.
    fn estimate(&self, sliced: &[Id]) -> Cost {
        let network = &self.network;
        let mut sizes = network.sizes.clone();
        let slices: f64 = volume(sliced, &sizes);
        let whole = volume(&network.output, &sizes);
        sliced.iter().for_each(|&id| sizes[id as usize] = 1);
        let operands = network.inputs.len();
        let varies = self.varies(sliced);
        let mut held = vec![0.0; varies.len()];
        // Slices are added up in one part of the result and collected in the whole.
        let mut live = match sliced {
            [] => 0.0,
            _ => whole + volume(&network.output, &sizes),
        };
        let (mut flops, mut peak, mut largest): (f64, f64, f64) = (0.0, live, whole);
        // Steps that no sliced label reaches come first, once; their results stay.
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        order.sort_by_key(|s| varies[operands + s]);
        for s in order {
            let step = &self.steps[s];
            let size = |ids: &Ids| volume(ids, &sizes);
            let (b, l, r, k) =
                (size(&step.batch), size(&step.left), size(&step.right), size(&step.sum));
            let (out, lhs, rhs) = (b * l * r, b * l * k, b * k * r);
            let lone = |ids: &Ids, rest: f64| if ids.is_empty() { 0.0 } else { rest * size(ids) };
            let work = out * k + lone(&step.lone_left, lhs) + lone(&step.lone_right, rhs);
            flops += work * if varies[operands + s] { slices } else { 1.0 };
            peak = peak.max(live + out + lhs + rhs);
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
        Cost { flops, largest, peak: peak.max(whole), slices }
    }

    /// Slices labels until the peak fits into `budget` bytes: each time the label that brings the
    /// peak down most per multiply-add that it adds.
    ///
    /// # Errors
    /// [`EinsumError::BudgetTooSmall`].
    pub(crate) fn slice(mut self, budget: usize, element: usize) -> Result<Self> {
        while self.cost.bytes(element) > budget as f64 {
            let labels = 0..self.network.sizes.len() as Id;
            let open = labels.filter(|id| !self.sliced.contains(id) && self.is_contracted(*id));
            let trial = |id: Id| {
                let mut sliced = self.sliced.clone();
                sliced.push(id);
                let cost = self.estimate(&sliced);
                let gain = (self.cost.peak / cost.peak).ln();
                let price = (cost.flops / self.cost.flops.max(1.0)).max(1.0).ln();
                (gain / (price + 0.1), id, sliced, cost)
            };
            let best = open.map(trial).filter(|t| t.3.peak <= self.cost.peak);
            let Some((_, _, sliced, cost)) = best.max_by(|a, b| a.0.total_cmp(&b.0)) else {
                let needed = self.cost.bytes(element) as usize;
                return Err(EinsumError::BudgetTooSmall { budget, needed });
            };
            (self.sliced, self.cost) = (sliced, cost);
        }
        // Labels of the output are the outer loops.
        let output = &self.network.output;
        self.sliced.sort_by_key(|id| !output.contains(id));
        Ok(self)
    }

    fn is_contracted(&self, id: Id) -> bool {
        self.network.sizes[id as usize] > 1
            && self.network.inputs.iter().any(|ids| ids.contains(&id))
    }
}

/// Walks the pairs and sorts the labels of each.
fn classify(network: &Network, pairs: &Pairs) -> (Vec<Pair>, Ids) {
    let mut slots: Vec<Ids> = network.inputs.clone();
    // How many tensors still left name each label; the output is one of them.
    let mut uses = vec![0usize; network.sizes.len()];
    let all = network.inputs.iter().flatten().chain(&network.output);
    all.for_each(|&id| uses[id as usize] += 1);
    let mut steps = Vec::with_capacity(pairs.len());
    for &(lhs, rhs) in pairs {
        let (a, b) = (slots[lhs].clone(), slots[rhs].clone());
        a.iter().chain(&b).for_each(|&id| uses[id as usize] -= 1);
        let keep = |id: Id| uses[id as usize] > 0;
        let pick = |from: &Ids, other: &Ids, shared: bool, kept: bool| -> Ids {
            let fits = |id: &Id| other.contains(id) == shared && keep(*id) == kept;
            from.iter().copied().filter(fits).collect()
        };
        steps.push(Pair {
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
    let lone: SmallVec<_> = match slots.last() {
        Some(ids) => ids.iter().copied().filter(|id| !network.output.contains(id)).collect(),
        None => Ids::new(),
    };
    (steps, lone)
}
