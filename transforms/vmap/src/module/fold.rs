//! Merging of the batch into an axis that module operations already have: the sample axis, or grouped channels.
//!
//! ```text
//! fold         [b, n, …]     →  [b n, …]      more samples
//! interleave   [b, n, c, …]  →  [n, b c, …]   more channels: a group per example, for batches of weights
//! ```

use burn_backend::tensor::Float;
use burn_backend::{Backend, Shape, TensorMetadata};

use crate::kind::{DataKind, Primitive};
use crate::movement::{MappedTensor, raise};
use crate::rows::F;
use crate::tensor::VmapTensor;

/// Merges the batch into the first axis, `[b n, …]`; a shared tensor is unchanged.
pub(crate) fn fold<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    size: Option<usize>,
) -> Primitive<B, K> {
    match size {
        None => x.into_inner().0,
        Some(_) => join::<B, K>(raise::<B, K>(x, size), 0),
    }
}

/// Inverse of [`fold`].
pub(crate) fn unfold<B: Backend, K: DataKind<B>>(
    x: Primitive<B, K>,
    size: Option<usize>,
) -> MappedTensor<B, K> {
    match size {
        None => VmapTensor::shared(x),
        Some(size) => VmapTensor::batched(parted::<B, K>(x, 0, size)),
    }
}

/// Merges axes `at` and `at + 1`.
pub(crate) fn join<B: Backend, K: DataKind<B>>(x: Primitive<B, K>, at: usize) -> Primitive<B, K> {
    let mut shape = x.shape().to_vec();
    let inner = shape.remove(at + 1);
    shape[at] *= inner;
    K::reshape(x, Shape::from(shape))
}

/// Splits axis `at` into `size` and `n`.
pub(crate) fn split<B: Backend, K: DataKind<B>>(
    x: Primitive<B, K>,
    at: usize,
    size: usize,
    n: usize,
) -> Primitive<B, K> {
    let mut shape = x.shape().to_vec();
    shape.splice(at..=at, [size, n]);
    K::reshape(x, Shape::from(shape))
}

/// Inverse of [`join`]; an axis split by a size of 0 has parts of size 0.
fn parted<B: Backend, K: DataKind<B>>(
    x: Primitive<B, K>,
    at: usize,
    size: usize,
) -> Primitive<B, K> {
    let n = x.shape()[at].checked_div(size).unwrap_or(0);
    split::<B, K>(x, at, size, n)
}

/// Swaps axes `i` and `j`.
fn swap<B: Backend>(x: Primitive<B, Float>, i: usize, j: usize) -> Primitive<B, Float> {
    B::float_swap_dims(x, i, j)
}

/// `[n, b c, …]`; a shared tensor is broadcast along the batch.
pub(crate) fn interleave<B: Backend>(x: F<B>, size: usize) -> Primitive<B, Float> {
    let x = raise::<B, Float>(x, Some(size));
    join::<B, Float>(swap::<B>(x, 0, 1), 1)
}

/// Inverse of [`interleave`].
pub(crate) fn separate<B: Backend>(x: Primitive<B, Float>, size: usize) -> F<B> {
    VmapTensor::batched(swap::<B>(parted::<B, Float>(x, 1, size), 0, 1))
}

/// Zeros as a broadcast view of one element, for operands of which only the shape is used.
pub(crate) fn blank<B: Backend>(x: &F<B>, shape: impl Into<Shape>) -> Primitive<B, Float> {
    let shape = shape.into();
    let one = shape.iter().map(|&n| n.min(1)).collect();
    B::float_expand(B::float_zeros(one, &B::float_device(x.inner()), x.dtype().into()), shape)
}

/// Shape of [`fold`] of a batch.
pub(crate) fn folded(shape: &Shape, size: Option<usize>) -> Shape {
    let mut shape = shape.to_vec();
    shape[0] *= size.unwrap_or(1);
    Shape::from(shape)
}

/// Shape of [`interleave`].
pub(crate) fn interleaved(shape: &Shape, size: usize) -> Shape {
    let mut shape = shape.to_vec();
    shape[1] *= size;
    Shape::from(shape)
}
