//! Elementary functions on `f32`. Errors are in units in the last place of the exact result; tests check them on
//! arguments of every scale.

use super::{arc, erf as gaussian, exp as exponential, hyperbolic, log, pow as power, trig};

/// eˣ. Error ≤ 1.1 ulp.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    exponential::exp(x)
}

/// `eˣ − 1`. Error ≤ 1.6 ulp.
#[inline(always)]
pub fn exp_m1(x: f32) -> f32 {
    exponential::exp_m1(x)
}

/// `1/(1 + e⁻ˣ)`. Error ≤ 1.7 ulp.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    exponential::sigmoid(x)
}

/// ln x. Error ≤ 1 ulp.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    log::ln(x)
}

/// `ln(1 + x)`. Error ≤ 1 ulp.
#[inline(always)]
pub fn ln_1p(x: f32) -> f32 {
    log::ln_1p(x)
}

/// Sine, for every finite argument. Error ≤ 1 ulp.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    trig::sin_f32(x)
}

/// Cosine, for every finite argument. Error ≤ 1 ulp.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    trig::cos_f32(x)
}

/// Sine and cosine of `2π·turns`, for at most a million turns. Error ≤ 1.5 ulp of the larger of the two.
#[inline(always)]
pub fn sin_cos_turns(turns: f32) -> (f32, f32) {
    trig::sin_cos_turns(turns)
}

/// Tangent, for every finite argument. Error ≤ 1 ulp.
#[inline(always)]
pub fn tan(x: f32) -> f32 {
    trig::tan_f32(x)
}

/// Inverse sine. Error ≤ 1.5 ulp.
#[inline(always)]
pub fn asin(x: f32) -> f32 {
    arc::asin(x)
}

/// Inverse cosine. Error ≤ 1.5 ulp.
#[inline(always)]
pub fn acos(x: f32) -> f32 {
    arc::acos(x)
}

/// Inverse tangent. Error ≤ 1.5 ulp.
#[inline(always)]
pub fn atan(x: f32) -> f32 {
    arc::atan(x)
}

/// Hyperbolic sine. Error ≤ 1.7 ulp.
#[inline(always)]
pub fn sinh(x: f32) -> f32 {
    hyperbolic::sinh(x)
}

/// Hyperbolic cosine. Error ≤ 1.5 ulp.
#[inline(always)]
pub fn cosh(x: f32) -> f32 {
    hyperbolic::cosh(x)
}

/// Hyperbolic tangent. Error ≤ 1.6 ulp.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    hyperbolic::tanh(x)
}

/// Inverse hyperbolic sine. Error ≤ 1 ulp.
#[inline(always)]
pub fn asinh(x: f32) -> f32 {
    hyperbolic::asinh_f32(x)
}

/// Inverse hyperbolic cosine. Error ≤ 1 ulp.
#[inline(always)]
pub fn acosh(x: f32) -> f32 {
    hyperbolic::acosh_f32(x)
}

/// Inverse hyperbolic tangent. Error ≤ 1 ulp.
#[inline(always)]
pub fn atanh(x: f32) -> f32 {
    hyperbolic::atanh_f32(x)
}

/// Error function `2/√π ∫₀ˣ e^(−t²) dt`. Error ≤ 2 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    gaussian::erf(x)
}

/// `1 − erf x`, accurate relative to its value. Error ≤ 6.5 ulp.
#[inline(always)]
pub fn erfc(x: f32) -> f32 {
    gaussian::erfc(x)
}

/// Gaussian error linear unit `½x(1 + erf(x/√2))`, accurate relative to its value. Error ≤ 6.5 ulp.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    gaussian::gelu(x)
}

/// Derivative of [`gelu`], `Φ(x) + x·φ(x)` with the normal distribution Φ and its density φ. Error ≤ 8
/// ulp of the result or of `Φ(−|x|)`, the larger: the derivative is 0 at −0.7518.
#[inline(always)]
pub fn gelu_derivative(x: f32) -> f32 {
    gaussian::gelu_derivative(x)
}

/// xʸ with the special cases of IEEE 754. Error ≤ 1 ulp.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    power::pow_f32(x, y)
}

/// Angle of the point (`x`, `y`) in [−π, π]. Error ≤ 2 ulp.
#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    arc::atan2(y, x)
}

/// Replaces every element by its sine, as [`sin`] does.
#[inline(always)]
pub fn sin_slice(values: &mut [f32]) {
    trig::sin_slice_f32(values);
}

/// Replaces every element by its cosine, as [`cos`] does.
#[inline(always)]
pub fn cos_slice(values: &mut [f32]) {
    trig::cos_slice_f32(values);
}

/// Replaces every element by its tangent, as [`tan`] does.
#[inline(always)]
pub fn tan_slice(values: &mut [f32]) {
    for v in values {
        *v = tan(*v);
    }
}
