//! Conversion between labelled axes and batches of matrices.
//!
//! ```text
//! A  →  [batch, left, sum,   lone]      a repeated label is read as a diagonal,
//! B  →  [batch, sum,  right, lone]      and written to the diagonal of a constant;
//! C  ←  [batch, left, right]            axes of size 1 are dropped, then restored
//! ```

use t4a_diff::Array;

use super::elements::MovableAxes;
use crate::network::{AxisLabels, LabelId};
use crate::plan::Plan;
use crate::roles::Roles;

/// A contraction of one or two operands.
pub(super) struct Pairing<'a> {
    plan: &'a Plan,
    roles: Roles<LabelId>,
}

/// Distinct labels, in the order in which they occur.
fn distinct(axes: &AxisLabels) -> Vec<LabelId> {
    let mut ids = Vec::new();
    for &id in axes.iter().flatten() {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

impl<'a> Pairing<'a> {
    /// # Panics
    /// If the plan has more than two operands.
    pub(super) fn new(plan: &'a Plan) -> Self {
        let roles = plan.role_ids().unwrap_or_else(|| unreachable!("a step has two operands"));
        Self { plan, roles }
    }

    /// True if the contraction has summed labels.
    pub(super) fn sums(&self) -> bool {
        !self.roles.sum.is_empty()
    }

    fn size(&self, id: LabelId) -> usize {
        self.plan.network.sizes[id as usize]
    }

    fn sizes(&self, ids: &[LabelId]) -> Vec<usize> {
        ids.iter().map(|&id| self.size(id)).collect()
    }

    fn volume(&self, ids: &[LabelId]) -> usize {
        ids.iter().map(|&id| self.size(id)).product()
    }

    /// Groups of labels of operand `i` as the axes of an array of rank 4.
    fn groups(&self, i: usize) -> [&[LabelId]; 4] {
        let Roles { batch, left, right, sum, lone, .. } = &self.roles;
        match i {
            0 => [batch, left, sum, &lone[0]],
            _ => [batch, sum, right, &lone[1]],
        }
    }

    fn operand(&self, i: usize) -> (&AxisLabels, &[usize]) {
        (&self.plan.network.axes[i], &self.plan.network.shapes[i])
    }

    /// Operand `i` as a batch of matrices; the last axis holds the lone labels.
    pub(super) fn enter<A: MovableAxes>(&self, i: usize, x: &A) -> A {
        let (axes, shape) = self.operand(i);
        let (x, ids) = gather(x, axes, shape);
        self.grouped(&x, &ids, &self.groups(i))
    }

    /// The cotangent of operand `i`, given that of [`Pairing::enter`].
    pub(super) fn leave_operand<A: MovableAxes>(&self, i: usize, g: &A) -> A {
        let (axes, shape) = self.operand(i);
        let ids: Vec<LabelId> = self.groups(i).concat();
        spread(&g.reshape(&self.sizes(&ids)), ids, axes, shape, 0.0)
    }

    /// The result from a batch of matrices.
    pub(super) fn leave<A: MovableAxes>(&self, c: &A, zero: f64) -> A {
        let Roles { batch, left, right, repeated, .. } = &self.roles;
        let kept = [&batch[..], left, right].concat();
        let ids = [&repeated[..], &kept].concat();
        let mut shape = vec![1; repeated.len()];
        shape.extend(self.sizes(&kept));
        let mut c = c.reshape(&shape);
        if !repeated.is_empty() {
            c = c.expand(&self.sizes(&ids));
        }
        spread(&c, ids, &self.plan.network.result, &self.plan.shape(), zero)
    }

    /// The cotangent of the matrices passed to [`Pairing::leave`], given that of the result.
    pub(super) fn enter_cotangent<A: Array>(&self, g: &A) -> A {
        let Roles { batch, left, right, repeated, .. } = &self.roles;
        let (g, ids) = gather(g, &self.plan.network.result, &self.plan.shape());
        let g = self.grouped(&g, &ids, &[batch, left, right, repeated]);
        let g = if repeated.is_empty() { g } else { g.sum(3) };
        g.reshape(&[batch, left, right].map(|ids| self.volume(ids)))
    }

    fn grouped<A: MovableAxes>(&self, x: &A, ids: &[LabelId], groups: &[&[LabelId]; 4]) -> A {
        let order = groups.iter().copied().flatten();
        let order: Vec<usize> =
            order.filter_map(|id| ids.iter().position(|known| known == id)).collect();
        permuted(x, &order).reshape(&groups.map(|ids| self.volume(ids)))
    }
}

fn permuted<A: MovableAxes>(x: &A, order: &[usize]) -> A {
    let identity = order.iter().enumerate().all(|(to, &from)| to == from);
    if identity { x.clone() } else { x.permute(order) }
}

/// Number of elements of a cube with `times` axes of size n, and the stride of its diagonal.
fn diagonal(n: usize, times: usize) -> (usize, usize) {
    let powers = (0..times as u32).map(|p| n.pow(p));
    (n.pow(times as u32), powers.sum())
}

/// An array with distinct labels: axes of size 1 are dropped, repeated labels become diagonals.
fn gather<A: MovableAxes>(x: &A, axes: &AxisLabels, shape: &[usize]) -> (A, Vec<LabelId>) {
    let mut ids: Vec<LabelId> = axes.iter().flatten().copied().collect();
    let mut sizes: Vec<usize> = shape.iter().copied().filter(|&n| n != 1).collect();
    let mut x = x.reshape(&sizes);
    for id in distinct(axes) {
        let (here, others): (Vec<usize>, Vec<usize>) = (0..ids.len()).partition(|&i| ids[i] == id);
        if here.len() == 1 {
            continue;
        }
        let n = sizes[here[0]];
        x = permuted(&x, &[&others[..], &here].concat());
        sizes = others.iter().map(|&i| sizes[i]).collect();
        ids = others.iter().map(|&i| ids[i]).collect();
        let (cube, stride) = diagonal(n, here.len());
        sizes.push(cube);
        x = x.reshape(&sizes).slice(sizes.len() - 1, 0, n, stride);
        sizes.pop();
        sizes.push(n);
        ids.push(id);
    }
    (x, ids)
}

/// The inverse of [`gather`]: repeated labels are written to diagonals of an array of `zero`, and axes of size 1 are
/// restored.
fn spread<A: MovableAxes>(
    x: &A,
    mut ids: Vec<LabelId>,
    axes: &AxisLabels,
    shape: &[usize],
    zero: f64,
) -> A {
    let mut x = x.clone();
    let mut sizes: Vec<usize> = x.shape();
    sizes.truncate(ids.len());
    for id in distinct(axes) {
        let times = axes.iter().filter(|axis| **axis == Some(id)).count();
        let Some(here) = ids.iter().position(|&known| known == id).filter(|_| times > 1) else {
            continue;
        };
        let others: Vec<usize> = (0..ids.len()).filter(|&i| i != here).collect();
        let n = sizes[here];
        x = permuted(&x, &[&others[..], &[here]].concat());
        sizes = others.iter().map(|&i| sizes[i]).collect();
        ids = others.iter().map(|&i| ids[i]).collect();
        let (cube, stride) = diagonal(n, times);
        let axis = sizes.len();
        x = x.embed_in(axis, stride, cube, zero);
        sizes.extend(std::iter::repeat_n(n, times));
        ids.extend(std::iter::repeat_n(id, times));
        x = x.reshape(&sizes);
    }
    let mut taken = vec![false; ids.len()];
    let mut order = Vec::with_capacity(ids.len());
    for id in axes.iter().flatten() {
        if let Some(at) = (0..ids.len()).find(|&i| !taken[i] && ids[i] == *id) {
            taken[at] = true;
            order.push(at);
        }
    }
    permuted(&x, &order).reshape(shape)
}
