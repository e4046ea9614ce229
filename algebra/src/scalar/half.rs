//! `f16` and `bf16`: every operation is computed in `f32` and rounded once.
//!
//! The conversions are branch-free integer arithmetic, so that loops over 16-bit floats vectorise on every instruction
//! set; `half`'s own conversions have run-time feature checks.

use half::{bf16, f16};

use super::{Field, Float, Numeric, Real, Scalar};
use crate::Standard;
use crate::gemm::{Kernel, widen};

/// Exact value of a binary16 number.
#[inline(always)]
fn f16_to_f32(h: f16) -> f32 {
    let bits = u32::from(h.to_bits());
    let sign = (bits & 0x8000) << 16;
    let magnitude = (bits & 0x7fff) << 13;
    // Rescaling by 2¹¹² moves the exponent bias from 15 to 127 and normalises subnormals.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((254 - 15) << 23);
    let value = scaled.to_bits() | if magnitude >= 0x0f80_0000 { 0xff << 23 } else { 0 };
    f32::from_bits(value | sign)
}

/// Nearest binary16 number, ties to even; overflow gives ±∞.
#[inline(always)]
fn f32_to_f16(v: f32) -> f16 {
    let bits = v.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Normal results: round the 13 dropped bits to even, then move the bias from 127 to 15.
    let odd = (magnitude >> 13) & 1;
    let rounded = magnitude.wrapping_add(0xfff + odd);
    let normal = (rounded >> 13).wrapping_sub((127 - 15) << 10);
    // Results below 2⁻¹⁴: adding ½ makes the unit in the last place 2⁻²⁴, that of binary16
    // subnormals, and the hardware rounds.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    // 65520 = 0x477ff000 is the first value that rounds to infinity.
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    let value = if magnitude >= 0x477f_f000 { special } else { finite };
    f16::from_bits((value | sign) as u16)
}

/// Exact value of a bfloat16 number.
#[inline(always)]
fn bf16_to_f32(h: bf16) -> f32 {
    f32::from_bits(u32::from(h.to_bits()) << 16)
}

/// Nearest bfloat16 number, ties to even.
#[inline(always)]
fn f32_to_bf16(v: f32) -> bf16 {
    let bits = v.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    bf16::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded } as u16)
}

/// `f64` → 16 bits without rounding twice: `f32` rounding to odd keeps the sticky bit.
#[inline(always)]
fn f64_to_f32_round_to_odd(v: f64) -> f32 {
    let nearest = v as f32;
    let back = f64::from(nearest);
    if back == v || v.is_nan() || nearest.is_infinite() {
        return nearest;
    }
    // Truncate towards zero, then set the last bit because the conversion is inexact.
    let bits = nearest.to_bits();
    let towards_zero = if back.abs() > v.abs() { bits - 1 } else { bits };
    f32::from_bits(towards_zero | 1)
}

/// An `f64` that rounds to 16 bits as `v` does: if bits are dropped, the last kept bit is set (sticky bit).
#[inline(always)]
fn u64_to_f64_round_to_odd(v: u64) -> f64 {
    let sticky = u64::from(v & 0xfff != 0) << 12;
    let wide = v >> 53 != 0;
    (if wide { (v & !0xfff) | sticky } else { v }) as f64
}

macro_rules! half_float {
    ($($t:ident: $to:ident $from:ident),*) => {$(
        impl Scalar for $t {}

        impl Numeric for $t {
            const ZERO: Self = <$t>::ZERO;
            const ONE: Self = <$t>::ONE;
            const COMMUTES: bool = true;
            type Acc = f32;
            const GEMM: Option<Kernel<Self>> = Some(widen::kernel::<Standard, Self>());
            #[inline(always)]
            fn add(self, rhs: Self) -> Self { $from($to(self) + $to(rhs)) }
            #[inline(always)]
            fn sub(self, rhs: Self) -> Self { $from($to(self) - $to(rhs)) }
            #[inline(always)]
            fn mul(self, rhs: Self) -> Self { $from($to(self) * $to(rhs)) }
            #[inline(always)]
            fn neg(self) -> Self { <$t>::from_bits(self.to_bits() ^ half_float!(@sign $t)) }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                $from($to(self).mul_add($to(b), $to(c)))
            }
            #[inline(always)]
            fn widen(self) -> f32 { $to(self) }
            #[inline(always)]
            fn narrow(acc: f32) -> Self { $from(acc) }
            #[inline(always)]
            fn from_i64(v: i64) -> Self {
                let magnitude = u64_to_f64_round_to_odd(v.unsigned_abs());
                // Not the inherent method, which truncates to the high 32 bits first.
                <Self as Numeric>::from_f64(if v < 0 { -magnitude } else { magnitude })
            }
            #[inline(always)]
            fn from_u64(v: u64) -> Self { <Self as Numeric>::from_f64(u64_to_f64_round_to_odd(v)) }
            // A test on the bit pattern, which vectorises.
            #[inline(always)]
            fn is_zero(self) -> bool { self.to_bits() & !half_float!(@sign $t) == 0 }
            #[inline(always)]
            fn from_f64(v: f64) -> Self { $from(f64_to_f32_round_to_odd(v)) }
        }

        impl Real for $t {
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const HIGHEST: Self = <$t>::INFINITY;
            #[inline(always)]
            fn div(self, rhs: Self) -> Self { $from($to(self) / $to(rhs)) }
            #[inline(always)]
            fn rem_floor(self, rhs: Self) -> Self { $from($to(self).rem_floor($to(rhs))) }
            #[inline(always)]
            fn max(self, rhs: Self) -> Self { $from(Real::max($to(self), $to(rhs))) }
            #[inline(always)]
            fn min(self, rhs: Self) -> Self { $from(Real::min($to(self), $to(rhs))) }
            #[inline(always)]
            fn abs(self) -> Self { <$t>::from_bits(self.to_bits() & !half_float!(@sign $t)) }
            #[inline(always)]
            fn signum(self) -> Self { $from(Real::signum($to(self))) }
            #[inline(always)]
            fn powi(self, n: i32) -> Self { $from(Real::powi($to(self), n)) }
            #[inline(always)]
            fn is_nan(self) -> bool { $to(self).is_nan() }
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from($to(self)) }
            #[inline(always)]
            fn to_i64(self) -> i64 { $to(self) as i64 }
        }

        impl Field for $t {
            type Real = Self;
            const IS_COMPLEX: bool = false;
            #[inline(always)]
            fn div(self, rhs: Self) -> Self { Real::div(self, rhs) }
            #[inline(always)]
            fn conj(self) -> Self { self }
            #[inline(always)]
            fn re(self) -> Self { self }
            #[inline(always)]
            fn im(self) -> Self { <$t>::ZERO }
            #[inline(always)]
            fn from_parts(re: Self, _im: Self) -> Self { re }
            #[inline(always)]
            fn abs_sq(self) -> Self { Numeric::mul(self, self) }
            #[inline(always)]
            fn modulus(self) -> Self { Real::abs(self) }
        }

        impl Float for $t {
            const INFINITY: Self = <$t>::INFINITY;
            const NEG_INFINITY: Self = <$t>::NEG_INFINITY;
            const NAN: Self = <$t>::NAN;
            const EPSILON: Self = <$t>::EPSILON;
            const DIGITS: u32 = <$t>::MANTISSA_DIGITS;
            #[inline(always)]
            fn is_infinite(self) -> bool { $to(self).is_infinite() }
            #[inline(always)]
            fn is_finite(self) -> bool { $to(self).is_finite() }
            #[inline]
            fn next_down(self) -> Self {
                let sign = half_float!(@sign $t);
                <$t>::from_bits(match self.to_bits() {
                    bits if bits & !sign == 0 => sign | 1,
                    bits if bits < sign => bits - 1,
                    bits => bits + 1,
                })
            }
            half_float!(@through $to $from:
                floor ceil trunc round sqrt exp exp_m1 ln ln_1p sin cos tan asin acos atan
                sinh cosh tanh asinh acosh atanh erf erfc gelu gelu_derivative
                sigmoid);
            #[inline(always)]
            fn powf(self, rhs: Self) -> Self { $from(Float::powf($to(self), $to(rhs))) }
            #[inline(always)]
            fn atan2(self, rhs: Self) -> Self { $from(Float::atan2($to(self), $to(rhs))) }
        }
    )*};
    (@sign $t:ty) => { 1 << (8 * size_of::<$t>() - 1) };
    (@through $to:ident $from:ident: $($f:ident)*) => {$(
        #[inline(always)]
        fn $f(self) -> Self { $from(Float::$f($to(self))) }
    )*};
}

half_float!(f16: f16_to_f32 f32_to_f16, bf16: bf16_to_f32 f32_to_bf16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_16_bit_pattern_converts_like_the_half_crate() {
        for bits in 0..=u16::MAX {
            let h = f16::from_bits(bits);
            assert!(h.to_f32().to_bits() == f16_to_f32(h).to_bits() || h.is_nan(), "{bits:#x}");
            assert_eq!(h.is_nan(), f16_to_f32(h).is_nan());
            let b = bf16::from_bits(bits);
            assert!(b.to_f32().to_bits() == bf16_to_f32(b).to_bits() || b.is_nan(), "{bits:#x}");
        }
    }

    #[test]
    fn rounding_agrees_with_the_half_crate() {
        // All exponents and signs, mantissas around every rounding boundary.
        for high in 0..=u16::MAX {
            for low in [0u32, 1, 0x7ff, 0x800, 0x801, 0xfff, 0x1000, 0x1001, 0x8000, 0xffff] {
                let v = f32::from_bits(u32::from(high) << 16 | low);
                if v.is_nan() {
                    assert!(f32_to_f16(v).is_nan() && f32_to_bf16(v).is_nan());
                    continue;
                }
                assert_eq!(f32_to_f16(v).to_bits(), f16::from_f32(v).to_bits(), "{v:e}");
                assert_eq!(f32_to_bf16(v).to_bits(), bf16::from_f32(v).to_bits(), "{v:e}");
            }
        }
    }

    #[test]
    fn conversion_from_f64_rounds_once() {
        // 1 + 2⁻¹¹ + 2⁻⁴⁰ is above the midpoint of two binary16 numbers; through f32 it would first round to the
        // midpoint and then down to even.
        let v = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(<f16 as Numeric>::from_f64(v).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!(<f16 as Numeric>::from_f64(-v).to_f64(), -1.0 - 2f64.powi(-10));
    }
}
