//! Error function, its complement, and the Gaussian error linear unit.
//!
//! erfc y = e^(−y²)·erfcx y, and erfcx is smooth on the half-line and decays as 1/y: one quotient of polynomials with
//! positive coefficients, hence without cancellation, approximates it to a relative 2⁻²⁶ and 2⁻⁶³ (interpolation at the
//! Chebyshev nodes of (y − 1.2)/(y + 1.2); W. J. Cody, Math. Comp. 23, 1969, uses three quotients). Near 0 erf has a
//! separate polynomial (least maximum relative error, Remez exchange). The rounding error of y² would be amplified by
//! the exponential and is therefore computed and included.

use super::exp::{Exponential, exp_negative, exp_sum_below};
use super::lane::{at_most, horner, monic, pick};

/// Coefficients and ranges.
pub(super) trait Gaussian: Exponential {
    /// Numerator and denominator of erfcx y.
    const ERFCX: [&'static [Self]; 2];
    /// Numerator and denominator, each divided by its leading coefficient, of ½ erfcx(a/√2), or of `2^(r·a²)` times that
    /// if [`Gaussian::REST_IN_TAIL`].
    const TAIL: [&'static [Self]; 2];
    /// 2ᶠ, `|f| ≤ ½`, divided by the leading coefficient: the polynomial of least maximum relative error.
    const EXP2: &'static [Self];
    /// Product of the leading coefficients of [`Gaussian::EXP2`] and of the quotient [`Gaussian::TAIL`], rounded such that
    /// Φ(0) is below ½ by less than half a unit in the last place: ½ itself when rounded, while `gelu` of the two
    /// numbers next to 0, of which the exact results are close to ties, is rounded correctly.
    const LEADING: Self;
    /// 1/√(2π) divided by the leading coefficient of that quotient.
    const PEAK: f64;
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

impl Gaussian for f32 {
    const ERFCX: [&'static [f32]; 2] = [
        &[1.0, 1.2103566, 0.7012434, 0.21436165, 0.029532472],
        &[1.0, 2.3387356, 2.340225, 1.2685442, 0.37998128, 0.05234398],
    ];
    const TAIL: [&'static [f32]; 2] = [
        &[120.58473, 106.18445, 44.477333, 9.878335],
        &[96.21261, 161.48943, 116.23106, 45.466427, 9.878648],
    ];
    const EXP2: &'static [f32] = &[6577.5156, 4559.1865, 1580.092, 365.07465, 63.26981, 8.811662];
    const LEADING: f32 = 6.065_236_8e-5;
    const PEAK: f64 = 1.000_000_923_9;
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
    const TAIL: [&'static [f64]; 2] = [
        &[
            18851051.087156195,
            32542379.711634323,
            27924522.65559373,
            15442171.296574805,
            6057236.4220985845,
            1760471.745148801,
            385905.7854059612,
            63772.03497998662,
            7795.317696592807,
            673.2294542447383,
            37.15153764478985,
        ],
        &[
            15040962.617347145,
            37966014.195690304,
            45052560.74797694,
            33285122.894406505,
            17081759.23702855,
            6427922.975378976,
            1822907.3263943652,
            393626.7998377612,
            64443.264439569735,
            7832.469234126065,
            674.2294542462948,
            37.15153764477371,
        ],
    ];
    const EXP2: &'static [f64] = &[
        2244255844.046812,
        1555599610.7562282,
        539129742.137916,
        124565420.23963524,
        21585542.458499376,
        2992391.5792010664,
        345694.6326226129,
        34231.037061654904,
        2965.8811651576375,
        228.42164074203743,
        15.876310559812678,
    ];
    const LEADING: f64 = 1.777614978522425e-10;
    const PEAK: f64 = 1.0000000000000568;
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

/// `(a, t, e)` with a = |x|, limited to the range where the tail is nonzero, and Φ(−a) = ½ erfc(a/√2) = t·e·c·2⁻ᵈ: both
/// tails of the normal distribution. Here c is [`Gaussian::LEADING`], and d that of
/// [`Lane::DOWN`](super::lane::Lane::DOWN).
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
    (a, monic(a, above) / monic(a, below), monic(f, L::EXP2).times_pow2(shifted))
}

/// `x·Φ(x) = max(x, 0) − a·Φ(−a)`, where 2⁻ᵈ is in the last factor, so that only the result may be subnormal.
#[inline(always)]
pub(super) fn gelu<L: Gaussian>(x: L) -> L {
    let (a, tail, e) = normal_tail(x);
    let zero = L::of(0.0);
    (-a * (tail * e)).fma(L::LEADING * L::DOWN.1, pick(x < zero, zero, x))
}

/// `(x·Φ(x))′ = Φ(x) + x·φ(x)`, φ(x) = e^(−x²/2)/√(2π).
#[inline(always)]
pub(super) fn gelu_derivative<L: Gaussian>(x: L) -> L {
    let (a, tail, e) = normal_tail(x);
    // −1/√(2π), with the factors that the exponential lacks.
    let peak = match L::REST_IN_TAIL {
        true => (a * a).fma(L::of(-L::PEAK * std::f64::consts::LN_2 * L::REST), L::of(-L::PEAK)),
        false => L::of(-L::PEAK),
    };
    let left = a.fma(peak, tail) * e * (L::LEADING * L::DOWN.1);
    pick(x < L::of(0.0), left, L::of(1.0) - left)
}
