//! Writing through indices: `scatter`, `index_scatter`.
//!
//! The loop runs over the axes of the values. Elements of the target that differ along another axis than the indexed
//! one are independent, so threads partition one of those axes, and every element of the target is combined with its
//! values in the order of the index: results do not depend on the number of threads.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Int, Scalar};

use super::indices::{BLOCK, IndexTensor};
use super::take::{one_dimensional, spread, wide};
use super::tiles::Traversal;
use super::{ROUTE, along_axis};
use crate::error::{Result, TensorError, check_axis};
use crate::layout::{Strides, contiguous_strides};
use crate::loops::kernel::Binary;
use crate::loops::parallel::{self, SendPtr};
use crate::tensor::Tensor;

/// Combination of a scattered value with the element at its index.
///
/// On `bool`, sums and maxima are "or", products and minima are "and".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// The last value replaces the element.
    Assign,
    /// `old + new`.
    Add,
    /// `old · new`.
    Mul,
    /// The smaller one; NaN if either is NaN.
    Min,
    /// The larger one; NaN if either is NaN.
    Max,
}

/// Kernel: the new value.
#[derive(Clone, Copy, Debug)]
pub struct Assign;

impl<T: Scalar> Binary<T> for Assign {
    type Out = T;
    const NAME: &'static str = "assign";
    #[inline(always)]
    fn apply(self, _old: T, new: T) -> T {
        new
    }
}

/// `x[…, index[…, i, …], …] ← k(x[…, index[…, i, …], …], values[…, i, …])` for every `i` in order,
/// with `i` at `axis`.
///
/// The memory of `x` is overwritten if it has no other owner.
///
/// Shapes: `index` and `values` have those of `x` except at `axis`.
///
/// Cost: one pass over index and values, and a copy of `x` if it is shared. 16-bit floats round
/// after every value.
///
/// ```
/// use t4a_tensor::{Tensor, index, kernels::arithmetic::Add};
/// let x = Tensor::<f32>::zeros(&[3])?;
/// let i = Tensor::from_vec(vec![2, 0, 2], &[3])?;
/// let v = Tensor::from_vec(vec![1., 2., 4.], &[3])?;
/// assert_eq!(index::scatter(Add, x, 0, &i, &v)?.to_vec()?, [2., 0., 5.]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
///
/// # Errors
/// [`TensorError::Axis`], [`TensorError::ShapeMismatch`], [`TensorError::Index`] for the first
/// index outside of the axis.
pub fn scatter<T: Scalar, I: Int, K: Binary<T, Out = T>>(
    kernel: K,
    x: Tensor<T>,
    axis: usize,
    index: &Tensor<I>,
    values: &Tensor<T>,
) -> Result<Tensor<T>> {
    // SAFETY: the elements are of the type of the kernel.
    unsafe {
        scatter_at("scatter", &TypedPut::new(kernel), x, axis, IndexTensor::new(index), values)
    }
}

/// `x[…, index[i], …] ← k(x[…, index[i], …], values[…, i, …])` for every `i` in order, with `i` at
/// `axis`.
///
/// The memory of `x` is overwritten if it has no other owner.
///
/// Shapes: `index` is one-dimensional; `values` has the shape of `x` with `index.numel()` at
/// `axis`.
///
/// # Errors
/// As [`scatter`], and [`TensorError::Shape`] for an index of another rank than 1.
pub fn index_scatter<T: Scalar, I: Int, K: Binary<T, Out = T>>(
    kernel: K,
    x: Tensor<T>,
    axis: usize,
    index: &Tensor<I>,
    values: &Tensor<T>,
) -> Result<Tensor<T>> {
    let (index, kernel) = (IndexTensor::new(index), TypedPut::new(kernel));
    // SAFETY: the elements are of the type of the kernel.
    unsafe { index_scatter_at("index_scatter", &kernel, x, axis, index, values) }
}

/// Combination of a tile of values with its target, through raw pointers: the loops over tiles are compiled per element
/// size and not per kernel.
pub(crate) trait Put: Sync {
    /// Combines a tile of values: with one index per element, or one per row.
    ///
    /// # Safety
    /// Target and values contain elements of the kernel's type at every position of the tile and its indices, and do
    /// not overlap.
    unsafe fn put(
        &self,
        dst: *mut u8,
        src: *const u8,
        index: &[usize],
        steps: PutStrides,
        size: [usize; 2],
    );
}

/// A kernel on elements `T`.
pub(crate) struct TypedPut<T, K>(K, PhantomData<fn() -> T>);

impl<T, K> TypedPut<T, K> {
    /// The kernel.
    pub(crate) const fn new(kernel: K) -> Self {
        Self(kernel, PhantomData)
    }
}

impl<T: Scalar, K: Binary<T, Out = T>> Put for TypedPut<T, K> {
    unsafe fn put(
        &self,
        dst: *mut u8,
        src: *const u8,
        index: &[usize],
        steps: PutStrides,
        [rows, cols]: [usize; 2],
    ) {
        // SAFETY: passed on.
        unsafe { put(self.0, dst.cast::<T>(), src.cast(), index, steps, rows, cols) }
    }
}

/// # Safety
/// The elements are of the type of the kernel, or words of its elements.
pub(crate) unsafe fn index_scatter_at<T: Scalar>(
    op: &'static str,
    kernel: &dyn Put,
    x: Tensor<T>,
    axis: usize,
    index: IndexTensor<'_>,
    values: &Tensor<T>,
) -> Result<Tensor<T>> {
    check_axis(op, axis, x.rank())?;
    let len = one_dimensional(op, index)?;
    if values.shape().get(axis) != Some(&len) {
        let required = "as many values as indices along the axis";
        return Err(TensorError::shapes(op, index.shape(), values.shape(), required));
    }
    index.check(op, axis, x.shape()[axis])?;
    let layout = spread(op, index, axis, values.shape())?;
    // SAFETY: passed on.
    unsafe { scatter_at(op, kernel, x, axis, index.with_layout(&layout), values) }
}

/// # Safety
/// As [`index_scatter_at`].
pub(crate) unsafe fn scatter_at<T: Scalar>(
    op: &'static str,
    kernel: &dyn Put,
    x: Tensor<T>,
    axis: usize,
    index: IndexTensor<'_>,
    values: &Tensor<T>,
) -> Result<Tensor<T>> {
    check_axis(op, axis, x.rank())?;
    along_axis(op, x.shape(), axis, index.shape())?;
    if index.shape() != values.shape() {
        let required = "one value per index";
        return Err(TensorError::shapes(op, index.shape(), values.shape(), required));
    }
    let limit = x.shape()[axis];
    index.check(op, axis, limit)?;
    let mut x = writable(x)?;
    let Some(dst) = x.as_mut_ptr().map(|first| SendPtr(first.cast::<u8>())) else { return Ok(x) };
    let mut strides: Strides = x.layout().strides().into();
    let axis_stride = std::mem::replace(&mut strides[axis], 0);
    // Row-major order of the values, independent of their strides: along the axis it is that of the index.
    let order = contiguous_strides(values.shape());
    let operands = [&order[..], &strides, index.strides(), values.layout().strides()];
    let tiles = Traversal::new(values.shape(), operands);
    let repeated = tiles.inner(2)[1] == 0;
    let tiles = if repeated { wide(tiles) } else { tiles.tile_of(BLOCK) };
    let steps = PutStrides { x: tiles.inner(1), values: tiles.inner(3), axis: axis_stride };
    let index_steps = tiles.inner(2);
    let src = SendPtr(values.as_ptr().cast_mut().cast::<u8>());
    let bytes = size_of::<T>() as isize;

    for_each_part(&tiles, &|part| {
        part.for_each_in_order(|tile| {
            let mut scratch = [MaybeUninit::uninit(); BLOCK];
            let size = [tile.rows, if repeated { 1 } else { tile.cols }];
            let index = index.block(tile.at[2], index_steps, size, limit, &mut scratch);
            let Some(index) = index else { return };
            let dst = dst.get().wrapping_offset(tile.at[1] * bytes);
            let src = src.get().cast_const().wrapping_offset(tile.at[3] * bytes);
            // SAFETY: tiles are inside the values, and the indices inside the axis. Parts differ in an axis along which
            // the target, being injective, has different elements.
            unsafe { kernel.put(dst, src, &index, steps, [tile.rows, tile.cols]) };
        });
    });
    Ok(x.with_route(ROUTE))
}

/// The tensor with exclusively owned memory, in which distinct indices have distinct elements.
pub(super) fn writable<T: Scalar>(x: Tensor<T>) -> Result<Tensor<T>> {
    let mut x = x;
    if x.memory_mut().is_some() && x.layout().is_injective() {
        return Ok(x);
    }
    crate::copy::to_contiguous(&x)
}

/// Splits a loop along the largest axis along which the target (operand 1) varies.
fn for_each_part(tiles: &Traversal<4>, body: &(dyn Fn(&Traversal<4>) + Sync)) {
    const COST: usize = 4;
    const PARTS: usize = 16;
    let shape = tiles.shape();
    let axis = (0..shape.len()).filter(|&a| tiles.strides(1)[a] != 0).max_by_key(|&a| shape[a]);
    match axis {
        Some(axis) if parallel::worthwhile(tiles.numel(), COST) && shape[axis] > 1 => {
            // Parts of whole cache lines along the last axis.
            let unit = if axis + 1 == shape.len() { 64 } else { 1 };
            let len = shape[axis].div_ceil(PARTS).next_multiple_of(unit);
            parallel::for_each(shape[axis].div_ceil(len), true, &|part| {
                let start = part * len;
                body(&tiles.narrow(axis, start, len.min(shape[axis] - start)));
            });
        }
        _ => body(tiles),
    }
}

/// Distances in elements: of target and values per row and column of a tile, and of the target
/// per index.
#[derive(Clone, Copy)]
pub(crate) struct PutStrides {
    x: [isize; 2],
    values: [isize; 2],
    axis: isize,
}

/// Combines a tile of values: with one index per element, or one per row.
///
/// # Safety
/// Target and values are valid at every position that the tile and its indices name, and do not
/// overlap.
unsafe fn put<T: Scalar, K: Binary<T, Out = T>>(
    kernel: K,
    dst: *mut T,
    src: *const T,
    index: &[usize],
    steps: PutStrides,
    rows: usize,
    cols: usize,
) {
    let per_row = index.len() / rows;
    for (row, index) in index.chunks_exact(per_row).enumerate() {
        // SAFETY: the caller's contract.
        unsafe {
            let dst = dst.offset(row as isize * steps.x[0]);
            let src = src.offset(row as isize * steps.values[0]);
            if let ([index], true) = (index, cols > 1) {
                let dst = dst.offset(*index as isize * steps.axis);
                if steps.x[1] == 1 && steps.values[1] == 1 {
                    let dst = std::slice::from_raw_parts_mut(dst, cols);
                    dispatch(Combine { kernel, dst, src: std::slice::from_raw_parts(src, cols) });
                    continue;
                }
                for col in 0..cols as isize {
                    let dst = dst.offset(col * steps.x[1]);
                    *dst = kernel.apply(*dst, *src.offset(col * steps.values[1]));
                }
                continue;
            }
            for (col, &index) in index.iter().enumerate() {
                let dst = dst.offset(index as isize * steps.axis + col as isize * steps.x[1]);
                *dst = kernel.apply(*dst, *src.offset(col as isize * steps.values[1]));
            }
        }
    }
}

struct Combine<'a, T, K> {
    kernel: K,
    dst: &'a mut [T],
    src: &'a [T],
}

impl<T: Scalar, K: Binary<T, Out = T>> Loop for Combine<'_, T, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (dst, &src) in self.dst.iter_mut().zip(self.src) {
            *dst = self.kernel.apply(*dst, src);
        }
    }
}
