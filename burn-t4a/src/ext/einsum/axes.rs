//! Labelled axes to batches of matrices, and back.
//!
//! ```text
//! a  →  [batch, left, sum,   lone]      labels: batch  in a, b and c      sum   in a and b
//! b  →  [batch, sum,  right, lone]              left   in a and c         right in b and c
//! c  ←  [batch, left, right]                    lone   in one operand only
//! ```
//!
//! An axis of size 1 has no label: it is dropped on the way in and put back on the way out, which
//! is how it broadcasts. A repeated label is a diagonal on the way in, the diagonal of a constant
//! on the way out.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Scalar, Shape, Slice, TensorMetadata};
use t4a_einsum::{Label, Plan};

/// The label of each axis; none for size 1.
pub(super) type Axes = Vec<Option<Label>>;

/// A shape as Burn has it: a scalar is `[1]`.
pub(super) fn burn_shape(shape: &[usize]) -> Shape {
    if shape.is_empty() { Shape::from([1]) } else { shape.iter().copied().collect() }
}

/// One step of a plan over one or two operands.
#[derive(Debug)]
pub(super) struct Step {
    operands: Vec<(Axes, Vec<usize>)>,
    result: (Axes, Vec<usize>),
    sizes: Vec<(Label, usize)>,
    pub(super) batch: Vec<Label>,
    pub(super) left: Vec<Label>,
    pub(super) right: Vec<Label>,
    pub(super) sum: Vec<Label>,
    pub(super) lone: [Vec<Label>; 2],
}

fn axes(labels: &[Label], shape: &[usize]) -> Axes {
    labels.iter().zip(shape).map(|(&label, &size)| (size != 1).then_some(label)).collect()
}

fn distinct(axes: &Axes) -> Vec<Label> {
    let mut labels = Vec::new();
    for label in axes.iter().flatten() {
        if !labels.contains(label) {
            labels.push(*label);
        }
    }
    labels
}

impl Step {
    pub(super) fn new(plan: &Plan) -> Self {
        let operand = |i| {
            let (labels, shape) = (plan.operand_labels(i)?, plan.operand_shape(i)?);
            Some((axes(labels, shape), shape.to_vec()))
        };
        let operands: Vec<_> = (0..plan.operands()).filter_map(operand).collect();
        let shape = plan.shape();
        let result = (axes(plan.result_labels(), &shape), shape);
        let all = operands.iter().chain([&result]);
        let sized = |(axes, shape): &(Axes, Vec<usize>)| {
            let pairs = axes.iter().zip(shape).filter_map(|(label, &n)| Some(((*label)?, n)));
            pairs.collect::<Vec<_>>()
        };
        let sizes = all.flat_map(sized).collect();
        let of = |i: usize| operands.get(i).map_or_else(Vec::new, |(axes, _)| distinct(axes));
        let (a, b, c) = (of(0), of(1), distinct(&result.0));
        // Terms of a sum are numbered as the plan does, so that ties break as they do in the engine.
        let place = |label: &Label| plan.labels().iter().position(|known| known == label);
        let pick = |from: &[Label], other: &[Label], shared: bool, kept: bool| -> Vec<Label> {
            let fits = |l: &&Label| other.contains(l) == shared && c.contains(l) == kept;
            let mut labels: Vec<Label> = from.iter().filter(fits).copied().collect();
            if !kept {
                labels.sort_by_key(place);
            }
            labels
        };
        Self {
            batch: pick(&a, &b, true, true),
            left: pick(&a, &b, false, true),
            right: pick(&b, &a, false, true),
            sum: pick(&a, &b, true, false),
            lone: [pick(&a, &b, false, false), pick(&b, &a, false, false)],
            operands,
            result,
            sizes,
        }
    }

    fn size(&self, label: Label) -> usize {
        self.sizes.iter().find(|(known, _)| *known == label).map_or(1, |&(_, size)| size)
    }

    pub(super) fn volume(&self, labels: &[Label]) -> usize {
        labels.iter().map(|&label| self.size(label)).product()
    }

    /// Groups of labels of operand `i` as the axes of a tensor of rank 4.
    fn groups(&self, i: usize) -> [&[Label]; 4] {
        match i {
            0 => [&self.batch, &self.left, &self.sum, &self.lone[0]],
            _ => [&self.batch, &self.sum, &self.right, &self.lone[1]],
        }
    }

    /// Operand `i` as a batch of matrices with a last axis of lone labels.
    pub(super) fn enter<B: Backend>(&self, i: usize, x: FloatTensor<B>) -> FloatTensor<B> {
        let (axes, shape) = &self.operands[i];
        let (x, labels) = gather::<B>(x, axes, shape);
        self.grouped::<B>(x, &labels, &self.groups(i))
    }

    /// The cotangent of operand `i`, given that of [`Step::enter`].
    pub(super) fn leave_operand<B: Backend>(&self, i: usize, g: FloatTensor<B>) -> FloatTensor<B> {
        let (axes, shape) = &self.operands[i];
        let labels: Vec<Label> = self.groups(i).concat();
        let sizes: Vec<usize> = labels.iter().map(|&label| self.size(label)).collect();
        let g = B::float_reshape(g, burn_shape(&sizes));
        spread::<B>(g, &labels, axes, shape, Scalar::Float(0.0))
    }

    /// The result, from a batch of matrices.
    pub(super) fn leave<B: Backend>(&self, c: FloatTensor<B>, zero: Scalar) -> FloatTensor<B> {
        let (axes, shape) = &self.result;
        let mut labels = [&self.batch[..], &self.left, &self.right].concat();
        // Labels that only the result has are repeated.
        let repeated: Vec<Label> =
            distinct(axes).into_iter().filter(|label| !labels.contains(label)).collect();
        let sizes = |labels: &[Label]| labels.iter().map(|&l| self.size(l)).collect::<Vec<_>>();
        let mut from = vec![1; repeated.len()];
        from.extend(sizes(&labels));
        labels = [repeated, labels].concat();
        let c = B::float_reshape(c, burn_shape(&from));
        let c = B::float_expand(c, burn_shape(&sizes(&labels)));
        spread::<B>(c, &labels, axes, shape, zero)
    }

    /// The cotangent of [`Step::leave`]'s matrices, given that of the result.
    pub(super) fn enter_cotangent<B: Backend>(&self, g: FloatTensor<B>) -> FloatTensor<B> {
        let (axes, shape) = &self.result;
        let (g, labels) = gather::<B>(g, axes, shape);
        let kept = [&self.batch[..], &self.left, &self.right].concat();
        let repeated: Vec<Label> =
            labels.iter().filter(|label| !kept.contains(label)).copied().collect();
        let g = self.grouped::<B>(g, &labels, &[&self.batch, &self.left, &self.right, &repeated]);
        let g = B::float_sum_dim(g, 3);
        let [b, m, n, _] = g.shape().dims();
        B::float_reshape(g, [b, m, n].into())
    }

    fn grouped<B: Backend>(
        &self,
        x: FloatTensor<B>,
        labels: &[Label],
        groups: &[&[Label]; 4],
    ) -> FloatTensor<B> {
        let order = groups.iter().copied().flatten();
        let order: Vec<usize> =
            order.filter_map(|label| labels.iter().position(|known| known == label)).collect();
        let shape: Shape = groups.iter().map(|labels| self.volume(labels)).collect();
        B::float_reshape(permuted::<B>(x, &order), shape)
    }
}

fn permuted<B: Backend>(x: FloatTensor<B>, order: &[usize]) -> FloatTensor<B> {
    let identity = order.iter().enumerate().all(|(to, &from)| to == from);
    if identity { x } else { B::float_permute(x, order) }
}

/// Slices that leave all axes but the last as they are.
fn along_last(rank: usize, last: Slice) -> Vec<Slice> {
    let mut slices = vec![Slice::new(0, None, 1); rank];
    slices[rank - 1] = last;
    slices
}

/// A tensor of distinct labels, none of size 1: drops axes, reads diagonals.
fn gather<B: Backend>(
    x: FloatTensor<B>,
    axes: &Axes,
    shape: &[usize],
) -> (FloatTensor<B>, Vec<Label>) {
    let mut labels: Vec<Label> = axes.iter().flatten().copied().collect();
    let mut sizes: Vec<usize> = shape.iter().copied().filter(|&n| n != 1).collect();
    let mut x = B::float_reshape(x, burn_shape(&sizes));
    for label in distinct(axes) {
        let places = |wanted: bool| {
            let fits = |&i: &usize| (labels[i] == label) == wanted;
            (0..labels.len()).filter(fits).collect::<Vec<_>>()
        };
        let (here, others) = (places(true), places(false));
        if here.len() == 1 {
            continue;
        }
        let n = sizes[here[0]];
        x = permuted::<B>(x, &[&others[..], &here].concat());
        sizes = others.iter().map(|&i| sizes[i]).collect();
        labels = others.iter().map(|&i| labels[i]).collect();
        let (whole, step) = diagonal(n, here.len());
        sizes.push(whole);
        x = B::float_reshape(x, burn_shape(&sizes));
        let slice = Slice::new(0, Some(whole as isize), step as isize);
        x = B::float_slice(x, &along_last(sizes.len(), slice));
        sizes.pop();
        sizes.push(n);
        labels.push(label);
    }
    (x, labels)
}

/// Elements of a cube of `times` axes of size n, and the stride of its diagonal.
fn diagonal(n: usize, times: usize) -> (usize, usize) {
    let powers = (0..times as u32).map(|p| n.pow(p));
    (n.pow(times as u32), powers.sum())
}

/// The inverse of [`gather`]: puts axes of size 1 back and writes repeated labels to the diagonals
/// of `zero`.
fn spread<B: Backend>(
    mut x: FloatTensor<B>,
    labels: &[Label],
    axes: &Axes,
    shape: &[usize],
    zero: Scalar,
) -> FloatTensor<B> {
    let mut labels = labels.to_vec();
    let mut sizes: Vec<usize> = x.shape().iter().copied().collect();
    sizes.truncate(labels.len());
    for label in distinct(axes) {
        let times = axes.iter().filter(|axis| **axis == Some(label)).count();
        if times == 1 {
            continue;
        }
        let Some(here) = labels.iter().position(|&known| known == label) else { continue };
        let others: Vec<usize> = (0..labels.len()).filter(|&i| i != here).collect();
        let n = sizes[here];
        x = permuted::<B>(x, &[&others[..], &[here]].concat());
        sizes = others.iter().map(|&i| sizes[i]).collect();
        labels = others.iter().map(|&i| labels[i]).collect();
        let (whole, step) = diagonal(n, times);
        sizes.push(whole);
        let background =
            B::float_full(burn_shape(&sizes), zero, &B::float_device(&x), x.dtype().into());
        let slice = Slice::new(0, Some(whole as isize), step as isize);
        x = B::float_slice_assign(background, &along_last(sizes.len(), slice), x);
        sizes.pop();
        sizes.extend(std::iter::repeat_n(n, times));
        labels.extend(std::iter::repeat_n(label, times));
        x = B::float_reshape(x, burn_shape(&sizes));
    }
    let mut taken = vec![false; labels.len()];
    let mut order = Vec::with_capacity(labels.len());
    for label in axes.iter().flatten() {
        if let Some(at) = (0..labels.len()).find(|&i| !taken[i] && labels[i] == *label) {
            taken[at] = true;
            order.push(at);
        }
    }
    B::float_reshape(permuted::<B>(x, &order), burn_shape(shape))
}
