//! Contraction order: which two tensors meet next.
//!
//! A path is a list of steps as in opt_einsum: a step names positions in the list of tensors that
//! are left, takes them out and appends their product. Finding a best one is NP-hard; the search
//! is left to omeco (greedy, and simulated annealing over trees: Kalachev, Panteleev and Yung
//! 2021).

use std::collections::HashMap;

use omeco::{EinCode, GreedyMethod, NestedEinsum, TreeSA, optimize_code};

use crate::error::{EinsumError, Result};
use crate::network::{Id, Ids};

/// Which pairs are contracted, in the convention of opt_einsum.
///
/// ```
/// use t4a_einsum::Path;
/// let path = Path::from([[0, 1], [0, 1]]);
/// assert_eq!(path.steps().len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(Vec<Vec<usize>>);

impl Path {
    /// From steps that each name the positions of tensors still left.
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

/// How the contraction order is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Optimizer {
    /// Repeatedly the pair whose product grows least.
    #[default]
    Greedy,
    /// Simulated annealing over contraction trees: seconds of search for better paths.
    TreeSa,
}

/// Two slots that are contracted into the next one. Operands are slots 0, 1, …; step s fills slot
/// `operands + s`.
pub(crate) type Pairs = Vec<(usize, usize)>;

/// The labels of the product of two tensors: those of either that others or the output need.
pub(crate) fn product_ids(a: &Ids, b: &Ids, keep: impl Fn(Id) -> bool) -> Ids {
    let mut out: Ids = a.iter().copied().filter(|&id| keep(id)).collect();
    out.extend(b.iter().copied().filter(|id| keep(*id) && !a.contains(id)));
    out
}

/// Searches for an order.
pub(crate) fn search(inputs: &[Ids], output: &[Id], sizes: &[usize], by: Optimizer) -> Pairs {
    if inputs.len() < 3 {
        return (1..inputs.len()).map(|_| (0, 1)).collect();
    }
    let ixs = inputs.iter().map(|ids| ids.to_vec()).collect();
    let code = EinCode::new(ixs, output.to_vec());
    // Sizes enter as logarithms.
    let sizes: HashMap<Id, usize> =
        sizes.iter().enumerate().map(|(id, &n)| (id as Id, n.max(1))).collect();
    let tree = match by {
        Optimizer::Greedy => optimize_code(&code, &sizes, &GreedyMethod::default()),
        Optimizer::TreeSa => optimize_code(&code, &sizes, &TreeSA::fast()),
    };
    let mut pairs = Pairs::new();
    let mut used = vec![false; inputs.len()];
    let mut roots = Vec::new();
    if let Some(tree) = &tree {
        roots.extend(unroll(tree, inputs.len(), &mut pairs, &mut used));
    }
    // A tree that forgets an operand would give a wrong sum.
    roots.extend((0..inputs.len()).filter(|&i| !used[i]));
    let mut roots = roots.into_iter();
    if let Some(first) = roots.next() {
        roots.fold(first, |left, right| join(left, right, inputs.len(), &mut pairs));
    }
    pairs
}

fn join(left: usize, right: usize, operands: usize, pairs: &mut Pairs) -> usize {
    pairs.push((left, right));
    operands + pairs.len() - 1
}

/// Slots of a tree in post-order, without recursion: a chain of a thousand tensors may be a tree
/// as deep. Returns the slot of the root.
fn unroll(
    tree: &NestedEinsum<Id>,
    operands: usize,
    pairs: &mut Pairs,
    used: &mut [bool],
) -> Option<usize> {
    enum Visit<'a> {
        Tree(&'a NestedEinsum<Id>),
        Join(usize),
    }
    let mut todo = vec![Visit::Tree(tree)];
    let mut done: Vec<usize> = Vec::new();
    while let Some(visit) = todo.pop() {
        match visit {
            Visit::Tree(NestedEinsum::Leaf { tensor_index }) => {
                if !std::mem::replace(used.get_mut(*tensor_index)?, true) {
                    done.push(*tensor_index);
                }
            }
            Visit::Tree(NestedEinsum::Node { args, .. }) => {
                todo.push(Visit::Join(args.len()));
                todo.extend(args.iter().rev().map(Visit::Tree));
            }
            Visit::Join(n) => {
                let parts = done.split_off(done.len().saturating_sub(n));
                let joined = parts.into_iter().reduce(|l, r| join(l, r, operands, pairs));
                done.extend(joined);
            }
        }
    }
    done.into_iter().reduce(|l, r| join(l, r, operands, pairs))
}

/// Checks a path and breaks its steps over more than two tensors into pairs.
pub(crate) fn resolve(
    path: &Path,
    inputs: &[Ids],
    output: &[Id],
    sizes: &[usize],
) -> Result<Pairs> {
    let mut left: Vec<(usize, Ids)> = inputs.iter().cloned().enumerate().collect();
    let mut pairs = Pairs::new();
    for (step, indices) in path.steps().iter().enumerate() {
        let remaining = left.len();
        let fail = || EinsumError::PathStep { step, indices: indices.clone(), remaining };
        let mut order = indices.clone();
        order.sort_unstable();
        let distinct = order.windows(2).all(|w| w[0] != w[1]);
        if order.is_empty() || !distinct || order.iter().any(|&i| i >= remaining) {
            return Err(fail());
        }
        let group: Vec<(usize, Ids)> = indices.iter().map(|&i| left[i].clone()).collect();
        for &i in order.iter().rev() {
            left.remove(i);
        }
        let keep = |id: Id| output.contains(&id) || left.iter().any(|(_, ids)| ids.contains(&id));
        let ids: Vec<Ids> = group.iter().map(|(_, ids)| ids.clone()).collect();
        let kept = ids.iter().fold(Ids::new(), |all, ids| product_ids(&all, ids, keep));
        let mut slots: Vec<usize> = group.iter().map(|(slot, _)| *slot).collect();
        for (a, b) in search(&ids, &kept, sizes, Optimizer::Greedy) {
            let slot = join(slots[a], slots[b], inputs.len(), &mut pairs);
            slots.push(slot);
        }
        // The product stands last; a step over one tensor moves it there.
        let Some(&slot) = slots.last() else { return Err(fail()) };
        left.push((slot, kept));
    }
    match left.len() {
        0 | 1 => Ok(pairs),
        remaining => Err(EinsumError::PathIncomplete { remaining }),
    }
}

/// The path that contracts the given pairs.
pub(crate) fn to_path(operands: usize, pairs: &Pairs) -> Path {
    let mut left: Vec<usize> = (0..operands).collect();
    let mut steps = Vec::with_capacity(pairs.len());
    for (step, &(a, b)) in pairs.iter().enumerate() {
        let at = |slot| left.iter().position(|&s| s == slot).unwrap_or_default();
        let indices = vec![at(a), at(b)];
        left.retain(|&s| s != a && s != b);
        left.push(operands + step);
        steps.push(indices);
    }
    Path(steps)
}
