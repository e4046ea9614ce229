//! The indices at which a tensor is not 0.

use t4a_algebra::Int;

use super::ROUTE;
use crate::error::{Result, TensorError};
use crate::kernels::compare::Truth;
use crate::layout::Dims;
use crate::loops::kernel::Unary;
use crate::loops::parallel::{self, SendPtr};
use crate::output::Output;
use crate::tensor::Tensor;

/// Elements counted and written by one thread at a time.
const CHUNK: usize = 1 << 16;

#[derive(Clone, Copy)]
struct IsTrue;

impl<T: Truth> Unary<T> for IsTrue {
    type Out = bool;
    const NAME: &'static str = "nonzero";
    #[inline(always)]
    fn apply(self, x: T) -> bool {
        x.truth()
    }
}

/// Row `n` holds the index of the `n`-th element, in row-major order, that is not 0.
///
/// Shapes: `[count, x.rank()]`. A NaN is not 0.
///
/// Cost: two passes over one byte per element, and one write per entry of the result.
///
/// # Errors
/// [`TensorError::Value`] if the integer type `I` cannot hold an index.
pub fn nonzero<T: Truth, I: Int>(x: &Tensor<T>) -> Result<Tensor<I>> {
    nonzero_of(&truths(x)?)
}

/// Whether each element is true, in row-major order.
pub(crate) fn truths<T: Truth>(x: &Tensor<T>) -> Result<Tensor<bool>> {
    crate::copy::row_major(&crate::map::map(IsTrue, x.clone())?)
}

/// [`nonzero`] of a contiguous tensor.
pub(crate) fn nonzero_of<I: Int>(x: &Tensor<bool>) -> Result<Tensor<I>> {
    let op = "nonzero";
    let shape = x.shape();
    for (axis, &size) in shape.iter().enumerate() {
        let last = size.saturating_sub(1);
        if I::from_i64(last as i64).to_usize() != Some(last) {
            let message = format!("indices of axis {axis} of size {size} need a wider integer");
            return Err(TensorError::value(op, message));
        }
    }
    let truths = x.as_slice().unwrap_or(&[]);
    let chunks = truths.len().div_ceil(CHUNK);
    let part = |chunk: usize| &truths[chunk * CHUNK..truths.len().min((chunk + 1) * CHUNK)];
    let parallel = parallel::worthwhile(truths.len(), 1);

    // Where the entries of each chunk start.
    let mut starts = vec![0usize; chunks + 1];
    let counts = SendPtr(starts.as_mut_ptr());
    parallel::for_each(chunks, parallel, &|chunk| {
        let count = part(chunk).iter().map(|&t| usize::from(t)).sum();
        // SAFETY: one slot per chunk.
        unsafe { *counts.get().add(chunk + 1) = count };
    });
    for chunk in 0..chunks {
        starts[chunk + 1] += starts[chunk];
    }

    let rank = shape.len();
    let mut out = Output::<I>::new(op, &[starts[chunks], rank])?;
    let dst = SendPtr(out.as_mut_ptr());
    parallel::for_each(chunks, parallel, &|chunk| {
        // SAFETY: rows of this chunk, as many as it has true elements.
        let rows = unsafe {
            let count = starts[chunk + 1] - starts[chunk];
            let first = dst.get().add(starts[chunk] * rank).cast::<std::mem::MaybeUninit<I>>();
            std::slice::from_raw_parts_mut(first, count * rank)
        };
        if rank > 0 && !rows.is_empty() {
            write_rows(part(chunk), chunk * CHUNK, shape, rows);
        }
    });
    // SAFETY: every row was written.
    Ok(unsafe { out.assume_init() }.with_route(ROUTE))
}

/// Writes the index of every true element; the first one lies at row-major position `start`.
fn write_rows<I: Int>(
    truths: &[bool],
    start: usize,
    shape: &[usize],
    rows: &mut [std::mem::MaybeUninit<I>],
) {
    let last = shape.len() - 1;
    let mut rest = start / shape[last];
    let mut col = start % shape[last];
    let mut index: Dims = shape.into();
    for axis in (0..last).rev() {
        index[axis] = rest % shape[axis];
        rest /= shape[axis];
    }
    let mut rows = rows.chunks_exact_mut(shape.len());
    let mut truths = truths;
    while !truths.is_empty() {
        let (run, rest) = truths.split_at(truths.len().min(shape[last] - col));
        for (offset, _) in run.iter().enumerate().filter(|(_, t)| **t) {
            let Some(row) = rows.next() else { return };
            for (slot, &i) in row.iter_mut().zip(&index[..last]) {
                slot.write(I::from_i64(i as i64));
            }
            row[last].write(I::from_i64((col + offset) as i64));
        }
        truths = rest;
        col = 0;
        for axis in (0..last).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}
