//! Sums and maxima along a contiguous row.
//!
//! [`LANES`] partial results run side by side, those of runs of lanes meet pairwise and lanes in a tree, as in
//! the reduction loops, with the same bound of the error. Everything is inlined into the [`Loop`](t4a_algebra::simd::Loop) that calls it.

use t4a_algebra::Float;

use super::axis::WIDTH;

use crate::loops::fold::RUN;
pub(super) use crate::loops::fold::{LANES, Pairwise, meet};

/// `max xᵢ`, ignoring NaN; −∞ for an empty row.
#[inline(always)]
pub(super) fn max<T: Float>(x: &[T]) -> T {
    let larger = |a: T, b: T| if b > a { b } else { a };
    let mut lanes = [T::NEG_INFINITY; LANES];
    let (chunks, tail) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(tail) {
        *lane = larger(*lane, x);
    }
    meet(lanes, larger)
}

/// `Σ f(xᵢ)`.
#[inline(always)]
pub(super) fn sum<T: Float>(x: &[T], f: impl Fn(T) -> T) -> T {
    let mut total = Pairwise::<T, LANES>::new();
    for x in x.chunks(RUN * LANES) {
        let mut lanes = [T::ZERO; LANES];
        let (chunks, tail) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = lane.add(f(x));
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(tail) {
            *lane = lane.add(f(x));
        }
        total.push(lanes, T::add);
    }
    total.finish(T::add).map_or(T::ZERO, |lanes| meet(lanes, T::add))
}

/// `Σ xᵢ·f(yᵢ)`.
#[inline(always)]
pub(super) fn dot<T: Float>(x: &[T], y: &[T], f: impl Fn(T) -> T) -> T {
    let mut total = Pairwise::<T, LANES>::new();
    for (x, y) in x.chunks(RUN * LANES).zip(y.chunks(RUN * LANES)) {
        let mut lanes = [T::ZERO; LANES];
        let (xs, x_tail) = x.as_chunks::<LANES>();
        let (ys, y_tail) = y.as_chunks::<LANES>();
        for (x, y) in xs.iter().zip(ys) {
            for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
                *lane = x.mul_add(f(y), *lane);
            }
        }
        for ((lane, &x), &y) in lanes.iter_mut().zip(x_tail).zip(y_tail) {
            *lane = x.mul_add(f(y), *lane);
        }
        total.push(lanes, T::add);
    }
    total.finish(T::add).map_or(T::ZERO, |lanes| meet(lanes, T::add))
}

/// Rows that are added in order before they meet those before them.
const ROWS: usize = 32;

/// Sums of neighbouring lanes, row by row.
pub(super) struct Sums<T> {
    now: [T; WIDTH],
    rows: usize,
    before: Pairwise<T, WIDTH>,
}

impl<T: Float> Sums<T> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { now: [T::ZERO; WIDTH], rows: 0, before: Pairwise::new() }
    }

    /// Where the next row is added.
    #[inline(always)]
    pub(super) fn next(&mut self) -> &mut [T; WIDTH] {
        if self.rows == ROWS {
            self.before.push(self.now, T::add);
            (self.now, self.rows) = ([T::ZERO; WIDTH], 0);
        }
        self.rows += 1;
        &mut self.now
    }

    #[inline(always)]
    pub(super) fn finish(mut self) -> [T; WIDTH] {
        self.before.push(self.now, T::add);
        self.before.finish(T::add).unwrap_or([T::ZERO; WIDTH])
    }
}
