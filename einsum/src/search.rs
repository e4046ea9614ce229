//! Search for a contraction order. Finding an optimal one is NP-hard.
//!
//! ```text
//! Greedy   the cheapest of several greedy orders     ╲
//!                                                      refine: best orders of small subtrees
//! TreeSa   anneal: simulated annealing over trees   ╱
//! ```

use crate::anneal;
use crate::error::{EinsumError, Result};
use crate::greedy::{self, MOST_LABELS, Ties};
use crate::network::{Ids, LabelId};
use crate::order::{ContractionOrder, Measure, SlotPairs, in_rounds};
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
    /// [`Optimizer::Greedy`]. Needs the feature `omeco`.
    TreeSa,
}

/// Searches for a contraction order.
///
/// # Errors
/// [`EinsumError::IntermediateOverflow`] if every order found has an intermediate that exceeds any memory;
/// [`EinsumError::OptimizerUnavailable`].
pub(crate) fn search(
    inputs: &[Ids],
    output: &[LabelId],
    sizes: &[usize],
    by: Optimizer,
) -> Result<ContractionOrder> {
    available(by, anneal::IS_AVAILABLE)?;
    if inputs.len() < 3 {
        return Ok(in_rounds(inputs.len()));
    }
    let measure = Measure { inputs, output, sizes };
    let fits = inputs.len() <= MOST_ANNEALED;
    let annealed = match by {
        Optimizer::TreeSa if fits => anneal::order(inputs, output, sizes),
        _ => None,
    };
    let cut = by == Optimizer::TreeSa && !fits;
    let found = match annealed {
        Some(pairs) => ContractionOrder { pairs, cut: false },
        None => cheapest(&measure)?,
    };
    let refined = refine(&measure, found.pairs);
    Ok(ContractionOrder { cut: cut || found.cut || refined.cut, ..refined })
}

/// Rejects annealing unless this build `anneals`.
fn available(by: Optimizer, anneals: bool) -> Result<()> {
    match by {
        Optimizer::TreeSa if !anneals => {
            Err(EinsumError::OptimizerUnavailable { optimizer: "TreeSa" })
        }
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annealing_needs_its_feature() {
        let error = available(Optimizer::TreeSa, false).unwrap_err();
        assert_eq!(error, EinsumError::OptimizerUnavailable { optimizer: "TreeSa" });
        available(Optimizer::TreeSa, true).unwrap();
        available(Optimizer::Greedy, false).unwrap();
    }
}
