//! Contraction order: which two tensors meet next.
//!
//! A path is a list of steps as in opt_einsum: a step names positions in the list of tensors that
//! are left, takes them out and appends their product. Finding a best one is NP-hard; the search
//! is left to omeco (greedy, and simulated annealing over trees: Kalachev, Panteleev and Yung
//! 2021).

use std::collections::HashMap;

use omeco::greedy::tree_greedy;
use omeco::incidence_list::IncidenceList;
use omeco::{ContractionTree, EinCode, NestedEinsum, TreeSA, optimize_code};

use crate::error::{EinsumError, Result};
use crate::network::{Id, Ids};
use crate::refine::refine;

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
    /// Repeatedly the pair whose product grows least; the best of a few ways to weigh growth, its
    /// subtrees then put into their best order, for about the time of one contraction at most.
    #[default]
    Greedy,
    /// Simulated annealing over contraction trees: seconds of search for better paths. Subtrees as
    /// above.
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
    let measure = Measure { inputs, output, sizes };
    let ixs: Vec<Vec<Id>> = inputs.iter().map(|ids| ids.to_vec()).collect();
    let found = match by {
        Optimizer::Greedy => {
            let network = IncidenceList::<usize, Id>::from_eincode(&ixs, output);
            let mut orders = Vec::new();
            for free in free_labels(inputs, output, sizes.len()) {
                let log2 = |(id, &n): (usize, &usize)| {
                    (id as Id, if free[id] { 0.0 } else { (n.max(1) as f64).log2() })
                };
                let log2: HashMap<Id, f64> = sizes.iter().enumerate().map(log2).collect();
                let trees =
                    GAINS.iter().filter_map(|&gain| tree_greedy(&network, &log2, gain, 0.0));
                orders.extend(trees.map(|found| order(&found.tree, branch, inputs.len())));
            }
            let orders = orders.into_iter();
            let priced = orders.map(|pairs| (measure.price(&pairs), pairs));
            priced.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, pairs)| pairs)
        }
        Optimizer::TreeSa => {
            let code = EinCode::new(ixs, output.to_vec());
            // Sizes enter as logarithms.
            let size = |(id, &n): (usize, &usize)| (id as Id, n.max(1));
            let sizes: HashMap<Id, usize> = sizes.iter().enumerate().map(size).collect();
            let tree = optimize_code(&code, &sizes, &TreeSA::fast());
            tree.map(|tree| order(&tree, nested_branch, inputs.len()))
        }
    };
    let found = found.unwrap_or_else(|| {
        let mut pairs = Pairs::new();
        (1..inputs.len()).fold(0, |left, right| join(left, right, inputs.len(), &mut pairs));
        pairs
    });
    refine(&measure, found)
}

/// Labels that a greedy search may count as size 1: none; those of the output; those of more than
/// two tensors. Every order carries such a label along for long, and a search that counts it
/// prefers products of small tensors that share nothing else.
fn free_labels(inputs: &[Ids], output: &[Id], labels: usize) -> Vec<Vec<bool>> {
    let mut uses = vec![0; labels];
    inputs.iter().flatten().for_each(|&id| uses[id as usize] += 1);
    let of_output = (0..labels).map(|id| output.contains(&(id as Id))).collect();
    let of_many = uses.iter().map(|&uses| uses > 2).collect();
    let mut choices = vec![vec![false; labels], of_output, of_many];
    choices.dedup();
    choices
}

/// How much the greedy search credits a pair for the memory of its two tensors, against that of
/// their product. None is best for every network; the cheapest of the orders is taken.
const GAINS: [f64; 4] = [0.0, 0.3, 0.7, 1.0];

/// Multiply-adds that take as long as moving one element.
const MOVE: f64 = 8.0;

/// Time of an order of contraction, in multiply-adds.
pub(crate) struct Measure<'a> {
    pub(crate) inputs: &'a [Ids],
    pub(crate) output: &'a [Id],
    pub(crate) sizes: &'a [usize],
}

impl Measure<'_> {
    pub(crate) fn size(&self, id: Id) -> f64 {
        self.sizes[id as usize] as f64
    }

    pub(crate) fn volume(&self, ids: &[Id]) -> f64 {
        ids.iter().map(|&id| self.size(id)).product()
    }

    /// One contraction, given the volume of all its labels and those of the operands and of the
    /// result.
    pub(crate) fn of_volumes(&self, all: f64, parts: [f64; 3]) -> f64 {
        all + MOVE * (parts[0] + parts[1] + parts[2])
    }

    /// One contraction.
    pub(crate) fn step(&self, a: &Ids, b: &Ids, out: &Ids) -> f64 {
        let all = self.volume(&product_ids(a, b, |_| true));
        self.of_volumes(all, [a, b, out].map(|ids| self.volume(ids)))
    }

    /// Labels of every slot.
    pub(crate) fn slots(&self, pairs: &Pairs) -> Vec<Ids> {
        let mut uses = vec![0usize; self.sizes.len()];
        let named = self.inputs.iter().flatten().chain(self.output);
        named.for_each(|&id| uses[id as usize] += 1);
        let mut slots = self.inputs.to_vec();
        for &(a, b) in pairs {
            slots[a].iter().chain(&slots[b]).for_each(|&id| uses[id as usize] -= 1);
            let out = product_ids(&slots[a], &slots[b], |id| uses[id as usize] > 0);
            out.iter().for_each(|&id| uses[id as usize] += 1);
            slots.push(out);
        }
        slots
    }

    /// A whole order.
    pub(crate) fn price(&self, pairs: &Pairs) -> f64 {
        let slots = self.slots(pairs);
        let results = &slots[self.inputs.len()..];
        let step = |(&(a, b), out): (&(usize, usize), &Ids)| self.step(&slots[a], &slots[b], out);
        pairs.iter().zip(results).map(step).sum()
    }
}

fn join(left: usize, right: usize, operands: usize, pairs: &mut Pairs) -> usize {
    pairs.push((left, right));
    operands + pairs.len() - 1
}

/// A node of a tree of contractions: one operand, or the nodes that are contracted.
enum Branch<'a, N> {
    Operand(usize),
    Join(Vec<&'a N>),
}

fn branch(tree: &ContractionTree) -> Branch<'_, ContractionTree> {
    match tree {
        ContractionTree::Leaf(operand) => Branch::Operand(*operand),
        ContractionTree::Node { left, right } => Branch::Join(vec![left, right]),
    }
}

fn nested_branch(tree: &NestedEinsum<Id>) -> Branch<'_, NestedEinsum<Id>> {
    match tree {
        NestedEinsum::Leaf { tensor_index } => Branch::Operand(*tensor_index),
        NestedEinsum::Node { args, .. } => Branch::Join(args.iter().collect()),
    }
}

/// The pairs of a tree in post-order, without recursion: a chain of a thousand tensors may be a
/// tree as deep. Operands that the tree forgets come last, those it repeats count once: either
/// would give a wrong sum.
fn order<N>(root: &N, branch: impl Fn(&N) -> Branch<'_, N>, operands: usize) -> Pairs {
    enum Visit<'a, N> {
        Tree(&'a N),
        Join(usize),
    }
    let mut pairs = Pairs::new();
    let mut used = vec![false; operands];
    let mut todo = vec![Visit::Tree(root)];
    // Slots of finished subtrees; none for one that holds no new operand.
    let mut done: Vec<Option<usize>> = Vec::new();
    while let Some(visit) = todo.pop() {
        match visit {
            Visit::Tree(tree) => match branch(tree) {
                Branch::Operand(i) => {
                    let new = i < operands && !std::mem::replace(&mut used[i], true);
                    done.push(new.then_some(i));
                }
                Branch::Join(parts) => {
                    todo.push(Visit::Join(parts.len()));
                    todo.extend(parts.into_iter().rev().map(Visit::Tree));
                }
            },
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
