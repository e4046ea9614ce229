//! Sums and maxima along a contiguous row.
//!
//! [`LANES`] partial results run side by side and meet in a tree, as in the reduction loops: the
//! compiler keeps them in vector registers and rounding errors grow with `n / LANES`. Everything
//! is inlined into the [`Loop`](t4a_algebra::simd::Loop) that calls it.

use t4a_algebra::Float;

pub(super) use crate::loops::fold::LANES;

/// `f` over all lanes, of which there are a power of two.
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
    meet(lanes, T::add)
}

/// `Σ xᵢ·yᵢ`.
#[inline(always)]
pub(super) fn dot<T: Float>(x: &[T], y: &[T]) -> T {
    let mut lanes = [T::ZERO; LANES];
    let (xs, x_tail) = x.as_chunks::<LANES>();
    let (ys, y_tail) = y.as_chunks::<LANES>();
    for (x, y) in xs.iter().zip(ys) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
            *lane = x.mul_add(y, *lane);
        }
    }
    for ((lane, &x), &y) in lanes.iter_mut().zip(x_tail).zip(y_tail) {
        *lane = x.mul_add(y, *lane);
    }
    meet(lanes, T::add)
}
