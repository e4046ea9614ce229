//! Properties of a floating-point format that the approximations use.
//!
//! All functions are straight-line arithmetic on values and bit patterns of one width, so that a loop over them
//! vectorises. Integers are stored in floats: adding [`Lane::ROUNDER`] = 1.5·2ᵖ⁻¹ (p the precision) rounds to the
//! nearest integer k and leaves k in the low bits, which avoids the float ↔ integer conversions that AVX2 lacks for 64
//! bits.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `f32` or `f64`.
pub(super) trait Lane:
    Copy
    + 'static
    + PartialOrd
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// 1.5·2ᵖ⁻¹.
    const ROUNDER: Self;
    /// +∞.
    const INFINITY: Self;
    /// A quiet NaN.
    const NAN: Self;
    /// Smallest normal number.
    const MIN_POSITIVE: Self;
    /// 2⁻ᵖ⁻¹: below it, `x` is the correctly rounded value of any odd function `x + O(x³)`.
    const TINY: Self;
    /// d and 2⁻ᵈ, with d near half of the exponent range.
    const DOWN: (Self, Self);
    /// ln 2 to twice the precision.
    const LN_2: (Self, Self);
    /// π/2 to twice the precision.
    const PI_2: (Self, Self);

    /// The constant nearest to `v`.
    fn of(v: f64) -> Self;
    /// `self · b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    /// `|self|`.
    fn abs(self) -> Self;
    /// `|self|` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// True for NaN.
    fn is_nan(self) -> bool;
    /// `√self`.
    fn sqrt(self) -> Self;
    /// Nearest integer, of any magnitude, ties to even.
    fn rint(self) -> Self;
    /// `self·2ᵏ` from `k + ROUNDER`, for normal numbers and results; any number for NaN.
    fn times_pow2(self, shifted: Self) -> Self;
    /// `2ᵏ` from `k + ROUNDER`, for normal results.
    #[inline(always)]
    fn pow2(self) -> Self {
        Self::of(1.0).times_pow2(self)
    }
    /// `(k, m)` with `self = 2ᵏ·m`, `√½ ≤ m < √2`, for positive normal numbers.
    fn split(self) -> (Self, Self);
}

macro_rules! lane {
    ($t:ident, $bits:ident, $rounder:expr, $ln_2:expr, $pi_2:expr) => {
        impl Lane for $t {
            const ROUNDER: Self = $rounder;
            const INFINITY: Self = $t::INFINITY;
            const NAN: Self = $t::NAN;
            const MIN_POSITIVE: Self = $t::MIN_POSITIVE;
            const TINY: Self = $t::EPSILON / 4.0;
            const DOWN: (Self, Self) = {
                let exponent = ($t::MAX_EXP - 1 - $t::MAX_EXP / 2) as $bits;
                let power = $t::from_bits(exponent << ($t::MANTISSA_DIGITS - 1));
                ($t::MAX_EXP as $t / 2.0, power)
            };
            const LN_2: (Self, Self) = $ln_2;
            const PI_2: (Self, Self) = $pi_2;

            #[inline(always)]
            fn of(v: f64) -> Self {
                v as Self
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $t::copysign(self, sign)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn rint(self) -> Self {
                self.round_ties_even()
            }
            #[inline(always)]
            fn times_pow2(self, shifted: Self) -> Self {
                let k = shifted.to_bits() << ($t::MANTISSA_DIGITS - 1);
                $t::from_bits(self.to_bits().wrapping_add(k))
            }
            #[inline(always)]
            fn split(self) -> (Self, Self) {
                const FRACTION: u32 = $t::MANTISSA_DIGITS - 1;
                const ONE: $bits = (1.0 as $t).to_bits();
                const LOW: $bits = (std::f64::consts::FRAC_1_SQRT_2 as $t).to_bits();
                // With √½ shifted to a power of two, the exponent field is k.
                let moved = self.to_bits().wrapping_add(ONE - LOW);
                let m = (moved & ((1 << FRACTION) - 1)) + LOW;
                // The exponent becomes the last digits of 2ᵖ⁻¹ + exponent.
                const UNIT: $t = (1u64 << FRACTION) as $t;
                let e = $t::from_bits((moved >> FRACTION) | UNIT.to_bits());
                (e - (UNIT + ($t::MAX_EXP - 1) as $t), $t::from_bits(m))
            }
        }
    };
}

lane!(
    f32,
    u32,
    12_582_912.0,
    (std::f32::consts::LN_2, -1.904_654_2e-9),
    (std::f32::consts::FRAC_PI_2, -4.371_139e-8)
);
lane!(
    f64,
    u64,
    6_755_399_441_055_744.0,
    (std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17),
    (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17)
);

/// `if condition { a } else { b }` on computed values: a blend, never a branch.
#[inline(always)]
pub(super) fn pick<L: Lane>(condition: bool, a: L, b: L) -> L {
    if condition { a } else { b }
}

/// `c₀ + c₁x + c₂x² + …` by Horner's rule. Independent elements hide its latency.
#[inline(always)]
pub(super) fn horner<L: Lane>(x: L, c: &[L]) -> L {
    let mut i = c.len() - 1;
    let mut acc = c[i];
    while i > 0 {
        i -= 1;
        acc = acc.fma(x, c[i]);
    }
    acc
}

/// `c₀ + c₁x + … + cₙ₋₁xⁿ⁻¹ + xⁿ` by Horner's rule, whose first step is an addition: many CPUs have separate units for
/// additions and for multiplications.
#[inline(always)]
pub(super) fn monic<L: Lane>(x: L, c: &[L]) -> L {
    let mut i = c.len() - 1;
    let mut acc = x + c[i];
    while i > 0 {
        i -= 1;
        acc = acc.fma(x, c[i]);
    }
    acc
}

/// `(k, k + ROUNDER)` with k the integer nearest to `x`, `|x| < 2ᵖ⁻²`.
#[inline(always)]
pub(super) fn nearest<L: Lane>(x: L) -> (L, L) {
    let shifted = x + L::ROUNDER;
    (shifted - L::ROUNDER, shifted)
}

/// `2ᵏ·p` with at most one rounding, also where the result overflows or is subnormal.
#[inline(always)]
pub(super) fn scale<L: Lane>(p: L, k: L) -> L {
    let shifted = k.fma(L::of(0.5), L::ROUNDER);
    let half = shifted - L::ROUNDER;
    p * shifted.pow2() * (k - half + L::ROUNDER).pow2()
}

/// `max(x, limit)`; NaN for NaN.
#[inline(always)]
pub(super) fn at_least<L: Lane>(x: L, limit: L) -> L {
    pick(x < limit, limit, x)
}

/// `min(x, limit)`; NaN for NaN.
#[inline(always)]
pub(super) fn at_most<L: Lane>(x: L, limit: L) -> L {
    pick(limit < x, limit, x)
}

/// `x` clamped to `[low, high]`; NaN for NaN.
#[inline(always)]
pub(super) fn clamp<L: Lane>(x: L, low: f64, high: f64) -> L {
    at_most(at_least(x, L::of(low)), L::of(high))
}
