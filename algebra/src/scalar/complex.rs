//! Complex numbers, stored as interleaved (re, im) pairs.

use num_complex::Complex;

use super::{Field, Numeric, Scalar};
use crate::gemm::{Kernel, library};

/// Complex number with `f32` parts.
#[allow(non_camel_case_types)]
pub type c32 = Complex<f32>;
/// Complex number with `f64` parts.
#[allow(non_camel_case_types)]
pub type c64 = Complex<f64>;

macro_rules! complex {
    ($($c:ident: $r:ident),*) => {$(
        impl Scalar for $c {}

        impl Numeric for $c {
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            const COMMUTES: bool = true;
            type Acc = Self;
            // SAFETY: `Self` is `c32` or `c64`.
            const GEMM: Option<Kernel<Self>> = Some(unsafe { library::kernel::<Self, library::ComplexLimits>() });
            #[inline(always)]
            fn add(self, rhs: Self) -> Self { self + rhs }
            #[inline(always)]
            fn sub(self, rhs: Self) -> Self { self - rhs }
            #[inline(always)]
            fn mul(self, rhs: Self) -> Self { self * rhs }
            #[inline(always)]
            fn neg(self) -> Self { -self }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                Complex {
                    re: self.re.mul_add(b.re, (-self.im).mul_add(b.im, c.re)),
                    im: self.re.mul_add(b.im, self.im.mul_add(b.re, c.im)),
                }
            }
            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(acc: Self) -> Self { acc }
            #[inline(always)]
            fn from_i64(v: i64) -> Self { Complex { re: v as $r, im: 0.0 } }
            #[inline(always)]
            fn from_u64(v: u64) -> Self { Complex { re: v as $r, im: 0.0 } }
            #[inline(always)]
            fn from_f64(v: f64) -> Self { Complex { re: v as $r, im: 0.0 } }
        }

        impl Field for $c {
            type Real = $r;
            const IS_COMPLEX: bool = true;
            #[inline(always)]
            fn div(self, rhs: Self) -> Self {
                // Scaled by the larger part of the divisor (Smith 1962): |rhs|² neither
                // overflows nor underflows.
                if rhs.re.abs() >= rhs.im.abs() {
                    let t = rhs.im / rhs.re;
                    let t = if rhs.im == 0.0 && rhs.re != 0.0 { 0.0 } else { t };
                    let d = rhs.re + rhs.im * t;
                    Complex { re: (self.re + self.im * t) / d, im: (self.im - self.re * t) / d }
                } else {
                    let t = rhs.re / rhs.im;
                    let d = rhs.re * t + rhs.im;
                    Complex { re: (self.re * t + self.im) / d, im: (self.im * t - self.re) / d }
                }
            }
            #[inline(always)]
            fn conj(self) -> Self { Complex { re: self.re, im: -self.im } }
            #[inline(always)]
            fn re(self) -> $r { self.re }
            #[inline(always)]
            fn im(self) -> $r { self.im }
            #[inline(always)]
            fn from_parts(re: $r, im: $r) -> Self { Complex { re, im } }
            #[inline(always)]
            fn abs_sq(self) -> $r { self.re.mul_add(self.re, self.im * self.im) }
            #[inline(always)]
            fn modulus(self) -> $r { self.re.hypot(self.im) }
        }
    )*};
}

complex!(c32: f32, c64: f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_survives_large_and_small_divisors() {
        let one = Field::div(c64::new(1e300, 1e300), c64::new(1e300, 1e300));
        assert_eq!(one, c64::new(1.0, 0.0));
        let one = Field::div(c32::new(0.0, 1e-30), c32::new(0.0, 1e-30));
        assert_eq!(one, c32::new(1.0, 0.0));
        let q = Field::div(c64::new(3.0, -1.0), c64::new(1.0, 2.0));
        assert!((q * c64::new(1.0, 2.0) - c64::new(3.0, -1.0)).norm() < 1e-15);
    }
}
