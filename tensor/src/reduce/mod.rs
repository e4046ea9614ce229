//! Reductions over any axes of any layout.
//!
//! ```text
//! plan      axes of the operand, fused; runs of it in place or gathered
//! rows      the fastest axis is reduced:  gather or read a row, fold it
//! columns   the fastest axis is kept, or rows are short:  fold row after row into a tile of
//!           partial results
//! folds     what rows and columns call, without the types
//! ```
//!
//! A long reduction is cut into blocks of fixed size whose partial results are merged in order, so
//! the result does not depend on the number of threads.

use std::mem::MaybeUninit;

use smallvec::SmallVec;
use t4a_algebra::Scalar;

use crate::error::{Result, TensorError, check_axis};
use crate::kernels::fold::Fold;
use crate::layout::Dims;
use crate::loops::parallel::SendPtr;
use crate::loops::{self};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

mod columns;
mod folds;
mod plan;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use plan::Plan;

use columns::{ROWS, fold_columns};
use folds::{FoldLoops, Typed};
use rows::{BLOCK, fold_rows};

/// Most results for which a reduction across rows is not planned.
const FEW: usize = 256;

/// Reduces the given axes, which stay with size 1.
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
    let (shape, reduced) = reduced_shape(F::NAME, x.shape(), axes)?;
    let n: usize = reduced.iter().fold(1usize, |n, &axis| n.wrapping_mul(x.shape()[axis]));
    if n == 0 && !F::HAS_IDENTITY && !shape.contains(&0) {
        return Err(TensorError::shape(F::NAME, x.shape(), "at least one element to reduce"));
    }
    let mut out = Output::<F::Out>::new(F::NAME, &shape)?;
    if n == 0 {
        out.as_mut_slice().fill(MaybeUninit::new(fold.finish(fold.init(), 0)));
    } else if let Some(data) = x.as_slice()
        && data.len() <= BLOCK
        && reduced.iter().rev().enumerate().all(|(i, &axis)| axis + 1 + i == x.rank())
    {
        // Small and row-major: planning would cost more (bench `backend`, row `sum 4×4`).
        for (out, row) in out.as_mut_slice().iter_mut().zip(data.chunks_exact(n)) {
            out.write(fold.finish(loops::fold::row(fold, row), n));
        }
    } else if let Some(data) = x.as_slice()
        && (1..=FEW).contains(&out.layout().numel())
        && n <= ROWS
        && reduced.iter().enumerate().all(|(i, &axis)| axis == i)
    {
        // The same across rows (bench `backend`, row `MLP train step b8 h32`).
        let cols = out.layout().numel();
        let mut acc = [fold.init(); FEW];
        // SAFETY: the elements are n rows of as many columns as there are results.
        unsafe {
            loops::fold::columns(fold, n, data.as_ptr(), cols as isize, &mut acc[..cols]);
        }
        for (out, &acc) in out.as_mut_slice().iter_mut().zip(&acc) {
            out.write(fold.finish(acc, n));
        }
    } else if !shape.contains(&0) {
        let plan = Plan::new(x, &shape, &reduced);
        let dst = SendPtr(out.as_mut_ptr().cast::<u8>());
        let loops: &dyn FoldLoops = &Typed::new::<T>(fold);
        // SAFETY: the plan covers the result once, and reads `x` inside of its layout.
        unsafe {
            if plan.by_rows() {
                fold_rows(&plan, loops, dst, n);
            } else {
                fold_columns(&plan, loops, dst, n);
            }
        }
    }
    // SAFETY: every element was written.
    Ok(unsafe { out.assume_init() }.with_route(Route::promoted(Path::LoopReduce, F::PROMOTES)))
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
