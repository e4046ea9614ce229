//! The greatest or least element along an axis, and where it is.
//!
//! Ties go to the smallest index; the first NaN wins over everything.

use t4a_algebra::Real;
use t4a_algebra::simd::{Loop, dispatch};

use crate::error::{Result, TensorError, check_axis};
use crate::kernels::fold::{Fold, Maximum, Minimum};
use crate::loops::parallel::{self, SendPtr};
use crate::loops::stage::Scratch;
use crate::loops::{self};
use crate::output::Output;
use crate::reduce::{Plan, reduced_shape};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Elements gathered at once, and columns in a tile.
const TILE: usize = 256;
const BLOCK: usize = 1 << 12;

/// Which end of the order is sought.
pub trait Extremum<T: Real>: Fold<T, Acc = T, Out = T> {
    /// Whether `x` displaces `best`.
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

struct Columns<'a, T, E> {
    which: E,
    rows: usize,
    first: i32,
    x: *const T,
    pitch: isize,
    best: &'a mut [T],
    index: &'a mut [i32],
}

impl<T: Real, E: Extremum<T>> Loop for Columns<'_, T, E> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let _ = self.which;
        for r in 0..self.rows {
            // SAFETY: row `r` holds as many elements as there are columns.
            let row = unsafe {
                let first = self.x.wrapping_offset(r as isize * self.pitch);
                std::slice::from_raw_parts(first, self.best.len())
            };
            let at = self.first + r as i32;
            for ((best, index), &x) in self.best.iter_mut().zip(self.index.iter_mut()).zip(row) {
                let better = E::better(x, *best);
                *best = if better { x } else { *best };
                *index = if better { at } else { *index };
            }
        }
    }
}

/// Index of the first element that equals `value`, or is NaN if it is.
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

/// The extreme elements along an axis, which stays with size 1, and their indices.
///
/// Cost: one read per element; a row is read twice from cache.
///
/// # Errors
/// [`TensorError::Axis`]; [`TensorError::Shape`] for an empty axis; `OutOfMemory`.
pub fn arg_reduce<T: Real, E: Extremum<T>>(
    which: E,
    x: &Tensor<T>,
    axis: usize,
) -> Result<(Tensor<T>, Tensor<i64>)> {
    // A tile of them lies on the stack.
    const { assert!(size_of::<T>() <= 128) };
    check_axis(E::NAME, axis, x.rank())?;
    let (shape, axes) = reduced_shape(E::NAME, x.shape(), &[axis])?;
    let n = x.shape()[axis];
    let mut values = Output::<T>::new(E::NAME, &shape)?;
    let mut indices = Output::<i64>::new(E::NAME, &shape)?;
    if !shape.contains(&0) {
        if n == 0 {
            return Err(TensorError::shape(E::NAME, x.shape(), "at least one element to reduce"));
        }
        let dst = (SendPtr(values.as_mut_ptr()), SendPtr(indices.as_mut_ptr()));
        let plan = Plan::new(x, &shape, &axes);
        // SAFETY: the plan covers both results once, and reads `x` inside of its layout.
        unsafe {
            if plan.by_rows() || n > i32::MAX as usize {
                by_rows(which, &plan, dst, n);
            } else {
                by_columns(which, &plan, dst, n);
            }
        }
    }
    let route = Route::native(Path::LoopReduce);
    // SAFETY: every element of both was written.
    Ok(unsafe { (values.assume_init().with_route(route), indices.assume_init().with_route(route)) })
}

/// # Safety
/// The results take one element per kept index; the operand is readable.
unsafe fn by_rows<T: Real, E: Extremum<T>>(
    which: E,
    plan: &Plan,
    (values, indices): (SendPtr<T>, SendPtr<i64>),
    n: usize,
) {
    let ((len, step), _) = plan.inner();
    let results: usize = plan.kept.shape.iter().product();
    let per_chunk = ((1 << 15) / n).max(1);
    let parallel = parallel::worthwhile(results.saturating_mul(n), 1);
    let capacity = if step == 1 { BLOCK } else { plan.capacity() };
    parallel::for_each(results.div_ceil(per_chunk), parallel, &|chunk| {
        let mut scratch = Scratch::new();
        for i in chunk * per_chunk..((chunk + 1) * per_chunk).min(results) {
            let (to, base) = plan.kept_at(i);
            let mut best: Option<(T, usize)> = None;
            let mut from = 0;
            while from < len {
                let part = capacity.min(len - from);
                // SAFETY: inside of the row; gathered parts fit the scratch.
                let x = unsafe {
                    let first = plan.run(base + from as isize * step, step, part, &mut scratch);
                    std::slice::from_raw_parts(first.cast::<T>(), part)
                };
                let extreme = loops::fold::row(which, x);
                if best.is_none_or(|(b, _)| E::better(extreme, b)) {
                    best = Some((extreme, from + dispatch(Find { x, value: extreme })));
                }
                from += part;
            }
            if let Some((value, index)) = best {
                // SAFETY: `to` is the place of this result.
                unsafe {
                    values.get().offset(to).write(value);
                    indices.get().offset(to).write(index as i64);
                }
            }
        }
    });
}

/// # Safety
/// As [`by_rows`]; the axis is shorter than `i32::MAX`.
unsafe fn by_columns<T: Real, E: Extremum<T>>(
    which: E,
    plan: &Plan,
    (values, indices): (SendPtr<T>, SendPtr<i64>),
    n: usize,
) {
    let ((len, step), (width, across)) = plan.inner();
    let most = TILE.min(plan.capacity());
    let tiles = width.div_ceil(most);
    let outer = plan.kept.shape.iter().product::<usize>() / width;
    let out_step = plan.kept.strides[0][plan.kept.rank() - 1];
    let per_chunk = ((1 << 15) / (TILE.min(width) * n)).max(1);
    let jobs = outer * tiles;
    let parallel = parallel::worthwhile(outer.saturating_mul(width).saturating_mul(n), 1);
    parallel::for_each(jobs.div_ceil(per_chunk), parallel, &|chunk| {
        let mut scratch = Scratch::new();
        for job in chunk * per_chunk..((chunk + 1) * per_chunk).min(jobs) {
            let from = job % tiles * most;
            let cols = most.min(width - from);
            let (to, base) = plan.kept_at(job / tiles * width + from);
            let mut best = [T::ZERO; TILE];
            let mut index = [0i32; TILE];
            let batch = if across == 1 { len } else { (plan.capacity() / cols).max(1) };
            let mut r = 0;
            while r < len {
                let rows = batch.min(len - r);
                let at = base + r as isize * step;
                // SAFETY: rows and columns are in range; what is gathered fits the scratch.
                let (x, pitch) =
                    unsafe { plan.tile(at, (rows, step), (cols, across), &mut scratch) };
                let x = x.cast::<T>();
                if r == 0 {
                    // SAFETY: row 0 has `cols` elements.
                    best[..cols].copy_from_slice(unsafe { std::slice::from_raw_parts(x, cols) });
                }
                let (best, index) = (&mut best[..cols], &mut index[..cols]);
                dispatch(Columns { which, rows, first: r as i32, x, pitch, best, index });
                r += rows;
            }
            for j in 0..cols {
                let at = to + j as isize * out_step;
                // SAFETY: the place of this result.
                unsafe {
                    values.get().offset(at).write(best[j]);
                    indices.get().offset(at).write(i64::from(index[j]));
                }
            }
        }
    });
}
