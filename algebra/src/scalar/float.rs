//! `f32` and `f64`, with the elementary functions of [`crate::math`].

use super::{Field, Float, Numeric, Real, Scalar};
use crate::gemm::{Kernel, library};
use crate::math;

macro_rules! float {
    ($($t:ident),*) => {$(
        impl Scalar for $t {}

        impl Numeric for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const COMMUTES: bool = true;
            type Acc = Self;
            // SAFETY: `Self` is `f32` or `f64`.
            const GEMM: Option<Kernel<Self>> = Some(unsafe { library::kernel::<Self, library::RealLimits>() });
            #[inline(always)]
            fn add(self, rhs: Self) -> Self { self + rhs }
            #[inline(always)]
            fn sub(self, rhs: Self) -> Self { self - rhs }
            #[inline(always)]
            fn mul(self, rhs: Self) -> Self { self * rhs }
            #[inline(always)]
            fn neg(self) -> Self { -self }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self { <$t>::mul_add(self, b, c) }
            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(acc: Self) -> Self { acc }
            #[inline(always)]
            fn from_i64(v: i64) -> Self { v as Self }
            #[inline(always)]
            fn from_u64(v: u64) -> Self { v as Self }
            #[inline(always)]
            fn from_f64(v: f64) -> Self { v as Self }
        }

        impl Real for $t {
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const HIGHEST: Self = <$t>::INFINITY;
            #[inline(always)]
            fn div(self, rhs: Self) -> Self { self / rhs }
            #[inline(always)]
            fn rem_floor(self, rhs: Self) -> Self {
                // `%` is exact; only the sign is adjusted to that of the divisor.
                let r = self % rhs;
                if r != 0.0 && ((r < 0.0) != (rhs < 0.0)) { r + rhs } else { r }
            }
            // A vector maximum, and all bits set if `rhs` is NaN. As a select, a maximum that is stored over one of its
            // operands becomes a masked store, which is slow on AMD processors without AVX-512.
            #[inline(always)]
            fn max(self, rhs: Self) -> Self {
                let m = if rhs > self { rhs } else { self };
                <$t>::from_bits(m.to_bits() | if rhs.is_nan() { !0 } else { 0 })
            }
            #[inline(always)]
            fn min(self, rhs: Self) -> Self {
                let m = if rhs < self { rhs } else { self };
                <$t>::from_bits(m.to_bits() | if rhs.is_nan() { !0 } else { 0 })
            }
            // `self` may be NaN: a comparison with it is false, so it remains.
            #[inline(always)]
            fn max3(self, x: Self, y: Self) -> Self {
                let m = if y > x { y } else { x };
                let m = if m > self { m } else { self };
                let nan = x.is_nan() | y.is_nan();
                <$t>::from_bits(m.to_bits() | if nan { !0 } else { 0 })
            }
            #[inline(always)]
            fn min3(self, x: Self, y: Self) -> Self {
                let m = if y < x { y } else { x };
                let m = if m < self { m } else { self };
                let nan = x.is_nan() | y.is_nan();
                <$t>::from_bits(m.to_bits() | if nan { !0 } else { 0 })
            }
            #[inline(always)]
            fn abs(self) -> Self { <$t>::abs(self) }
            #[inline(always)]
            fn signum(self) -> Self {
                // −0 + 0 = 0, and NaN is unchanged.
                if self > 0.0 { 1.0 } else if self < 0.0 { -1.0 } else { self + 0.0 }
            }
            #[inline(always)]
            fn powi(self, n: i32) -> Self {
                let mut base = self;
                let mut n_left = n.unsigned_abs();
                let mut acc: Self = 1.0;
                while n_left > 0 {
                    if n_left & 1 == 1 {
                        acc *= base;
                    }
                    base *= base;
                    n_left >>= 1;
                }
                if n < 0 { 1.0 / acc } else { acc }
            }
            #[inline(always)]
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
        }

        impl Field for $t {
            type Real = Self;
            const IS_COMPLEX: bool = false;
            #[inline(always)]
            fn div(self, rhs: Self) -> Self { self / rhs }
            #[inline(always)]
            fn conj(self) -> Self { self }
            #[inline(always)]
            fn re(self) -> Self { self }
            #[inline(always)]
            fn im(self) -> Self { 0.0 }
            #[inline(always)]
            fn from_parts(re: Self, _im: Self) -> Self { re }
            #[inline(always)]
            fn abs_sq(self) -> Self { self * self }
            #[inline(always)]
            fn modulus(self) -> Self { <$t>::abs(self) }
        }

        impl Float for $t {
            const INFINITY: Self = <$t>::INFINITY;
            const NEG_INFINITY: Self = <$t>::NEG_INFINITY;
            const NAN: Self = <$t>::NAN;
            const EPSILON: Self = <$t>::EPSILON;
            const DIGITS: u32 = <$t>::MANTISSA_DIGITS;
            #[inline(always)]
            fn is_infinite(self) -> bool { <$t>::is_infinite(self) }
            #[inline(always)]
            fn is_finite(self) -> bool { <$t>::is_finite(self) }
            #[inline(always)]
            fn next_down(self) -> Self { <$t>::next_down(self) }
            #[inline(always)]
            fn floor(self) -> Self { <$t>::floor(self) }
            #[inline(always)]
            fn ceil(self) -> Self { <$t>::ceil(self) }
            #[inline(always)]
            fn trunc(self) -> Self { <$t>::trunc(self) }
            #[inline(always)]
            fn round(self) -> Self { <$t>::round_ties_even(self) }
            #[inline(always)]
            fn sqrt(self) -> Self { <$t>::sqrt(self) }
            #[inline(always)]
            fn exp(self) -> Self { math::$t::exp(self) }
            #[inline(always)]
            fn exp_m1(self) -> Self { math::$t::exp_m1(self) }
            #[inline(always)]
            fn ln(self) -> Self { math::$t::ln(self) }
            #[inline(always)]
            fn ln_1p(self) -> Self { math::$t::ln_1p(self) }
            #[inline(always)]
            fn powf(self, rhs: Self) -> Self { math::$t::pow(self, rhs) }
            #[inline(always)]
            fn sin(self) -> Self { math::$t::sin(self) }
            #[inline(always)]
            fn cos(self) -> Self { math::$t::cos(self) }
            #[inline(always)]
            fn tan(self) -> Self { math::$t::tan(self) }
            #[inline(always)]
            fn sin_cos_turns(self) -> (Self, Self) { math::$t::sin_cos_turns(self) }
            #[inline(always)]
            fn asin(self) -> Self { math::$t::asin(self) }
            #[inline(always)]
            fn acos(self) -> Self { math::$t::acos(self) }
            #[inline(always)]
            fn atan(self) -> Self { math::$t::atan(self) }
            #[inline(always)]
            fn atan2(self, rhs: Self) -> Self { math::$t::atan2(self, rhs) }
            #[inline(always)]
            fn sinh(self) -> Self { math::$t::sinh(self) }
            #[inline(always)]
            fn cosh(self) -> Self { math::$t::cosh(self) }
            #[inline(always)]
            fn tanh(self) -> Self { math::$t::tanh(self) }
            #[inline(always)]
            fn asinh(self) -> Self { math::$t::asinh(self) }
            #[inline(always)]
            fn acosh(self) -> Self { math::$t::acosh(self) }
            #[inline(always)]
            fn atanh(self) -> Self { math::$t::atanh(self) }
            #[inline(always)]
            fn erf(self) -> Self { math::$t::erf(self) }
            #[inline(always)]
            fn erfc(self) -> Self { math::$t::erfc(self) }
            #[inline(always)]
            fn gelu(self) -> Self { math::$t::gelu(self) }
            #[inline(always)]
            fn gelu_derivative(self) -> Self { math::$t::gelu_derivative(self) }
            #[inline(always)]
            fn sin_slice(values: &mut [Self]) { math::$t::sin_slice(values) }
            #[inline(always)]
            fn cos_slice(values: &mut [Self]) { math::$t::cos_slice(values) }
            #[inline(always)]
            fn tan_slice(values: &mut [Self]) { math::$t::tan_slice(values) }
            #[inline(always)]
            fn sigmoid(self) -> Self { math::$t::sigmoid(self) }
        }
    )*};
}

float!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_and_min_propagate_nan_from_either_side() {
        for (a, b) in [(f32::NAN, 1.0), (1.0, f32::NAN)] {
            assert!(Real::max(a, b).is_nan() && Real::min(a, b).is_nan());
        }
        for nan in 0..3 {
            let [a, b, c] = std::array::from_fn(|i| if i == nan { f64::NAN } else { i as f64 });
            assert!(Real::max3(a, b, c).is_nan() && Real::min3(a, b, c).is_nan());
        }
        for (a, b, c) in [(1.0f32, 2.0, 3.0), (3.0, 1.0, 2.0), (2.0, 3.0, 1.0)] {
            assert_eq!((Real::max3(a, b, c), Real::min3(a, b, c)), (3.0, 1.0));
        }
        assert_eq!(Real::max(1.0f64, 2.0), 2.0);
        assert_eq!(Real::min(f64::NEG_INFINITY, 2.0), f64::NEG_INFINITY);
    }

    #[test]
    fn remainder_has_the_sign_of_the_divisor() {
        assert_eq!((-5.0f32).rem_floor(3.0), 1.0);
        assert_eq!(5.0f32.rem_floor(-3.0), -1.0);
        assert_eq!(6.0f64.rem_floor(3.0), 0.0);
        assert!(1.0f64.rem_floor(0.0).is_nan());
    }

    #[test]
    fn signum_of_zeros_and_nan() {
        assert!(Real::signum(f32::NAN).is_nan());
        assert!(Real::signum(-0.0f32).is_sign_positive());
        assert!(Real::signum(-0.0f64).is_sign_positive());
        assert_eq!(Real::signum(-3.0f64), -1.0);
    }

    #[test]
    fn powi_inverts_for_negative_exponents() {
        assert_eq!(Real::powi(2.0f64, -2), 0.25);
        assert_eq!(Real::powi(0.0f32, 0), 1.0);
        assert_eq!(Real::powi(-2.0f32, 3), -8.0);
    }
}
