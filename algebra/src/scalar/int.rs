//! Integers: wrapping arithmetic, floor remainder.

use super::{Int, Numeric, Real, Scalar};

macro_rules! int {
    ($($t:ident: $sign:ident),*) => {$(
        impl Scalar for $t {}

        impl Numeric for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const COMMUTES: bool = true;
            type Acc = Self;
            #[inline(always)]
            fn add(self, rhs: Self) -> Self { self.wrapping_add(rhs) }
            #[inline(always)]
            fn sub(self, rhs: Self) -> Self { self.wrapping_sub(rhs) }
            #[inline(always)]
            fn mul(self, rhs: Self) -> Self { self.wrapping_mul(rhs) }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
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
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            #[inline(always)]
            fn div(self, rhs: Self) -> Self {
                if rhs == 0 { 0 } else { self.wrapping_div(rhs) }
            }
            #[inline(always)]
            fn rem_floor(self, rhs: Self) -> Self {
                if rhs == 0 {
                    return 0;
                }
                let r = self.wrapping_rem(rhs);
                int!(@floor $sign r rhs)
            }
            #[inline(always)]
            fn max(self, rhs: Self) -> Self { Ord::max(self, rhs) }
            #[inline(always)]
            fn min(self, rhs: Self) -> Self { Ord::min(self, rhs) }
            #[inline(always)]
            fn abs(self) -> Self { int!(@abs $sign self) }
            #[inline(always)]
            fn signum(self) -> Self { int!(@signum $sign self) }
            #[inline]
            fn powi(self, n: i32) -> Self {
                if n >= 0 {
                    return self.wrapping_pow(n.unsigned_abs());
                }
                // 1 / selfⁿ truncates to 0 unless |self| = 1; 1 / 0 is 0 as in `div`.
                Real::div(1, self.wrapping_pow(n.unsigned_abs()))
            }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { i64::try_from(self).unwrap_or(i64::MAX) }
        }

        impl Int for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline(always)]
            fn and(self, rhs: Self) -> Self { self & rhs }
            #[inline(always)]
            fn or(self, rhs: Self) -> Self { self | rhs }
            #[inline(always)]
            fn xor(self, rhs: Self) -> Self { self ^ rhs }
            #[inline(always)]
            fn not(self) -> Self { !self }
            #[inline(always)]
            fn shl(self, rhs: Self) -> Self { self.wrapping_shl(rhs as u32) }
            #[inline(always)]
            fn shr(self, rhs: Self) -> Self { self.wrapping_shr(rhs as u32) }
            #[inline(always)]
            fn checked_add(self, rhs: Self) -> Option<Self> { <$t>::checked_add(self, rhs) }
            #[inline(always)]
            fn checked_mul(self, rhs: Self) -> Option<Self> { <$t>::checked_mul(self, rhs) }
            #[inline(always)]
            fn saturating_add(self, rhs: Self) -> Self { <$t>::saturating_add(self, rhs) }
            #[inline(always)]
            fn to_usize(self) -> Option<usize> { usize::try_from(self).ok() }
        }
    )*};
    (@floor signed $r:ident $d:ident) => {
        if $r != 0 && (($r < 0) != ($d < 0)) { $r.wrapping_add($d) } else { $r }
    };
    (@floor unsigned $r:ident $d:ident) => { $r };
    (@abs signed $v:expr) => { $v.wrapping_abs() };
    (@abs unsigned $v:expr) => { $v };
    (@signum signed $v:expr) => { $v.signum() };
    (@signum unsigned $v:expr) => { ($v != 0) as Self };
}

int!(
    i8: signed, i16: signed, i32: signed, i64: signed,
    u8: unsigned, u16: unsigned, u32: unsigned, u64: unsigned
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainder_has_the_sign_of_the_divisor() {
        for a in -7i32..=7 {
            for b in [-3, -2, 2, 3] {
                let expect = a as f64 - (a as f64 / b as f64).floor() * b as f64;
                assert_eq!(a.rem_floor(b) as f64, expect, "{a} mod {b}");
            }
        }
        assert_eq!(i32::MIN.rem_floor(-1), 0);
    }

    #[test]
    fn extremes_wrap_and_never_panic() {
        assert_eq!(Real::div(i8::MIN, -1), i8::MIN);
        assert_eq!(Real::abs(i8::MIN), i8::MIN);
        assert_eq!(Real::div(5i32, 0), 0);
        assert_eq!(Numeric::mul(200u8, 2), 144);
        assert_eq!(Real::powi(2u8, 9), 0);
        assert_eq!(Real::powi(-1i32, -3), -1);
        assert_eq!(Real::powi(2i32, -1), 0);
        assert_eq!(Int::shl(1i32, 33), 2);
        assert_eq!(Real::to_i64(u64::MAX), i64::MAX);
        assert_eq!(<u8 as Numeric>::from_f64(-3.7), 0);
    }
}
