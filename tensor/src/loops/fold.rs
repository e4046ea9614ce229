//! The two reduction loops over contiguous memory.
//!
//! Along a row, [`LANES`] or more partial results run side by side, so that the compiler keeps them in
//! vector registers. Results of runs of [`RUN`] chunks of lanes meet pairwise, and lanes meet in a tree:
//! for a sum, |error| ≤ (RUN + log₂ n)·ε·Σ|xᵢ| up to terms in ε². Across rows, every column keeps its own
//! partial result, and four rows meet before they meet those before them.

use std::mem::MaybeUninit;

use t4a_algebra::Scalar;
use t4a_algebra::simd::{Loop, dispatch};

use super::ahead;
use super::kernel::Fold;

/// Partial results side by side, where a loop has no reason for another number.
pub const LANES: usize = 32;
/// Partial results side by side of 4 bytes and less: eight 256-bit registers, as many as additions
/// are under way at a time (bench `backend`, row `sum 1024²`).
const NARROW_LANES: usize = 64;

/// Chunks of lanes that are folded in order.
pub const RUN: usize = 512;

/// Most partial results that wait to be merged: a layout has at most 2⁴⁸ elements.
pub(crate) const LEVELS: usize = 48;

/// Lanes of the shortest rows, of which more would see nothing (bench `backend`, row `sum 4×4`).
const SHORT: usize = 8;

struct Row<'a, T: Scalar, F> {
    fold: F,
    x: &'a [T],
}

impl<T: Scalar, F: Fold<T>> Loop for Row<'_, T, F> {
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

impl<T: Scalar, F: Fold<T>> Row<'_, T, F> {
    #[inline(always)]
    fn by<const LANES: usize>(self) -> F::Acc {
        let fold = self.fold;
        let mut total = Pairwise::<F::Acc, LANES>::new();
        for x in self.x.chunks(const { RUN * LANES }) {
            let mut lanes = [fold.init(); LANES];
            let (chunks, tail) = x.as_chunks::<LANES>();
            for chunk in chunks {
                ahead::read(chunk);
                for (lane, &x) in lanes.iter_mut().zip(chunk) {
                    *lane = fold.step(*lane, x);
                }
            }
            for (lane, &x) in lanes.iter_mut().zip(tail) {
                *lane = fold.step(*lane, x);
            }
            total.push(lanes, |a, b| fold.merge(a, b));
        }
        let lanes = total.finish(|a, b| fold.merge(a, b)).unwrap_or([fold.init(); LANES]);
        meet(lanes, |a, b| fold.merge(a, b))
    }
}

/// `f` over all lanes, of which there are a power of two.
#[inline(always)]
pub(crate) fn meet<A: Copy, const LANES: usize>(mut lanes: [A; LANES], f: impl Fn(A, A) -> A) -> A {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

/// Partial results that meet pairwise: of every run so far, one slot per bit of their number holds the
/// result of as many.
pub struct Pairwise<A, const LANES: usize> {
    waiting: [MaybeUninit<[A; LANES]>; LEVELS],
    top: usize,
    count: usize,
}

impl<A: Copy, const LANES: usize> Pairwise<A, LANES> {
    /// No result yet.
    #[inline(always)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { waiting: [const { MaybeUninit::uninit() }; LEVELS], top: 0, count: 0 }
    }

    /// Adds the result of the next run.
    #[inline(always)]
    pub fn push(&mut self, mut lanes: [A; LANES], merge: impl Fn(A, A) -> A) {
        for _ in 0..self.count.trailing_ones() {
            lanes = self.joined(lanes, &merge);
        }
        self.waiting[self.top].write(lanes);
        self.top += 1;
        self.count += 1;
    }

    /// All of them; `None` if there are none.
    #[inline(always)]
    pub fn finish(mut self, merge: impl Fn(A, A) -> A) -> Option<[A; LANES]> {
        self.top = self.top.checked_sub(1)?;
        // SAFETY: slots below the old top are written.
        let mut lanes = unsafe { self.waiting[self.top].assume_init() };
        while self.top > 0 {
            lanes = self.joined(lanes, &merge);
        }
        Some(lanes)
    }

    /// Takes the last slot, in front of these lanes.
    #[inline(always)]
    fn joined(&mut self, mut lanes: [A; LANES], merge: &impl Fn(A, A) -> A) -> [A; LANES] {
        self.top -= 1;
        // SAFETY: slots below the old top are written.
        let early = unsafe { self.waiting[self.top].assume_init_ref() };
        for (late, &early) in lanes.iter_mut().zip(early) {
            *late = merge(early, *late);
        }
        lanes
    }
}

/// Folds a row.
#[inline]
pub fn row<T: Scalar, F: Fold<T>>(fold: F, x: &[T]) -> F::Acc {
    dispatch(Row { fold, x })
}

struct Columns<'a, T: Scalar, F: Fold<T>> {
    fold: F,
    rows: usize,
    x: *const T,
    pitch: isize,
    acc: &'a mut [F::Acc],
}

impl<T: Scalar, F: Fold<T>> Loop for Columns<'_, T, F> {
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

impl<T: Scalar, F: Fold<T>> Columns<'_, T, F> {
    /// `B` columns at a time, whose partial results stay in registers for some rows.
    #[inline(always)]
    fn by<const B: usize>(self) {
        // Rows of a power of two lie in the same sets of a cache (bench `ops`, row `sum 1024² columns`).
        const ROWS: usize = 4;
        let Self { fold, rows, x, pitch, acc } = self;
        let len = acc.len();
        let row = |r: usize| {
            // SAFETY: row `r` holds as many elements as there are columns.
            unsafe { std::slice::from_raw_parts(x.wrapping_offset(r as isize * pitch), len) }
        };
        let (blocks, tail) = acc.as_chunks_mut::<B>();
        for first in (0..rows).step_by(ROWS) {
            let rows = first..(first + ROWS).min(rows);
            for (i, acc) in blocks.iter_mut().enumerate() {
                let mut partial = [fold.init(); B];
                for r in rows.clone() {
                    let x = &row(r).as_chunks::<B>().0[i];
                    ahead::read(x);
                    for j in 0..B {
                        partial[j] = fold.step(partial[j], x[j]);
                    }
                }
                for (acc, partial) in acc.iter_mut().zip(partial) {
                    *acc = fold.merge(*acc, partial);
                }
            }
            for (j, acc) in tail.iter_mut().enumerate() {
                let mut partial = fold.init();
                for r in rows.clone() {
                    partial = fold.step(partial, row(r)[len - len % B + j]);
                }
                *acc = fold.merge(*acc, partial);
            }
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
    dispatch(Columns { fold, rows, x, pitch, acc });
}
