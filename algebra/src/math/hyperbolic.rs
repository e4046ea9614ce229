//! Hyperbolic functions and their inverses.
//!
//! Near 0 odd polynomials x + x³·P(x²) of least maximum relative error; elsewhere the exponential. The inverses are
//! logarithms of sums without cancellation; for `f32` they are computed in `f64`.

use super::exp::{Exponential, exp_negative, exp_sum};
use super::lane::{Lane, horner, pick};
use super::log::{ln_1p, ln_single};

/// Coefficients of the polynomials around 0.
pub(super) trait Hyperbolic: Exponential {
    /// `(sinh x − x)/x³` as a polynomial in x², |x| ≤ 1.
    const SINH: &'static [Self];
    /// `(tanh x − x)/x³` as a polynomial in x², |x| ≤ 0.55.
    const TANH: &'static [Self];
}

impl Hyperbolic for f32 {
    const SINH: &'static [f32] = &[0.16666667, 0.00833335, 0.0001983616, 2.8169518e-06];
    const TANH: &'static [f32] =
        &[-0.33333322, 0.13332711, -0.053863123, 0.021110173, -0.0063226754];
}

impl Hyperbolic for f64 {
    const SINH: &'static [f64] = &[
        0.16666666666666666,
        0.008333333333333333,
        0.0001984126984126966,
        2.755731922409475e-06,
        2.505210835084259e-08,
        1.6059050113427769e-10,
        7.64651171958234e-13,
        2.8475367841287563e-15,
    ];
    const TANH: &'static [f64] = &[
        -0.33333333333333326,
        0.13333333333330172,
        -0.05396825396541328,
        0.021869488425693463,
        -0.008863233169320374,
        0.0035920971369634925,
        -0.0014555726194848567,
        0.0005885568647750907,
        -0.00023364659307271199,
        8.367146454372001e-05,
        -1.970091545639148e-05,
    ];
}

/// `a + a³·P(a²)`.
#[inline(always)]
fn odd<L: Lane>(a: L, p: &[L]) -> L {
    let z = a * a;
    (a * z).fma(horner(z, p), a)
}

#[inline(always)]
pub(super) fn sinh<L: Hyperbolic>(x: L) -> L {
    let a = x.abs();
    let half = exp_sum(a, L::of(0.0), -1.0);
    let far = half - L::of(0.25) / half;
    pick(a < L::of(1.0), odd(a, L::SINH), far).copysign(x)
}

#[inline(always)]
pub(super) fn cosh<L: Hyperbolic>(x: L) -> L {
    let half = exp_sum(x.abs(), L::of(0.0), -1.0);
    half + L::of(0.25) / half
}

#[inline(always)]
pub(super) fn tanh<L: Hyperbolic>(x: L) -> L {
    let a = x.abs();
    let e = exp_negative(L::of(-2.0) * a);
    // 1 − 2e/(1 + e) has no cancellation: the quotient is at most ½ here.
    let far = L::of(1.0) - (e + e) / (L::of(1.0) + e);
    pick(a < L::of(0.55), odd(a, L::TANH), far).copysign(x)
}

/// `ln(a + √(a² + 1))`; below 2⁻¹² the next term of the series is under half a unit.
#[inline(always)]
pub(super) fn asinh_f32(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let y = ln_single(a + a.fma(a, 1.0).sqrt()) as f32;
    let y = pick(x.abs() < f32::INFINITY, y, x.abs());
    let near = (x * x * x.abs()).fma(-1.0 / 6.0, x.abs());
    pick(x.abs() < 0.000_244_140_63, near, y).copysign(x)
}

/// `ln(x + √(x² − 1))`.
#[inline(always)]
pub(super) fn acosh_f32(x: f32) -> f32 {
    let a = f64::from(x);
    let y = ln_single(a + a.fma(a, -1.0).sqrt()) as f32;
    let y = pick(x < f32::INFINITY, y, x);
    pick(x < 1.0, f32::NAN, y)
}

/// `½ ln((1 + x)/(1 − x))`.
#[inline(always)]
pub(super) fn atanh_f32(x: f32) -> f32 {
    let a = x.abs();
    let wide = f64::from(a);
    let y = (0.5 * ln_single((1.0 + wide) / (1.0 - wide))) as f32;
    let near = (a * a * a).fma(1.0 / 3.0, a);
    let y = pick(a < 0.000_244_140_63, near, y);
    let pole = pick(a == 1.0, f32::INFINITY, f32::NAN);
    pick(a < 1.0, y, pole).copysign(x)
}

/// Threshold above which √(x² ± 1) rounds to x, and 1 + x to x.
const FAR: f64 = 1_152_921_504_606_846_976.0;

/// `ln1p(a + a²/(1 + √(a² + 1)))`, and `ln a + ln 2` before a² overflows.
#[inline(always)]
pub(super) fn asinh_f64(x: f64) -> f64 {
    let a = x.abs();
    let square = a * a;
    let far = a > FAR;
    let sum = a + square / (1.0 + (square + 1.0).sqrt());
    let y = ln_1p(pick(far, a, sum));
    let y = y + pick(far, std::f64::consts::LN_2, 0.0);
    pick(a < f64::TINY, a, y).copysign(x)
}

/// `ln1p(t + √(2t + t²))` with t = x − 1, and `ln x + ln 2` where both are equal after rounding.
#[inline(always)]
pub(super) fn acosh_f64(x: f64) -> f64 {
    let t = x - 1.0;
    let far = x > FAR;
    let sum = t + t.fma(t, t + t).sqrt();
    let y = ln_1p(pick(far, x, sum));
    let y = y + pick(far, std::f64::consts::LN_2, 0.0);
    pick(x < 1.0, f64::NAN, y)
}

/// `½ ln1p(2x/(1 − x))`.
#[inline(always)]
pub(super) fn atanh_f64(x: f64) -> f64 {
    let a = x.abs();
    let y = 0.5 * ln_1p((a + a) / (1.0 - a));
    pick(a < f64::TINY, a, y).copysign(x)
}
