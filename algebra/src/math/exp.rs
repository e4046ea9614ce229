//! Exponentials: eˣ = 2ᵏ·eʳ with k the integer nearest to x/ln 2 and |r| ≤ ½ ln 2.
//!
//! The reduction subtracts k·ln 2 in two fused steps (Cody & Waite, *Software Manual for the
//! Elementary Functions*, 1980), of which the first is exact. eʳ − 1 = r + r²·P(r) with P the
//! polynomial of least maximum error relative to eʳ − 1 (Remez exchange).

use super::lane::{Lane, at_least, clamp, horner, nearest, pick, scale};

/// Coefficients of P and the arguments beyond which eˣ is 0 or ∞.
pub(super) trait Exponential: Lane {
    /// `(eʳ − 1 − r)/r²`.
    const P: &'static [Self];
    /// `e^LOWEST` rounds to 0.
    const LOWEST: f64;
    /// `½ e^HIGHEST` rounds to ∞.
    const HIGHEST: f64;
}

impl Exponential for f32 {
    const P: &'static [f32] = &[0.5, 0.16666543, 0.0416672, 0.008366581, 0.0013882499];
    const LOWEST: f64 = -104.0;
    const HIGHEST: f64 = 90.0;
}

impl Exponential for f64 {
    const P: &'static [f64] = &[
        0.5,
        0.16666666666666677,
        0.041666666666666505,
        0.008333333333321606,
        0.0013888888888962884,
        0.00019841269886207932,
        2.480158717185717e-05,
        2.755724410438246e-06,
        2.7557402929652927e-07,
        2.510908128685919e-08,
        2.087533269544305e-09,
    ];
    const LOWEST: f64 = -746.0;
    const HIGHEST: f64 = 711.0;
}

/// `(eʳ − 1, k, k + rounder)` with `hi + lo = k·ln 2 + r`, for `|hi|` below 2ᵖ⁻³ and an integer near [`Lane::ROUNDER`].
/// With −0 as `lo` the compiler omits its addition.
#[inline(always)]
fn reduced<L: Exponential>(hi: L, lo: L, rounder: L) -> (L, L, L) {
    let shifted = hi.fma(L::of(std::f64::consts::LOG2_E), rounder);
    let k = shifted - rounder;
    let r = (-k).fma(L::LN_2.0, hi);
    let r = (-k).fma(L::LN_2.1, r) + lo;
    ((r * r).fma(horner(r, L::P), r), k, shifted)
}

/// `2ʲ·e^(hi + lo)`, with overflow and gradual underflow.
#[inline(always)]
pub(super) fn exp_sum<L: Exponential>(hi: L, lo: L, j: f64) -> L {
    let (p, k, _) = reduced(clamp(hi, L::LOWEST, L::HIGHEST), lo, L::ROUNDER);
    scale(p + L::of(1.0), k + L::of(j))
}

/// `e^(hi + lo)` for `LOWEST ≤ hi ≤ 0`, with gradual underflow; any number for NaN.
#[inline(always)]
pub(super) fn exp_sum_below<L: Exponential>(hi: L, lo: L) -> L {
    let (p, _, shifted) = reduced(hi, lo, L::ROUNDER + L::DOWN.0);
    (p + L::of(1.0)).times_pow2(shifted) * L::DOWN.1
}

/// `eˣ` for `x ≤ 0`; subnormal results may be flushed to 0.
#[inline(always)]
pub(super) fn exp_negative<L: Exponential>(x: L) -> L {
    // 2ᵏ stays normal above this limit.
    let limit = L::of(0.8 * L::LOWEST);
    let (p, _, shifted) = reduced(at_least(x, limit), L::of(-0.0), L::ROUNDER);
    (p + L::of(1.0)) * shifted.pow2()
}

#[inline(always)]
pub(super) fn exp<L: Exponential>(x: L) -> L {
    exp_sum(x, L::of(-0.0), 0.0)
}

#[inline(always)]
pub(super) fn exp_m1<L: Exponential>(x: L) -> L {
    // 2ᵏ(eʳ − 1) + (2ᵏ − 1), halved so that 2ᵏ⁻¹ is finite whenever the result is.
    let (p, k, _) = reduced(clamp(x, -40.0, L::HIGHEST - 1.0), L::of(-0.0), L::ROUNDER);
    let half = (k - L::of(1.0) + L::ROUNDER).pow2();
    let y = half.fma(p, half - L::of(0.5));
    pick(x.abs() < L::TINY, x, y + y)
}

/// `1/(1 + e⁻ˣ)`, of which both terms of the sum are multiplied by 2⁻ᵈ, so that nothing overflows and only the result
/// may be subnormal. With e⁻ˣ = 2ᵏ(1 + p) the sum is `(1 + 2ᵏ) + 2ᵏp`; the rounding error of `1 + 2ᵏ`, 0 unless |k| is
/// large, is added to the last term.
#[inline(always)]
pub(super) fn sigmoid<L: Exponential>(x: L) -> L {
    // e⁻⁴⁰ is less than half a unit in the last place of 1.
    let x = clamp(x, L::LOWEST, 40.0);
    let (p, _, shifted) = reduced(-x, L::of(-0.0), L::ROUNDER - L::DOWN.0);
    let (unit, power) = (L::DOWN.1, shifted.pow2());
    let whole = unit + power;
    let lost = unit - (whole - power);
    unit / (power.fma(p, lost) + whole)
}

/// `e^(x)` to a relative 2⁻³¹ in `f64`, for results that are rounded to `f32`.
#[inline(always)]
pub(super) fn exp_single(x: f64) -> f64 {
    const P: [f64; 6] = [
        0.5000000044394793,
        0.1666666636863389,
        0.04166635982312662,
        0.008333389606787759,
        0.001394072018258913,
        0.0001984587236186525,
    ];
    let (k, shifted) = nearest(clamp(x, -160.0, 160.0) * std::f64::consts::LOG2_E);
    let r = (-k).fma(std::f64::consts::LN_2, clamp(x, -160.0, 160.0));
    (r * r).fma(horner(r, &P), r + 1.0) * shifted.pow2()
}
