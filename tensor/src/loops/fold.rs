//! The two reduction loops over contiguous memory.
//!
//! Along a row, [`LANES`] or more partial results are accumulated independently and combined in a tree, so the compiler
//! keeps them in vector registers and rounding errors grow with `n / LANES`. Across rows, every column has a separate
//! partial result.

use t4a_algebra::Scalar;
use t4a_algebra::simd::{Loop, dispatch, dispatch_narrow};

use super::ahead::Ahead;
use super::kernel::Fold;

/// Default number of independent partial results.
pub const LANES: usize = 32;
/// Number of independent partial results for elements of at most 4 bytes: eight 256-bit registers, the number of
/// additions in flight (bench `backend`, row `sum 1024²`).
const NARROW_LANES: usize = 64;

/// Number of lanes for the shortest rows; more lanes would be empty (bench `backend`, row `sum 4×4`).
const SHORT: usize = 8;

struct RowFold<'a, T: Scalar, F> {
    fold: F,
    x: &'a [T],
}

impl<T: Scalar, F: Fold<T>> Loop for RowFold<'_, T, F> {
    type Output = F::Acc;
    #[inline(always)]
    fn run(self) -> F::Acc {
        if self.x.len() <= SHORT {
            self.by::<SHORT>()
        } else if const { size_of::<F::Acc>() <= 4 } {
            self.by::<NARROW_LANES>()
        } else {
            self.by::<LANES>()
        }
    }
}

impl<T: Scalar, F: Fold<T>> RowFold<'_, T, F> {
    #[inline(always)]
    fn by<const LANES: usize>(self) -> F::Acc {
        let fold = self.fold;
        let mut lanes = [fold.init(); LANES];
        let (chunks, tail) = self.x.as_chunks::<LANES>();
        let ahead = Ahead::of_reads();
        let (pairs, chunks) = match F::PAIRS {
            true => chunks.as_chunks::<2>(),
            false => (&[][..], chunks),
        };
        for [first, second] in pairs {
            ahead.read(first);
            ahead.read(second);
            for (lane, (&x, &y)) in lanes.iter_mut().zip(first.iter().zip(second)) {
                *lane = fold.step_both(*lane, x, y);
            }
        }
        for chunk in chunks {
            ahead.read(chunk);
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = fold.step(*lane, x);
            }
        }
        if const { size_of::<F::Acc>() <= 4 && !F::PAIRS } {
            if tail.is_empty() {
                return merge(fold, &mut lanes);
            }
            // A copy: the index of the tail would keep `lanes` in memory for all rows, and sums of rows of 64, 256 and 1024
            // `f32` would take 2.7, 1.7 and 1.14 times as long. Wider sums and extrema are slower in registers (Zen 4;
            // bench `backend`, row `sum 1024² rows`).
            let mut last = lanes;
            for (lane, &x) in last.iter_mut().zip(tail) {
                *lane = fold.step(*lane, x);
            }
            return merge(fold, &mut last);
        }
        for (lane, &x) in lanes.iter_mut().zip(tail) {
            *lane = fold.step(*lane, x);
        }
        merge(fold, &mut lanes)
    }
}

/// Merges partial results as a tree, in place.
#[inline(always)]
fn merge<T: Scalar, F: Fold<T>, const LANES: usize>(
    fold: F,
    lanes: &mut [F::Acc; LANES],
) -> F::Acc {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = fold.merge(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

/// Folds a row.
#[inline]
pub fn row<T: Scalar, F: Fold<T>>(fold: F, x: &[T]) -> F::Acc {
    dispatch_narrow(RowFold { fold, x })
}

struct ColumnFold<'a, T: Scalar, F: Fold<T>> {
    fold: F,
    rows: usize,
    x: *const T,
    pitch: isize,
    acc: &'a mut [F::Acc],
}

impl<T: Scalar, F: Fold<T>> Loop for ColumnFold<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        if const { size_of::<F::Acc>() <= 4 } {
            self.by::<NARROW_LANES>()
        } else {
            self.by::<LANES>()
        }
    }
}

impl<T: Scalar, F: Fold<T>> ColumnFold<'_, T, F> {
    /// `B` columns at a time, whose partial results stay in registers for several rows. Several rows are as many streams
    /// for the prefetchers of the hardware: prefetching by instructions costs a tenth on AVX2 (bench `peers`, rows
    /// `sum 1024² columns` and `sum 32×512×4096 axis 0`).
    #[inline(always)]
    fn by<const B: usize>(self) {
        // Few rows at a time: rows at power-of-two distances share the sets of a cache (bench `ops`, row
        // `sum 1024² columns`).
        const ROWS: usize = 4;
        let Self { fold, rows, x, pitch, acc } = self;
        let len = acc.len();
        let row = |r: usize| {
            // SAFETY: row `r` holds as many elements as there are columns.
            unsafe { std::slice::from_raw_parts(x.wrapping_offset(r as isize * pitch), len) }
        };
        let (blocks, tail) = acc.as_chunks_mut::<B>();
        let mut together = |rows: &[&[T]]| {
            for (i, acc) in blocks.iter_mut().enumerate() {
                let mut partial = *acc;
                for row in rows {
                    let x = &row.as_chunks::<B>().0[i];
                    for j in 0..B {
                        partial[j] = fold.step(partial[j], x[j]);
                    }
                }
                *acc = partial;
            }
            for row in rows {
                for (acc, &x) in tail.iter_mut().zip(&row[len - len % B..]) {
                    *acc = fold.step(*acc, x);
                }
            }
        };
        let whole = rows - rows % ROWS;
        for first in (0..whole).step_by(ROWS) {
            together(&std::array::from_fn::<_, ROWS, _>(|r| row(first + r)));
        }
        for r in whole..rows {
            together(&[row(r)]);
        }
    }
}

/// Folds rows into one partial result per column: `accⱼ ← accⱼ ∘ x₀ⱼ ∘ x₁ⱼ ∘ …`.
///
/// # Safety
/// Row `r`, `acc.len()` elements from `x + r·pitch`, is readable for every `r < rows`.
#[inline]
pub unsafe fn columns<T: Scalar, F: Fold<T>>(
    fold: F,
    rows: usize,
    x: *const T,
    pitch: isize,
    acc: &mut [F::Acc],
) {
    dispatch(ColumnFold { fold, rows, x, pitch, acc });
}
