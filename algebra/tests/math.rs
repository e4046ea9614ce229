//! Elementary functions against `libm`: measured errors in units in the last place, special
//! values, and equality of the scalar and the vectorised results.

use t4a_algebra::math::{f32 as single, f64 as double};
use t4a_algebra::simd::{Loop, dispatch};

/// Sets every `y[i]` to an expression in `x[i]`, vectorised. A macro, not a closure: a closure may not be inlined into
/// the loop, and then is not compiled for the wide instruction set.
macro_rules! mapped {
    (|$v:ident: $t:ty| $value:expr) => {{
        struct Map<'a>(&'a [$t], &'a mut [$t]);
        impl Loop for Map<'_> {
            type Output = ();
            #[inline(always)]
            fn run(self) {
                for (y, &$v) in self.1.iter_mut().zip(self.0) {
                    *y = $value;
                }
            }
        }
        |x: &[$t], y: &mut [$t]| dispatch(Map(x, y))
    }};
}

/// A deterministic stream of 64-bit patterns (Marsaglia's xorshift).
struct Patterns(u64);

impl Patterns {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Uniform in [−r, r].
    fn within(&mut self, r: f64) -> f64 {
        (self.next() as i64 as f64) / (i64::MAX as f64) * r
    }
}

/// `|got − want|` in units in the last place of `want` as an `f32`; ∞ for a wrong special value.
fn error_f32(got: f32, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() || want == 0.0 || got.is_infinite() {
        let same = got.to_bits() == (want as f32).to_bits() || (got.is_nan() && want.is_nan());
        return if same { 0.0 } else { f64::INFINITY };
    }
    let exponent = ((want.to_bits() >> 52 & 0x7ff) as i32 - 1023).clamp(-126, 127);
    (f64::from(got) - want).abs() / 2f64.powi(exponent - 23)
}

/// `|got − want|` in units in the last place of `want`; ∞ for a wrong special value.
fn error_f64(got: f64, want: f64) -> f64 {
    if !want.is_finite() || !got.is_finite() || want == 0.0 {
        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        return if same { 0.0 } else { f64::INFINITY };
    }
    let exponent = ((want.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(-1022);
    // The unit itself may be subnormal.
    let shift = if exponent < 0 { 600 } else { 0 };
    (got - want).abs() * 2f64.powi(shift) / 2f64.powi(exponent - 52 + shift)
}

fn edges_f32() -> Vec<f32> {
    let mut v = vec![0.0, f32::from_bits(1), f32::MIN_POSITIVE, 1.0, 0.5, f32::MAX, f32::INFINITY];
    v.extend([88.722_83, 88.722_84, 89.415_985, 89.415_99, 103.972_08, 103.972_09, 87.336_55]);
    v.extend([
        0.55,
        0.65,
        0.8,
        2f32.powi(76),
        1.0 - f32::EPSILON / 2.0,
        1.0 + f32::EPSILON,
        f32::NAN,
    ]);
    v.iter().flat_map(|&x| [x, -x]).collect()
}

/// Samples of every scale: all exponents, and dense samples where the functions vary.
fn samples_f64() -> Vec<f64> {
    let mut p = Patterns(0x9e37_79b9_7f4a_7c15);
    let mut v = vec![0.0, 5e-324, f64::MIN_POSITIVE, 0.5, 1.0, f64::MAX, f64::INFINITY, f64::NAN];
    v.extend([0.55, 0.65, 2f64.powi(45), 2f64.powi(60), 1.0 - f64::EPSILON, 1.0 + f64::EPSILON]);
    v.extend([709.782_712_893_384, 709.782_712_893_384_1, 745.133_219_101_941_2]);
    let mut v: Vec<f64> = v.iter().flat_map(|&x| [x, -x]).collect();
    for _ in 0..10_000 {
        v.push(f64::from_bits(p.next()));
        v.extend([0.01, 1.0, 2.0, 6.0, 40.0, 750.0, 1e6].map(|r| p.within(r)));
        v.push(1.0 + p.within(1e-3));
        v.push(p.within(40.0).exp());
    }
    v
}

/// Checks every 4099th `f32` bit pattern and the edges.
fn scan_f32(
    name: &str,
    bound: f64,
    f: impl Fn(f32) -> f32,
    mapped: impl Fn(&[f32], &mut [f32]),
    reference: impl Fn(f64) -> f64,
) {
    let x: Vec<f32> = (0..=u32::MAX).step_by(4099).map(f32::from_bits).chain(edges_f32()).collect();
    let mut y = vec![0.0; x.len()];
    mapped(&x, &mut y);
    for (i, (&x, &y)) in x.iter().zip(&y).enumerate() {
        assert!(
            i % 64 > 0 || f(x).to_bits() == y.to_bits() || y.is_nan(),
            "{name} depends on lane"
        );
        let want = reference(f64::from(x));
        let e = error_f32(y, want);
        assert!(e <= bound, "{name}({x:e}) = {y:e}, {e:.3} ulp from {want:e}");
    }
}

fn scan_f64(
    name: &str,
    bound: f64,
    f: impl Fn(f64) -> f64,
    mapped: impl Fn(&[f64], &mut [f64]),
    reference: impl Fn(f64) -> f64,
) {
    let x = samples_f64();
    let mut y = vec![0.0; x.len()];
    mapped(&x, &mut y);
    for (&x, &y) in x.iter().zip(&y) {
        assert!(f(x).to_bits() == y.to_bits() || y.is_nan(), "{name} depends on the lane");
        let want = reference(x);
        let e = error_f64(y, want);
        assert!(e <= bound, "{name}({x:e}) = {y:e}, {e:.3} ulp from {want:e}");
    }
}

/// Reference functions that `libm` lacks.
mod reference {
    /// Two forms, because overflow of the exponential would give a wrong result for negative x.
    pub(super) fn sigmoid(x: f64) -> f64 {
        if x < 0.0 { libm::exp(x) / (1.0 + libm::exp(x)) } else { 1.0 / (1.0 + libm::exp(-x)) }
    }

    /// `libm::acosh` does not specify its value below 1.
    pub(super) fn acosh(x: f64) -> f64 {
        if x < 1.0 { f64::NAN } else { libm::acosh(x) }
    }
}

/// `name: bound for f32, bound for f64 plus the error of the reference, reference`.
macro_rules! errors {
    ($($name:ident: $single:literal, $double:literal, $reference:expr;)*) => {$(
        #[test]
        fn $name() {
            let name = stringify!($name);
            let vector = mapped!(|x: f32| single::$name(x));
            scan_f32(name, $single, single::$name, vector, $reference);
            let vector = mapped!(|x: f64| double::$name(x));
            scan_f64(name, $double, double::$name, vector, $reference);
        }
    )*};
}

errors! {
    exp: 1.1, 2.0, libm::exp;
    exp_m1: 1.6, 3.0, libm::expm1;
    sigmoid: 1.7, 4.0, reference::sigmoid;
    ln: 1.0, 2.0, libm::log;
    ln_1p: 1.0, 2.0, libm::log1p;
    sin: 1.0, 2.0, libm::sin;
    cos: 1.0, 2.0, libm::cos;
    tan: 1.0, 3.5, libm::tan;
    asin: 1.5, 3.0, libm::asin;
    acos: 1.5, 2.5, libm::acos;
    atan: 1.5, 2.5, libm::atan;
    sinh: 1.7, 3.5, libm::sinh;
    cosh: 1.5, 3.0, libm::cosh;
    tanh: 1.6, 3.0, libm::tanh;
    asinh: 1.0, 4.0, libm::asinh;
    acosh: 1.0, 4.0, reference::acosh;
    atanh: 1.0, 4.0, libm::atanh;
    erf: 2.0, 3.0, libm::erf;
    erfc: 6.5, 7.5, libm::erfc;
}

/// Base, exponent, power: IEEE 754-2019, § 9.2.1.
const POWERS: [(f64, f64, f64); 30] = [
    (f64::NAN, 0.0, 1.0),
    (f64::NAN, -0.0, 1.0),
    (f64::INFINITY, 0.0, 1.0),
    (1.0, f64::NAN, 1.0),
    (1.0, f64::INFINITY, 1.0),
    (-1.0, f64::INFINITY, 1.0),
    (-1.0, f64::NEG_INFINITY, 1.0),
    (f64::NAN, 1.0, f64::NAN),
    (2.0, f64::NAN, f64::NAN),
    (-2.0, 3.0, -8.0),
    (-2.0, -3.0, -0.125),
    (-2.0, 2.0, 4.0),
    (-2.0, 0.5, f64::NAN),
    (0.0, -1.0, f64::INFINITY),
    (-0.0, -1.0, f64::NEG_INFINITY),
    (-0.0, -2.0, f64::INFINITY),
    (-0.0, -0.5, f64::INFINITY),
    (0.0, 3.0, 0.0),
    (-0.0, 3.0, -0.0),
    (-0.0, 0.5, 0.0),
    (0.0, f64::NEG_INFINITY, f64::INFINITY),
    (0.5, f64::NEG_INFINITY, f64::INFINITY),
    (-0.5, f64::INFINITY, 0.0),
    (2.0, f64::INFINITY, f64::INFINITY),
    (2.0, f64::NEG_INFINITY, 0.0),
    (f64::INFINITY, -0.5, 0.0),
    (f64::NEG_INFINITY, 3.0, f64::NEG_INFINITY),
    (f64::NEG_INFINITY, -3.0, -0.0),
    (f64::NEG_INFINITY, 0.5, f64::INFINITY),
    (f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0),
];

#[test]
fn pow() {
    for (x, y, want) in POWERS {
        let got = double::pow(x, y);
        assert_eq!(error_f64(got, want), 0.0, "{x}^{y} = {got}");
        let got = single::pow(x as f32, y as f32);
        assert_eq!(error_f32(got, want), 0.0, "{x}^{y} = {got}");
    }
    let mut p = Patterns(7);
    for i in 0..200_000 {
        let (x, y) = match i % 4 {
            0 => (f64::from_bits(p.next() >> 1), 0.0),
            1 => (1.0 + p.within(1e-3), p.within(1e6)),
            2 => (f64::from_bits(p.next() >> 12), 0.0),
            _ => (p.within(4.0).abs(), 0.0),
        };
        let y = if y == 0.0 { p.within(1090.0 / x.log2().abs().max(0.5)) } else { y };
        let (got, want) = (double::pow(x, y), libm::pow(x, y));
        assert!(error_f64(got, want) <= 2.0, "{x:e}^{y:e} = {got:e}, not {want:e}");
        let (x, y) = (x as f32, y as f32);
        let (got, want) = (single::pow(x, y), libm::pow(x.into(), y.into()));
        assert!(error_f32(got, want) <= 1.0, "{x:e}^{y:e} = {got:e}, not {want:e}");
    }
}

#[test]
fn atan2() {
    let edges = [0.0, 1.0, 2.0, 1e-30, 1e30, f64::INFINITY, -0.0, -1.0, -1e30, f64::NEG_INFINITY];
    let mut points = vec![(f64::NAN, 1.0), (1.0, f64::NAN), (5e-324, 1.0), (f64::MAX, f64::MAX)];
    // Subnormal coordinates, whose halves are rounded.
    for (a, b) in [(2.0, 3.0), (3.0, 2.0), (1.0, 3.0), (5.0, 7.0)] {
        points.extend([1.401_298_464_324_817e-45, 5e-324].map(|unit| (a * unit, b * unit)));
    }
    points.extend(edges.iter().flat_map(|&y| edges.map(|x| (y, x))));
    let mut p = Patterns(11);
    for _ in 0..100_000 {
        points.push((p.within(3.0), p.within(3.0)));
        points.push((f64::from_bits(p.next()), f64::from_bits(p.next())));
    }
    for (y, x) in points {
        let (got, want) = (double::atan2(y, x), libm::atan2(y, x));
        assert!(error_f64(got, want) <= 3.0, "atan2({y:e}, {x:e}) = {got:e}, not {want:e}");
        let (y, x) = (y as f32, x as f32);
        let (got, want) = (single::atan2(y, x), libm::atan2(y.into(), x.into()));
        assert!(error_f32(got, want) <= 2.0, "atan2({y:e}, {x:e}) = {got:e}, not {want:e}");
    }
}

/// For negative x the rounded argument of `erfc` would make the reference in f64 inaccurate. There the tail is compared
/// with Laplace's continued fraction Φ(−a) = φ(a)/(a + 1/(a + 2/(a + 3/…))) (Abramowitz & Stegun 26.2.14), at points
/// whose squares are exact.
#[test]
fn gelu() {
    let reference = |x: f64| match x {
        f64::NEG_INFINITY => -0.0,
        _ => 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
    };
    scan_f32("gelu", 6.5, single::gelu, mapped!(|x: f32| single::gelu(x)), reference);
    // Half of the smallest subnormal number is a tie, which the reference rounds to 0.
    let least = |x: f64| x.to_bits() << 1 == 2;
    for x in samples_f64().into_iter().filter(|x| *x > -1.0 && !least(*x)) {
        let (got, want) = (double::gelu(x), reference(x));
        assert!(error_f64(got, want) <= 9.0, "gelu({x:e}) = {got:e}, not {want:e}");
    }
    // Φ(x) is above ½ for x > 0, and below for x < 0.
    assert_eq!([5e-324, -5e-324].map(|x| double::gelu(x).to_bits()), [1, (-0.0f64).to_bits()]);
    assert_eq!([1e-45, -1e-45].map(|x| single::gelu(x).to_bits()), [1, (-0.0f32).to_bits()]);
    for i in 24..=300 {
        let a = 0.125 * f64::from(i);
        let fraction = (1..400).rev().fold(a, |below, k| a + f64::from(k) / below);
        let want = -a / fraction * libm::exp(-0.5 * a * a) / (2.0 * std::f64::consts::PI).sqrt();
        let got = double::gelu(-a);
        assert!(error_f64(got, want) <= 9.0, "gelu({}) = {got:e}, not {want:e}", -a);
    }
}

/// Compared with the formula in f64 near zero, and with the continued fraction on the tails, where the formula cancels.
#[test]
fn gelu_derivative() {
    let density = |x: f64| libm::exp(-0.5 * x * x) / (2.0 * std::f64::consts::PI).sqrt();
    let cdf = |x: f64| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    let within = |got: f64, want: f64, x: f64, ulps: f64, epsilon: f64| {
        let scale = want.abs().max(cdf(-x.abs())).max(1e-300);
        let far = (got - want).abs() / (scale * epsilon);
        assert!(far <= ulps, "gelu′({x:e}) = {got:e}, not {want:e}: {far} ulp");
    };
    let mut p = Patterns(7);
    for _ in 0..200_000 {
        let x = p.within(12.0);
        let single_x = x as f32;
        let exact = f64::from(single_x);
        let want = cdf(exact) + exact * density(exact);
        within(single::gelu_derivative(single_x).into(), want, exact, 8.0, f32::EPSILON.into());
        let x = x / 4.0;
        within(double::gelu_derivative(x), cdf(x) + x * density(x), x, 16.0, f64::EPSILON);
    }
    for i in 24..=296 {
        let a = 0.125 * f64::from(i);
        let fraction = (1..400).rev().fold(a, |below, k| a + f64::from(k) / below);
        let want = density(a) * (fraction.recip() - a);
        within(double::gelu_derivative(-a), want, a, 16.0, f64::EPSILON);
        within(double::gelu_derivative(a), 1.0 - want, a, 1.0, f64::EPSILON);
    }
    for (x, want) in [(f64::INFINITY, 1.0), (0.0, 0.5), (-0.0, 0.5), (f64::NEG_INFINITY, 0.0)] {
        assert_eq!(double::gelu_derivative(x), want);
        assert_eq!(f64::from(single::gelu_derivative(x as f32)), want);
    }
    assert!(
        double::gelu_derivative(f64::NAN).is_nan() && single::gelu_derivative(f32::NAN).is_nan()
    );
}

/// Against sines and cosines of exact angles: the reference has the rounding error of 2π·t, small below one turn.
#[test]
fn sines_and_cosines_of_turns() {
    let close = |(s, c): (f64, f64), t: f64, bound: f64| {
        let angle = std::f64::consts::TAU * t;
        let far = (s - libm::sin(angle)).abs().max((c - libm::cos(angle)).abs());
        assert!(far <= bound, "{t:e}: ({s:e}, {c:e}) is {far:e} off");
    };
    let mut p = Patterns(3);
    for _ in 0..100_000 {
        let t = p.within(1.0);
        close(double::sin_cos_turns(t), t, 8.0 * f64::EPSILON);
        let (s, c) = single::sin_cos_turns(t as f32);
        close((s.into(), c.into()), f64::from(t as f32), f64::from(f32::EPSILON));
    }
    // Quarter turns are exact, also far ones.
    let wanted = [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)];
    for (k, want) in wanted.into_iter().cycle().take(9).enumerate() {
        let t = 0.25 * k as f64;
        assert_eq!(double::sin_cos_turns(t), want, "{t}");
        assert_eq!(single::sin_cos_turns(t as f32 + 1000.0), (want.0 as f32, want.1 as f32), "{t}");
    }
}

#[test]
fn slices_of_sines_equal_the_scalars() {
    // Blocks with and without far arguments, and a partial block at the end.
    let mut p = Patterns(5);
    macro_rules! check {
        ($t:ident $bits:ident: $($scalar:path, $slice:path;)*) => {
            let x: Vec<$t> = (0..1000)
                .map(|i| match i {
                    0..500 => p.within(4e3) as $t,
                    _ => $t::from_bits(p.next() as $bits),
                })
                .collect();
            $(
                let mut y = x.clone();
                $slice(&mut y);
                for (&x, &y) in x.iter().zip(&y) {
                    let want = $scalar(x);
                    assert!(y.to_bits() == want.to_bits() || y.is_nan() && want.is_nan(), "{x:e}");
                }
            )*
        };
    }
    check!(f64 u64:
        double::sin, double::sin_slice;
        double::cos, double::cos_slice;
        double::tan, double::tan_slice;
    );
    check!(f32 u32:
        single::sin, single::sin_slice;
        single::cos, single::cos_slice;
        single::tan, single::tan_slice;
    );
}
