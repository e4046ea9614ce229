//! Steps on flat lists of tensors, and the plain loop over them.

use std::sync::Arc;

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Shape, Slice, TensorMetadata};

use super::error::{CarryLeaf, Result, ScanError};

/// Tensors of a backend.
pub(super) type Flat<B> = Vec<FloatTensor<B>>;

/// A body on flat lists: consts, carry, x ↦ carry, y.
pub(super) type Body<B> =
    Arc<dyn Fn(Flat<B>, Flat<B>, Flat<B>) -> Result<(Flat<B>, Flat<B>)> + Send + Sync>;

/// A scan on flat lists.
pub struct Steps<B: Backend> {
    pub(super) body: Body<B>,
    pub(super) length: usize,
    pub(super) reverse: bool,
    /// Of the leaves of the carry, for errors.
    pub(super) paths: Arc<Vec<String>>,
}

impl<B: Backend> Clone for Steps<B> {
    fn clone(&self) -> Self {
        let (body, paths) = (self.body.clone(), self.paths.clone());
        Self { body, paths, length: self.length, reverse: self.reverse }
    }
}

impl<B: Backend> Steps<B> {
    /// How many steps there are.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The place along the leading axis that step `k` is about.
    pub fn time(&self, k: usize) -> usize {
        if self.reverse { self.length - 1 - k } else { k }
    }

    /// A step: the carry after it, and y.
    ///
    /// # Errors
    /// Those of the body; a carry that changes.
    pub fn step(
        &self,
        consts: &[FloatTensor<B>],
        carry: Flat<B>,
        x: Flat<B>,
    ) -> Result<(Flat<B>, Flat<B>)> {
        let kind = |x: &FloatTensor<B>| (x.shape(), x.dtype());
        let before: Vec<_> = carry.iter().map(kind).collect();
        let (carry, y) = (self.body)(consts.to_vec(), carry, x)?;
        let differs = |(i, (x, init)): (usize, (&FloatTensor<B>, &(Shape, _)))| {
            let step = kind(x);
            let path = self.paths[i].clone();
            (step != *init).then(|| CarryLeaf { path, init: init.clone(), step })
        };
        let leaves: Vec<CarryLeaf> =
            carry.iter().zip(&before).enumerate().filter_map(differs).collect();
        if leaves.is_empty() { Ok((carry, y)) } else { Err(ScanError::Carry { leaves }) }
    }

    /// One step after the other: the last carry and all ys, along a leading axis.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn run(
        &self,
        consts: &[FloatTensor<B>],
        init: Flat<B>,
        xs: &[FloatTensor<B>],
    ) -> Result<[Flat<B>; 2]> {
        if self.length == 0 {
            return self.empty(consts, init, xs);
        }
        let mut carry = init;
        let mut ys = Stack::<B>::new(self.length);
        for k in 0..self.length {
            let t = self.time(k);
            let (next, y) = self.step(consts, carry, at::<B>(xs, t))?;
            carry = next;
            ys.put(t, y)?;
        }
        Ok([carry, ys.finish()])
    }

    /// The results of no steps. Which shapes ys have is found out by one step on zeros.
    fn empty(
        &self,
        consts: &[FloatTensor<B>],
        init: Flat<B>,
        xs: &[FloatTensor<B>],
    ) -> Result<[Flat<B>; 2]> {
        let zeros = |x: &FloatTensor<B>| {
            let shape = element(&x.shape());
            B::float_zeros(shape, &B::float_device(x), x.dtype().into())
        };
        let (_, y) = self.step(consts, init.clone(), xs.iter().map(zeros).collect())?;
        let nothing = |y: &FloatTensor<B>| {
            let shape: Shape = [0].into_iter().chain(y.shape().iter().copied()).collect();
            B::float_zeros(shape, &B::float_device(y), y.dtype().into())
        };
        Ok([init, y.iter().map(nothing).collect()])
    }
}

/// The shape of an element of the leading axis; that of a number is `[1]`.
pub(super) fn element(shape: &Shape) -> Shape {
    match shape.num_dims() {
        1 => Shape::from([1]),
        _ => shape.iter().skip(1).copied().collect(),
    }
}

/// Elements `t` of the leading axes.
pub(super) fn at<B: Backend>(xs: &[FloatTensor<B>], t: usize) -> Flat<B> {
    let one = |x: &FloatTensor<B>| {
        let shape = element(&x.shape());
        let t = Slice::new(t as isize, Some(t as isize + 1), 1);
        B::float_reshape(B::float_slice(x.clone(), &[t]), shape)
    };
    xs.iter().map(one).collect()
}

/// Elements that become a leading axis.
pub(super) struct Stack<B: Backend>(Vec<Option<Flat<B>>>);

impl<B: Backend> Stack<B> {
    pub(super) fn new(length: usize) -> Self {
        Self(vec![None; length])
    }

    /// Element `t`.
    pub(super) fn put(&mut self, t: usize, y: Flat<B>) -> Result<()> {
        if let Some(first) = self.0.iter().flatten().next() {
            for (first, other) in first.iter().zip(&y) {
                let (first, other) = (first.shape(), other.shape());
                if first != other {
                    return Err(ScanError::YShape { first, other });
                }
            }
        }
        self.0[t] = Some(y);
        Ok(())
    }

    /// The stacked tensors. All elements are there.
    pub(super) fn finish(self) -> Flat<B> {
        let mut columns: Vec<Flat<B>> = Vec::new();
        for y in self.0.into_iter().flatten() {
            columns.resize_with(y.len(), Vec::new);
            for (column, y) in columns.iter_mut().zip(y) {
                let shape: Shape = [1].into_iter().chain(y.shape().iter().copied()).collect();
                column.push(B::float_reshape(y, shape));
            }
        }
        columns.into_iter().map(|column| B::float_cat(column, 0)).collect()
    }
}
