//! Reductions over any axes of any layout.
//!
//! ```text
//! plan      axes of the operand, fused; runs of it in place or gathered
//! rows      the fastest axis is reduced:  gather or read a row, fold it
//! columns   the fastest axis is kept, or rows are short:  fold row after row into a tile of
//!           partial results
//! folds     what rows and columns call, without the types
//! dot       inner products
//! ```
//!
//! A long reduction is cut into blocks of fixed size whose partial results are combined pairwise, so the result does
//! not depend on the number of threads, and for a sum of n elements in a layout of any strides
//!
//! ```text
//! |error| ≤ (512 + log₂ n)·ε·Σ|xᵢ|      ε = 2⁻²⁴ for f32 (f16 and bf16 too, before they are rounded), 2⁻⁵³ for f64
//! ```
//!
//! up to terms in ε². A product of n factors has a relative error of (n − 1)·ε in any order.

use smallvec::SmallVec;
use t4a_algebra::Scalar;
use t4a_algebra::scalar::assert_storable;

use crate::error::{Result, TensorError, check_axis};
use crate::kernels::fold::Fold;
use crate::layout::{Dims, Layout};
use crate::loops::parallel::SendPtr;
use crate::route::{Path, Route};
use crate::storage::Buffer;
use crate::tensor::Tensor;

mod columns;
mod dot;
mod folds;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub use dot::dots;
pub(crate) use plan::ReducePlan;

use columns::{ROWS, fold_columns};
use folds::{Acc, FoldLoops, TypedFold};
use rows::{BLOCK, fold_rows};

/// Maximum number of results for which a reduction across rows needs no plan.
const FEW: usize = 256;

/// Reduces the given axes, which keep size 1. Rounding errors of sums grow with log₂ n.
///
/// Cost: one read and one step per element.
///
/// # Errors
/// [`TensorError::Axis`] for axes out of range or repeated; [`TensorError::Shape`] if nothing is
/// reduced by a fold that has no value for it; `OutOfMemory`.
pub fn reduce<T: Scalar, F: Fold<T>>(
    fold: F,
    x: &Tensor<T>,
    axes: &[usize],
) -> Result<Tensor<F::Out>> {
    const { folds::assert_storable::<F::Acc>() };
    const { assert_storable::<F::Out>() };
    // SAFETY: the loops are those of the element type.
    unsafe {
        let src = x.as_ptr().cast();
        let out =
            run(F::NAME, F::HAS_IDENTITY, &TypedFold::new::<T>(fold), (x.layout(), src), axes)?;
        Ok(out.retag().with_route(Route::promoted(Path::LoopReduce, F::PROMOTES)))
    }
}

/// [`reduce`] of an operand given by its layout and first element, compiled once for all folds.
///
/// # Safety
/// The elements of the operand have the type of the loops.
unsafe fn run(
    op: &'static str,
    has_identity: bool,
    loops: &dyn FoldLoops,
    (x, src): (&Layout, *const u8),
    axes: &[usize],
) -> Result<Tensor<()>> {
    let (shape, reduced) = reduced_shape(op, x.shape(), axes)?;
    let n: usize = reduced.iter().fold(1usize, |n, &axis| n.wrapping_mul(x.shape()[axis]));
    if n == 0 && !has_identity {
        return Err(TensorError::shape(op, x.shape(), "at least one element to reduce"));
    }
    let size = loops.sizes()[2];
    let layout = Layout::contiguous(op, &shape, size)?;
    let (numel, contiguous) = (layout.numel(), x.is_contiguous());
    let (buffer, out) = Buffer::fresh(op, numel * size)?;
    // SAFETY: the plan gives the loops pointers inside the operand and the result.
    unsafe {
        if n == 0 {
            let mut nothing = Acc::<1>::new();
            loops.init(nothing.as_mut_ptr(), 1);
            for i in 0..numel {
                loops.finish(nothing.as_mut_ptr(), 0, out.add(i * size), 1, 1);
            }
        } else if contiguous
            && x.numel() <= BLOCK
            && reduced.iter().rev().enumerate().all(|(i, &axis)| axis + 1 + i == x.rank())
        {
            // Small and row-major: planning would cost more (bench `backend`, row `sum 4×4`).
            loops.rows(src, out, [n as isize, 1], x.numel() / n, n);
        } else if contiguous
            && (1..=FEW).contains(&numel)
            && n <= ROWS
            && reduced.iter().enumerate().all(|(i, &axis)| axis == i)
        {
            // The same across rows (bench `backend`, row `MLP train step b8 h32`).
            let mut acc = Acc::<FEW>::new();
            let acc = acc.as_mut_ptr();
            loops.init(acc, numel);
            loops.columns(n, src, numel as isize, acc, numel);
            loops.finish(acc, n, out, 1, numel);
        } else if numel > 0 {
            let src = SendPtr(src.cast_mut());
            let plan = ReducePlan::erased(src, loops.sizes()[0], x, &shape, &reduced);
            if plan.by_rows() {
                fold_rows(&plan, loops, SendPtr(out), n);
            } else {
                fold_columns(&plan, loops, SendPtr(out), n);
            }
        }
        // Every element was written.
        Ok(Tensor::from_raw(buffer, layout))
    }
}

/// The shape with reduced axes of size 1, and those axes in ascending order.
pub(crate) fn reduced_shape(
    op: &'static str,
    shape: &[usize],
    axes: &[usize],
) -> Result<(Dims, SmallVec<[usize; 6]>)> {
    let mut sorted = SmallVec::from_slice(axes);
    sorted.sort_unstable();
    let mut out = Dims::from_slice(shape);
    for (i, &axis) in sorted.iter().enumerate() {
        check_axis(op, axis, shape.len())?;
        if i > 0 && sorted[i - 1] == axis {
            return Err(TensorError::Axis { op, axis, rank: shape.len() });
        }
        out[axis] = 1;
    }
    Ok((out, sorted))
}
