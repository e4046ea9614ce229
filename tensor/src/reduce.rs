//! Reductions over any axes of any layout.
//!
//! ```text
//! rows      the fastest axis is reduced:  gather or read a row, fold it
//! columns   the fastest axis is kept, or rows are short:  fold row after row into a tile of
//!           partial results
//! ```
//!
//! A long reduction is cut into blocks of fixed size whose partial results are merged in order, so
//! the result does not depend on the number of threads.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice;

use smallvec::SmallVec;
use t4a_algebra::Scalar;

use crate::error::{Result, TensorError, check_axis};
use crate::kernels::fold::Fold;
use crate::layout::{Dims, Layout};
use crate::loops::fuse::Fused;
use crate::loops::parallel::{self, SendPtr};
use crate::loops::stage::{self, Scratch};
use crate::loops::{self};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Elements of a row that are folded into one partial result.
const BLOCK: usize = 1 << 14;
/// Bytes of scratch for rows that are gathered: many short rows at once (bench `backend`, row
/// `sum 262144×4 rows`).
const SCRATCH_BYTES: usize = 1 << 15;
/// Reduced axes shorter than this are folded by columns.
const SHORT: usize = 16;
/// Kept elements in a tile of partial results: rows of the operand are read in long runs (bench
/// `backend`, row `sum 1024² columns`).
const TILE: usize = 1024;
/// Most results for which a reduction across rows is not planned.
const FEW: usize = 256;
/// Most partial results that wait to be merged.
const SLOTS: usize = 1 << 12;
/// Rows folded into one tile before it is merged: bounds the growth of rounding errors.
const ROWS: usize = 256;

/// Reduces the given axes, which stay with size 1.
///
/// Cost: one read and one step per element.
///
/// # Errors
/// [`TensorError::Axis`] for axes out of range or repeated; [`TensorError::Shape`] if nothing is
/// reduced by a fold that has no value for it; `OutOfMemory`.
pub fn reduce<T: Scalar, F: Fold<T>>(
    fold: F,
    x: &Tensor<T>,
    axes: &[usize],
) -> Result<Tensor<F::Out>> {
    const { assert!(size_of::<F::Acc>() <= ACC_BYTES && align_of::<F::Acc>() <= 16) };
    let (shape, reduced) = reduced_shape(F::NAME, x.shape(), axes)?;
    let n: usize = reduced.iter().fold(1usize, |n, &axis| n.wrapping_mul(x.shape()[axis]));
    if n == 0 && !F::HAS_IDENTITY && !shape.contains(&0) {
        return Err(TensorError::shape(F::NAME, x.shape(), "at least one element to reduce"));
    }
    let mut out = Output::<F::Out>::new(F::NAME, &shape)?;
    if n == 0 {
        out.as_mut_slice().fill(MaybeUninit::new(fold.finish(fold.init(), 0)));
    } else if let Some(data) = x.as_slice()
        && data.len() <= BLOCK
        && reduced.iter().rev().enumerate().all(|(i, &axis)| axis + 1 + i == x.rank())
    {
        // Small and row-major: planning would cost more (bench `backend`, row `sum 4×4`).
        for (out, row) in out.as_mut_slice().iter_mut().zip(data.chunks_exact(n)) {
            out.write(fold.finish(loops::fold::row(fold, row), n));
        }
    } else if let Some(data) = x.as_slice()
        && (1..=FEW).contains(&out.layout().numel())
        && n <= ROWS
        && reduced.iter().enumerate().all(|(i, &axis)| axis == i)
    {
        // The same across rows (bench `backend`, row `MLP train step b8 h32`).
        let cols = out.layout().numel();
        let mut acc = [fold.init(); FEW];
        // SAFETY: the elements are n rows of as many columns as there are results.
        unsafe {
            loops::fold::columns(fold, n, data.as_ptr(), cols as isize, &mut acc[..cols]);
        }
        for (out, &acc) in out.as_mut_slice().iter_mut().zip(&acc) {
            out.write(fold.finish(acc, n));
        }
    } else if !shape.contains(&0) {
        let plan = Plan::new(x, &shape, &reduced);
        let dst = SendPtr(out.as_mut_ptr().cast::<u8>());
        let loops = Typed(fold, PhantomData::<T>);
        // SAFETY: the plan covers the result once, and reads `x` inside of its layout.
        unsafe { plan.fold(&loops, dst, n) };
    }
    // SAFETY: every element was written.
    Ok(unsafe { out.assume_init() }.with_route(Route::promoted(Path::LoopReduce, F::PROMOTES)))
}

/// Bytes that hold any partial result.
const ACC_BYTES: usize = 16;

/// Partial results of one tile, of any type.
#[repr(C, align(64))]
struct Tile([MaybeUninit<u8>; TILE * ACC_BYTES]);

impl Tile {
    fn new() -> Self {
        Self([MaybeUninit::uninit(); TILE * ACC_BYTES])
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// What a reduction does with contiguous memory, behind pointers: the walk over axes is compiled
/// once and not per fold.
///
/// # Safety
/// Pointers are valid and aligned for the element, partial and final types of the fold, and for
/// the lengths given.
trait FoldLoops: Sync {
    /// Bytes per element, partial result and result.
    fn sizes(&self) -> [usize; 3];
    /// `acc[..len] ← init`.
    unsafe fn init(&self, acc: *mut u8, len: usize);
    /// `acc ← acc ∘ x₀ ∘ x₁ ∘ …` along a row.
    unsafe fn row(&self, x: *const u8, len: usize, acc: *mut u8);
    /// `outᵢ` ← the result over row i of `rows` rows of `len` elements; pitches count elements
    /// of the operand and of the result.
    unsafe fn rows(&self, x: *const u8, out: *mut u8, pitch: [isize; 2], rows: usize, len: usize);
    /// `accⱼ ← accⱼ ∘ x₀ⱼ ∘ x₁ⱼ ∘ …` across rows; the pitch counts elements.
    unsafe fn columns(&self, rows: usize, x: *const u8, pitch: isize, acc: *mut u8, len: usize);
    /// `accⱼ ← accⱼ ∘ partialⱼ`.
    unsafe fn merge(&self, acc: *mut u8, partial: *const u8, len: usize);
    /// `outⱼ` ← the result of `accⱼ`, a partial result over `n` elements; the pitch counts results.
    unsafe fn finish(&self, acc: *const u8, n: usize, out: *mut u8, pitch: isize, len: usize);
}

struct Typed<T, F>(F, PhantomData<T>);

// SAFETY (every block): the promise of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<T: Scalar, F: Fold<T>> FoldLoops for Typed<T, F> {
    fn sizes(&self) -> [usize; 3] {
        [size_of::<T>(), size_of::<F::Acc>(), size_of::<F::Out>()]
    }
    unsafe fn init(&self, acc: *mut u8, len: usize) {
        let acc = unsafe { slice::from_raw_parts_mut(acc.cast::<MaybeUninit<F::Acc>>(), len) };
        acc.fill(MaybeUninit::new(self.0.init()));
    }
    unsafe fn row(&self, x: *const u8, len: usize, acc: *mut u8) {
        unsafe {
            let partial = loops::fold::row(self.0, slice::from_raw_parts(x.cast::<T>(), len));
            let acc = acc.cast::<F::Acc>();
            acc.write(self.0.merge(acc.read(), partial));
        }
    }
    unsafe fn rows(&self, x: *const u8, out: *mut u8, pitch: [isize; 2], rows: usize, len: usize) {
        let (x, out) = (x.cast::<T>(), out.cast::<F::Out>());
        for i in 0..rows as isize {
            unsafe {
                let row = slice::from_raw_parts(x.offset(i * pitch[0]), len);
                out.offset(i * pitch[1]).write(self.0.finish(loops::fold::row(self.0, row), len));
            }
        }
    }
    unsafe fn columns(&self, rows: usize, x: *const u8, pitch: isize, acc: *mut u8, len: usize) {
        unsafe {
            let acc = slice::from_raw_parts_mut(acc.cast::<F::Acc>(), len);
            loops::fold::columns(self.0, rows, x.cast::<T>(), pitch, acc);
        }
    }
    unsafe fn merge(&self, acc: *mut u8, partial: *const u8, len: usize) {
        unsafe {
            let acc = slice::from_raw_parts_mut(acc.cast::<F::Acc>(), len);
            let partial = slice::from_raw_parts(partial.cast::<F::Acc>(), len);
            for (acc, &partial) in acc.iter_mut().zip(partial) {
                *acc = self.0.merge(*acc, partial);
            }
        }
    }
    unsafe fn finish(&self, acc: *const u8, n: usize, out: *mut u8, pitch: isize, len: usize) {
        let acc = unsafe { slice::from_raw_parts(acc.cast::<F::Acc>(), len) };
        for (j, &acc) in acc.iter().enumerate() {
            let out = out.cast::<F::Out>().wrapping_offset(j as isize * pitch);
            unsafe { out.write(self.0.finish(acc, n)) };
        }
    }
}

/// The shape with reduced axes of size 1, and those axes in ascending order.
pub(crate) fn reduced_shape(
    op: &'static str,
    shape: &[usize],
    axes: &[usize],
) -> Result<(Dims, SmallVec<[usize; 6]>)> {
    let mut sorted = SmallVec::from_slice(axes);
    sorted.sort_unstable();
    let mut out = Dims::from_slice(shape);
    for (i, &axis) in sorted.iter().enumerate() {
        check_axis(op, axis, shape.len())?;
        if i > 0 && sorted[i - 1] == axis {
            return Err(TensorError::Axis { op, axis, rank: shape.len() });
        }
        out[axis] = 1;
    }
    Ok((out, sorted))
}

/// Axes of a reduction, fused: kept ones in the order of the result, reduced ones in the order of
/// memory, outermost first.
pub(crate) struct Plan {
    src: SendPtr<u8>,
    /// Bytes per element.
    size: usize,
    /// Strides: result, operand.
    pub(crate) kept: Fused<2>,
    pub(crate) reduced: Fused<1>,
}

impl Plan {
    /// For a nonempty operand.
    pub(crate) fn new<T: Scalar>(x: &Tensor<T>, shape: &[usize], reduced: &[usize]) -> Self {
        let src = SendPtr(x.as_ptr().cast_mut().cast());
        Self::erased(src, size_of::<T>(), x.layout(), shape, reduced)
    }

    fn erased(
        src: SendPtr<u8>,
        size: usize,
        x: &Layout,
        shape: &[usize],
        reduced: &[usize],
    ) -> Self {
        let strides = x.strides();
        let out_strides = crate::layout::contiguous_strides(shape);
        let pick = |axes: &[usize], of: &[isize]| -> SmallVec<[isize; 6]> {
            axes.iter().map(|&axis| of[axis]).collect()
        };
        let kept: SmallVec<[usize; 6]> =
            (0..shape.len()).filter(|axis| !reduced.contains(axis)).collect();
        let sizes = |axes: &[usize]| -> Dims { axes.iter().map(|&axis| x.shape()[axis]).collect() };
        let kept_strides = [pick(&kept, &out_strides), pick(&kept, strides)];
        let mut plan = Self {
            src,
            size,
            kept: Fused::by_first(&sizes(&kept), [&kept_strides[0], &kept_strides[1]]),
            reduced: Fused::by_first(&sizes(reduced), [&pick(reduced, strides)]),
        };
        // One axis at least on either side keeps the loops free of special cases.
        if plan.kept.rank() == 0 {
            plan.kept.shape.push(1);
            plan.kept.strides.iter_mut().for_each(|s| s.push(0));
        }
        if plan.reduced.rank() == 0 {
            plan.reduced.shape.push(1);
            plan.reduced.strides[0].push(0);
        }
        plan
    }

    /// Size and stride (in the operand) of the innermost reduced and kept axes.
    pub(crate) fn inner(&self) -> ((usize, isize), (usize, isize)) {
        let (r, k) = (self.reduced.rank() - 1, self.kept.rank() - 1);
        (
            (self.reduced.shape[r], self.reduced.strides[0][r]),
            (self.kept.shape[k], self.kept.strides[1][k]),
        )
    }

    pub(crate) fn by_rows(&self) -> bool {
        let ((len, step), (width, across)) = self.inner();
        let one_result = self.kept.shape.iter().all(|&n| n == 1);
        one_result || (len >= SHORT && (step.unsigned_abs() <= across.unsigned_abs() || width == 1))
    }

    /// Position in the operand of the `i`-th index over the first `axes` axes of a side.
    fn position<const N: usize>(side: &Fused<N>, op: usize, axes: usize, i: usize) -> isize {
        let mut rest = i;
        let mut position = 0;
        for axis in (0..axes).rev() {
            position += (rest % side.shape[axis]) as isize * side.strides[op][axis];
            rest /= side.shape[axis];
        }
        position
    }

    /// Start of the `i`-th kept element: positions in the result and in the operand.
    pub(crate) fn kept_at(&self, i: usize) -> (isize, isize) {
        let axes = self.kept.rank();
        (Self::position(&self.kept, 0, axes, i), Self::position(&self.kept, 1, axes, i))
    }

    /// Number of rows (innermost reduced axes) per result.
    fn rows_per_result(&self) -> usize {
        self.reduced.shape[..self.reduced.rank() - 1].iter().product()
    }

    fn row_at(&self, i: usize) -> isize {
        Self::position(&self.reduced, 0, self.reduced.rank() - 1, i)
    }

    fn at(&self, position: isize) -> *const u8 {
        self.src.get().cast_const().wrapping_offset(position * self.size as isize)
    }

    /// Elements that a gathered run may have.
    pub(crate) fn capacity(&self) -> usize {
        SCRATCH_BYTES / self.size.max(1)
    }

    /// `len` contiguous elements from a position of the operand: in place or gathered.
    ///
    /// # Safety
    /// The elements exist, and fit the scratch unless `step` is 1.
    pub(crate) unsafe fn run(
        &self,
        at: isize,
        step: isize,
        len: usize,
        scratch: &mut Scratch<SCRATCH_BYTES>,
    ) -> *const u8 {
        // SAFETY: the caller's promise.
        unsafe { self.tile(at, (1, 0), (len, step), scratch).0 }
    }

    /// `rows × cols` elements with contiguous rows, and their pitch: in place or gathered.
    ///
    /// # Safety
    /// As [`Plan::run`].
    pub(crate) unsafe fn tile(
        &self,
        at: isize,
        (rows, step): (usize, isize),
        (cols, across): (usize, isize),
        scratch: &mut Scratch<SCRATCH_BYTES>,
    ) -> (*const u8, isize) {
        if across == 1 || cols == 1 {
            return (self.at(at), step);
        }
        let dst = scratch.as_mut_ptr();
        // SAFETY: the caller's promise.
        unsafe {
            let strides = (step, across);
            stage::gather(self.at(at), strides, (rows, cols), self.size, dst, cols as isize);
        }
        (dst, cols as isize)
    }

    /// # Safety
    /// `dst` takes every result; the operand is readable.
    unsafe fn fold(&self, fold: &dyn FoldLoops, dst: SendPtr<u8>, n: usize) {
        // SAFETY: passed on.
        unsafe {
            if self.by_rows() {
                self.fold_rows(fold, dst, n)
            } else {
                self.fold_columns(fold, dst, n)
            }
        }
    }

    /// Folds block `b` of the blocks of a result's rows into a partial result.
    ///
    /// # Safety
    /// The block exists.
    unsafe fn fold_block(
        &self,
        fold: &dyn FoldLoops,
        base: isize,
        b: usize,
        acc: *mut u8,
        scratch: &mut Scratch<SCRATCH_BYTES>,
    ) {
        let ((len, step), _) = self.inner();
        let per_row = len.div_ceil(BLOCK);
        let (row, from) = (b / per_row, b % per_row * BLOCK);
        let mut at = base + self.row_at(row) + from as isize * step;
        let mut left = BLOCK.min(len - from);
        // SAFETY: inside of the row; gathered parts fit the scratch.
        unsafe {
            fold.init(acc, 1);
            while left > 0 {
                let part = if step == 1 { left } else { left.min(self.capacity()) };
                fold.row(self.run(at, step, part, scratch), part, acc);
                at += part as isize * step;
                left -= part;
            }
        }
    }

    /// # Safety
    /// As [`Plan::fold`].
    unsafe fn fold_rows(&self, fold: &dyn FoldLoops, dst: SendPtr<u8>, n: usize) {
        let ((len, step), (width, across)) = self.inner();
        let [_, acc_size, out_size] = fold.sizes();
        let blocks = self.rows_per_result() * len.div_ceil(BLOCK);
        let results: usize = self.kept.shape.iter().product();
        let parallel = parallel::worthwhile(results.saturating_mul(n), 1);
        let place = |i: usize| dst.get().wrapping_offset(self.kept_at(i).0 * out_size as isize);
        if results >= 16 || blocks == 1 {
            let per_chunk = (BLOCK * 2 / n).max(1);
            parallel::for_each(results.div_ceil(per_chunk), parallel, &|chunk| {
                let range = chunk * per_chunk..((chunk + 1) * per_chunk).min(results);
                if step == 1 && blocks == 1 {
                    // Rows in place, as many at once as lie at equal distances (bench `backend`,
                    // row `sum 1024² rows`).
                    let pitch = [across, self.kept.strides[0][self.kept.rank() - 1]];
                    let mut i = range.start;
                    while i < range.end {
                        let rows = (width - i % width).min(range.end - i);
                        // SAFETY: rows exist; results are in range and disjoint.
                        unsafe {
                            fold.rows(self.at(self.kept_at(i).1), place(i), pitch, rows, len)
                        };
                        i += rows;
                    }
                    return;
                }
                let mut scratch = Scratch::new();
                let mut accs = Tile::new();
                let acc = accs.as_mut_ptr();
                let partial = acc.wrapping_add(ACC_BYTES);
                for i in range {
                    let base = self.kept_at(i).1;
                    // SAFETY: blocks exist; results are in range and disjoint.
                    unsafe {
                        self.fold_block(fold, base, 0, acc, &mut scratch);
                        for b in 1..blocks {
                            self.fold_block(fold, base, b, partial, &mut scratch);
                            fold.merge(acc, partial, 1);
                        }
                        fold.finish(acc, n, place(i), 0, 1);
                    }
                }
            });
            return;
        }
        // Partial results are merged in order, some of them at a time: slot 0 is the result so far.
        let most = blocks.min(SLOTS);
        let mut partials = vec![0u128; (most + 1) * acc_size.div_ceil(16)];
        let slots = SendPtr(partials.as_mut_ptr().cast::<u8>());
        let slot = |b: usize| slots.get().wrapping_add(b * acc_size);
        let per_chunk = (BLOCK / len).max(1);
        for i in 0..results {
            let base = self.kept_at(i).1;
            // SAFETY: there is a slot 0.
            unsafe { fold.init(slot(0), 1) };
            for first in (0..blocks).step_by(most) {
                let count = most.min(blocks - first);
                parallel::for_each(count.div_ceil(per_chunk), parallel, &|chunk| {
                    let mut scratch = Scratch::new();
                    for b in chunk * per_chunk..((chunk + 1) * per_chunk).min(count) {
                        // SAFETY: the block exists and its slot is written once.
                        unsafe {
                            self.fold_block(fold, base, first + b, slot(1 + b), &mut scratch);
                        }
                    }
                });
                // SAFETY: these slots are written.
                unsafe { (1..=count).for_each(|b| fold.merge(slot(0), slot(b), 1)) };
            }
            // SAFETY: the result is in range.
            unsafe { fold.finish(slot(0), n, place(i), 0, 1) };
        }
    }

    /// # Safety
    /// As [`Plan::fold`].
    unsafe fn fold_columns(&self, fold: &dyn FoldLoops, dst: SendPtr<u8>, n: usize) {
        let ((len, _), (width, across)) = self.inner();
        let [_, acc_size, out_size] = fold.sizes();
        let k = self.kept.rank() - 1;
        let outer: usize = self.kept.shape[..k].iter().product();
        // A gathered row of a tile fits the scratch, whatever the size of its elements.
        let most = TILE.min(self.capacity());
        let tiles = width.div_ceil(most);
        let rows = self.rows_per_result();
        let parallel = parallel::worthwhile(outer.saturating_mul(width).saturating_mul(n), 1);
        // Groups of rows, each with partial results of its own: for few, long columns.
        let groups = if outer * tiles >= 16 { 1 } else { len.div_ceil(ROWS).min(64) };
        let per_group = len.div_ceil(groups);
        let per_chunk = ((1 << 15) / (TILE.min(width) * per_group * rows).max(1)).max(1);
        let jobs = outer * tiles * groups;
        let spare = if groups > 1 { groups * outer * width } else { 0 };
        let mut partials = vec![0u128; (spare * acc_size).div_ceil(16)];
        let slots = SendPtr(partials.as_mut_ptr().cast::<u8>());
        let slot = |group: usize, i: usize| {
            slots.get().wrapping_add((group * outer * width + i) * acc_size)
        };
        parallel::for_each(jobs.div_ceil(per_chunk), parallel, &|chunk| {
            let mut scratch = Scratch::new();
            let mut tile_acc = Tile::new();
            for job in chunk * per_chunk..((chunk + 1) * per_chunk).min(jobs) {
                let (group, tile) = (job % groups, job / groups);
                let (o, from) = (tile / tiles, tile % tiles * most);
                let cols = most.min(width - from);
                let out_step = self.kept.strides[0][k];
                let to = Self::position(&self.kept, 0, k, o) + from as isize * out_step;
                let base = Self::position(&self.kept, 1, k, o) + from as isize * across;
                let range = group * per_group..((group + 1) * per_group).min(len);
                let acc = match groups {
                    1 => tile_acc.as_mut_ptr(),
                    _ => slot(group, o * width + from),
                };
                // SAFETY: rows and columns are in range; jobs have slots and results of their own.
                unsafe {
                    self.fold_tile(fold, base, range, cols, acc, &mut scratch);
                    if groups == 1 {
                        let out = dst.get().wrapping_offset(to * out_size as isize);
                        fold.finish(acc, n, out, out_step, cols);
                    }
                }
            }
        });
        if groups > 1 {
            // SAFETY: every slot is written; results are in range.
            unsafe {
                for group in 1..groups {
                    fold.merge(slot(0, 0), slot(group, 0), outer * width);
                }
                for i in 0..outer * width {
                    let at = self.kept_at(i).0 * out_size as isize;
                    fold.finish(slot(0, i), n, dst.get().wrapping_offset(at), 0, 1);
                }
            }
        }
    }

    /// Folds a range of the innermost reduced axis, under every outer reduced index, into `cols`
    /// partial results.
    ///
    /// # Safety
    /// Rows and columns are in range.
    unsafe fn fold_tile(
        &self,
        fold: &dyn FoldLoops,
        base: isize,
        range: std::ops::Range<usize>,
        cols: usize,
        acc: *mut u8,
        scratch: &mut Scratch<SCRATCH_BYTES>,
    ) {
        let ((_, step), (_, across)) = self.inner();
        let mut partials = Tile::new();
        let partial = partials.as_mut_ptr();
        // Gathered rows have to fit the scratch.
        let batch = if across == 1 { ROWS } else { (self.capacity() / cols).clamp(1, ROWS) };
        // SAFETY: the caller's promise.
        unsafe {
            fold.init(acc, cols);
            for outer_row in 0..self.rows_per_result() {
                let start = base + self.row_at(outer_row);
                let mut r = range.start;
                while r < range.end {
                    fold.init(partial, cols);
                    let stop = (r + ROWS).min(range.end);
                    while r < stop {
                        let rows = batch.min(stop - r);
                        let at = start + r as isize * step;
                        let (x, pitch) = self.tile(at, (rows, step), (cols, across), scratch);
                        fold.columns(rows, x, pitch, partial, cols);
                        r += rows;
                    }
                    fold.merge(acc, partial, cols);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arg_reduce::arg_reduce;
    use crate::kernels::fold::{All, Any, Maximum, Mean, Minimum, Prod, Sum};
    use t4a_algebra::{Numeric, bf16, f16};

    /// Integers in `f64`, so that sums are exact in any order.
    fn values(shape: &[usize]) -> Tensor<f64> {
        Tensor::from_fn(shape, |i| ((i * 7919 + 13) % 101) as f64 - 50.0).unwrap()
    }

    fn layouts(shape: &[usize]) -> Vec<Tensor<f64>> {
        let rev: Vec<usize> = (0..shape.len()).rev().collect();
        let back: Vec<usize> = shape.iter().rev().copied().collect();
        let mut wide = shape.to_vec();
        wide[0] = 1;
        let doubled: Vec<usize> = shape.iter().map(|n| 2 * n).collect();
        let mut strided = values(&doubled);
        for (axis, &n) in shape.iter().enumerate() {
            strided = strided.slice_axis(axis, 1.min(n), n, 2).unwrap();
        }
        vec![
            values(shape),
            values(&back).permute(&rev).unwrap(),
            values(shape).flip(&rev).unwrap(),
            values(&wide).expand(shape).unwrap(),
            strided,
        ]
    }

    /// Index by index: the elements reduced into each result.
    fn groups(x: &Tensor<f64>, axes: &[usize]) -> Vec<Vec<f64>> {
        let (shape, _) = reduced_shape("test", x.shape(), axes).unwrap();
        let out = Layout::contiguous("test", &shape, 1).unwrap();
        let mut groups = vec![Vec::new(); out.numel()];
        let mut index = vec![0; x.rank()];
        for _ in 0..x.numel() {
            let to: Vec<usize> = index
                .iter()
                .enumerate()
                .map(|(a, &i)| if axes.contains(&a) { 0 } else { i })
                .collect();
            groups[out.position(&to)].push(x.get(&index).unwrap());
            for axis in (0..x.rank()).rev() {
                index[axis] += 1;
                if index[axis] < x.shape()[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        groups
    }

    #[test]
    fn every_layout_and_choice_of_axes_reduces_the_right_elements() {
        let shapes: [&[usize]; 8] = [
            &[40],
            &[5, 7],
            &[3, 300],
            &[300, 3],
            &[4, 20, 33],
            &[2, 3, 4, 5],
            &[18, 1, 270],
            // More than one block, so that contiguous rows are planned too.
            &[60, 400],
        ];
        for shape in shapes {
            for x in layouts(shape) {
                for mask in 0..1usize << shape.len() {
                    let axes: Vec<usize> =
                        (0..shape.len()).filter(|a| mask >> a & 1 == 1).collect();
                    let want = groups(&x, &axes);
                    let sum = reduce(Sum, &x, &axes).unwrap().to_vec().unwrap();
                    let max = reduce(Maximum, &x, &axes).unwrap().to_vec().unwrap();
                    let min = reduce(Minimum, &x, &axes).unwrap().to_vec().unwrap();
                    for (i, group) in want.iter().enumerate() {
                        assert_eq!(sum[i], group.iter().sum::<f64>(), "{:?} {axes:?}", x.layout());
                        assert_eq!(max[i], group.iter().copied().fold(f64::MIN, f64::max));
                        assert_eq!(min[i], group.iter().copied().fold(f64::MAX, f64::min));
                    }
                    if let [axis] = axes[..] {
                        let (v, at) = arg_reduce(Maximum, &x, axis).unwrap();
                        let (v, at) = (v.to_vec().unwrap(), at.to_vec().unwrap());
                        for (i, group) in want.iter().enumerate() {
                            let first = group.iter().position(|&g| g == max[i]).unwrap();
                            assert_eq!(
                                (v[i], at[i]),
                                (max[i], first as i64),
                                "{:?} {axis}",
                                x.layout()
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn long_reductions_are_cut_into_blocks() {
        for shape in [&[100_000usize][..], &[70_000, 3], &[3, 70_000], &[2, 40_000, 2]] {
            let x = values(shape);
            for axes in [vec![0], vec![shape.len() - 1], (0..shape.len()).collect()] {
                let want: Vec<f64> = groups(&x, &axes).iter().map(|g| g.iter().sum()).collect();
                assert_eq!(
                    reduce(Sum, &x, &axes).unwrap().to_vec().unwrap(),
                    want,
                    "{shape:?} {axes:?}"
                );
            }
        }
    }

    #[test]
    fn nan_wins_and_ties_go_to_the_first() {
        let x = Tensor::from_vec(vec![1.0f32, f32::NAN, 5.0, f32::NAN, 5.0, 5.0], &[2, 3]).unwrap();
        for x in [
            x.clone(),
            x.swap_axes(0, 1).unwrap().reshape(&[3, 2]).unwrap().swap_axes(0, 1).unwrap(),
        ] {
            let (v, i) = arg_reduce(Maximum, &x, 1).unwrap();
            assert!(v.to_vec().unwrap().iter().all(|v| v.is_nan()));
            assert_eq!(i.to_vec().unwrap(), [1, 0]);
            let (v, i) = arg_reduce(Minimum, &x, 0).unwrap();
            assert_eq!(i.to_vec().unwrap(), [1, 0, 0]);
            assert!(v.get(&[0, 0]).unwrap().is_nan() && v.get(&[0, 2]).unwrap() == 5.0);
        }
        let x = Tensor::full(&[40, 40], 2i32).unwrap();
        for axis in 0..2 {
            let (_, i) = arg_reduce(Minimum, &x, axis).unwrap();
            assert!(i.to_vec().unwrap().iter().all(|&i| i == 0));
        }
    }

    #[test]
    fn half_precision_accumulates_in_single() {
        let x = Tensor::full(&[3000, 2], <f16 as Numeric>::from_f64(1.0)).unwrap();
        for axes in [vec![0], vec![0, 1]] {
            let sum = reduce(Sum, &x, &axes).unwrap().to_vec().unwrap();
            assert_eq!(sum[0].to_f64(), 3000.0 * (axes.len() as f64));
            assert_eq!(reduce(Mean, &x, &axes).unwrap().to_vec().unwrap()[0].to_f64(), 1.0);
        }
        let big = Tensor::full(&[100_000], <bf16 as Numeric>::from_f64(3e38)).unwrap();
        assert!(reduce(Sum, &big, &[0]).unwrap().to_vec().unwrap()[0].is_infinite());
    }

    #[test]
    fn reducing_nothing() {
        let x = Tensor::<f32>::zeros(&[0, 3]).unwrap();
        assert_eq!(reduce(Sum, &x, &[0]).unwrap().to_vec().unwrap(), [0.0; 3]);
        assert_eq!(reduce(Prod, &x, &[0, 1]).unwrap().to_vec().unwrap(), [1.0]);
        assert!(reduce(Mean, &x, &[0]).unwrap().to_vec().unwrap()[0].is_nan());
        assert!(matches!(reduce(Maximum, &x, &[0]), Err(TensorError::Shape { op: "max", .. })));
        assert_eq!(reduce(Maximum, &x, &[1]).unwrap().shape(), [0, 1]);
        assert!(arg_reduce(Maximum, &x, 0).is_err());
        assert!(matches!(reduce(Sum, &x, &[2]), Err(TensorError::Axis { axis: 2, .. })));
        assert!(matches!(reduce(Sum, &x, &[1, 1]), Err(TensorError::Axis { .. })));
        assert_eq!(reduce(Any, &x, &[0, 1]).unwrap().to_vec().unwrap(), [false]);
        assert_eq!(reduce(All, &x, &[0, 1]).unwrap().to_vec().unwrap(), [true]);
    }
}
