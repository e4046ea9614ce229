//! Memory for results, and safe ways to write it: whole, in parts, in columns, over threads.
//!
//! ```text
//! Output    a fresh tensor that is not written yet
//! Fresh     a run of elements that are not written yet
//! Full      the same run when all of them are: what a `Fresh` is turned into
//! Columns   neighbouring columns of a matrix whose rows lie apart
//! ```
//!
//! A function that gets a `Fresh` can return a `Full` only by writing, and [`Output::write`] accepts
//! nothing shorter than what it lent. So code that fills results has no need of `unsafe`, and an
//! element that was forgotten is a panic in a test instead of uninitialised memory.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use t4a_algebra::Scalar;
use t4a_algebra::parallel::{self, SendPtr};

use crate::error::Result;
use crate::layout::Layout;
use crate::storage::Buffer;
use crate::tensor::Tensor;

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

/// Elements that have yet to be written.
pub(crate) struct Fresh<'a, T>(&'a mut [MaybeUninit<T>]);

/// Elements that have all been written.
pub(crate) struct Full<'a, T>(&'a mut [T]);

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
    /// Number of elements.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
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

    /// Writes `f(0)`, `f(1)`, …
    #[inline(always)]
    pub(crate) fn each(self, mut f: impl FnMut(usize) -> T) -> Full<'a, T> {
        for (i, out) in self.0.iter_mut().enumerate() {
            out.write(f(i));
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

    /// Has `f` write parts of `len` elements one after the other; the last one may be shorter.
    #[inline(always)]
    pub(crate) fn chunks(
        self,
        len: usize,
        mut f: impl FnMut(usize, Fresh<'_, T>) -> Full<'_, T>,
    ) -> Full<'a, T> {
        for (i, part) in self.0.chunks_mut(len).enumerate() {
            Fresh(part).with(|part| f(i, part));
        }
        self.full()
    }

    /// [`Fresh::chunks`] on several threads if `parallel`.
    pub(crate) fn par_chunks(
        self,
        len: usize,
        parallel: bool,
        f: impl Fn(usize, Fresh<'_, T>) -> Full<'_, T> + Sync,
    ) -> Full<'a, T>
    where
        T: Send,
    {
        let numel = self.0.len();
        let first = SendPtr(self.0.as_mut_ptr());
        parallel::for_each(numel.div_ceil(len), parallel, &|i| {
            let from = i * len;
            // SAFETY: parts are disjoint and end with the slice.
            let part = unsafe {
                let first = first.get().add(from);
                std::slice::from_raw_parts_mut(first, len.min(numel - from))
            };
            Fresh(part).with(|part| f(i, part));
        });
        self.full()
    }

    /// The elements as matrices of `rows × cols`, cut into groups of `width` columns, which `f`
    /// writes on several threads if `parallel`. `f(matrix, first column, columns)`.
    ///
    /// The number of elements is a multiple of `rows · cols > 0`, and `width > 0`.
    pub(crate) fn par_columns(
        self,
        (rows, cols, width): (usize, usize, usize),
        parallel: bool,
        f: impl Fn(usize, usize, Columns<'_, T, false>) -> Columns<'_, T, true> + Sync,
    ) -> Full<'a, T>
    where
        T: Send,
    {
        let groups = cols.div_ceil(width);
        assert_eq!(self.0.len() % (rows * cols), 0);
        let first = SendPtr(self.0.as_mut_ptr().cast::<T>());
        parallel::for_each(self.0.len() / (rows * cols) * groups, parallel, &|i| {
            let (matrix, from) = (i / groups, i % groups * width);
            let width = width.min(cols - from);
            // Inside of the slice: matrix < matrices, from < cols.
            let ptr = first.get().wrapping_add(matrix * rows * cols + from);
            let life = std::marker::PhantomData;
            let full = f(matrix, from, Columns { ptr, rows, pitch: cols, width, life });
            assert!(full.ptr == ptr && full.rows == rows && full.width == width);
        });
        self.full()
    }

    /// Has `f` write all elements, and checks that it did.
    #[inline(always)]
    fn with(self, f: impl FnOnce(Fresh<'_, T>) -> Full<'_, T>) {
        let (first, len) = (self.0.as_ptr(), self.0.len());
        let full = f(Fresh(self.0));
        assert!(full.0.as_ptr() == first.cast() && full.0.len() == len, "not all was written");
    }

    /// Every element has been written.
    #[inline(always)]
    fn full(self) -> Full<'a, T> {
        // SAFETY: the callers, all in this module, have written every element.
        Full(unsafe { crate::loops::written(self.0) })
    }
}

/// Neighbouring columns of a matrix, written or not yet.
pub(crate) struct Columns<'a, T, const WRITTEN: bool> {
    ptr: *mut T,
    rows: usize,
    pitch: usize,
    width: usize,
    life: std::marker::PhantomData<&'a mut T>,
}

impl<'a, T: Copy> Columns<'a, T, false> {
    /// Number of rows.
    #[inline(always)]
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row.
    #[inline(always)]
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Has `f` write row after row.
    #[inline(always)]
    pub(crate) fn write(
        self,
        mut f: impl FnMut(usize, Fresh<'_, T>) -> Full<'_, T>,
    ) -> Columns<'a, T, true> {
        for i in 0..self.rows {
            // SAFETY: row i of columns that lie inside of the matrix and are ours alone.
            let row = unsafe {
                let first = self.ptr.add(i * self.pitch).cast::<MaybeUninit<T>>();
                std::slice::from_raw_parts_mut(first, self.width)
            };
            Fresh(row).with(|row| f(i, row));
        }
        let Self { ptr, rows, pitch, width, life } = self;
        Columns { ptr, rows, pitch, width, life }
    }
}

impl<T> Columns<'_, T, true> {
    /// A row.
    #[inline(always)]
    pub(crate) fn row(&mut self, i: usize) -> &mut [T] {
        assert!(i < self.rows);
        // SAFETY: as in `write`, which has written it.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(i * self.pitch), self.width) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_whole() {
        for len in [1, 4, 7, 100] {
            for parallel in [false, true] {
                let out = Output::<u64>::new("test", &[5, 7]).unwrap();
                let out = out.write(|out| {
                    out.par_chunks(len, parallel, |i, part| part.each(|j| (i * len + j) as u64))
                });
                assert_eq!(out.to_vec().unwrap(), (0..35).collect::<Vec<_>>());
            }
        }
        let out = Output::<i32>::new("test", &[0, 3]).unwrap();
        assert_eq!(out.write(|out| out.chunks(2, |_, part| part.fill(1))).numel(), 0);
    }

    #[test]
    fn columns_make_up_the_whole() {
        for width in [1, 3, 8, 50] {
            let out = Output::<u64>::new("test", &[2, 5, 8]).unwrap().write(|out| {
                out.par_columns((5, 8, width), true, |matrix, from, columns| {
                    let (rows, width) = (columns.rows(), columns.width());
                    let mut done = columns.write(|_, row| row.fill(0));
                    for i in 0..rows {
                        for j in 0..width {
                            done.row(i)[j] = ((matrix * 5 + i) * 8 + from + j) as u64;
                        }
                    }
                    done
                })
            });
            assert_eq!(out.to_vec().unwrap(), (0..80).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "not all was written")]
    fn a_part_does_not_pass_for_the_whole() {
        let out = Output::<i32>::new("test", &[4]).unwrap();
        out.write(|out| Fresh(&mut out.0[..3]).fill(1));
    }
}
