//! Logarithms: ln x = k·ln 2 + ln m with √½ ≤ m < √2.
//!
//! With f = m − 1 and s = f/(2 + f), ln m = 2 artanh s = 2s + s·z·R(z), z = s²; in the form
//! f − (f²/2 − s(f²/2 + z·R)) the leading term is exact (fdlibm, `e_log.c`, 1993). R is the
//! polynomial of least maximum relative error (Remez exchange).

use super::lane::{Lane, horner, pick};

/// Coefficients of R.
pub(super) trait Logarithm: Lane {
    /// `(2 artanh s − 2s)/s³` as a polynomial in s².
    const R: &'static [Self];
    /// A power of two that makes subnormal numbers normal, and its exponent.
    const LIFT: (f64, f64);
}

impl Logarithm for f32 {
    const R: &'static [f32] = &[0.66666776, 0.39977443, 0.29874608];
    const LIFT: (f64, f64) = (33_554_432.0, 25.0);
}

impl Logarithm for f64 {
    const R: &'static [f64] = &[
        0.6666666666666697,
        0.3999999999960605,
        0.2857142870694084,
        0.22222201727822527,
        0.18183418467291285,
        0.15317428662495094,
        0.1476496770833886,
    ];
    const LIFT: (f64, f64) = (18_014_398_509_481_984.0, 54.0);
}

/// `(k, m)` with `x = 2ᵏ·m` for positive finite `x`, subnormal ones included.
#[inline(always)]
pub(super) fn split<L: Logarithm>(x: L) -> (L, L) {
    let subnormal = x < L::MIN_POSITIVE;
    let (k, m) = pick(subnormal, x * L::of(L::LIFT.0), x).split();
    (k - pick(subnormal, L::of(L::LIFT.1), L::of(0.0)), m)
}

/// `k·ln 2 + ln(1 + f) + low`, with `low` small relative to the sum.
#[inline(always)]
fn assemble<L: Logarithm>(k: L, f: L, low: L) -> L {
    let s = f / (L::of(2.0) + f);
    let z = s * s;
    let half = L::of(0.5) * f * f;
    let tail = s.fma(z.fma(horner(z, L::R), half), k.fma(L::LN_2.1, low));
    k.fma(L::LN_2.0, f - (half - tail))
}

/// `y`, the logarithm of `x`, if `x` is positive and finite; otherwise −∞ at 0, NaN below, and the limit at ∞.
#[inline(always)]
fn limits<L: Lane>(x: L, y: L) -> L {
    let y = pick(x < L::INFINITY, y, x);
    let y = pick(x < L::of(0.0), L::NAN, y);
    pick(x == L::of(0.0), -L::INFINITY, y)
}

#[inline(always)]
pub(super) fn ln<L: Logarithm>(x: L) -> L {
    let (k, m) = split(x);
    limits(x, assemble(k, m - L::of(1.0), L::of(0.0)))
}

/// `ln(1 + x)`; `1 + x` is split, and the rounding error of the sum is included.
#[inline(always)]
pub(super) fn ln_1p<L: Logarithm>(x: L) -> L {
    let one = L::of(1.0);
    let u = one + x;
    let (k, m) = u.split();
    // The error of the sum (Knuth's two-sum), scaled like m; |k| is small where it is significant.
    let v = u - x;
    let lost = (one - v) + (x - (u - v));
    let lost = lost * (m / u);
    let high = m - one;
    let f = high + lost;
    let y = assemble(k, f, lost - (f - high));
    pick(x.abs() < L::TINY, x, limits(u, y))
}

/// `ln x` to a relative 2⁻³⁷ in `f64` for normal positive finite `x`, for results that are
/// rounded to `f32`.
#[inline(always)]
pub(super) fn ln_single(x: f64) -> f64 {
    const R: [f64; 4] =
        [0.6666666566682529, 0.400003322974865, 0.2853742097456209, 0.2358093224506523];
    let (k, m) = x.split();
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    k.fma(std::f64::consts::LN_2, s.fma(z.fma(horner(z, &R), -f), f))
}
