//! Reading through indices: `gather`, `index_select`.
//!
//! The loop runs over the axes of the result. An operand that does not depend on an axis has stride 0 there: the input
//! along the gathered axis, and a one-dimensional index along all others. A selection of rows is thus a gather whose
//! index repeats along the columns, detected from the strides: a repeated index copies a run.

use std::mem::MaybeUninit;

use smallvec::smallvec;
use t4a_algebra::{Int, Scalar};

use super::indices::{BLOCK, BoundedIndices, IndexTensor};
use super::tiles::Traversal;
use super::{ROUTE, along_axis};
use crate::error::{Result, TensorError, check_axis};
use crate::layout::{Dims, Layout, Strides, contiguous_strides, numel_of};
use crate::output::{Fresh, Full, Output};
use crate::tensor::Tensor;
use crate::view::View;

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
    gather_at("gather", x, axis, IndexTensor::new(index))
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
    select_at("index_select", x, axis, IndexTensor::new(index))
}

pub(crate) fn gather_at<T: Scalar>(
    op: &'static str,
    x: &Tensor<T>,
    axis: usize,
    index: IndexTensor<'_>,
) -> Result<Tensor<T>> {
    check_axis(op, axis, x.rank())?;
    along_axis(op, x.shape(), axis, index.shape())?;
    let out = Output::<T>::new(op, index.shape())?;
    let mut strides: Strides = x.layout().strides().into();
    let axis_stride = std::mem::replace(&mut strides[axis], 0);
    let limit = x.shape()[axis];
    let to = contiguous_strides(index.shape());
    let tiles = Traversal::new(index.shape(), [&to, &strides, index.strides()]);
    // A run that shares its index is copied whole, and rows that share their indices read them once; otherwise every
    // element has its own index.
    let [shared, repeated] = tiles.inner(2).map(|stride| stride == 0);
    let tiles = match (shared, repeated) {
        (_, true) => wide(tiles),
        (true, false) => tiles.runs(1 << 15, BLOCK, BLOCK),
        (false, false) => tiles.runs(BLOCK, BLOCK, BLOCK),
    };
    let (steps, index_steps) =
        (TakeStrides { x: tiles.inner(1), axis: axis_stride }, tiles.inner(2));
    let view = View::new(x);
    let out = out.try_write(|out| {
        // Random reads: about four additions each.
        tiles.write(out, if repeated { 1 } else { 4 }, |tile, out| {
            let mut scratch = [MaybeUninit::uninit(); BLOCK];
            let size = match (shared, repeated) {
                (_, true) => [tile.rows, 1],
                (true, false) => [1, tile.cols],
                (false, false) => [tile.rows, tile.cols],
            };
            match index.block(tile.at[2], index_steps, size, limit, &mut scratch) {
                Some(index) => Ok(take(view, tile.at[1], (index, size), steps, tile.rows, out)),
                None => Err(index.invalid(op, axis, limit)),
            }
        })
    })?;
    Ok(out.with_route(ROUTE))
}

pub(crate) fn select_at<T: Scalar>(
    op: &'static str,
    x: &Tensor<T>,
    axis: usize,
    index: IndexTensor<'_>,
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
pub(super) fn one_dimensional(op: &'static str, index: IndexTensor<'_>) -> Result<usize> {
    match index.shape() {
        [len] => Ok(*len),
        shape => Err(TensorError::shape(op, shape, "a one-dimensional index")),
    }
}

/// The layout of a one-dimensional index along `axis`, repeated over the other axes of `shape`.
pub(super) fn spread(
    op: &'static str,
    index: IndexTensor<'_>,
    axis: usize,
    shape: &[usize],
) -> Result<Layout> {
    numel_of(op, shape)?;
    let mut strides: Strides = smallvec![0; shape.len()];
    strides[axis] = index.strides()[0];
    Layout::from_parts(shape, &strides, index.offset(), usize::MAX)
}

/// Tiles for runs that share their index: one index per row.
pub(super) fn wide<const N: usize>(tiles: Traversal<N>) -> Traversal<N> {
    tiles.runs(1 << 15, BLOCK, 1 << 14)
}

/// Distances in elements of the input: per row and column of a tile, and per index.
#[derive(Clone, Copy)]
struct TakeStrides {
    x: [isize; 2],
    axis: isize,
}

/// Fills a tile of the result, of `rows` rows, with indices for every row or for all of them: one per element, or a
/// single one. The first row reads from position `at` on.
fn take<'o, T: Scalar>(
    x: View<'_, T>,
    at: isize,
    (index, [index_rows, per_row]): (BoundedIndices<'_>, [usize; 2]),
    steps: TakeStrides,
    rows: usize,
    out: Fresh<'o, T>,
) -> Full<'o, T> {
    let cols = out.len() / rows;
    let mut out = out.cursor();
    for row in 0..rows {
        let index = index.piece(if index_rows == 1 { 0 } else { row }, per_row);
        let at = at + row as isize * steps.x[0];
        let row = out.next(cols);
        out.done(match (&*index, steps.x[1]) {
            (&[index], 1) if cols >= 8 => {
                row.copy_from(x.run(at + index as isize * steps.axis, cols))
            }
            (&[index], step) if cols > 1 => {
                let at = at + index as isize * steps.axis;
                row.each(|col| x.get(at + col as isize * step))
            }
            // Along the innermost axis, the usual case, an index is a position.
            (_, 0) if steps.axis == 1 => index.take(x.run(at, index.limit()), row),
            (index, step) => {
                let places = index.iter().enumerate();
                row.extend(places.map(|(col, &index)| {
                    x.get(at + index as isize * steps.axis + col as isize * step)
                }))
            }
        });
    }
    out.finish()
}
