//! Indices of nonzero elements.

use t4a_algebra::Int;

use super::ROUTE;
use crate::error::{Result, TensorError};
use crate::kernels::compare::Truth;
use crate::layout::Dims;
use crate::loops::kernel::Unary;
use crate::loops::parallel;
use crate::output::{Fresh, Full, Output, share};
use crate::storage::collect;
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

/// Row `n` is the index of the `n`-th nonzero element in row-major order.
///
/// Shapes: `[count, x.rank()]`. NaN counts as nonzero.
///
/// Cost: two passes over one byte per element, and one write per entry of the result.
///
/// # Errors
/// [`TensorError::Value`] if the integer type `I` cannot hold an index.
///
/// ```
/// use t4a_tensor::Tensor;
/// use t4a_tensor::index::nonzero;
///
/// let x = Tensor::from_vec(vec![0.0, 7.0, 0.0, 8.0], &[2, 2])?;
/// assert_eq!(nonzero::<_, i64>(&x)?.to_vec()?, [0, 1, 1, 1]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn nonzero<T: Truth, I: Int>(x: &Tensor<T>) -> Result<Tensor<I>> {
    nonzero_of(&truths(x)?)
}

/// The truth value of each element, in row-major order.
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

    // First the end of the rows of each chunk, then their entries.
    let mut bounds = collect("nonzero", chunks + 1, std::iter::repeat_n(0, chunks + 1))?;
    parallel::for_each_mut(&mut bounds[1..], parallel, |chunk, count| {
        *count = part(chunk).iter().map(|&t| usize::from(t)).sum::<usize>();
    });
    (0..chunks).for_each(|chunk| bounds[chunk + 1] += bounds[chunk]);
    let (rows, rank) = (bounds[chunks], shape.len());
    bounds.iter_mut().for_each(|bound| *bound *= rank);
    let out = Output::<I>::new(op, &[rows, rank])?.try_write(|out| {
        share(out.between(&bounds), 1, parallel, |chunk, rows| match rank {
            0 => Ok(rows.fill(I::ZERO)),
            _ => Ok(write_rows(part(chunk), chunk * CHUNK, shape, rows)),
        })
    })?;
    Ok(out.with_route(ROUTE))
}

/// Writes the index of every true element; the first element has the row-major position `start`.
fn write_rows<'o, I: Int>(
    truths: &[bool],
    start: usize,
    shape: &[usize],
    rows: Fresh<'o, I>,
) -> Full<'o, I> {
    let last = shape.len() - 1;
    let mut index: Dims = shape.into();
    let mut rest = start;
    for axis in (0..=last).rev() {
        index[axis] = rest % shape[axis];
        rest /= shape[axis];
    }
    let mut rows = rows.cursor();
    let mut truths = truths;
    while !truths.is_empty() {
        let col = index[last];
        let (run, rest) = truths.split_at(truths.len().min(shape[last] - col));
        for (offset, _) in run.iter().enumerate().filter(|(_, t)| **t) {
            index[last] = col + offset;
            let row = rows.next(shape.len()).map(&index, |i| I::from_i64(i as i64));
            rows.done(row);
        }
        truths = rest;
        index[last] = 0;
        for axis in (0..last).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    rows.finish()
}
