//! Error function, its complement, and the Gaussian error linear unit.
//!
//! erfc y = e^(−y²)·erfcx y, and erfcx is smooth on the half-line and decays as 1/y: one quotient of polynomials with
//! positive coefficients, hence without cancellation, approximates it to a relative 2⁻²⁶ and 2⁻⁶³ (interpolation at the
//! Chebyshev nodes of (y − 1.2)/(y + 1.2); W. J. Cody, Math. Comp. 23, 1969, uses three quotients). Near 0 erf has a
//! separate polynomial (least maximum relative error, Remez exchange). The rounding error of y² would be amplified by
//! the exponential and is therefore computed and included.

use super::exp::{Exponential, exp_negative, exp_sum_below};
use super::lane::{at_most, horner, pick};

/// Coefficients and ranges.
pub(super) trait Gaussian: Exponential {
    /// Numerator and denominator of erfcx y.
    const ERFCX: [&'static [Self]; 2];
    /// Numerator and denominator of ½ erfcx(a/√2), or of `2^(r·a²)` times that if [`Gaussian::REST_IN_TAIL`].
    const TAIL: [&'static [Self]; 2];
    /// 2ᶠ, `|f| ≤ ½`, from 1 on: the polynomial of least maximum relative error.
    const EXP2: &'static [Self];
    /// −½ log₂ e.
    const HALF_LOG2_E: Self;
    /// The rounding error r of that: −½ log₂ e = `HALF_LOG2_E` + r.
    const REST: f64;
    /// True if the tail has the factor `2^(r·a²)`, close to 1, instead of the exponential.
    const REST_IN_TAIL: bool;
    /// `(erf y − y)/y` as a polynomial in y², |y| ≤ `NEAR`.
    const ERF: &'static [Self];
    /// Threshold between the polynomial of `erf` and `1 − erfc`.
    const NEAR: f64;
    /// Smallest y for which `erfc y` rounds to 0.
    const FARTHEST: f64;
}

/// `factor·P(a/√2)` for a polynomial P.
const fn rescaled<const N: usize>(c: &[f64], factor: f64) -> [f64; N] {
    let mut out = [0.0; N];
    let (mut power, mut i) = (factor, 0);
    while i < N {
        out[i] = c[i] * power;
        power *= std::f64::consts::FRAC_1_SQRT_2;
        i += 1;
    }
    out
}

impl Gaussian for f32 {
    const ERFCX: [&'static [f32]; 2] = [
        &[1.0, 1.2103566, 0.7012434, 0.21436165, 0.029532472],
        &[1.0, 2.3387356, 2.340225, 1.2685442, 0.37998128, 0.05234398],
    ];
    const TAIL: [&'static [f32]; 2] = [
        &[0.5, 0.44029003, 0.18442361, 0.040960137, 0.004146463],
        &[1.0, 1.6784648, 1.2080653, 0.47256213, 0.10267518, 0.010393651],
    ];
    const EXP2: &'static [f32] = &[
        1.0,
        std::f32::consts::LN_2,
        0.2402264,
        0.055503465,
        0.009619153,
        0.0013396635,
        0.00015203308,
    ];
    const HALF_LOG2_E: f32 = -0.721_347_5;
    const REST: f64 = -9.629_815_021_785_967e-9;
    const REST_IN_TAIL: bool = true;
    const ERF: &'static [f32] =
        &[0.12837917, -0.37612602, 0.11283122, -0.026821144, 0.0050856513, -0.0006538173];
    const NEAR: f64 = 0.8;
    const FARTHEST: f64 = 10.3;
}

impl Gaussian for f64 {
    const ERFCX: [&'static [f64]; 2] = [
        &[
            1.0,
            2.4413426353421976,
            2.962648875809325,
            2.3169560125996234,
            1.2852835407624705,
            0.5282852413169392,
            0.1637705117329572,
            0.03827363316850842,
            0.006616346354844052,
            0.0008080951839810223,
            6.306540675831465e-05,
            2.4006530875497205e-06,
        ],
        &[
            1.0,
            3.5697218024377104,
            5.99064859000668,
            6.259210054579242,
            4.542730321615904,
            2.4175196976252833,
            0.9695695004477743,
            0.2960833680695709,
            0.0685522766903183,
            0.011783058836934744,
            0.001434438944153615,
            0.00011178052306765533,
            4.25504680971596e-06,
        ],
    ];
    const TAIL: [&'static [f64]; 2] =
        [&rescaled::<12>(f64::ERFCX[0], 0.5), &rescaled::<13>(f64::ERFCX[1], 1.0)];
    const EXP2: &'static [f64] = &[
        1.0,
        std::f64::consts::LN_2,
        0.2402265069591016,
        0.055504108664821625,
        0.009618129107587223,
        0.0013333558146406453,
        0.00015403530463766596,
        1.5252733841579287e-05,
        1.3215432514189648e-06,
        1.017805707615539e-07,
        7.074198158791346e-09,
        4.4558199665721414e-10,
    ];
    const HALF_LOG2_E: f64 = -0.7213475204444817;
    const REST: f64 = -1.0177636870465517e-17;
    const REST_IN_TAIL: bool = false;
    const ERF: &'static [f64] = &[
        0.1283791670955126,
        -0.3761263890318375,
        0.11283791670954918,
        -0.02686617064505458,
        0.005223977623989908,
        -0.0008548326862933291,
        0.00012055321908923812,
        -1.4925158818808025e-05,
        1.6448047044193332e-06,
        -1.6114088783790332e-07,
        1.2216729938940908e-08,
    ];
    const NEAR: f64 = 0.65;
    const FARTHEST: f64 = 27.4;
}

/// `e^(y²)·erfc y` for `0 ≤ y ≤ FARTHEST`.
#[inline(always)]
fn erfcx<L: Gaussian>(y: L) -> L {
    let [above, below] = L::ERFCX;
    horner(y, above) / horner(y, below)
}

#[inline(always)]
pub(super) fn erf<L: Gaussian>(x: L) -> L {
    let y = at_most(x.abs(), L::of(L::FARTHEST));
    let z = y * y;
    let near = y.fma(horner(z, L::ERF), y);
    let far = L::of(1.0) - exp_negative(-z) * erfcx(y);
    pick(y < L::of(L::NEAR), near, far).copysign(x)
}

#[inline(always)]
pub(super) fn erfc<L: Gaussian>(x: L) -> L {
    let y = at_most(x.abs(), L::of(L::FARTHEST));
    let z = y * y;
    let lost = y.fma(y, -z);
    let tail = exp_sum_below(-z, -lost) * erfcx(y);
    pick(x < L::of(0.0), L::of(2.0) - tail, tail)
}

/// `(a, t, e)` with a = |x|, limited to the range where the tail is nonzero, and Φ(−a) = ½ erfc(a/√2) = t·e·2⁻ᵈ, e =
/// 2ᵈ·e^(−a²/2), with the d of [`Lane::DOWN`](super::lane::Lane::DOWN): both tails of the normal distribution.
#[inline(always)]
fn normal_tail<L: Gaussian>(x: L) -> (L, L, L) {
    let a = at_most(x.abs(), L::of(L::FARTHEST * std::f64::consts::SQRT_2));
    let z = a * a;
    let lost = a.fma(a, -z);
    // −½a²·log₂ e = k + f, of which k is computed on the grid of a large number.
    let rounder = L::ROUNDER + L::DOWN.0;
    let shifted = z.fma(L::HALF_LOG2_E, rounder);
    let f = z.fma(L::HALF_LOG2_E, rounder - shifted);
    let f = if L::REST_IN_TAIL { f } else { z.fma(L::of(L::REST), f) };
    let f = lost.fma(L::HALF_LOG2_E, f);
    let [above, below] = L::TAIL;
    (a, horner(a, above) / horner(a, below), horner(f, L::EXP2).times_pow2(shifted))
}

/// `x·Φ(x) = max(x, 0) − a·Φ(−a)`, where 2⁻ᵈ is the last factor, so that only the result may be subnormal.
#[inline(always)]
pub(super) fn gelu<L: Gaussian>(x: L) -> L {
    let (a, tail, e) = normal_tail(x);
    let zero = L::of(0.0);
    (-a * (tail * e)).fma(L::DOWN.1, pick(x < zero, zero, x))
}

/// `(x·Φ(x))′ = Φ(x) + x·φ(x)`, φ(x) = e^(−x²/2)/√(2π).
#[inline(always)]
pub(super) fn gelu_derivative<L: Gaussian>(x: L) -> L {
    let (a, tail, e) = normal_tail(x);
    // −1/√(2π), with the factor that the exponential lacks.
    const PEAK: f64 = -0.398_942_280_401_432_7;
    let peak = match L::REST_IN_TAIL {
        true => (a * a).fma(L::of(PEAK * std::f64::consts::LN_2 * L::REST), L::of(PEAK)),
        false => L::of(PEAK),
    };
    let left = a.fma(peak, tail) * e * L::DOWN.1;
    pick(x < L::of(0.0), left, L::of(1.0) - left)
}
