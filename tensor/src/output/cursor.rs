//! A run that is written piece by piece, or in blocks of columns.

use std::marker::PhantomData;

use super::{Fresh, Full};

/// Writes a run from front to back, in pieces of any lengths.
///
/// Pieces are lent and returned without closures, which would not be compiled for the vector instructions of the
/// calling loop; after inlining the compiler removes the checks.
pub(crate) struct Cursor<'a, T> {
    first: *mut T,
    len: usize,
    /// Number of elements written from the front.
    done: usize,
    /// True if the following piece is lent.
    lent: bool,
    life: PhantomData<&'a mut [T]>,
}

impl<'a, T: Copy> Fresh<'a, T> {
    /// A cursor for writing piece by piece.
    #[inline(always)]
    pub(crate) fn cursor(self) -> Cursor<'a, T> {
        let len = self.0.len();
        Cursor { first: self.0.as_mut_ptr().cast(), len, done: 0, lent: false, life: PhantomData }
    }
}

impl<'a, T: Copy> Cursor<'a, T> {
    /// The next `len` elements, to be returned to [`Cursor::done`].
    #[inline(always)]
    pub(crate) fn next(&mut self, len: usize) -> Fresh<'a, T> {
        assert!(!self.lent && len <= self.len - self.done);
        self.lent = true;
        // SAFETY: elements of the run that are not lent.
        Fresh(unsafe {
            std::slice::from_raw_parts_mut(self.first.wrapping_add(self.done).cast(), len)
        })
    }

    /// Takes back a lent piece after it is written.
    #[inline(always)]
    pub(crate) fn done(&mut self, piece: Full<'a, T>) {
        let next = self.first.wrapping_add(self.done).cast_const();
        assert!(self.lent && piece.0.as_ptr() == next);
        self.lent = false;
        self.done += piece.0.len();
    }

    /// True if every element has been written.
    #[inline(always)]
    pub(crate) fn is_done(&self) -> bool {
        self.done == self.len
    }

    /// Writes one element.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        let piece = self.next(1).fill(value);
        self.done(piece);
    }

    /// Copies elements.
    #[inline(always)]
    pub(crate) fn copy_from(&mut self, x: &[T]) {
        let piece = self.next(x.len()).copy_from(x);
        self.done(piece);
    }

    /// The whole run, after every piece has been written.
    #[inline(always)]
    pub(crate) fn finish(self) -> Full<'a, T> {
        assert!(self.done == self.len && !self.lent, "not all was written");
        // SAFETY: the returned pieces cover the run from its first element to its last one.
        Full(unsafe { std::slice::from_raw_parts_mut(self.first, self.len) })
    }
}

/// Writes the lines of a matrix in blocks of `B` adjacent columns: each block of columns from top to bottom, then the
/// next.
pub(crate) struct BlockCursor<'a, T, const B: usize> {
    first: *mut T,
    len: usize,
    width: usize,
    /// First column that is not written, and the position of the next block in it.
    column: usize,
    at: usize,
    life: PhantomData<&'a mut [T]>,
}

impl<'a, T: Copy> Fresh<'a, T> {
    /// A cursor for writing lines of `width` elements in blocks of `B` columns.
    #[inline(always)]
    pub(crate) fn block_cursor<const B: usize>(self, width: usize) -> BlockCursor<'a, T, B> {
        let len = self.0.len();
        assert!(width > 0 && len.is_multiple_of(width));
        let (first, life) = (self.0.as_mut_ptr().cast(), PhantomData);
        BlockCursor { first, len, width, column: 0, at: 0, life }
    }
}

impl<'a, T: Copy, const B: usize> BlockCursor<'a, T, B> {
    /// Number of lines.
    #[inline(always)]
    pub(crate) fn lines(&self) -> usize {
        self.len / self.width
    }

    /// Writes the next block; of the last one of a line only the columns that remain.
    #[inline(always)]
    pub(crate) fn push(&mut self, block: &[T; B]) {
        let columns = self.width.saturating_sub(self.column);
        assert!(self.at < self.len && columns > 0);
        // SAFETY: `at` begins a line of the run, whose columns from `column` on are inside it.
        unsafe {
            let to = self.first.wrapping_add(self.at + self.column);
            if columns >= B {
                to.copy_from_nonoverlapping(block.as_ptr(), B);
            } else if columns == B / 2 {
                to.copy_from_nonoverlapping(block.as_ptr(), B / 2);
            } else {
                to.copy_from_nonoverlapping(block.as_ptr(), columns);
            }
        }
        self.at += self.width;
        if self.at == self.len {
            (self.at, self.column) = (0, self.column + B);
        }
    }

    /// The whole run, after every block has been written.
    #[inline(always)]
    pub(crate) fn finish(self) -> Full<'a, T> {
        assert!(
            self.len == 0 || (self.column >= self.width && self.at == 0),
            "not all was written"
        );
        // SAFETY: the blocks cover every line from its first column to its last one.
        Full(unsafe { std::slice::from_raw_parts_mut(self.first, self.len) })
    }
}
