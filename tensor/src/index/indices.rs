//! Index operands: integers of any width and layout, read in blocks as checked `usize`.

use std::any::TypeId;
use std::mem::MaybeUninit;

use t4a_algebra::Int;
use t4a_algebra::simd::{Loop, dispatch};

use super::tiles::Traversal;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, Layout};
use crate::output::{Fresh, Full};
use crate::tensor::Tensor;
use crate::view::View;

/// Number of indices read in one block: 8 KiB of scratch.
pub(super) const BLOCK: usize = 1024;

/// Scratch for a block of indices.
pub(super) type IndexScratch = [MaybeUninit<usize>; BLOCK];

/// A rectangle of an index operand.
struct Rectangle {
    /// Position of its first element.
    at: isize,
    row_stride: isize,
    col_stride: isize,
    rows: usize,
    cols: usize,
    /// Indices have to be below.
    limit: usize,
}

/// Indices that are all below a limit.
#[derive(Clone, Copy)]
pub(super) struct BoundedIndices<'s> {
    indices: &'s [usize],
    limit: usize,
}

impl<'s> BoundedIndices<'s> {
    /// The `i`-th block of `len`.
    #[inline(always)]
    pub(super) fn piece(self, i: usize, len: usize) -> Self {
        Self { indices: &self.indices[i * len..][..len], ..self }
    }

    /// Exclusive upper bound of the indices.
    #[inline(always)]
    pub(super) fn limit(self) -> usize {
        self.limit
    }

    /// The elements with these indices, of a slice whose length is the limit. A check per element halves the speed of a
    /// gather (1024², AVX-512: 550 against 850 µs).
    #[inline(always)]
    pub(super) fn take<'o, T: Copy>(self, x: &[T], out: Fresh<'o, T>) -> Full<'o, T> {
        assert!(x.len() >= self.limit);
        // SAFETY: every index is below the limit.
        out.map(self.indices, |index| unsafe { *x.get_unchecked(index) })
    }
}

impl std::ops::Deref for BoundedIndices<'_> {
    type Target = [usize];
    #[inline(always)]
    fn deref(&self) -> &[usize] {
        self.indices
    }
}

/// Tensors of integers of some width.
trait IntegerTensor: Sync {
    /// A rectangle, in place or written to `out`, and whether every index is below the limit.
    fn read<'s>(&'s self, rectangle: &Rectangle, out: Fresh<'s, usize>) -> (&'s [usize], bool);
    /// The element at a position.
    fn value(&self, at: isize) -> i64;
}

/// An index tensor with an erased integer type: the loops that use the indices are not compiled per index type.
#[derive(Clone, Copy)]
pub(crate) struct IndexTensor<'a> {
    integers: &'a dyn IntegerTensor,
    layout: &'a Layout,
}

impl<'a> IndexTensor<'a> {
    pub(crate) fn new<I: Int>(index: &'a Tensor<I>) -> Self {
        Self { integers: index, layout: index.layout() }
    }

    /// Sizes of the axes.
    pub(crate) fn shape(&self) -> &'a [usize] {
        self.layout.shape()
    }

    /// Strides in elements.
    pub(crate) fn strides(&self) -> &'a [isize] {
        self.layout.strides()
    }

    /// Position of the first index in its memory.
    pub(super) fn offset(&self) -> usize {
        self.layout.offset()
    }

    /// The same indices with another layout, derived from this one.
    pub(crate) fn with_layout<'b>(self, layout: &'b Layout) -> IndexTensor<'b>
    where
        'a: 'b,
    {
        debug_assert_eq!(layout.offset(), self.layout.offset());
        IndexTensor { integers: self.integers, layout }
    }

    /// Reads `rows × cols ≤ BLOCK` indices from position `at` relative to the first one; `None` if
    /// one of them is not below `limit`.
    #[inline]
    pub(super) fn block<'s>(
        &self,
        at: isize,
        [row_stride, col_stride]: [isize; 2],
        [rows, cols]: [usize; 2],
        limit: usize,
        scratch: &'s mut IndexScratch,
    ) -> Option<BoundedIndices<'s>>
    where
        'a: 's,
    {
        let out = Fresh::of(&mut scratch[..rows * cols]);
        // A column is a row.
        let rectangle = match cols {
            1 => {
                Rectangle { at, row_stride: 0, col_stride: row_stride, rows: 1, cols: rows, limit }
            }
            _ => Rectangle { at, row_stride, col_stride, rows, cols, limit },
        };
        let (indices, valid) = self.integers.read(&rectangle, out);
        valid.then_some(BoundedIndices { indices, limit })
    }

    /// Checks that every index is below `limit`.
    ///
    /// # Errors
    /// [`TensorError::Index`] with the first one, in row-major order, that is not.
    pub(crate) fn check(&self, op: &'static str, axis: usize, limit: usize) -> Result<()> {
        let tiles = Traversal::new(self.shape(), [self.strides()]).tile_of(BLOCK);
        let valid = std::sync::atomic::AtomicBool::new(true);
        let strides = tiles.inner(0);
        tiles.for_each(1, |tile| {
            let mut scratch = [MaybeUninit::uninit(); BLOCK];
            let size = [tile.rows, tile.cols];
            if self.block(tile.at[0], strides, size, limit, &mut scratch).is_none() {
                valid.store(false, std::sync::atomic::Ordering::Relaxed);
            }
        });
        if valid.into_inner() { Ok(()) } else { Err(self.invalid(op, axis, limit)) }
    }

    /// The error for the first index, in row-major order, that is not below `limit`.
    #[cold]
    pub(super) fn invalid(&self, op: &'static str, axis: usize, limit: usize) -> TensorError {
        self.search(op, self.shape(), 0, axis, limit)
    }

    /// [`IndexTensor::invalid`] among the entries `at` of the last axis, for index tuples.
    #[cold]
    pub(super) fn invalid_in_tuple(
        &self,
        op: &'static str,
        at: usize,
        limit: usize,
    ) -> TensorError {
        let last = self.shape().len() - 1;
        self.search(op, &self.shape()[..last], at as isize * self.strides()[last], at, limit)
    }

    fn search(
        &self,
        op: &'static str,
        shape: &[usize],
        shift: isize,
        axis: usize,
        limit: usize,
    ) -> TensorError {
        let mut at = Dims::from_elem(0, shape.len());
        loop {
            let delta: isize = at.iter().zip(self.strides()).map(|(&i, &s)| i as isize * s).sum();
            let index = self.integers.value(shift + delta);
            if index < 0 || index as usize >= limit {
                return TensorError::Index { op, index, axis, size: limit };
            }
            let Some(axis) = (0..shape.len()).rev().find(|&a| at[a] + 1 < shape[a]) else {
                // Every index is valid: only reached if another thread changes the memory.
                return TensorError::Index { op, index, axis, size: limit };
            };
            at[axis] += 1;
            at[axis + 1..].fill(0);
        }
    }
}

impl<I: Int> IntegerTensor for Tensor<I> {
    fn read<'s>(&'s self, r: &Rectangle, out: Fresh<'s, usize>) -> (&'s [usize], bool) {
        let view = View::new(self);
        let one_run = r.rows == 1 || r.row_stride == r.cols as isize;
        if r.col_stride == 1
            && one_run
            && let Some(indices) = positions(view.run(r.at, out.len()))
        {
            return (indices, dispatch(Check { indices, limit: r.limit }));
        }
        let mut valid = true;
        let mut run = |at: isize, out: Fresh<'s, usize>| match r.col_stride {
            1 => {
                let from = view.run(at, out.len());
                let (out, below) = dispatch(Convert { from, limit: r.limit, out });
                valid &= below;
                out
            }
            stride => out.each(|c| {
                let index = view.get(at + c as isize * stride);
                let index = index.to_usize().unwrap_or(usize::MAX);
                valid &= index < r.limit;
                index
            }),
        };
        let out = if r.rows == 1 || (r.col_stride == 1 && one_run) {
            run(r.at, out)
        } else {
            let mut rows = out.cursor();
            for row in 0..r.rows {
                let out = run(r.at + row as isize * r.row_stride, rows.next(r.cols));
                rows.done(out);
            }
            rows.finish()
        };
        (out.into_slice(), valid)
    }

    fn value(&self, at: isize) -> i64 {
        View::new(self).get(at).to_i64()
    }
}

/// Integers of the width of a position as such: negative ones are larger than every limit.
fn positions<I: Int>(x: &[I]) -> Option<&[usize]> {
    let wide = [TypeId::of::<i64>(), TypeId::of::<u64>()].contains(&TypeId::of::<I>());
    // SAFETY: I is `i64` or `u64`, of the size and alignment of `usize`.
    (wide && size_of::<usize>() == 8 && align_of::<I>() == align_of::<usize>())
        .then(|| unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) })
}

/// True if all indices are below the limit.
struct Check<'a> {
    indices: &'a [usize],
    limit: usize,
}

impl Loop for Check<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        // Sign bits, because AVX2 has no comparison of unsigned numbers. A limit is below 2⁶³.
        let last = self.limit.wrapping_sub(1);
        let wrong = self.indices.iter().fold(0, |wrong, &i| wrong | i | last.wrapping_sub(i));
        (wrong as isize) >= 0
    }
}

struct Convert<'a, 's, I> {
    from: &'a [I],
    limit: usize,
    out: Fresh<'s, usize>,
}

impl<'s, I: Int> Loop for Convert<'_, 's, I> {
    type Output = (Full<'s, usize>, bool);
    #[inline(always)]
    fn run(self) -> Self::Output {
        let mut valid = true;
        let out = self.out.map(self.from, |index| {
            let index = index.to_usize().unwrap_or(usize::MAX);
            valid &= index < self.limit;
            index
        });
        (out, valid)
    }
}
