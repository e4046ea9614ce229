//! Memory for results, and safe ways to write it: whole, in order, in parts, over threads.
//!
//! ```text
//! Output      a fresh tensor that is not written yet          Workspace   scratch of the same kind
//! Fresh       a run of elements that are not written yet
//! Full        the same run when all of them are: what a `Fresh` is turned into
//! Cursor      writes a run piece by piece, from front to back; BlockCursor: a matrix in blocks of columns
//! columns     neighbouring columns of a matrix whose rows lie apart; matrix products into them
//! share       disjoint parts of one or more runs, each for one chunk of work
//! ```
//!
//! A function with a `Fresh` argument can return a `Full` only by writing, and [`Output::write`] rejects one that is
//! shorter. Code that fills results therefore needs no `unsafe`, and a missing element is a panic in a test instead of
//! uninitialised memory.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use t4a_algebra::Scalar;
use t4a_algebra::scalar::MAX_ALIGN;

use crate::error::Result;
use crate::layout::Layout;
use crate::storage::Buffer;
use crate::tensor::Tensor;

mod columns;
mod cursor;
mod fresh;
mod share;
#[cfg(test)]
mod tests;

pub(crate) use columns::{FullColumns, OutputColumns, ProductSum, add_product, tile_width};
pub(crate) use cursor::Cursor;
pub(crate) use fresh::ExactLength;
pub(crate) use share::{DisjointParts, parts_mut, parts_of_groups_mut, share, share_with};

/// Freshly allocated memory for a result: dense, unique, not yet initialised.
pub(crate) struct Output<T> {
    buffer: Buffer,
    ptr: *mut T,
    layout: Layout,
}

impl<T: Scalar> Output<T> {
    /// Allocates for a shape, row-major.
    #[inline]
    pub(crate) fn new(op: &'static str, shape: &[usize]) -> Result<Self> {
        const { t4a_algebra::scalar::assert_storable::<T>() };
        let layout = Layout::contiguous(op, shape, size_of::<T>())?;
        let (buffer, ptr) = Buffer::fresh(op, layout.numel() * size_of::<T>())?;
        Ok(Self { buffer, ptr: ptr.cast(), layout })
    }

    /// The elements in memory order.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the block holds this many elements, aligned for storable types, and has no other reference.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.layout.numel()) }
    }

    /// First element.
    #[inline]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.ptr
    }

    /// Layout of the elements.
    #[inline]
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Number of elements.
    #[inline]
    pub(crate) fn numel(&self) -> usize {
        self.layout.numel()
    }

    /// Writes every element, in memory order.
    #[inline]
    pub(crate) fn write(mut self, f: impl FnOnce(Fresh<'_, T>) -> Full<'_, T>) -> Tensor<T> {
        Fresh(self.as_mut_slice()).with(f);
        // SAFETY: `with` has checked that every element was written.
        unsafe { self.assume_init() }
    }

    /// [`Output::write`] with a function that may fail.
    pub(crate) fn try_write(
        mut self,
        f: impl FnOnce(Fresh<'_, T>) -> Result<Full<'_, T>>,
    ) -> Result<Tensor<T>> {
        let out = Fresh(self.as_mut_slice());
        let whole = out.span();
        let full = f(out)?;
        assert!(full.span() == whole, "not all was written");
        // SAFETY: just checked.
        Ok(unsafe { self.assume_init() })
    }

    /// Writes every element of two results.
    pub(crate) fn try_write_both<U: Scalar>(
        mut self,
        mut other: Output<U>,
        f: impl for<'a> FnOnce(Fresh<'a, T>, Fresh<'a, U>) -> Result<(Full<'a, T>, Full<'a, U>)>,
    ) -> Result<(Tensor<T>, Tensor<U>)> {
        let (a, b) = (Fresh(self.as_mut_slice()), Fresh(other.as_mut_slice()));
        let whole = (a.span(), b.span());
        let (a, b) = f(a, b)?;
        assert!((a.span(), b.span()) == whole, "not all was written");
        // SAFETY: just checked.
        Ok(unsafe { (self.assume_init(), other.assume_init()) })
    }

    /// The finished tensor.
    ///
    /// # Safety
    /// Every element has been written.
    #[inline]
    pub(crate) unsafe fn assume_init(self) -> Tensor<T> {
        // SAFETY: the block was allocated for the layout; the caller's contract.
        unsafe { Tensor::from_raw(self.buffer, self.layout) }
    }
}

/// Memory for intermediate results, from the pool, which must be written before it is read.
pub(crate) struct Workspace<T> {
    ptr: *mut T,
    len: usize,
    _buffer: Buffer,
}

impl<T: Copy> Workspace<T> {
    /// Allocates for `len` elements.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
    #[inline]
    pub(crate) fn new(len: usize) -> Result<Self> {
        const { assert!(align_of::<T>() <= MAX_ALIGN) };
        let (buffer, ptr) = Buffer::fresh("workspace", len.saturating_mul(size_of::<T>()))?;
        Ok(Self { ptr: ptr.cast(), len, _buffer: buffer })
    }

    /// The first `len` elements.
    #[inline]
    pub(crate) fn fresh(&mut self, len: usize) -> Fresh<'_, T> {
        assert!(len <= self.len);
        // SAFETY: the block holds `self.len` elements, aligned for them, and has no other reference.
        Fresh(unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), len) })
    }
}

/// Memory for intermediate results, all of it written at first.
pub(crate) struct Filled<T> {
    memory: Workspace<T>,
}

impl<T: Copy> Filled<T> {
    /// `len` copies of an element.
    ///
    /// # Errors
    /// As [`Workspace::new`].
    #[inline]
    pub(crate) fn new(len: usize, value: T) -> Result<Self> {
        let mut memory = Workspace::new(len)?;
        memory.fresh(len).fill(value);
        Ok(Self { memory })
    }
}

impl<T> Deref for Filled<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: all of it was written when it was made.
        unsafe { std::slice::from_raw_parts(self.memory.ptr, self.memory.len) }
    }
}

impl<T> DerefMut for Filled<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the memory has no other reference.
        unsafe { std::slice::from_raw_parts_mut(self.memory.ptr, self.memory.len) }
    }
}

/// Elements that have yet to be written.
pub(crate) struct Fresh<'a, T>(&'a mut [MaybeUninit<T>]);

/// Elements that have all been written.
pub(crate) struct Full<'a, T>(&'a mut [T]);

impl<'a, T> Full<'a, T> {
    /// First element and length.
    #[inline(always)]
    fn span(&self) -> (*const T, usize) {
        (self.0.as_ptr(), self.0.len())
    }

    /// The elements, with the lifetime of their borrow.
    #[inline(always)]
    pub(crate) fn into_slice(self) -> &'a mut [T] {
        self.0
    }
}

impl<T> Deref for Full<'_, T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<T> DerefMut for Full<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.0
    }
}
