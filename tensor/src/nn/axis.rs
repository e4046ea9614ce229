//! Operations along one axis: the tensor as `outer × axis × inner` in the order of memory.
//!
//! A dense tensor in any order of its axes is read where it lies, and the result has the same
//! order; any other layout is copied first. With `inner = 1` a lane along the axis is a
//! contiguous row, otherwise neighbouring lanes are done side by side.

use std::mem::MaybeUninit;

use smallvec::SmallVec;
use t4a_algebra::Float;

use crate::error::{Result, check_axis};
use crate::layout::Dims;
use crate::loops::parallel::{self, SendPtr};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Most lanes that are done side by side.
pub(super) const WIDTH: usize = 128;
/// Elements of a chunk of rows.
const CHUNK: usize = 1 << 14;

/// An operation along an axis of `N` operands of equal shape, on contiguous memory.
pub(super) trait Along<T: Float, const N: usize>: Copy + Sync {
    /// Name of the operation, for errors.
    const NAME: &'static str;
    /// Work per element in additions; it decides about threads.
    const COST: usize;
    /// Rows of `n > 0` elements: `out` and every operand hold the same number of them.
    fn rows(self, n: usize, x: [&[T]; N], out: &mut [MaybeUninit<T>]);
    /// `width ≤ WIDTH` neighbouring lanes of `n` elements, `pitch` elements apart.
    ///
    /// # Safety
    /// Element `(i, j)` at `i·pitch + j` exists for every operand and is writable in `out`, for
    /// `i < n` and `j < width`.
    unsafe fn columns(self, n: usize, pitch: usize, width: usize, x: [*const T; N], out: *mut T);
}

/// Axes in the order of memory if the tensor fills a range of it, else as they are.
fn memory_order<T>(x: &Tensor<T>) -> SmallVec<[usize; 6]> {
    let layout = x.layout();
    let mut axes: SmallVec<[usize; 6]> = (0..layout.rank()).collect();
    let forward = layout.strides().iter().zip(layout.shape()).all(|(&s, &n)| n == 1 || s > 0);
    if !layout.is_contiguous() && forward && layout.is_dense() {
        axes.sort_by_key(|&axis| std::cmp::Reverse(layout.strides()[axis]));
    }
    axes
}

/// Runs an operation along an axis. The operands have the same shape, checked by the caller.
pub(super) fn along<T: Float, const N: usize, K: Along<T, N>>(
    kernel: K,
    operands: [&Tensor<T>; N],
    axis: usize,
) -> Result<Tensor<T>> {
    let rank = operands[0].rank();
    check_axis(K::NAME, axis, rank)?;
    let order = memory_order(operands[0]);
    let mut sources = SmallVec::<[Tensor<T>; N]>::new();
    for x in operands {
        sources.push(crate::copy::row_major(&x.permute(&order)?)?);
    }
    let shape: Dims = sources[0].shape().into();
    let at = order.iter().position(|&a| a == axis).unwrap_or(axis);
    let mut out = Output::<T>::new(K::NAME, &shape)?;
    let numel = out.layout().numel();
    if numel > 0 {
        let (n, inner) = (shape[at], shape[at + 1..].iter().product::<usize>());
        let x: [SendPtr<T>; N] = std::array::from_fn(|i| SendPtr(sources[i].as_ptr().cast_mut()));
        // SAFETY: every source and the result are row-major of this shape.
        unsafe { walk(kernel, x, SendPtr(out.as_mut_ptr()), (numel, n, inner)) };
    }
    // SAFETY: every element was written.
    let out = unsafe { out.assume_init() }.with_route(Route::native(Path::Fused));
    let mut back: SmallVec<[usize; 6]> = order.clone();
    for (position, &axis) in order.iter().enumerate() {
        back[axis] = position;
    }
    out.permute(&back)
}

/// # Safety
/// The pointers are valid for `numel > 0` elements; `n·inner` divides `numel`.
unsafe fn walk<T: Float, const N: usize, K: Along<T, N>>(
    kernel: K,
    x: [SendPtr<T>; N],
    out: SendPtr<T>,
    (numel, n, inner): (usize, usize, usize),
) {
    let parallel = parallel::worthwhile(numel, K::COST);
    if inner == 1 {
        let step = n * (CHUNK / n).max(1);
        parallel::for_each(numel.div_ceil(step), parallel, &|chunk| {
            let from = chunk * step;
            let len = step.min(numel - from);
            // SAFETY: `from + len ≤ numel`, and chunks are disjoint.
            unsafe {
                let x = x.map(|x| std::slice::from_raw_parts(x.get().add(from).cast_const(), len));
                let out = out.get().add(from).cast();
                kernel.rows(n, x, std::slice::from_raw_parts_mut(out, len));
            }
        });
    } else {
        let tiles = inner.div_ceil(WIDTH);
        parallel::for_each(numel / (n * inner) * tiles, parallel, &|chunk| {
            let (outer, tile) = (chunk / tiles, chunk % tiles * WIDTH);
            let from = outer * n * inner + tile;
            let width = WIDTH.min(inner - tile);
            // SAFETY: the lanes `tile..tile + width` of block `outer` are inside, and disjoint.
            unsafe {
                let x = x.map(|x| x.get().add(from).cast_const());
                kernel.columns(n, inner, width, x, out.get().add(from));
            }
        });
    }
}
