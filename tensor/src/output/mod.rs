//! Memory for results, and safe ways to write it: whole, in order, in parts, over threads.
//!
//! ```text
//! Output      a fresh tensor that is not written yet          Workspace   scratch of the same kind
//! Fresh       a run of elements that are not written yet
//! Full        the same run when all of them are: what a `Fresh` is turned into
//! Cursor      writes a run piece by piece, from front to back
//! columns     neighbouring columns of a matrix whose rows lie apart; matrix products into them
//! share       disjoint parts of one or more runs, each for one chunk of work
//! ```
//!
//! A function that gets a `Fresh` can return a `Full` only by writing, and [`Output::write`] accepts
//! nothing shorter than what it lent. So code that fills results has no need of `unsafe`, and an
//! element that was forgotten is a panic in a test instead of uninitialised memory.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};

use t4a_algebra::Scalar;
use t4a_algebra::scalar::MAX_ALIGN;

use crate::error::Result;
use crate::layout::Layout;
use crate::loops::written;
use crate::storage::Buffer;
use crate::tensor::Tensor;

mod columns;
mod share;
#[cfg(test)]
mod tests;

pub(crate) use columns::{Columns, FullColumns, ProductSum, add_product};
pub(crate) use share::{Share, parts_mut, parts_of_groups_mut, share, share_with};

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
        let (buffer, ptr) = Buffer::fresh(layout.numel() * size_of::<T>())?;
        Ok(Self { buffer, ptr: ptr.cast(), layout })
    }

    /// The elements in memory order.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the block holds this many elements, aligned for storable types, and nobody else
        // knows it.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.layout.numel()) }
    }

    /// First element.
    #[inline]
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.ptr
    }

    /// Where the elements go.
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
        // SAFETY: the block was allocated for the layout; the caller's promise.
        unsafe { Tensor::from_raw(self.buffer, self.layout) }
    }
}

/// Memory for intermediate results, from the pool, to be written before it is read.
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
        let (buffer, ptr) = Buffer::fresh(len.saturating_mul(size_of::<T>()))?;
        Ok(Self { ptr: ptr.cast(), len, _buffer: buffer })
    }

    /// The first `len` elements.
    #[inline]
    pub(crate) fn fresh(&mut self, len: usize) -> Fresh<'_, T> {
        assert!(len <= self.len);
        // SAFETY: the block holds `self.len` elements, aligned for them, and nobody else knows it.
        Fresh(unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), len) })
    }
}

/// Memory for intermediate results, all of it written at first.
pub(crate) struct Filled<T> {
    memory: Workspace<T>,
}

impl<T: Copy> Filled<T> {
    /// `len` times the same element.
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
        // SAFETY: as above, and nobody else knows it.
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

    /// The elements for as long as their memory is lent.
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

impl<'a, T: Copy> Fresh<'a, T> {
    /// Elements of any memory.
    #[inline(always)]
    pub(crate) fn of(elements: &'a mut [MaybeUninit<T>]) -> Self {
        Self(elements)
    }

    /// Elements to be written once more.
    #[inline(always)]
    pub(crate) fn over(elements: &'a mut [T]) -> Self {
        // SAFETY: the layouts agree, and nobody writes what is not an element through a `Fresh`.
        Self(unsafe { &mut *(std::ptr::from_mut(elements) as *mut [MaybeUninit<T>]) })
    }

    /// Number of elements.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// First element and length.
    #[inline(always)]
    fn span(&self) -> (*const T, usize) {
        (self.0.as_ptr().cast(), self.0.len())
    }

    /// Writes one element, computed from one of `x`, after the other. Both have the same length.
    #[inline(always)]
    pub(crate) fn map<U: Copy>(self, x: &[U], mut f: impl FnMut(U) -> T) -> Full<'a, T> {
        assert_eq!(self.0.len(), x.len());
        for (out, &x) in self.0.iter_mut().zip(x) {
            out.write(f(x));
        }
        self.full()
    }

    /// [`Fresh::map`] of pairs.
    #[inline(always)]
    pub(crate) fn zip<U: Copy, V: Copy>(
        self,
        x: &[U],
        y: &[V],
        mut f: impl FnMut(U, V) -> T,
    ) -> Full<'a, T> {
        assert!(self.0.len() == x.len() && x.len() == y.len());
        for ((out, &x), &y) in self.0.iter_mut().zip(x).zip(y) {
            out.write(f(x, y));
        }
        self.full()
    }

    /// Writes the elements of an iterator, which has at least as many.
    #[inline(always)]
    pub(crate) fn extend(self, elements: impl Counted<Item = T>) -> Full<'a, T> {
        assert!(elements.len() >= self.0.len());
        for (out, x) in self.0.iter_mut().zip(elements) {
            out.write(x);
        }
        self.full()
    }

    /// Writes `f(0)`, `f(1)`, …
    #[inline(always)]
    pub(crate) fn each(self, mut f: impl FnMut(usize) -> T) -> Full<'a, T> {
        for (i, out) in self.0.iter_mut().enumerate() {
            out.write(f(i));
        }
        self.full()
    }

    /// Writes `f(0)`, `f(1)`, … with the first elements of the pairs in the first half.
    #[inline(always)]
    pub(crate) fn halves(self, mut f: impl FnMut(usize) -> (T, T)) -> Full<'a, T> {
        let half = self.0.len() / 2;
        assert_eq!(2 * half, self.0.len());
        let (firsts, seconds) = self.0.split_at_mut(half);
        for (i, (first, second)) in firsts.iter_mut().zip(seconds).enumerate() {
            let (x, y) = f(i);
            first.write(x);
            second.write(y);
        }
        self.full()
    }

    /// Writes `f(0)`, `f(1)`, … to two runs of the same length.
    #[inline(always)]
    pub(crate) fn each_both<'b, U: Copy>(
        self,
        other: Fresh<'b, U>,
        mut f: impl FnMut(usize) -> (T, U),
    ) -> (Full<'a, T>, Full<'b, U>) {
        assert_eq!(self.0.len(), other.0.len());
        for (i, (a, b)) in self.0.iter_mut().zip(other.0.iter_mut()).enumerate() {
            let (x, y) = f(i);
            a.write(x);
            b.write(y);
        }
        (self.full(), other.full())
    }

    /// Writes `a₀`, `b₀`, `a₁`, `b₁`, … of two runs that differ by one element at most.
    #[inline(always)]
    pub(crate) fn interleave(self, a: &[T], b: &[T]) -> Full<'a, T> {
        let len = self.0.len();
        assert!(a.len() == len.div_ceil(2) && b.len() == len / 2);
        let (pairs, last) = self.0.as_chunks_mut::<2>();
        for ((pair, &a), &b) in pairs.iter_mut().zip(a).zip(b) {
            *pair = [a, b].map(MaybeUninit::new);
        }
        if let Some(last) = last.first_mut() {
            last.write(a[len / 2]);
        }
        self.full()
    }

    /// Writes the same element everywhere.
    #[inline(always)]
    pub(crate) fn fill(self, value: T) -> Full<'a, T> {
        self.0.fill(MaybeUninit::new(value));
        self.full()
    }

    /// Copies elements. Both have the same length.
    #[inline(always)]
    pub(crate) fn copy_from(self, x: &[T]) -> Full<'a, T> {
        // SAFETY: `&[T]` and `&[MaybeUninit<T>]` have the same layout, and reading is all we do.
        let x = unsafe { &*(std::ptr::from_ref(x) as *const [MaybeUninit<T>]) };
        self.0.copy_from_slice(x);
        self.full()
    }

    /// Has `f` write the elements `inside`; those around them are the same one.
    #[inline(always)]
    pub(crate) fn framed(
        self,
        inside: Range<usize>,
        around: T,
        f: impl FnOnce(Fresh<'_, T>) -> Full<'_, T>,
    ) -> Full<'a, T> {
        self.0[..inside.start].fill(MaybeUninit::new(around));
        self.0[inside.end..].fill(MaybeUninit::new(around));
        Fresh(&mut self.0[inside]).with(f);
        self.full()
    }

    /// Has `f` write `R` parts of equal lengths, side by side.
    #[inline(always)]
    pub(crate) fn together<const R: usize>(
        self,
        f: impl FnOnce([Fresh<'_, T>; R]) -> [Full<'_, T>; R],
    ) -> Full<'a, T> {
        let len = self.0.len() / R;
        assert_eq!(len * R, self.0.len());
        let mut rest = &mut *self.0;
        let parts = std::array::from_fn(|_| {
            let (part, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            Fresh(part)
        });
        let spans = parts.each_ref().map(Fresh::span);
        assert!(f(parts).each_ref().map(Full::span) == spans, "not all was written");
        self.full()
    }

    /// To be written piece by piece.
    #[inline(always)]
    pub(crate) fn cursor(self) -> Cursor<'a, T> {
        let len = self.0.len();
        Cursor { first: self.0.as_mut_ptr().cast(), len, done: 0, lent: false, life: PhantomData }
    }

    /// Has `f` write all elements, and checks that it did.
    #[inline(always)]
    fn with(self, f: impl FnOnce(Fresh<'_, T>) -> Full<'_, T>) {
        let whole = self.span();
        let full = f(Fresh(self.0));
        assert!(full.span() == whole, "not all was written");
    }

    /// Every element has been written.
    #[inline(always)]
    fn full(self) -> Full<'a, T> {
        // SAFETY: the callers, all in this module, have written every element.
        Full(unsafe { written(self.0) })
    }
}

/// Iterators that have as many elements as they say. (To count them in the loop instead would have it
/// vectorised at the width of the counter: bench `nn`, row `softmax 1024×1024 axis 0`.)
///
/// # Safety
/// `len` is exact.
pub(crate) unsafe trait Counted: ExactSizeIterator {}

// SAFETY (all): the iterators of the standard library over slices and ranges keep their word, and so
// do these adapters of iterators that do.
#[allow(clippy::undocumented_unsafe_blocks)]
mod counted {
    use super::Counted;
    use std::iter::{Copied, Enumerate, Map, StepBy, Zip};

    unsafe impl<T> Counted for std::slice::Iter<'_, T> {}
    unsafe impl<T> Counted for std::slice::IterMut<'_, T> {}
    unsafe impl Counted for std::ops::Range<usize> {}
    unsafe impl<'a, T: Copy + 'a, I: Counted<Item = &'a T>> Counted for Copied<I> {}
    unsafe impl<U, I: Counted, F: FnMut(I::Item) -> U> Counted for Map<I, F> {}
    unsafe impl<I: Counted> Counted for Enumerate<I> {}
    unsafe impl<I: Counted> Counted for StepBy<I> {}
    unsafe impl<I: Counted, J: Counted> Counted for Zip<I, J> {}
}

/// Writes a run from front to back, in pieces of any lengths.
///
/// Pieces are lent and given back without closures, which would not be compiled for the vector
/// instructions of the loop that calls them; where both are inlined, the checks are known to hold.
pub(crate) struct Cursor<'a, T> {
    first: *mut T,
    len: usize,
    /// How many elements from the front are written.
    done: usize,
    /// Whether the piece after them has been handed out.
    lent: bool,
    life: PhantomData<&'a mut [T]>,
}

impl<'a, T: Copy> Cursor<'a, T> {
    /// The next `len` elements, to be given back to [`Cursor::done`].
    #[inline(always)]
    pub(crate) fn next(&mut self, len: usize) -> Fresh<'a, T> {
        assert!(!self.lent && len <= self.len - self.done);
        self.lent = true;
        // SAFETY: elements of the run that are lent to nobody else.
        Fresh(unsafe {
            std::slice::from_raw_parts_mut(self.first.wrapping_add(self.done).cast(), len)
        })
    }

    /// Takes back what was handed out, written.
    #[inline(always)]
    pub(crate) fn done(&mut self, piece: Full<'a, T>) {
        let next = self.first.wrapping_add(self.done).cast_const();
        assert!(self.lent && piece.0.as_ptr() == next);
        self.lent = false;
        self.done += piece.0.len();
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

    /// The whole run, of which every piece has been written.
    #[inline(always)]
    pub(crate) fn finish(self) -> Full<'a, T> {
        assert!(self.done == self.len && !self.lent, "not all was written");
        // SAFETY: the pieces given back are the run from its first element to its last one.
        Full(unsafe { std::slice::from_raw_parts_mut(self.first, self.len) })
    }
}
