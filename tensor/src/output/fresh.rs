//! The ways to write a whole run.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{Fresh, Full};
use crate::loops::written;

impl<'a, T: Copy> Fresh<'a, T> {
    /// Elements of any memory.
    #[inline(always)]
    pub(crate) fn of(elements: &'a mut [MaybeUninit<T>]) -> Self {
        Self(elements)
    }

    /// Initialised elements to be overwritten.
    #[inline(always)]
    pub(crate) fn over(elements: &'a mut [T]) -> Self {
        // SAFETY: the layouts agree, and a `Fresh` writes only valid elements.
        Self(unsafe { &mut *(std::ptr::from_mut(elements) as *mut [MaybeUninit<T>]) })
    }

    /// Number of elements.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// First element and length.
    #[inline(always)]
    pub(super) fn span(&self) -> (*const T, usize) {
        (self.0.as_ptr().cast(), self.0.len())
    }

    /// Writes one element for each element of `x`; the lengths are equal.
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

    /// Writes the elements of an iterator, which has at least as many elements.
    #[inline(always)]
    pub(crate) fn extend(self, elements: impl ExactLength<Item = T>) -> Full<'a, T> {
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

    /// Writes `a₀`, `b₀`, `a₁`, `b₁`, … from two runs whose lengths differ by at most one element.
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

    /// Fills with one element.
    #[inline(always)]
    pub(crate) fn fill(self, value: T) -> Full<'a, T> {
        self.0.fill(MaybeUninit::new(value));
        self.full()
    }

    /// Copies elements; the lengths are equal.
    #[inline(always)]
    pub(crate) fn copy_from(self, x: &[T]) -> Full<'a, T> {
        // SAFETY: `&[T]` and `&[MaybeUninit<T>]` have the same layout, and the slice is only read.
        let x = unsafe { &*(std::ptr::from_ref(x) as *const [MaybeUninit<T>]) };
        self.0.copy_from_slice(x);
        self.full()
    }

    /// Calls `f` to write the elements `inside`; all others are filled with one element.
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

    /// Calls `f` to write `R` parts of equal lengths together.
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

    /// Has `f` write all elements, and checks that it did.
    #[inline(always)]
    pub(super) fn with(self, f: impl FnOnce(Fresh<'_, T>) -> Full<'_, T>) {
        let whole = self.span();
        let full = f(Fresh(self.0));
        assert!(full.span() == whole, "not all was written");
    }

    /// Every element has been written.
    #[inline(always)]
    pub(super) fn full(self) -> Full<'a, T> {
        // SAFETY: the callers, all in this module, have written every element.
        Full(unsafe { written(self.0) })
    }
}

/// Iterators with an exact length. (A count in the loop instead would vectorise at the width of the counter: bench
/// `nn`, row `softmax 1024×1024 axis 0`.)
///
/// # Safety
/// `len` is exact.
pub(crate) unsafe trait ExactLength: ExactSizeIterator {}

// SAFETY (all): the lengths of the iterators of the standard library over slices and ranges are exact, and so are those
// of these adapters.
#[allow(clippy::undocumented_unsafe_blocks)]
mod counted {
    use super::ExactLength;
    use std::iter::{Copied, Enumerate, Map, StepBy, Zip};

    unsafe impl<T> ExactLength for std::slice::Iter<'_, T> {}
    unsafe impl<T> ExactLength for std::slice::IterMut<'_, T> {}
    unsafe impl ExactLength for std::ops::Range<usize> {}
    unsafe impl<'a, T: Copy + 'a, I: ExactLength<Item = &'a T>> ExactLength for Copied<I> {}
    unsafe impl<U, I: ExactLength, F: FnMut(I::Item) -> U> ExactLength for Map<I, F> {}
    unsafe impl<I: ExactLength> ExactLength for Enumerate<I> {}
    unsafe impl<I: ExactLength> ExactLength for StepBy<I> {}
    unsafe impl<I: ExactLength, J: ExactLength> ExactLength for Zip<I, J> {}
}
