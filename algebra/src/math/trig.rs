//! Sine, cosine and tangent: x = j·π/2 + r, |r| ≤ π/4, then a polynomial in r chosen by j mod 4.
//!
//! Near zero j·π/2 is subtracted in three parts (Cody & Waite), in the format itself. For larger arguments:
//!
//! - `f32` computes in `f64`. x·2/π mod 4 is exact in its leading digits with 2/π cut into
//!   29 + 53 + 53 bits; beyond 2⁷⁶ the bits of 2/π that only contribute multiples of 4 are skipped
//!   (Payne & Hanek, SIGNUM Newsl. 18, 1983), and since an `f32` has 24 bits two cuts cover every
//!   finite argument: one comparison, no branch.
//! - `f64` needs one of about forty cuts of 2/π; loading it in every lane would more than double the cost of ordinary
//!   arguments, so that path is a cold call behind one branch. A loop over the scalar functions is therefore not
//!   vectorised.
//!
//! The slice functions test for large arguments first: a block without them runs the near path only, which is a vector
//! loop for `f64` and half the work for `f32`.

use super::lane::{Lane, horner, nearest, pick};

/// `(r, j)` for any finite `x` that is an `f32`; the low bits of the second number hold j mod 4.
#[inline(always)]
fn reduce_f32(x: f64) -> (f64, u64) {
    const LEADING: [f64; 3] = [0.636619770899415, 1.4681663269012186e-09, 7.696704864039572e-26];
    // 2/π from its 52nd binary digit on.
    const SKIPPED: [f64; 3] =
        [2.937095537534198e-16, 2.8376220177865265e-25, -7.058761003808782e-42];
    let far = x.abs() >= 75_557_863_725_914_323_419_136.0;
    let a = pick(far, SKIPPED[0], LEADING[0]);
    let b = pick(far, SKIPPED[1], LEADING[1]);
    let c = pick(far, SKIPPED[2], LEADING[2]);
    let turns = x * a;
    let turns = (turns * 0.25).rint().mul_add(-4.0, turns);
    let (j, shifted) = nearest(x.mul_add(b, turns));
    let fraction = x.mul_add(c, x.mul_add(b, turns - j));
    (fraction * std::f64::consts::FRAC_PI_2, shifted.to_bits())
}

/// `(sin r, cos r)` to a relative 2⁻²⁸.
#[inline(always)]
fn sin_cos_single(r: f64) -> (f64, f64) {
    const SIN: [f64; 4] = [1.0, -0.16666654603348435, 0.008332160344945515, -0.0001951522368354467];
    const COS: [f64; 5] =
        [1.0, -0.5, 0.041666654495147115, -0.0013887680851961594, 2.4469598405507155e-05];
    let z = r * r;
    (r * horner(z, &SIN), horner(z, &COS))
}

/// A format with argument reduction in the format itself.
pub(super) trait Angle: Lane {
    /// Bit patterns; the low bits of a quadrant's number are the number mod 4.
    type Bits: Copy;
    /// Upper bound of near arguments: the first part of j·π/2 is subtracted exactly, and the error after the third one
    /// is below the precision of r.
    const NEAR: Self;
    /// π/2 minus both parts of [`Lane::PI_2`].
    const PI_2_REST: Self;
    /// sin r = r + r³·(… in r²).
    const SIN: &'static [Self];
    /// cos r = 1 − r²/2 + r⁴·(… in r²).
    const COS: &'static [Self];

    fn quadrant(shifted: Self) -> Self::Bits;
    fn is_even(j: Self::Bits) -> bool;
    /// `j + j mod 2`.
    fn to_even(j: Self::Bits) -> Self::Bits;
    /// `self` with its sign flipped if bit 1 of `j` is set.
    fn turn(self, j: Self::Bits) -> Self;
    /// True if some `|x| ≥ NEAR` or is NaN.
    fn any_far(values: &[Self]) -> bool;
}

macro_rules! angle {
    ($t:ident $bits:ident, $near:literal, $rest:literal, $sin:expr, $cos:expr) => {
        impl Angle for $t {
            type Bits = $bits;
            const NEAR: $t = $near;
            const PI_2_REST: $t = $rest;
            const SIN: &'static [$t] = &$sin;
            const COS: &'static [$t] = &$cos;

            #[inline(always)]
            fn quadrant(shifted: $t) -> $bits {
                shifted.to_bits()
            }
            #[inline(always)]
            fn is_even(j: $bits) -> bool {
                j & 1 == 0
            }
            #[inline(always)]
            fn to_even(j: $bits) -> $bits {
                j.wrapping_add(j & 1)
            }
            #[inline(always)]
            fn turn(self, j: $bits) -> $t {
                $t::from_bits(self.to_bits() ^ ((j & 2) << ($bits::BITS - 2)))
            }
            #[inline(always)]
            fn any_far(values: &[$t]) -> bool {
                // An integer comparison vectorises and classifies NaN as far.
                let far = |x: &$t| $bits::from(x.abs().to_bits() >= $near.to_bits());
                values.iter().fold(0, |any, x| any | far(x)) != 0
            }
        }
    };
}

angle!(
    f32 u32,
    8192.0f32,
    -1.715_124_5e-15,
    [-0.16666655, 0.008_332_16, -0.000_195_152_24],
    [0.041666653, -0.001_388_768_1, 2.446_959_8e-5]
);
angle!(
    f64 u64,
    35_184_372_088_832.0f64,
    -1.497_384_904_859_169_8e-33,
    [
        -0.16666666666666646,
        0.008333333333325196,
        -0.00019841269831554712,
        2.755731419392962e-06,
        -2.5050825564904915e-08,
        1.590023464599579e-10,
    ],
    [
        0.04166666666666666,
        -0.0013888888888883596,
        2.4801587294914806e-05,
        -2.7557315806187887e-07,
        2.0875907729819863e-09,
        -1.1368619689413183e-11,
    ]
);

/// `(r, r_low, j)` for `|x| < NEAR`.
#[inline(always)]
fn reduce_near<L: Angle>(x: L) -> (L, L, L::Bits) {
    let (j, shifted) = nearest(x * L::of(std::f64::consts::FRAC_2_PI));
    let high = (-j).fma(L::PI_2.0, x);
    let p = j * L::PI_2.1;
    let p_low = j.fma(L::PI_2.1, -p);
    let r = high - p;
    let low = (-j).fma(L::PI_2_REST, (high - r) - p - p_low);
    (r, low, L::quadrant(shifted))
}

/// `(sin, cos)` of `r + low`, `|r| ≤ π/4`.
#[inline(always)]
fn sin_cos<L: Angle>(r: L, low: L) -> (L, L) {
    let one = L::of(1.0);
    let z = r * r;
    let half = L::of(0.5) * z;
    let s = r + (r * z).fma(horner(z, L::SIN), (-half).fma(low, low));
    let w = one - half;
    let c = w + (z * z).fma(horner(z, L::COS), (-r).fma(low, (one - w) - half));
    (s, c)
}

/// `(sin 2πt, cos 2πt)` for `|t| ≤ 2ᵖ⁻⁴`: the quarter turn is subtracted exactly, so there are no far arguments.
#[inline(always)]
pub(super) fn sin_cos_turns<L: Angle>(t: L) -> (L, L) {
    let quarters = L::of(4.0) * t;
    let (j, shifted) = nearest(quarters);
    let r = (quarters - j) * L::PI_2.0;
    let (one, z) = (L::of(1.0), r * r);
    let s = (r * z).fma(horner(z, L::SIN), r);
    let c = (z * z).fma(horner(z, L::COS), L::of(-0.5).fma(z, one));
    let j = L::quadrant(shifted);
    let even = L::is_even(j);
    (pick(even, s, c).turn(j), pick(even, c, s).turn(L::to_even(j)))
}

#[inline(always)]
fn sin_of<L: Angle>((r, low, j): (L, L, L::Bits)) -> L {
    let (s, c) = sin_cos(r, low);
    pick(L::is_even(j), s, c).turn(j)
}

#[inline(always)]
fn cos_of<L: Angle>((r, low, j): (L, L, L::Bits)) -> L {
    let (s, c) = sin_cos(r, low);
    pick(L::is_even(j), c, s).turn(L::to_even(j))
}

#[inline(always)]
fn sin_near<L: Angle>(x: L) -> L {
    pick(x == L::of(0.0), x, sin_of(reduce_near(x)))
}

#[inline(always)]
fn cos_near<L: Angle>(x: L) -> L {
    cos_of(reduce_near(x))
}

#[inline(always)]
pub(super) fn sin_f32(x: f32) -> f32 {
    let (r, j) = reduce_f32(f64::from(x));
    let (s, c) = sin_cos_single(r);
    let far = pick(j & 1 == 0, s, c).turn(j) as f32;
    pick(x.abs() < f32::NEAR, sin_near(x), far)
}

#[inline(always)]
pub(super) fn cos_f32(x: f32) -> f32 {
    let (r, j) = reduce_f32(f64::from(x));
    let (s, c) = sin_cos_single(r);
    let far = pick(j & 1 == 0, c, s).turn(f64::to_even(j)) as f32;
    pick(x.abs() < f32::NEAR, cos_near(x), far)
}

#[inline(always)]
pub(super) fn tan_f32(x: f32) -> f32 {
    let (r, j) = reduce_f32(f64::from(x));
    let (s, c) = sin_cos_single(r);
    let even = j & 1 == 0;
    pick(x == 0.0, x, (pick(even, s, -c) / pick(even, c, s)) as f32)
}

/// `(r, r_low, j)` for `|x| ≥ NEAR`, NaN if `x` is not finite: Payne & Hanek with 192 bits.
#[cold]
#[inline(never)]
fn reduce_far(x: f64) -> (f64, f64, u64) {
    // 64 zeros and the binary digits of 2/π.
    const TWO_OVER_PI: [u64; 20] = [
        0x0000_0000_0000_0000,
        0xa2f9_836e_4e44_1529,
        0xfc27_57d1_f534_ddc0,
        0xdb62_9599_3c43_9041,
        0xfe51_63ab_debb_c561,
        0xb724_6e3a_424d_d2e0,
        0x0649_2eea_09d1_921c,
        0xfe1d_eb1c_b129_a73e,
        0xe882_35f5_2ebb_4484,
        0xe99c_7026_b45f_7e41,
        0x3991_d639_8353_39f4,
        0x9c84_5f8b_bdf9_283b,
        0x1ff8_97ff_de05_980f,
        0xef2f_118b_5a0a_6d1f,
        0x6d36_7ecf_27cb_09b7,
        0x4f46_3f66_9e5f_ea2d,
        0x7527_bac7_ebe5_f17b,
        0x3d07_39f7_8a52_92ea,
        0x6bfb_5fb1_1f8d_5d08,
        0x5603_3046_fc7b_6bab,
    ];
    if !x.is_finite() {
        return (f64::NAN, f64::NAN, 0);
    }
    let bits = x.to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
    let exponent = (bits >> 52 & 0x7ff) as usize + 64 - 1075;
    // |x| = mantissa·2^(exponent − 64); earlier digits contribute multiples of 4.
    let first = exponent - 2;
    let (word, shift) = (first / 64, first % 64);
    let digits = |i: usize| {
        let pair = u128::from(TWO_OVER_PI[word + i]) << 64 | u128::from(TWO_OVER_PI[word + i + 1]);
        (pair << shift >> 64) as u64
    };
    // mantissa · digits mod 2¹⁹²; the two leading bits are the quadrant.
    let m = u128::from(mantissa);
    let low = m * u128::from(digits(2));
    let middle = m * u128::from(digits(1)) + (low >> 64);
    let high = mantissa.wrapping_mul(digits(0)).wrapping_add((middle >> 64) as u64);
    let quadrant = high >> 62;
    let fraction = (u128::from(high) << 64 | u128::from(middle as u64)) << 2 | (low >> 62 & 3);
    // Round to the nearest quadrant: as a signed number, the fraction is in [−½, ½).
    let signed = fraction as i128;
    let j = quadrant + u64::from(signed < 0);
    const UNIT: f64 = 1.0 / (1u128 << 127) as f64 / 2.0;
    let leading = signed as f64;
    let f = leading * UNIT;
    let f_low = (signed.wrapping_sub(leading as i128)) as f64 * UNIT;
    let (p, p_low) = (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);
    let r = f * p;
    let r_low = f.mul_add(p, -r) + f.mul_add(p_low, f_low * p);
    if x < 0.0 { (-r, -r_low, j.wrapping_neg()) } else { (r, r_low, j) }
}

#[inline(always)]
fn tan_of((r, low, j): (f64, f64, u64)) -> f64 {
    let (s, c) = sin_cos(r, low);
    let even = j & 1 == 0;
    pick(even, s, -c) / pick(even, c, s)
}

#[inline(always)]
fn reduce_f64(x: f64) -> (f64, f64, u64) {
    if x.abs() < f64::NEAR { reduce_near(x) } else { reduce_far(x) }
}

#[inline(always)]
pub(super) fn sin_f64(x: f64) -> f64 {
    pick(x == 0.0, x, sin_of(reduce_f64(x)))
}

#[inline(always)]
pub(super) fn cos_f64(x: f64) -> f64 {
    cos_of(reduce_f64(x))
}

#[inline(always)]
pub(super) fn tan_f64(x: f64) -> f64 {
    pick(x == 0.0, x, tan_of(reduce_f64(x)))
}

/// Tangent where `|x| < NEAR`.
#[inline(always)]
fn tan_near(x: f64) -> f64 {
    pick(x == 0.0, x, tan_of(reduce_near(x)))
}

/// Functions that replace every element of a slice by `near` of it or, in blocks with a far element, by `any`. Named
/// functions, because function arguments of this size are not inlined.
macro_rules! in_blocks {
    ($($name:ident: $t:ident, $near:ident, $any:ident;)*) => {$(
        #[inline(always)]
        pub(super) fn $name(values: &mut [$t]) {
            for block in values.chunks_mut(128) {
                if $t::any_far(block) {
                    for v in block {
                        *v = $any(*v);
                    }
                } else {
                    for v in block {
                        *v = $near(*v);
                    }
                }
            }
        }
    )*};
}

in_blocks! {
    sin_slice_f32: f32, sin_near, sin_f32;
    cos_slice_f32: f32, cos_near, cos_f32;
    sin_slice_f64: f64, sin_near, sin_f64;
    cos_slice_f64: f64, cos_near, cos_f64;
    tan_slice_f64: f64, tan_near, tan_f64;
}
