//! Index operands: integers of any width and layout, read in blocks as checked `usize`.

use std::mem::MaybeUninit;

use t4a_algebra::Int;
use t4a_algebra::simd::{Loop, dispatch};

use super::tiles::Tiles;
use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::loops::parallel::SendPtr;
use crate::tensor::Tensor;

/// Indices read at once: 8 KiB of scratch.
pub(super) const BLOCK: usize = 1024;

/// Scratch for a block of indices.
pub(super) type Scratch = [MaybeUninit<usize>; BLOCK];

/// A rectangle of an index operand in memory.
struct Rectangle {
    row_stride: isize,
    col_stride: isize,
    rows: usize,
    cols: usize,
    /// Indices have to be below.
    limit: usize,
}

/// Reads a rectangle; whether every index was below the limit.
type Read = unsafe fn(*const u8, &Rectangle, &mut [MaybeUninit<usize>]) -> bool;

/// An index tensor whose integer type has become a function pointer: the loops that use the
/// indices are not compiled once more per index type.
#[derive(Clone, Copy)]
pub(crate) struct Indices<'a> {
    ptr: SendPtr<u8>,
    size: usize,
    layout: &'a Layout,
    read: Read,
    value: unsafe fn(*const u8) -> i64,
}

impl<'a> Indices<'a> {
    pub(crate) fn new<I: Int>(index: &'a Tensor<I>) -> Self {
        Self {
            ptr: SendPtr(index.as_ptr().cast_mut().cast()),
            size: size_of::<I>(),
            layout: index.layout(),
            read: read::<I>,
            // SAFETY: called with pointers to elements of the index tensor only.
            value: |ptr| unsafe { *ptr.cast::<I>() }.to_i64(),
        }
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

    /// The same indices seen through another layout, derived from this one.
    pub(crate) fn with_layout(self, layout: &Layout) -> Indices<'_> {
        debug_assert_eq!(layout.offset(), self.layout.offset());
        Indices { layout, ..self }
    }

    /// Reads `rows × cols` indices from position `at` relative to the first one; `None` if one of
    /// them is not below `limit`.
    ///
    /// # Safety
    /// The rectangle lies inside of the index tensor, and `rows · cols ≤ BLOCK`.
    #[inline]
    pub(super) unsafe fn block<'s>(
        &self,
        at: isize,
        [row_stride, col_stride]: [isize; 2],
        [rows, cols]: [usize; 2],
        limit: usize,
        scratch: &'s mut Scratch,
    ) -> Option<&'s [usize]> {
        let out = &mut scratch[..rows * cols];
        let rectangle = Rectangle { row_stride, col_stride, rows, cols, limit };
        // SAFETY: the caller's promise; `read` fills `out`.
        unsafe {
            let ptr = self.ptr.get().cast_const().offset(at * self.size as isize);
            let valid = (self.read)(ptr, &rectangle, out);
            valid.then(|| &*(std::ptr::from_ref(out) as *const [usize]))
        }
    }

    /// Checks that every index is below `limit`.
    ///
    /// # Errors
    /// [`TensorError::Index`] with the first one, in row-major order, that is not.
    pub(crate) fn check(&self, op: &'static str, axis: usize, limit: usize) -> Result<()> {
        let tiles = Tiles::new(self.shape(), [self.strides()]).tile_of(BLOCK);
        let valid = std::sync::atomic::AtomicBool::new(true);
        let strides = tiles.inner(0);
        tiles.for_each(1, |tile| {
            let mut scratch = [MaybeUninit::uninit(); BLOCK];
            let size = [tile.rows, tile.cols];
            // SAFETY: tiles lie inside of the tensor and have at most BLOCK elements.
            if unsafe { self.block(tile.at[0], strides, size, limit, &mut scratch) }.is_none() {
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

    /// [`Indices::invalid`] among the entries `at` of the last axis, for index tuples.
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
        let mut at = vec![0usize; shape.len()];
        loop {
            let delta: isize = at.iter().zip(self.strides()).map(|(&i, &s)| i as isize * s).sum();
            let position = (shift + delta) * self.size as isize;
            // SAFETY: the index is in bounds; callers have seen an invalid one, so it is not empty.
            let index = unsafe { (self.value)(self.ptr.get().offset(position)) };
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

/// # Safety
/// The rectangle at `ptr` holds readable elements of type `I`.
unsafe fn read<I: Int>(ptr: *const u8, r: &Rectangle, out: &mut [MaybeUninit<usize>]) -> bool {
    let ptr = ptr.cast::<I>();
    let run = |from: *const I, out: &mut [MaybeUninit<usize>]| match r.col_stride {
        1 => {
            // SAFETY: a run of neighbours inside of the rectangle.
            let from = unsafe { std::slice::from_raw_parts(from, out.len()) };
            dispatch(Convert { from, limit: r.limit, out })
        }
        stride => {
            let mut valid = true;
            for (c, out) in out.iter_mut().enumerate() {
                // SAFETY: inside of the rectangle.
                let index = unsafe { *from.offset(c as isize * stride) };
                let index = index.to_usize().unwrap_or(usize::MAX);
                valid &= index < r.limit;
                out.write(index);
            }
            valid
        }
    };
    if r.rows == 1 || (r.col_stride == 1 && r.row_stride == r.cols as isize) {
        return run(ptr, out);
    }
    let mut valid = true;
    for (row, out) in out.chunks_exact_mut(r.cols).enumerate() {
        valid &= run(ptr.wrapping_offset(row as isize * r.row_stride), out);
    }
    valid
}

struct Convert<'a, I> {
    from: &'a [I],
    limit: usize,
    out: &'a mut [MaybeUninit<usize>],
}

impl<I: Int> Loop for Convert<'_, I> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let mut valid = true;
        for (out, index) in self.out.iter_mut().zip(self.from) {
            let index = index.to_usize().unwrap_or(usize::MAX);
            valid &= index < self.limit;
            out.write(index);
        }
        valid
    }
}
