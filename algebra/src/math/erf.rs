//! Error function, its complement, and the Gaussian error linear unit.
//!
//! erfc y = e^(−y²)·erfcx y, and (1 + 2y)·erfcx y is smooth in q = (y − K)/(y + K) over the
//! whole half-line (Shepherd & Laframboise, Math. Comp. 36, 1981), so that one polynomial
//! (least maximum relative error, Remez exchange) serves it; erf has its own near 0. The rounding
//! error of y² would be amplified by the exponential and is carried along.

use super::exp::{Exponential, exp_negative, exp_sum};
use super::lane::{Lane, horner, pick};

/// Coefficients and ranges.
pub(super) trait Gaussian: Exponential {
    /// K of the transformed variable.
    const K: f64;
    /// `(1 + 2y)·erfcx y` as a polynomial in q.
    const ERFCX: &'static [Self];
    /// `(erf y − y)/y` as a polynomial in y², |y| ≤ `NEAR`.
    const ERF: &'static [Self];
    /// Where `erf` changes from its own polynomial to `1 − erfc`.
    const NEAR: f64;
    /// `erfc y` rounds to 0 from here on.
    const FARTHEST: f64;
}

impl Gaussian for f32 {
    const K: f64 = 3.0;
    const ERFCX: &'static [f32] = &[
        1.253008,
        -0.13562115,
        -0.04756242,
        0.12964645,
        -0.119270615,
        0.06829575,
        -0.023799539,
        0.0025657173,
        0.0020048458,
        -0.00077267765,
        -0.00026623512,
    ];
    const ERF: &'static [f32] =
        &[0.12837917, -0.37612602, 0.11283122, -0.026821144, 0.0050856513, -0.0006538173];
    const NEAR: f64 = 0.8;
    const FARTHEST: f64 = 10.3;
}

impl Gaussian for f64 {
    const K: f64 = 3.75;
    const ERFCX: &'static [f64] = &[
        1.2375126308378275,
        -0.140240598585547,
        0.0035854154854629977,
        0.0822767384901489,
        -0.10880393014166354,
        0.09230432116028862,
        -0.058693398591628324,
        0.02836227741965735,
        -0.009746579534070493,
        0.0017556258543792547,
        0.00029371349672555633,
        -0.00029015414054142245,
        5.164984188365837e-05,
        2.2384677937689243e-05,
        -1.1446234230229527e-05,
        -9.752379803076774e-07,
        1.7553284223841685e-06,
        -5.340990312873037e-08,
        -2.624676991258735e-07,
        1.8100032356098888e-08,
        4.039181715284314e-08,
        1.2971834800220273e-10,
        -4.883338642382796e-09,
        -9.286816616179541e-10,
    ];
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
    let k = L::of(L::K);
    let q = (y - k) / (y + k);
    horner(q, L::ERFCX) / y.fma(L::of(2.0), L::of(1.0))
}

/// `min(y, limit)`; NaN stays NaN.
#[inline(always)]
fn at_most<L: Lane>(y: L, limit: L) -> L {
    pick(limit < y, limit, y)
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
    let tail = exp_sum(-z, -lost, 0.0) * erfcx(y);
    pick(x < L::of(0.0), L::of(2.0) - tail, tail)
}

/// `(a, t, e)` with a = |x|, no farther than the tail reaches, and Φ(−a) = ½ erfc(a/√2) = t·e,
/// e = e^(−a²/2): both tails of the normal distribution.
#[inline(always)]
fn normal_tail<L: Gaussian>(x: L) -> (L, L, L) {
    let farthest = L::of(L::FARTHEST * std::f64::consts::SQRT_2);
    let a = at_most(x.abs(), farthest);
    let z = a * a;
    let half = L::of(-0.5);
    let lost = half * a.fma(a, -z);
    let y = a * L::of(std::f64::consts::FRAC_1_SQRT_2);
    (a, L::of(0.5) * erfcx(y), exp_sum(half * z, lost, 0.0))
}

/// `x·Φ(x)`.
#[inline(always)]
pub(super) fn gelu<L: Gaussian>(x: L) -> L {
    let (a, tail, e) = normal_tail(x);
    // On the left the exponential comes last, so that only one product may be subnormal, and the
    // limited argument keeps −∞·0 away.
    let left = -(a * tail) * e;
    pick(x < L::of(0.0), left, x * (-tail).fma(e, L::of(1.0)))
}

/// `(x·Φ(x))′ = Φ(x) + x·φ(x)`, φ(x) = e^(−x²/2)/√(2π).
#[inline(always)]
pub(super) fn gelu_derivative<L: Gaussian>(x: L) -> L {
    let (a, tail, e) = normal_tail(x);
    let left = a.fma(L::of(-0.398_942_280_401_432_7), tail) * e;
    pick(x < L::of(0.0), left, L::of(1.0) - left)
}
