//! A run that is written piece by piece.

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
