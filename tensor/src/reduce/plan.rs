//! Axes of a reduction, kept and reduced, with the strides of the operand.

use smallvec::SmallVec;
use t4a_algebra::Scalar;

use crate::layout::{Dims, Layout};
use crate::loops::fuse::Fused;
use crate::loops::parallel::SendPtr;
use crate::loops::stage::{self, StagingBuffer};
use crate::tensor::Tensor;

/// Bytes of scratch for gathered rows: many short rows together (bench `backend`, row `sum 262144×4 rows`).
pub(super) const SCRATCH_BYTES: usize = 1 << 15;
/// Reduced axes shorter than this are folded by columns.
const SHORT: usize = 16;

/// Axes of a reduction, fused: kept ones in the order of the result, reduced ones in the order of
/// memory, outermost first.
pub(crate) struct ReducePlan {
    src: SendPtr<u8>,
    /// Bytes per element.
    size: usize,
    /// Strides: result, operand.
    pub(crate) kept: Fused<2>,
    pub(crate) reduced: Fused<1>,
}

impl ReducePlan {
    /// For a nonempty operand.
    pub(crate) fn new<T: Scalar>(x: &Tensor<T>, shape: &[usize], reduced: &[usize]) -> Self {
        let src = SendPtr(x.as_ptr().cast_mut().cast());
        Self::erased(src, size_of::<T>(), x.layout(), shape, reduced)
    }

    /// [`ReducePlan::new`] of elements of `size` bytes from `src` on.
    pub(super) fn erased(
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
        // At least one axis on either side avoids special cases in the loops.
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
    pub(super) fn position<const N: usize>(
        side: &Fused<N>,
        op: usize,
        axes: usize,
        i: usize,
    ) -> isize {
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
    pub(super) fn rows_per_result(&self) -> usize {
        self.reduced.shape[..self.reduced.rank() - 1].iter().product()
    }

    pub(super) fn row_at(&self, i: usize) -> isize {
        Self::position(&self.reduced, 0, self.reduced.rank() - 1, i)
    }

    pub(super) fn at(&self, position: isize) -> *const u8 {
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
        scratch: &mut StagingBuffer<SCRATCH_BYTES>,
    ) -> *const u8 {
        // SAFETY: the caller's contract.
        unsafe { self.tile(at, (1, 0), (len, step), scratch).0 }
    }

    /// `rows × cols` elements with contiguous rows, and their pitch: in place or gathered.
    ///
    /// # Safety
    /// As [`ReducePlan::run`].
    pub(crate) unsafe fn tile(
        &self,
        at: isize,
        (rows, step): (usize, isize),
        (cols, across): (usize, isize),
        scratch: &mut StagingBuffer<SCRATCH_BYTES>,
    ) -> (*const u8, isize) {
        if across == 1 || cols == 1 {
            return (self.at(at), step);
        }
        let dst = scratch.as_mut_ptr();
        // SAFETY: the caller's contract.
        unsafe {
            let strides = (step, across);
            stage::gather(self.at(at), strides, (rows, cols), self.size, dst, cols as isize);
        }
        (dst, cols as isize)
    }
}
