//! Ordered numbers with extreme values as −∞ and +∞, for tropical semirings.
//!
//! Floats have infinities; integers use their extreme values, and sums out of range saturate instead of wrapping.

use half::{bf16, f16};

use super::{Numeric, Real};

/// A real number with [`Real::LOWEST`] as −∞ and [`Real::HIGHEST`] as +∞.
///
/// The *plain* constants and tests serve matrix products: on plain elements the sums and products of a semiring are one
/// machine instruction, because overflow, wrapping and NaN cannot occur.
pub trait Extended: Real<Acc: Real> {
    /// `a + b`; −∞ absorbs everything but NaN. Integers saturate.
    fn plus_low(self, rhs: Self) -> Self;
    /// `a + b`; +∞ absorbs everything but NaN. Integers saturate.
    fn plus_high(self, rhs: Self) -> Self;
    /// `a · b` for numbers ≥ 0; 0 absorbs everything but NaN. Integers saturate.
    fn times(self, rhs: Self) -> Self;
    /// `a · b` for numbers ≥ 0; +∞ absorbs everything but NaN. Integers saturate.
    fn times_high(self, rhs: Self) -> Self;

    /// True if [`Real::max`] replaces `rhs` by `self`: larger, or the first NaN.
    #[inline(always)]
    fn wins_max(self, rhs: Self) -> bool {
        (self > rhs) | (self.is_nan() & !rhs.is_nan())
    }
    /// True if [`Real::min`] replaces `rhs` by `self`: smaller, or the first NaN.
    #[inline(always)]
    fn wins_min(self, rhs: Self) -> bool {
        (self < rhs) | (self.is_nan() & !rhs.is_nan())
    }

    /// True if sums of two such numbers are exact up to rounding, and distinguishable from sums with
    /// ±[`Extended::FAR`].
    fn is_plain_term(self) -> bool;
    /// True if products of two such numbers are exact up to rounding.
    fn is_plain_factor(self) -> bool;

    /// `a + b` of accumulators as `1·a + b`: a fused multiply-add for floats, given 1.
    #[inline(always)]
    fn fused_sum(a: Self::Acc, b: Self::Acc, one: Self::Acc) -> Self::Acc {
        if Self::IS_FLOAT { a.mul_add(one, b) } else { a.add(b) }
    }

    /// True for floats.
    const IS_FLOAT: bool;
    /// Encoding of ∞ in sums of plain terms.
    const FAR: Self::Acc;
    /// Upper bound of the magnitude of a sum of two plain terms; sums with [`Extended::FAR`] exceed it.
    const BOUND: Self::Acc;
}

/// An [`Extended`] number with −∞ < 0: floats and signed integers.
pub trait Signed: Extended {}

/// True if a result is NaN for operands that are not: ∞ − ∞ or 0·∞. Branch-free, as all arithmetic of checked
/// microkernels.
#[inline(always)]
fn undefined<T: Real>(a: T, b: T, result: T) -> bool {
    result.is_nan() & !a.is_nan() & !b.is_nan()
}

macro_rules! float {
    ($($t:ty: $wide:ty),*) => {$(
        impl Signed for $t {}
        impl Extended for $t {
            const IS_FLOAT: bool = true;
            const FAR: $wide = <$wide>::INFINITY;
            const BOUND: $wide = <$wide>::INFINITY;
            #[inline(always)]
            fn plus_low(self, rhs: Self) -> Self {
                let sum = self.add(rhs);
                if undefined(self, rhs, sum) { Self::LOWEST } else { sum }
            }
            #[inline(always)]
            fn plus_high(self, rhs: Self) -> Self {
                let sum = self.add(rhs);
                if undefined(self, rhs, sum) { Self::HIGHEST } else { sum }
            }
            #[inline(always)]
            fn times(self, rhs: Self) -> Self {
                let product = self.mul(rhs);
                if undefined(self, rhs, product) { <Self as Numeric>::ZERO } else { product }
            }
            #[inline(always)]
            fn times_high(self, rhs: Self) -> Self {
                let product = self.mul(rhs);
                if undefined(self, rhs, product) { Self::HIGHEST } else { product }
            }
            #[inline(always)]
            fn is_plain_term(self) -> bool { self > Self::LOWEST && self < Self::HIGHEST }
            #[inline(always)]
            fn is_plain_factor(self) -> bool { self.is_plain_term() }
        }
    )*};
}
float!(f32: f32, f64: f64, f16: f32, bf16: f32);

/// For signed types of b bits, plain terms have magnitude at most 2ᵇ⁻⁴, their sums 2ᵇ⁻³, and FAR is just below 2ᵇ⁻²:
/// sums with one FAR exceed 2ᵇ⁻³ and a sum of two fits. Unsigned types have one bit more for each.
macro_rules! int {
    ($sign:literal: $($t:ty),*) => {$(
        impl Extended for $t {
            const IS_FLOAT: bool = false;
            const FAR: Self = (1 << (Self::BITS - 1 - $sign)) - 1;
            const BOUND: Self = 1 << (Self::BITS - 2 - $sign);
            #[inline(always)]
            fn plus_low(self, rhs: Self) -> Self {
                let low = Self::LOWEST;
                if (self == low) | (rhs == low) { low } else { self.saturating_add(rhs) }
            }
            #[inline(always)]
            fn plus_high(self, rhs: Self) -> Self {
                let high = Self::HIGHEST;
                if (self == high) | (rhs == high) { high } else { self.saturating_add(rhs) }
            }
            #[inline(always)]
            fn times(self, rhs: Self) -> Self { self.saturating_mul(rhs) }
            #[inline(always)]
            fn times_high(self, rhs: Self) -> Self {
                let high = Self::HIGHEST;
                if (self == high) | (rhs == high) { high } else { self.saturating_mul(rhs) }
            }
            #[inline(always)]
            fn is_plain_term(self) -> bool {
                (Self::MIN / 8..1 << (Self::BITS - 3 - $sign)).contains(&self)
            }
            #[inline(always)]
            fn is_plain_factor(self) -> bool {
                (0..1 << ((Self::BITS - $sign) / 2)).contains(&self)
            }
        }
    )*};
}
int!(1: i8, i16, i32, i64);
int!(0: u8, u16, u32, u64);

impl Signed for i8 {}
impl Signed for i16 {}
impl Signed for i32 {}
impl Signed for i64 {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinities_absorb() {
        let inf = f32::INFINITY;
        assert_eq!((-inf).plus_low(inf), -inf);
        assert_eq!(inf.plus_high(-inf), inf);
        assert_eq!(0.0f32.times(inf), 0.0);
        assert!(f32::NAN.plus_low(-inf).is_nan() && f64::NAN.times(0.0).is_nan());
        assert_eq!(i32::MIN.plus_low(-1), i32::MIN);
        assert_eq!(i32::MIN.plus_low(i32::MAX), i32::MIN);
        assert_eq!(i32::MAX.plus_high(i32::MIN), i32::MAX);
        assert_eq!((-100i8).plus_low(-100), i8::MIN);
        assert_eq!(u8::MAX.plus_high(0), u8::MAX);
        assert_eq!(100i8.times(100), i8::MAX);
    }

    /// Exhaustive over bytes: plain sums and products do not wrap, and sums with FAR exceed BOUND, which plain sums do
    /// not.
    #[test]
    fn plain_numbers_keep_their_promises() {
        for a in i8::MIN..=i8::MAX {
            for b in i8::MIN..=i8::MAX {
                let far = [i8::FAR, -i8::FAR].map(|f| a.checked_add(f).unwrap_or(0));
                if a.is_plain_term() {
                    assert!(far[0] > i8::BOUND && far[1] < -i8::BOUND);
                    if b.is_plain_term() {
                        assert!(a.checked_add(b).unwrap().abs() <= i8::BOUND);
                    }
                }
                if a.is_plain_factor() && b.is_plain_factor() {
                    assert_eq!(a.checked_mul(b), Some(a.times(b)));
                }
                let (a, b) = (a as u8, b as u8);
                if a.is_plain_term() && b.is_plain_term() {
                    assert!(a.checked_add(b).unwrap() <= u8::BOUND);
                    assert!(a.checked_add(u8::FAR).unwrap() > u8::BOUND);
                }
                if a.is_plain_factor() && b.is_plain_factor() {
                    assert_eq!(a.checked_mul(b), Some(a.times(b)));
                }
            }
        }
        assert!(i8::FAR.checked_add(i8::FAR).is_some() && u8::FAR.checked_add(u8::FAR).is_some());
        assert!((0i8..16).all(|x| x.is_plain_term() && (-x).is_plain_term()));
        assert!((0u8..32).all(Extended::is_plain_term) && !32u8.is_plain_term());
        assert!(!f32::INFINITY.is_plain_term() && !f32::NAN.is_plain_factor());
        assert!(f32::MAX.is_plain_term());
    }
}
