//! Sums and maxima along a contiguous row.
//!
//! [`LANES`] partial results are vectorised and combined in a tree, as in the reduction loops, for one block of a row
//! after another: |error| ≤ (512 + n / 2¹⁴)·ε·Σ|xᵢ|. All functions are inlined into the
//! [`Loop`](t4a_algebra::simd::Loop) that calls them.

use t4a_algebra::Float;

use super::axis::WIDTH;
pub(super) use crate::loops::fold::LANES;

/// Elements of a block for every lane.
const PER_LANE: usize = 512;

/// Elements of a block.
const BLOCK: usize = PER_LANE * LANES;

/// Reduction by `f` over all lanes; their number is a power of two.
#[inline(always)]
pub(super) fn meet<T: Float, const LANES: usize>(
    mut lanes: [T; LANES],
    f: impl Fn(T, T) -> T,
) -> T {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

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
    let mut total = T::ZERO;
    for x in x.chunks(BLOCK) {
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
        total = total.add(meet(lanes, T::add));
    }
    total
}

/// `Σ f(xᵢ)` and `Σ f(xᵢ)²`.
#[inline(always)]
pub(super) fn sum_and_squares<T: Float>(x: &[T], f: impl Fn(T) -> T) -> (T, T) {
    let mut totals = (T::ZERO, T::ZERO);
    for x in x.chunks(BLOCK) {
        let (mut sums, mut squares) = ([T::ZERO; LANES], [T::ZERO; LANES]);
        let (chunks, tail) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for ((sum, square), &x) in sums.iter_mut().zip(&mut squares).zip(chunk) {
                let y = f(x);
                *sum = sum.add(y);
                *square = y.mul_add(y, *square);
            }
        }
        for ((sum, square), &x) in sums.iter_mut().zip(&mut squares).zip(tail) {
            let y = f(x);
            *sum = sum.add(y);
            *square = y.mul_add(y, *square);
        }
        totals = (totals.0.add(meet(sums, T::add)), totals.1.add(meet(squares, T::add)));
    }
    totals
}

/// `Σ xᵢ·f(yᵢ)`.
#[inline(always)]
pub(crate) fn dot<T: Float>(x: &[T], y: &[T], f: impl Fn(T) -> T) -> T {
    let mut total = T::ZERO;
    for (x, y) in x.chunks(BLOCK).zip(y.chunks(BLOCK)) {
        let mut lanes = [T::ZERO; LANES];
        let (xs, x_tail) = x.as_chunks::<LANES>();
        let (ys, y_tail) = y.as_chunks::<LANES>();
        for (x, y) in xs.iter().zip(ys) {
            for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
                *lane = x.mul_add(f(y), *lane);
            }
        }
        // A copy: the index of the tail would keep `lanes` in memory for all rows.
        let mut last = lanes;
        for ((lane, &x), &y) in last.iter_mut().zip(x_tail).zip(y_tail) {
            *lane = x.mul_add(f(y), *lane);
        }
        total = total.add(sum_of(last));
    }
    total
}

/// The sum of the lanes. As part of the loop its tree makes the compiler pair the lanes instead of keeping them in whole
/// registers: `dot` of 2¹⁴ `f64` then takes 4.4 instead of 1.1 µs (Zen 5).
#[inline(never)]
fn sum_of<T: Float>(lanes: [T; LANES]) -> T {
    meet(lanes, T::add)
}

/// Number of rows added in order before they are combined with the previous ones.
const ROWS: usize = 128;

/// Sums of neighbouring lanes, row by row: |error| ≤ (128 + n / 128)·ε·Σ|xᵢ|.
pub(super) struct LaneSums<T> {
    now: [T; WIDTH],
    rows: usize,
    before: [T; WIDTH],
}

impl<T: Float> LaneSums<T> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { now: [T::ZERO; WIDTH], rows: 0, before: [T::ZERO; WIDTH] }
    }

    /// The lanes that the next row is added to.
    #[inline(always)]
    pub(super) fn next(&mut self) -> &mut [T; WIDTH] {
        if self.rows == ROWS {
            (self.before, self.now, self.rows) = (self.total(), [T::ZERO; WIDTH], 0);
        }
        self.rows += 1;
        &mut self.now
    }

    #[inline(always)]
    pub(super) fn total(&self) -> [T; WIDTH] {
        std::array::from_fn(|i| self.before[i].add(self.now[i]))
    }
}
