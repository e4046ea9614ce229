//! Contraction orders by simulated annealing over trees, after Kalachev, Panteleev and Yung (2021): the library omeco.

use std::collections::HashMap;

use omeco::{EinCode, NestedEinsum, TreeSA, optimize_code};

use crate::network::{Ids, LabelId};
use crate::order::{SlotPairs, join};

/// True if the crate is built with this optimizer.
pub(crate) const IS_AVAILABLE: bool = true;

/// Order of an annealed tree; `None` if the library finds none.
pub(crate) fn order(inputs: &[Ids], output: &[LabelId], sizes: &[usize]) -> Option<SlotPairs> {
    let code = EinCode::new(inputs.iter().map(|ids| ids.to_vec()).collect(), output.to_vec());
    // The library takes logarithms of these sizes.
    let size = |(id, &n): (usize, &usize)| (id as LabelId, n.max(1));
    let of: HashMap<LabelId, usize> = sizes.iter().enumerate().map(size).collect();
    let tree = optimize_code(&code, &of, &TreeSA::fast())?;
    Some(pairs(&tree, inputs.len()))
}

/// The pairs of a tree in post-order, without recursion. Operands missing in the tree are appended, and repeated
/// operands are used once: otherwise the sum would be wrong.
fn pairs(root: &NestedEinsum<LabelId>, operands: usize) -> SlotPairs {
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
