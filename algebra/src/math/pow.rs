//! Powers xʸ = e^(y·ln|x|) with the special cases of IEEE 754-2019, § 9.2.1.
//!
//! The exponential turns an absolute error of y·ln|x|, which is up to 745, into a relative one. `f32` is therefore
//! computed in `f64`; for `f64` the logarithm is an unevaluated sum of two numbers with about 64 correct bits
//! (arithmetic of Dekker, Numer. Math. 18, 1971).

use super::exp::{exp_single, exp_sum};
use super::lane::{Lane, horner, pick};
use super::log::{ln_single, split};

/// Replaces `p = |x|ʸ`, computed for ordinary arguments, by the result of every special case.
#[inline(always)]
fn specials<L: Lane>(x: L, y: L, p: L) -> L {
    let (zero, one) = (L::of(0.0), L::of(1.0));
    let a = x.abs();
    let whole = y.rint() == y;
    let half = y * L::of(0.5);
    let odd = whole & (half.rint() != half);
    let at_zero = pick(y < zero, L::INFINITY, zero);
    let at_infinity = pick(y < zero, zero, L::INFINITY);
    let p = pick(a == zero, at_zero, p);
    let p = pick(a == L::INFINITY, at_infinity, p);
    let p = pick(a == one, one, p);
    let p = pick(odd, p.copysign(x), p);
    let p = pick((x < zero) & (x > -L::INFINITY) & !whole, L::NAN, p);
    let p = pick(x.is_nan() | y.is_nan(), L::NAN, p);
    pick((x == one) | (y == zero), one, p)
}

#[inline(always)]
pub(super) fn pow_f32(x: f32, y: f32) -> f32 {
    // Subnormal numbers of f32 are normal in f64.
    let p = exp_single(f64::from(y) * ln_single(f64::from(x.abs()))) as f32;
    specials(x, y, p)
}

/// `ln a` as a sum of two numbers, for positive finite `a`.
#[inline(always)]
fn ln_sum(a: f64) -> (f64, f64) {
    // 2/3 in two parts and then the polynomial of least maximum error for the higher terms.
    const TWO_THIRDS: (f64, f64) = (0.6666666666666666, 3.700743415417188e-17);
    const R: [f64; 8] = [
        0.39999999999999997,
        0.2857142857143186,
        0.22222222220542112,
        0.1818181852900992,
        0.15384578403641133,
        0.13335549750401168,
        0.11689304115630607,
        0.11876483919589975,
    ];
    // A constant of 42 bits, so that k times it is exact.
    const LN_2: (f64, f64) = (0.693147180559663, 2.8235290563031577e-13);
    let (k, m) = split(a);
    let f = m - 1.0;
    // s = f/(2 + f)
    let d = 2.0 + f;
    let d_low = f - (d - 2.0);
    let r = 1.0 / d;
    let s = f * r;
    let s_low = r * (-s).mul_add(d_low, (-s).mul_add(d, f));
    // z = s²
    let z = s * s;
    let z_low = (s + s).mul_add(s_low, s.mul_add(s, -z));
    // t = 2/3 + z(2/5 + …)
    let q = z * horner(z, &R);
    let t = TWO_THIRDS.0 + q;
    let t_low = (TWO_THIRDS.0 - t) + q + TWO_THIRDS.1;
    // v = s·z·t
    let u = z * t;
    let u_low = z_low.mul_add(t, z.mul_add(t_low, z.mul_add(t, -u)));
    let v = s * u;
    let v_low = s_low.mul_add(u, s.mul_add(u_low, s.mul_add(u, -v)));
    // k·ln 2 + 2s + v, summed by decreasing magnitude
    let k_high = k * LN_2.0;
    let a = k_high + (s + s);
    let a_low = (k_high - a) + (s + s);
    let b = a + v;
    let b_low = (a - b) + v;
    let low = (b_low + a_low) + k.mul_add(LN_2.1, s_low + s_low + v_low);
    let high = b + low;
    (high, (b - high) + low)
}

#[inline(always)]
pub(super) fn pow_f64(x: f64, y: f64) -> f64 {
    let (high, low) = ln_sum(x.abs());
    let p = y * high;
    let p_low = y.mul_add(low, y.mul_add(high, -p));
    // If the product overflows its error term is NaN; the result is 0 or ∞ regardless of it.
    specials(x, y, exp_sum(p, pick(p.abs() < 1e3, p_low, 0.0), 0.0))
}
