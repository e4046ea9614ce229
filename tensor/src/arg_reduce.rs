//! Maxima and minima along an axis, with their indices.
//!
//! Ties resolve to the smallest index; the first NaN precedes all numbers.

use t4a_algebra::Real;
use t4a_algebra::simd::{Loop, dispatch};

use crate::error::{Result, TensorError, check_axis};
use crate::kernels::fold::{Fold, Maximum, Minimum};
use crate::loops::stage::StagingBuffer;
use crate::loops::{self, parallel};
use crate::output::{Fresh, Full, Output, share_with, tile_width};
use crate::reduce::{ReducePlan, reduced_shape};
use crate::route::{Path, Route};
use crate::tensor::Tensor;
use crate::view::{Rows, View};

/// Number of elements gathered in one block, and of columns in a tile.
const TILE: usize = 256;
const BLOCK: usize = 1 << 12;
/// Bytes of scratch for elements that are gathered.
const SCRATCH_BYTES: usize = 1 << 15;

/// A maximum or minimum with its strict order.
pub trait Extremum<T: Real>: Fold<T, Acc = T, Out = T> {
    /// True if `x` replaces `best`.
    fn better(x: T, best: T) -> bool;
}

impl<T: Real> Extremum<T> for Maximum {
    #[inline(always)]
    fn better(x: T, best: T) -> bool {
        (x > best) | (x.is_nan() & !best.is_nan())
    }
}

impl<T: Real> Extremum<T> for Minimum {
    #[inline(always)]
    fn better(x: T, best: T) -> bool {
        (x < best) | (x.is_nan() & !best.is_nan())
    }
}

struct ArgColumns<'a, T, E> {
    which: E,
    rows: usize,
    first: i32,
    x: Rows<'a, T>,
    best: &'a mut [T],
    index: &'a mut [i32],
}

impl<T: Real, E: Extremum<T>> Loop for ArgColumns<'_, T, E> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let _ = self.which;
        for r in 0..self.rows {
            let at = self.first + r as i32;
            let lanes = self.best.iter_mut().zip(self.index.iter_mut());
            for ((best, index), &x) in lanes.zip(self.x.row(r)) {
                let better = E::better(x, *best);
                *best = if better { x } else { *best };
                *index = if better { at } else { *index };
            }
        }
    }
}

/// Index of the first element that equals `value`, or of the first NaN if `value` is NaN.
struct Find<'a, T> {
    x: &'a [T],
    value: T,
}

impl<T: Real> Loop for Find<'_, T> {
    type Output = usize;
    #[inline(always)]
    fn run(self) -> usize {
        let hit = |&v: &T| (v == self.value) | (v.is_nan() & self.value.is_nan());
        // Whole chunks without a branch per element, so that the search vectorises.
        let (chunks, _) = self.x.as_chunks::<64>();
        let miss = |chunk: &&[T; 64]| !chunk.iter().fold(false, |any, v| any | hit(v));
        let skipped = chunks.iter().take_while(miss).count() * 64;
        skipped + self.x[skipped..].iter().position(hit).unwrap_or(0)
    }
}

/// The extreme elements along an axis, which keeps size 1, and their indices.
///
/// Cost: one read per element; a row is read twice from cache.
///
/// # Errors
/// [`TensorError::Axis`]; [`TensorError::Shape`] for an empty axis; `OutOfMemory`.
///
/// ```
/// use t4a_tensor::Tensor;
/// use t4a_tensor::arg_reduce::arg_reduce;
/// use t4a_tensor::kernels::fold::Maximum;
///
/// let x = Tensor::from_vec(vec![3.0, 1.0, 4.0, 1.0, 5.0, 9.0], &[2, 3])?;
/// let (maxima, indices) = arg_reduce(Maximum, &x, 1)?;
/// assert_eq!((maxima.to_vec()?, indices.to_vec()?), (vec![4.0, 9.0], vec![2, 2]));
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn arg_reduce<T: Real, E: Extremum<T>>(
    which: E,
    x: &Tensor<T>,
    axis: usize,
) -> Result<(Tensor<T>, Tensor<i64>)> {
    // A tile of elements is on the stack.
    const { assert!(size_of::<T>() <= 128) };
    check_axis(E::NAME, axis, x.rank())?;
    let (shape, axes) = reduced_shape(E::NAME, x.shape(), &[axis])?;
    let n = x.shape()[axis];
    let (values, indices) = (Output::new(E::NAME, &shape)?, Output::new(E::NAME, &shape)?);
    if n == 0 {
        return Err(TensorError::shape(E::NAME, x.shape(), "at least one element to reduce"));
    }
    let (values, indices) = values.try_write_both(indices, |values, indices| {
        if values.len() == 0 {
            return Ok((values.fill(T::ZERO), indices.fill(0)));
        }
        let (plan, view) = (ReducePlan::new(x, &shape, &axes), View::new(x));
        if plan.by_rows() || n > i32::MAX as usize {
            by_rows(which, &plan, view, n, values, indices)
        } else {
            by_columns(which, &plan, view, n, values, indices)
        }
    })?;
    let route = Route::native(Path::LoopReduce);
    Ok((values.with_route(route), indices.with_route(route)))
}

/// Results in memory order.
type Both<'o, T> = (Full<'o, T>, Full<'o, i64>);

fn by_rows<'o, T: Real, E: Extremum<T>>(
    which: E,
    plan: &ReducePlan,
    view: View<'_, T>,
    n: usize,
    values: Fresh<'o, T>,
    indices: Fresh<'o, i64>,
) -> Result<Both<'o, T>> {
    let ((len, step), _) = plan.inner();
    let per_chunk = ((1 << 15) / n).max(1);
    let parallel = parallel::worthwhile(values.len().saturating_mul(n), 1);
    let capacity = if step == 1 { BLOCK } else { SCRATCH_BYTES / size_of::<T>() };
    let parts = (values.parts(per_chunk), indices.parts(per_chunk));
    let scratch = || Ok(StagingBuffer::<SCRATCH_BYTES>::new());
    share_with(parts, 1, parallel, scratch, |scratch, chunk, (values, indices)| {
        Ok(values.each_both(indices, |i| {
            let (_, base) = plan.kept_at(chunk * per_chunk + i);
            let mut best: Option<(T, usize)> = None;
            for from in (0..len).step_by(capacity) {
                let part = capacity.min(len - from);
                let at = base + from as isize * step;
                let x = view.rows(at, (1, 0), (part, step), scratch);
                let x = x.row(0);
                let extreme = loops::fold::row(which, x);
                if best.is_none_or(|(b, _)| E::better(extreme, b)) {
                    best = Some((extreme, from + dispatch(Find { x, value: extreme })));
                }
            }
            best.map_or((T::ZERO, 0), |(value, index)| (value, index as i64))
        }))
    })
}

/// As [`by_rows`]; the axis is shorter than `i32::MAX`.
fn by_columns<'o, T: Real, E: Extremum<T>>(
    which: E,
    plan: &ReducePlan,
    view: View<'_, T>,
    n: usize,
    values: Fresh<'o, T>,
    indices: Fresh<'o, i64>,
) -> Result<Both<'o, T>> {
    let ((len, step), (width, across)) = plan.inner();
    let capacity = SCRATCH_BYTES / size_of::<T>();
    let parallel = parallel::worthwhile(values.len().saturating_mul(n), 1);
    let most = tile_width(values.len(), TILE.min(capacity), parallel);
    let tiles = width.div_ceil(most);
    let per_chunk = (1 << 15) / (most.min(width) * n);
    let parts = (values.parts_of_groups(width, most), indices.parts_of_groups(width, most));
    let scratch = || Ok(StagingBuffer::<SCRATCH_BYTES>::new());
    share_with(parts, per_chunk, parallel, scratch, |scratch, part, (values, indices)| {
        let (_, base) = plan.kept_at(part / tiles * width + part % tiles * most);
        let cols = values.len();
        let mut best = [T::ZERO; TILE];
        let mut index = [0i32; TILE];
        let (best, index) = (&mut best[..cols], &mut index[..cols]);
        let batch = if across == 1 { len } else { (capacity / cols).max(1) };
        for r in (0..len).step_by(batch) {
            let rows = batch.min(len - r);
            let at = base + r as isize * step;
            let x = view.rows(at, (rows, step), (cols, across), scratch);
            if r == 0 {
                best.copy_from_slice(x.row(0));
            }
            dispatch(ArgColumns { which, rows, first: r as i32, x, best, index });
        }
        Ok((values.copy_from(best), indices.map(index, i64::from)))
    })
}
