//! Inverse trigonometric functions.
//!
//! Odd polynomials x + x³·P(x²) of least maximum relative error (Remez exchange) on |x| ≤ ½; outside, asin x = π/2 − 2
//! asin √((1 − x)/2), and atan is shifted by π/4 or π/2 (Hart et al., *Computer Approximations*, 1968, § 6.5), which
//! costs one division for all ranges.

use super::lane::{Lane, horner, pick};

/// Coefficients.
pub(super) trait Arc: Lane {
    /// `(asin x − x)/x³` as a polynomial in x².
    const ASIN: &'static [Self];
    /// `(atan x − x)/x³` as a polynomial in x².
    const ATAN: &'static [Self];
    /// Threshold above which the sum of two arguments may overflow.
    const HUGE: Self;
}

impl Arc for f32 {
    const ASIN: &'static [f32] = &[0.16666733, 0.07495896, 0.0454079, 0.024447933, 0.041758187];
    const ATAN: &'static [f32] =
        &[-0.3333333, 0.19999625, -0.14274219, 0.10956453, -0.080361724, 0.039387427];
    const HUGE: f32 = f32::MAX / 4.0;
}

impl Arc for f64 {
    const ASIN: &'static [f64] = &[
        0.1666666666666668,
        0.074999999999879,
        0.04464285716094708,
        0.0303819432780064,
        0.022372200664769165,
        0.01735184541931496,
        0.013978248895271292,
        0.011418448113909001,
        0.010677758042979064,
        0.004071233873236217,
        0.020866269090152847,
        -0.01986561704671435,
        0.03195096268671248,
    ];
    const ATAN: &'static [f64] = &[
        -0.3333333333333333,
        0.19999999999997337,
        -0.1428571428529406,
        0.11111111082682434,
        -0.09090908028237818,
        0.07692282968303038,
        -0.06666284272545303,
        0.058782695133687314,
        -0.052324430829445524,
        0.045981131808336746,
        -0.03731885433673813,
        0.023925079780630187,
        -0.008527377732654117,
    ];
    const HUGE: f64 = f64::MAX / 4.0;
}

/// `(asin s − s, s)` for `s = |x|` or, where `|x| > ½`, `s = √((1 − |x|)/2)`.
#[inline(always)]
fn folded<L: Arc>(x: L) -> (L, L) {
    let half = L::of(0.5);
    let a = x.abs();
    let z = pick(a > half, (-half).fma(a, half), a * a);
    let s = pick(a > half, z.sqrt(), a);
    (s * z * horner(z, L::ASIN), s)
}

#[inline(always)]
pub(super) fn asin<L: Arc>(x: L) -> L {
    let (tail, s) = folded(x);
    // The leading difference may be in a higher binade than the result, so its rounding error is kept.
    let (high, low) = L::PI_2;
    let leading = high - (s + s);
    let low = ((high - leading) - (s + s)) + low;
    let far = leading - L::of(2.0).fma(tail, -low);
    pick(x.abs() > L::of(0.5), far, s + tail).copysign(x)
}

#[inline(always)]
pub(super) fn acos<L: Arc>(x: L) -> L {
    let (tail, s) = folded(x);
    let (high, low) = L::PI_2;
    let twice = (s + tail) + (s + tail);
    let near = high - (s.copysign(x) - (low - tail.copysign(x)));
    let far = pick(x < L::of(0.0), (high + high) - (twice - (low + low)), twice);
    pick(x.abs() > L::of(0.5), far, near)
}

/// Angle in [0, π/2] of the point (`b`, `a`) in the first quadrant.
#[inline(always)]
fn angle<L: Arc>(a: L, b: L) -> L {
    let (high, low) = L::PI_2;
    let (zero, half) = (L::of(0.0), L::of(0.5));
    // tan(θ), tan(θ − π/4) or tan(θ − π/2)
    let direct = a + a <= b;
    let far = a >= b + b;
    let num = pick(direct, a, pick(far, -b, a - b));
    let den = pick(direct, b, pick(far, a, a + b));
    let turn = pick(direct, zero, pick(far, high, half * high));
    let turn_low = pick(direct, zero, pick(far, low, half * low));
    let t = num / den;
    let z = t * t;
    turn + (t + (t * z).fma(horner(z, L::ATAN), turn_low))
}

#[inline(always)]
pub(super) fn atan<L: Arc>(x: L) -> L {
    angle(x.abs(), L::of(1.0)).copysign(x)
}

#[inline(always)]
pub(super) fn atan2<L: Arc>(y: L, x: L) -> L {
    let (a, b) = (y.abs(), x.abs());
    // Both infinite: the direction is (1, 1); both zero: the direction is (1, 0).
    let diagonal = (a == L::INFINITY) & (b == L::INFINITY);
    let origin = (a == L::of(0.0)) & (b == L::of(0.0));
    let a = pick(diagonal, L::of(1.0), a);
    let b = pick(diagonal | origin, L::of(1.0), b);
    let shrink = pick((a > L::HUGE) | (b > L::HUGE), L::of(0.25), L::of(1.0));
    let angle = angle(a * shrink, b * shrink);
    let (high, low) = L::PI_2;
    let left = (high + high) - (angle - (low + low));
    pick(L::of(1.0).copysign(x) < L::of(0.0), left, angle).copysign(y)
}
