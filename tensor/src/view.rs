//! Reading strided tensors through a slice of their memory.

use t4a_algebra::Scalar;
use t4a_algebra::gemm::MatRef;

use crate::error::{Result, TensorError};
use crate::loops::stage::{self, StagingBuffer};
use crate::tensor::Tensor;

/// The memory from the first to the last element of a tensor. Positions count from element
/// `[0, …, 0]`, and one that is outside is a panic.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    memory: &'a [T],
    /// Index of element `[0, …, 0]` in the memory.
    origin: usize,
}

impl<'a, T: Scalar> View<'a, T> {
    #[inline]
    pub(crate) fn new(x: &'a Tensor<T>) -> Self {
        if x.numel() == 0 {
            return Self { memory: &[], origin: 0 };
        }
        let (mut below, mut above) = (0, 0);
        for (&size, &stride) in x.shape().iter().zip(x.layout().strides()) {
            // No farther than the length of the buffer.
            let reach = (size - 1) * stride.unsigned_abs();
            *(if stride < 0 { &mut below } else { &mut above }) += reach;
        }
        // SAFETY: the first and the last element are inside the buffer, all of which is initialised, and the tensor is
        // borrowed.
        let memory = unsafe {
            std::slice::from_raw_parts(x.as_ptr().wrapping_sub(below), below + above + 1)
        };
        Self { memory, origin: below }
    }

    /// Contiguous elements.
    #[inline]
    pub(crate) fn of(memory: &'a [T]) -> Self {
        Self { memory, origin: 0 }
    }

    /// Index of a position in the memory; past its end if the position is outside.
    #[inline(always)]
    fn index(&self, at: isize) -> usize {
        self.origin.wrapping_add_signed(at)
    }

    /// The element at a position.
    #[inline(always)]
    pub(crate) fn get(&self, at: isize) -> T {
        self.memory[self.index(at)]
    }

    /// `len` contiguous elements, starting at a position.
    #[inline(always)]
    pub(crate) fn run(&self, at: isize, len: usize) -> &'a [T] {
        &self.memory[self.index(at)..][..len]
    }

    /// A matrix with element (0, 0) at a position.
    ///
    /// # Errors
    /// [`TensorError::Value`] if the matrix is not inside the memory.
    #[inline]
    pub(crate) fn matrix(
        &self,
        op: &'static str,
        at: isize,
        shape: (usize, usize),
        strides: (isize, isize),
    ) -> Result<MatRef<'a, T>> {
        MatRef::strided(self.memory, self.index(at), shape, strides)
            .map_err(|error| TensorError::value(op, error.to_string()))
    }

    /// `rows × cols` elements with contiguous rows: in place if possible, else gathered.
    ///
    /// Panics if the scratch is too small.
    #[inline]
    pub(crate) fn rows<'s, const BYTES: usize>(
        &self,
        at: isize,
        (rows, step): (usize, isize),
        (cols, across): (usize, isize),
        scratch: &'s mut StagingBuffer<BYTES>,
    ) -> Rows<'s, T>
    where
        'a: 's,
    {
        if across == 1 || cols == 1 {
            return Rows { view: *self, at, pitch: step, cols };
        }
        assert!(rows.saturating_mul(cols) <= BYTES / size_of::<T>());
        let (mut low, mut high) = (self.index(at) as i128, self.index(at) as i128);
        for (size, stride) in [(rows, step), (cols, across)] {
            let reach = (size as i128 - 1) * stride as i128;
            low += reach.min(0);
            high += reach.max(0);
        }
        assert!(rows * cols == 0 || (low >= 0 && high < self.memory.len() as i128));
        // SAFETY: the rectangle is inside the memory, and the scratch has room for it, at the alignment of any element.
        let memory = unsafe {
            let src = self.memory.as_ptr().wrapping_add(self.index(at)).cast();
            let dst = scratch.as_mut_ptr();
            stage::gather(src, (step, across), (rows, cols), size_of::<T>(), dst, cols as isize);
            std::slice::from_raw_parts(dst.cast_const().cast(), rows * cols)
        };
        Rows { view: View { memory, origin: 0 }, at: 0, pitch: cols as isize, cols }
    }
}

/// Equidistant contiguous rows.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, T> {
    view: View<'a, T>,
    at: isize,
    pitch: isize,
    cols: usize,
}

impl<'a, T: Scalar> Rows<'a, T> {
    /// Row `i`.
    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &'a [T] {
        self.view.run(self.at.wrapping_add((i as isize).wrapping_mul(self.pitch)), self.cols)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::testing::layouts;

    fn refused<R>(read: impl FnOnce() -> R) {
        assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
    }

    #[test]
    fn views_read_what_the_layout_names() {
        for (name, x) in layouts::<i32>(&[3, 4, 5]) {
            let view = View::new(&x);
            let strides = x.layout().strides();
            let (step, across) = (strides[1], strides[2]);
            for i in 0..3 {
                let at = i as isize * strides[0];
                let mut scratch = StagingBuffer::<4096>::new();
                let rows = view.rows(at, (4, step), (5, across), &mut scratch);
                let matrix = view.matrix("test", at, (4, 5), (step, across)).unwrap();
                assert_eq!((matrix.row_stride(), matrix.col_stride()), (step, across));
                for j in 0..4 {
                    for k in 0..5 {
                        let want = x.get(&[i, j, k]).unwrap();
                        let place = at + j as isize * step + k as isize * across;
                        assert_eq!((view.get(place), rows.row(j)[k]), (want, want), "{name}");
                    }
                }
            }
            refused(|| {
                let mut scratch = StagingBuffer::<4096>::new();
                view.rows(0, (61, 3), (2, 100_000), &mut scratch).row(0)[0]
            });
            assert!(view.matrix("test", 0, (2, 2), (100_000, 1)).is_err());
        }
    }

    #[test]
    fn nothing_is_read_outside() {
        let x = Tensor::from_fn(&[4, 6], |i| i as i32).unwrap();
        let x = x.slice_axis(0, 1, 2, 1).unwrap().slice_axis(1, 1, 4, 1).unwrap();
        let view = View::new(&x);
        assert_eq!((view.get(0), view.get(9), view.run(6, 4)), (7, 16, &[13, 14, 15, 16][..]));
        for at in [-1, 10, isize::MIN, isize::MAX] {
            refused(|| view.get(at));
            refused(|| view.run(at, 1));
        }
        refused(|| view.run(7, 4));
        let empty = Tensor::<f32>::zeros(&[0, 3]).unwrap();
        assert!(View::new(&empty).matrix("test", 0, (0, 3), (3, 1)).is_ok());
        refused(|| View::new(&empty).get(0));
    }
}
