//! Access through index tuples: the axes that a tuple names are fused into one, the tuples into
//! one-dimensional indices, and the rest is `index_select` and `index_scatter` on axis 0.

use std::mem::MaybeUninit;

use smallvec::SmallVec;
use t4a_algebra::{Int, Scalar};

use super::indices::{BLOCK, IndexTensor};
use super::put::{Put, TypedPut, index_scatter_at, writable};
use super::take::select_at;
use super::tiles::Traversal;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, contiguous_strides, numel_of};
use crate::loops::kernel::Binary;
use crate::output::Output;
use crate::tensor::Tensor;

/// `out[n…, j…] = x[index[n…, 0], …, index[n…, k − 1], j…]`.
///
/// Shapes: `index` is `[n…, k]` with `k ≤ x.rank()`; `out` is `[n…, x.shape()[k..]…]`.
///
/// # Errors
/// [`TensorError::ShapeMismatch`], [`TensorError::Index`] for an index outside of its axis.
///
/// ```
/// use t4a_tensor::Tensor;
/// use t4a_tensor::index::gather_nd;
///
/// // The elements (0, 1) and (1, 0).
/// let x = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], &[2, 2])?;
/// let index = Tensor::<i64>::from_vec(vec![0, 1, 1, 0], &[2, 2])?;
/// assert_eq!(gather_nd(&x, &index)?.to_vec()?, [2.0, 3.0]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn gather_nd<T: Scalar, I: Int>(x: &Tensor<T>, index: &Tensor<I>) -> Result<Tensor<T>> {
    gather_nd_at("gather_nd", x, IndexTensor::new(index))
}

/// `x[index[n…, 0], …, index[n…, k − 1], j…] ← k(…, values[n…, j…])` for every tuple in row-major
/// order.
///
/// The memory of `x` is overwritten if it has no other owner.
///
/// Shapes: `index` is `[n…, k]` with `k ≤ x.rank()`; `values` is `[n…, x.shape()[k..]…]`.
///
/// # Errors
/// As [`gather_nd`].
pub fn scatter_nd<T: Scalar, I: Int, K: Binary<T, Out = T>>(
    kernel: K,
    x: Tensor<T>,
    index: &Tensor<I>,
    values: &Tensor<T>,
) -> Result<Tensor<T>> {
    // SAFETY: the elements are of the type of the kernel.
    unsafe {
        scatter_nd_at("scatter_nd", &TypedPut::new(kernel), x, IndexTensor::new(index), values)
    }
}

pub(crate) fn gather_nd_at<T: Scalar>(
    op: &'static str,
    x: &Tensor<T>,
    index: IndexTensor<'_>,
) -> Result<Tensor<T>> {
    let tuples = Tuples::new(op, x.shape(), index)?;
    let fused = tuples.fuse(op, x.shape(), index)?;
    let out = select_at(op, &x.reshape(&tuples.fused)?, 0, IndexTensor::new(&fused))?;
    let route = out.route();
    Ok(out.reshape(&tuples.values)?.with_route(route))
}

/// # Safety
/// As [`index_scatter_at`].
pub(crate) unsafe fn scatter_nd_at<T: Scalar>(
    op: &'static str,
    kernel: &dyn Put,
    x: Tensor<T>,
    index: IndexTensor<'_>,
    values: &Tensor<T>,
) -> Result<Tensor<T>> {
    let tuples = Tuples::new(op, x.shape(), index)?;
    if values.shape() != tuples.values.as_slice() {
        let required = "one value per tuple and per element of the rest of the shape";
        return Err(TensorError::shapes(op, &tuples.values, values.shape(), required));
    }
    let fused = tuples.fuse(op, x.shape(), index)?;
    let mut rows: Dims = tuples.fused.clone();
    rows[0] = fused.numel();
    let values = values.reshape(&rows)?;
    let mut x = writable(x)?;
    if !x.layout().is_contiguous() {
        x = crate::copy::to_contiguous(&x)?;
    }
    let shape: Dims = x.shape().into();
    let view = x.into_shape(&tuples.fused)?;
    // SAFETY: passed on.
    let out = unsafe { index_scatter_at(op, kernel, view, 0, IndexTensor::new(&fused), &values) };
    out?.into_shape(&shape)
}

/// Shapes of an access through tuples.
struct Tuples {
    /// Shape of the input with the indexed axes as one.
    fused: Dims,
    /// Shape of the gathered or scattered values.
    values: Dims,
}

impl Tuples {
    fn new(op: &'static str, x: &[usize], index: IndexTensor<'_>) -> Result<Self> {
        let required = "an index whose last axis has at most as many entries as the input has axes";
        let reject = || TensorError::shapes(op, x, index.shape(), required);
        let (&k, prefix) = index.shape().split_last().ok_or_else(reject)?;
        let (named, rest) = x.split_at_checked(k).ok_or_else(reject)?;
        let mut fused: Dims = SmallVec::from_slice(&[numel_of(op, named)?]);
        fused.extend_from_slice(rest);
        let mut values: Dims = prefix.into();
        values.extend_from_slice(rest);
        Ok(Self { fused, values })
    }

    /// `Σⱼ index[…, j] · Π_{l>j} shape[l]`: every tuple as an index into the fused axis.
    fn fuse(&self, op: &'static str, x: &[usize], index: IndexTensor<'_>) -> Result<Tensor<u64>> {
        let last = index.shape().len() - 1;
        let prefix = &index.shape()[..last];
        let mut out = Output::<u64>::new(op, prefix)?.write(|out| out.fill(0));
        let to = out.as_mut_slice()?;
        let order = contiguous_strides(prefix);
        let tiles = Traversal::new(prefix, [&order, &index.strides()[..last]]).tile_of(BLOCK);
        let steps = [tiles.inner(0), tiles.inner(1)];
        for (axis, &size) in x[..index.shape()[last]].iter().enumerate() {
            let shift = axis as isize * index.strides()[last];
            let mut valid = true;
            tiles.for_each_in_order(|tile| {
                let mut scratch = [MaybeUninit::uninit(); BLOCK];
                let (at, area) = (tile.at[1] + shift, [tile.rows, tile.cols]);
                let Some(block) = index.block(at, steps[1], area, size, &mut scratch) else {
                    valid = false;
                    return;
                };
                for (row, block) in block.chunks_exact(tile.cols).enumerate() {
                    let start = (tile.at[0] + row as isize * steps[0][0]) as usize;
                    for (slot, &index) in to[start..start + tile.cols].iter_mut().zip(block) {
                        *slot = *slot * size as u64 + index as u64;
                    }
                }
            });
            if !valid {
                return Err(index.invalid_in_tuple(op, axis, size));
            }
        }
        let numel = out.numel();
        out.into_shape(&[numel])
    }
}
