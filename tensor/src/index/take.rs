//! Reading through indices: `gather`, `index_select`.
//!
//! The walk has the axes of the result. An operand that does not depend on an axis has stride 0
//! there: the input along the gathered axis, and a one-dimensional index along all others. So
//! selecting rows is the case of a gather whose index repeats along the columns, and is found
//! from the strides: a repeated index copies a run.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::smallvec;
use t4a_algebra::{Int, Scalar};

use super::indices::{BLOCK, Indices};
use super::tiles::Tiles;
use super::{ROUTE, along_axis, sized};
use crate::error::{Result, TensorError, check_axis};
use crate::layout::{Dims, Layout, Strides, contiguous_strides, numel_of};
use crate::loops::parallel::SendPtr;
use crate::output::Output;
use crate::tensor::Tensor;

/// `out[…, i, …] = x[…, index[…, i, …], …]`, with `i` at `axis`.
///
/// Shapes: `index` has those of `x` except at `axis`; `out` has the shape of `index`.
///
/// Cost: one read of each index, one read and one write per element of the result.
///
/// ```
/// use t4a_tensor::{Tensor, index};
/// let x = Tensor::from_vec(vec![1., 2., 3., 4.], &[2, 2])?;
/// let i = Tensor::from_vec(vec![1, 0], &[2, 1])?;
/// assert_eq!(index::gather(&x, 1, &i)?.to_vec()?, [2., 3.]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
///
/// # Errors
/// [`TensorError::Axis`], [`TensorError::ShapeMismatch`], [`TensorError::Index`] for the first
/// index outside of the axis.
pub fn gather<T: Scalar, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    index: &Tensor<I>,
) -> Result<Tensor<T>> {
    gather_at("gather", x, axis, Indices::new(index))
}

/// `out[…, i, …] = x[…, index[i], …]`, with `i` at `axis`.
///
/// Shapes: `index` is one-dimensional; `out` has the shape of `x` with `index.numel()` at `axis`.
///
/// Cost: one read and one write per element of the result.
///
/// # Errors
/// [`TensorError::Axis`], [`TensorError::Shape`] for an index of another rank than 1,
/// [`TensorError::Index`].
pub fn index_select<T: Scalar, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    index: &Tensor<I>,
) -> Result<Tensor<T>> {
    select_at("index_select", x, axis, Indices::new(index))
}

pub(crate) fn gather_at<T: Scalar>(
    op: &'static str,
    x: &Tensor<T>,
    axis: usize,
    index: Indices<'_>,
) -> Result<Tensor<T>> {
    check_axis(op, axis, x.rank())?;
    along_axis(op, x.shape(), axis, index.shape())?;
    let mut out = Output::<T>::new(op, index.shape())?;
    let mut strides: Strides = x.layout().strides().into();
    let axis_stride = std::mem::replace(&mut strides[axis], 0);
    let limit = x.shape()[axis];
    let to = contiguous_strides(index.shape());
    let tiles = Tiles::new(index.shape(), [&to, &strides, index.strides()]);
    let repeated = tiles.inner(2)[1] == 0;
    // A run that shares its index is copied whole; otherwise every element has its own index.
    let tiles = if repeated { wide(tiles) } else { tiles.tile_of(BLOCK) };
    let steps = Steps { out: tiles.inner(0), x: tiles.inner(1), axis: axis_stride };
    let index_steps = tiles.inner(2);
    let (src, dst) = (SendPtr(x.as_ptr().cast_mut()), SendPtr(out.as_mut_ptr()));
    let valid = AtomicBool::new(true);
    // Random reads: about four additions each.
    tiles.for_each(if repeated { 1 } else { 4 }, |tile| {
        let mut scratch = [MaybeUninit::uninit(); BLOCK];
        let size = [tile.rows, if repeated { 1 } else { tile.cols }];
        // SAFETY: tiles lie inside of index and result. The input is read at indices below the
        // size of the axis, and at indices of the result elsewhere, where the sizes agree.
        unsafe {
            match index.block(tile.at[2], index_steps, size, limit, &mut scratch) {
                Some(index) => {
                    let src = src.get().wrapping_offset(tile.at[1]).cast();
                    let dst = dst.get().wrapping_offset(tile.at[0]).cast();
                    sized!(size_of::<T>(), SIZE => {
                        take::<SIZE>(src, dst, index, steps, tile.rows, tile.cols, size_of::<T>());
                    });
                }
                None => valid.store(false, Ordering::Relaxed),
            }
        }
    });
    if !valid.into_inner() {
        return Err(index.invalid(op, axis, limit));
    }
    // SAFETY: the tiles cover the result, and each was written.
    Ok(unsafe { out.assume_init() }.with_route(ROUTE))
}

pub(crate) fn select_at<T: Scalar>(
    op: &'static str,
    x: &Tensor<T>,
    axis: usize,
    index: Indices<'_>,
) -> Result<Tensor<T>> {
    check_axis(op, axis, x.rank())?;
    let mut shape: Dims = x.shape().into();
    shape[axis] = one_dimensional(op, index)?;
    if shape.contains(&0) {
        index.check(op, axis, x.shape()[axis])?;
    }
    gather_at(op, x, axis, index.with_layout(&spread(op, index, axis, &shape)?))
}

/// The length of a one-dimensional index.
pub(super) fn one_dimensional(op: &'static str, index: Indices<'_>) -> Result<usize> {
    match index.shape() {
        [len] => Ok(*len),
        shape => Err(TensorError::shape(op, shape, "a one-dimensional index")),
    }
}

/// The layout of a one-dimensional index along `axis`, repeated over the other axes of `shape`.
pub(super) fn spread(
    op: &'static str,
    index: Indices<'_>,
    axis: usize,
    shape: &[usize],
) -> Result<Layout> {
    numel_of(op, shape)?;
    let mut strides: Strides = smallvec![0; shape.len()];
    strides[axis] = index.strides()[0];
    Layout::from_parts(shape, &strides, index.offset(), usize::MAX)
}

/// Tiles for runs that share their index: one index per row.
pub(super) fn wide<const N: usize>(tiles: Tiles<N>) -> Tiles<N> {
    let cols = tiles.shape()[tiles.shape().len() - 1].clamp(1, 1 << 14);
    tiles.tile(((1 << 15) / cols).min(BLOCK), cols)
}

/// Distances in elements: of the result and the input per row and column of a tile, and of the
/// input per index.
#[derive(Clone, Copy)]
struct Steps {
    out: [isize; 2],
    x: [isize; 2],
    axis: isize,
}

/// Fills a tile of the result: with one index per element, or one per row.
///
/// # Safety
/// `src` and `dst` are valid at every position that the tile and its indices name. `SIZE` is
/// `size`, or 0.
unsafe fn take<const SIZE: usize>(
    src: *const u8,
    dst: *mut u8,
    index: &[usize],
    steps: Steps,
    rows: usize,
    cols: usize,
    size: usize,
) {
    let size = if SIZE == 0 { size } else { SIZE };
    let bytes = |elements: isize| elements * size as isize;
    let per_row = index.len() / rows;
    for (row, index) in index.chunks_exact(per_row).enumerate() {
        // SAFETY: the caller's promise; a copy of a constant size is one move.
        unsafe {
            let src = src.offset(bytes(row as isize * steps.x[0]));
            let dst = dst.offset(bytes(row as isize * steps.out[0]));
            if let ([index], true) = (index, cols > 1) {
                let src = src.offset(bytes(*index as isize * steps.axis));
                if steps.x[1] == 1 && cols >= 8 {
                    std::ptr::copy_nonoverlapping(src, dst, cols * size);
                    continue;
                }
                for col in 0..cols {
                    let from = src.offset(bytes(col as isize * steps.x[1]));
                    std::ptr::copy_nonoverlapping(from, dst.add(col * size), size);
                }
                continue;
            }
            // Along the innermost axis, which is the usual case, an index is a position.
            if (steps.axis, steps.x[1]) == (1, 0) {
                for (col, &index) in index.iter().enumerate() {
                    std::ptr::copy_nonoverlapping(src.add(index * size), dst.add(col * size), size);
                }
                continue;
            }
            for (col, &index) in index.iter().enumerate() {
                let at = index as isize * steps.axis + col as isize * steps.x[1];
                std::ptr::copy_nonoverlapping(src.offset(bytes(at)), dst.add(col * size), size);
            }
        }
    }
}
