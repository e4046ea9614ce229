//! Search for a contraction order. Finding an optimal one is NP-hard.
//!
//! ```text
//! Greedy   the cheapest of several greedy orders     ╲
//!                                                      refine: best orders of small subtrees
//! TreeSa   omeco: simulated annealing over trees    ╱
//! ```
//!
//! Annealing after Kalachev, Panteleev and Yung (2021).

use std::collections::HashMap;

use omeco::{EinCode, NestedEinsum, TreeSA, optimize_code};

use crate::error::{EinsumError, Result};
use crate::greedy::{self, MOST_LABELS, Ties};
use crate::network::{Ids, LabelId};
use crate::order::{ContractionOrder, Measure, SlotPairs, in_rounds, join};
use crate::refine::refine;

/// Limits of the total time of the greedy searches of one network, in nanoseconds: maximum, and minimum if the
/// contraction is faster.
const MOST_WORK: usize = 200_000_000;
const LEAST_WORK: usize = 5_000_000;
/// Time of a greedy search per operand, in addition to its candidates, in nanoseconds.
const PER_OPERAND: usize = 500;
/// Maximum number of operands for annealing: the library recurses to the depth of the tree, and its time is cubic in
/// the depth.
const MOST_ANNEALED: usize = 500;

/// Search method for the contraction order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Optimizer {
    /// Repeatedly contracts the pair with the smallest growth, for several measures of growth; the subtrees of the best
    /// order are then optimised exactly. Takes at most about the time of one contraction.
    #[default]
    Greedy,
    /// Simulated annealing over contraction trees: seconds of search for better paths. Subtrees are optimised as in
    /// [`Optimizer::Greedy`].
    TreeSa,
}

/// Searches for a contraction order.
///
/// # Errors
/// [`EinsumError::IntermediateOverflow`] if every order found has an intermediate that exceeds any memory.
pub(crate) fn search(
    inputs: &[Ids],
    output: &[LabelId],
    sizes: &[usize],
    by: Optimizer,
) -> Result<ContractionOrder> {
    if inputs.len() < 3 {
        return Ok(in_rounds(inputs.len()));
    }
    let measure = Measure { inputs, output, sizes };
    let annealed = match by {
        Optimizer::TreeSa if inputs.len() <= MOST_ANNEALED => anneal(inputs, output, sizes),
        _ => None,
    };
    let cut = by == Optimizer::TreeSa && inputs.len() > MOST_ANNEALED;
    let found = match annealed {
        Some(pairs) => ContractionOrder { pairs, cut: false },
        None => cheapest(&measure)?,
    };
    let refined = refine(&measure, found.pairs);
    Ok(ContractionOrder { cut: cut || found.cut || refined.cut, ..refined })
}

/// The cheapest of the greedy orders; fewer variants are tried if the contraction takes no longer than the search.
fn cheapest(measure: &Measure<'_>) -> Result<ContractionOrder> {
    let Measure { inputs, output, sizes } = *measure;
    let size = |free: &Vec<bool>| -> Vec<f64> {
        let size = |(&n, &free): (&usize, &bool)| if free { 1.0 } else { n.max(1) as f64 };
        sizes.iter().zip(free).map(size).collect()
    };
    let counted: Vec<Vec<f64>> =
        free_labels(inputs, output, sizes.len()).iter().map(size).collect();
    let ways = [Ties::Oldest, Ties::Youngest].into_iter().flat_map(|ties| {
        let counted = &counted;
        GAINS.into_iter().flat_map(move |gain| counted.iter().map(move |sizes| (ties, gain, sizes)))
    });
    let (mut best, mut work): (Option<(f64, SlotPairs)>, usize) = (None, 0);
    let mut worth = usize::MAX;
    for (ties, gain, sizes) in ways {
        if work > worth.clamp(LEAST_WORK, MOST_WORK) {
            break;
        }
        let bound = (&mut work, MOST_WORK / 4);
        let found = greedy::order((inputs, output, sizes), gain, ties, bound);
        work += inputs.len() * PER_OPERAND;
        let Some(pairs) = found else { continue };
        let price = measure.price(&pairs);
        if best.as_ref().is_none_or(|(least, _)| price < *least) {
            best = Some((price, pairs));
            worth = price as usize;
        }
    }
    let overflow = EinsumError::IntermediateOverflow { elements: 2f64.powi(MOST_LABELS as i32) };
    let (_, pairs) = best.ok_or(overflow)?;
    Ok(ContractionOrder { pairs, cut: work > MOST_WORK && worth > MOST_WORK })
}

fn anneal(inputs: &[Ids], output: &[LabelId], sizes: &[usize]) -> Option<SlotPairs> {
    let code = EinCode::new(inputs.iter().map(|ids| ids.to_vec()).collect(), output.to_vec());
    // The library takes logarithms of these sizes.
    let size = |(id, &n): (usize, &usize)| (id as LabelId, n.max(1));
    let of: HashMap<LabelId, usize> = sizes.iter().enumerate().map(size).collect();
    let tree = optimize_code(&code, &of, &TreeSA::fast())?;
    Some(order(&tree, inputs.len()))
}

/// Sets of labels that a greedy search may count as size 1: none; those of the output; those of more than two tensors.
/// Every order keeps such a label for many steps, and a search that counts its size prefers products of small tensors
/// without other shared labels.
fn free_labels(inputs: &[Ids], output: &[LabelId], labels: usize) -> Vec<Vec<bool>> {
    let mut uses = vec![0; labels];
    inputs.iter().flatten().for_each(|&id| uses[id as usize] += 1);
    let mut of_output = vec![false; labels];
    output.iter().for_each(|&id| of_output[id as usize] = true);
    let of_many = uses.iter().map(|&uses| uses > 2).collect();
    let mut choices = vec![vec![false; labels], of_output, of_many];
    choices.dedup();
    choices
}

/// Weights of the two operands' sizes relative to the size of their product in the greedy measure. No weight is best
/// for every network; the cheapest of the orders is taken.
const GAINS: [f64; 4] = [0.0, 0.3, 0.7, 1.0];

/// The pairs of a tree in post-order, without recursion. Operands missing in the tree are appended, and repeated
/// operands are used once: otherwise the sum would be wrong.
fn order(root: &NestedEinsum<LabelId>, operands: usize) -> SlotPairs {
    enum Visit<'a> {
        Tree(&'a NestedEinsum<LabelId>),
        Join(usize),
    }
    let mut pairs = SlotPairs::new();
    let mut used = vec![false; operands];
    let mut todo = vec![Visit::Tree(root)];
    // Slots of completed subtrees; `None` for a subtree without a new operand.
    let mut done: Vec<Option<usize>> = Vec::new();
    while let Some(visit) = todo.pop() {
        match visit {
            Visit::Tree(NestedEinsum::Leaf { tensor_index: i }) => {
                let new = *i < operands && !std::mem::replace(&mut used[*i], true);
                done.push(new.then_some(*i));
            }
            Visit::Tree(NestedEinsum::Node { args, .. }) => {
                todo.push(Visit::Join(args.len()));
                todo.extend(args.iter().rev().map(Visit::Tree));
            }
            Visit::Join(n) => {
                let parts = done.split_off(done.len().saturating_sub(n));
                let parts = parts.into_iter().flatten();
                done.push(parts.reduce(|l, r| join(l, r, operands, &mut pairs)));
            }
        }
    }
    let forgotten = (0..operands).filter(|&i| !used[i]);
    let roots: Vec<usize> = done.into_iter().flatten().chain(forgotten).collect();
    roots.into_iter().reduce(|l, r| join(l, r, operands, &mut pairs));
    pairs
}
