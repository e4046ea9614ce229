//! First divided differences `f[a, b] = (f(b) − f(a))/(b − a)`, `f′(a)` if `a = b`, to full precision. The first
//! superdiagonal of a function of a triangular matrix is `t f[a, b]`.
//!
//! Reference: N. Higham, *Functions of Matrices*, section 11.6.2; N. Higham, L. Lin 2011.

use std::f64::consts::TAU;

use t4a_algebra::c64;

use super::square::ONE;

/// `x / y` without overflow of `|y|²`.
pub(crate) fn quotient(x: c64, y: c64) -> c64 {
    let size = y.re.abs().max(y.im.abs());
    let (near, size) = match size.is_normal() {
        true => (y / size, size),
        // The reciprocal of a subnormal number may overflow.
        false => (y * TO_NORMAL / (size * TO_NORMAL), size),
    };
    (x * near.conj() / near.norm_sqr()) / size
}

const TO_NORMAL: f64 = (1u64 << 60) as f64;

/// Principal square root; its smaller part is computed without cancellation.
pub(crate) fn sqrt(z: c64) -> c64 {
    let size = z.re.abs().max(z.im.abs());
    if size == 0.0 {
        return z;
    }
    // An even power of two is an exact scaling.
    let half = 2f64.powi((size.log2() / 2.0) as i32);
    let z = z / half / half;
    let large = ((z.norm() + z.re.abs()) / 2.0).sqrt();
    let small = z.im.abs() / (2.0 * large);
    let (re, im) = if z.re >= 0.0 { (large, small) } else { (small, large) };
    c64::new(re, im.copysign(z.im)) * half
}

/// `eᶻ − 1`.
pub(crate) fn exp_m1(z: c64) -> c64 {
    let (sin, cos) = z.im.sin_cos();
    let half = (z.im / 2.0).sin();
    c64::new(z.re.exp_m1() * cos - 2.0 * half * half, z.re.exp() * sin)
}

/// `ln(1 + z)`.
fn ln_1p(z: c64) -> c64 {
    let re = match z.re.abs().max(z.im.abs()) < 0.5 {
        true => 0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p(),
        false => (ONE + z).norm().ln(),
    };
    c64::new(re, z.im.atan2(1.0 + z.re))
}

/// `ln b − ln a` of principal logarithms.
fn ln_difference(a: c64, b: c64) -> c64 {
    // Relative to the smaller one, so that 1 + z does not vanish.
    if b.norm() < a.norm() {
        return -ln_difference(b, a);
    }
    let plain = b.ln() - a.ln();
    let ratio = ln_1p(quotient(b - a, a));
    if !ratio.is_finite() {
        return plain;
    }
    let turns = ((plain.im - ratio.im) / TAU).round();
    c64::new(ratio.re, ratio.im + TAU * turns)
}

/// `ln[a, b]`.
pub(crate) fn ln(a: c64, b: c64) -> c64 {
    if a == b { quotient(ONE, a) } else { quotient(ln_difference(a, b), b - a) }
}

/// `f[a, b]` of the principal power `zᵖ`.
pub(crate) fn power(p: f64, a: c64, b: c64) -> c64 {
    let value = (p * a.ln()).exp();
    if a == b {
        return quotient(p * value, a);
    }
    value * quotient(exp_m1(p * ln_difference(a, b)), b - a)
}

/// `exp[a, b]`.
pub(crate) fn exp(a: c64, b: c64) -> c64 {
    // The larger value is factored out: no intermediate overflows before the result.
    let (a, b) = if a.re >= b.re { (a, b) } else { (b, a) };
    let value = a.exp();
    if a == b { value } else { value * quotient(exp_m1(b - a), b - a) }
}
