//! ns per element of every elementary function over a slice of 2²⁰ elements, one thread, next to
//! the standard library (or `libm`) on the same data, and to `x + 1` as the memory floor.
//!
//! `cargo bench --bench math [filter]`. Every row is checked before it is timed.

use std::hint::black_box;
use std::time::Instant;

use t4a_algebra::math::{f32 as single, f64 as double};
use t4a_algebra::simd::{Isa, Loop, dispatch};

const LEN: usize = 1 << 20;

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

/// Best of several runs, ns per element.
fn time(mut run: impl FnMut()) -> f64 {
    let once = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e9 / LEN as f64
    };
    (0..12).map(|_| once(&mut run)).fold(f64::INFINITY, f64::min)
}

fn row<T: Copy + Into<f64> + 'static>(
    name: &str,
    x: &[T],
    ours: impl Fn(&[T], &mut [T]),
    peer: impl Fn(T) -> T,
) {
    let filters: Vec<_> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if !filters.is_empty() && !filters.iter().any(|f| name.contains(f.as_str())) {
        return;
    }
    let mut y = x.to_vec();
    ours(x, &mut y);
    for (&x, &y) in x.iter().zip(&y) {
        let (y, want): (f64, f64) = (y.into(), peer(x).into());
        let tolerance = if size_of::<T>() == 4 { 1e-6 } else { 1e-14 };
        assert!((y - want).abs() <= tolerance * want.abs(), "{name}({}) = {y}", x.into());
    }
    let fast = time(|| ours(black_box(x), black_box(&mut y)));
    let slow = time(|| {
        for (y, &x) in black_box(&mut y).iter_mut().zip(black_box(x)) {
            *y = peer(x);
        }
    });
    let bytes = 2.0 * size_of::<T>() as f64;
    println!("{name:12} {fast:7.3} {:7.2} {slow:9.3} {:7.1}", bytes / fast, slow / fast);
}

/// Evenly spread arguments in a shuffled order, so that no branch is predictable.
macro_rules! arguments {
    ($t:ident, $low:expr, $high:expr) => {
        (0..LEN)
            .map(|i| {
                let u = ((i * 0x9e37_79b1) % LEN) as f64 / LEN as f64;
                ($low + ($high - $low) * u) as $t
            })
            .collect::<Vec<$t>>()
    };
}

macro_rules! table {
    ($module:ident, $t:ident) => {
        println!("{:12} {:>7} {:>7} {:>9} {:>7}", stringify!($t), "ns", "GB/s", "peer ns", "ratio");
        let wide = arguments!($t, -10.0, 10.0);
        let positive = arguments!($t, 0.01, 100.0);
        let near = arguments!($t, -4.0, 4.0);
        let unit = arguments!($t, -0.99, 0.99);
        let above = arguments!($t, 1.01, 100.0);
        row("x + 1", &wide, mapped!(|x: $t| x + 1.0), |x| x + 1.0);
        row("exp", &wide, mapped!(|x: $t| $module::exp(x)), |x| x.exp());
        row("exp_m1", &wide, mapped!(|x: $t| $module::exp_m1(x)), |x| x.exp_m1());
        row("sigmoid", &wide, mapped!(|x: $t| $module::sigmoid(x)), |x| 1.0 / (1.0 + (-x).exp()));
        row("ln", &positive, mapped!(|x: $t| $module::ln(x)), |x| x.ln());
        row("ln_1p", &positive, mapped!(|x: $t| $module::ln_1p(x)), |x| x.ln_1p());
        row("sin", &wide, mapped!(|x: $t| $module::sin(x)), |x| x.sin());
        row("cos", &wide, mapped!(|x: $t| $module::cos(x)), |x| x.cos());
        row("tan", &wide, mapped!(|x: $t| $module::tan(x)), |x| x.tan());
        row("asin", &unit, mapped!(|x: $t| $module::asin(x)), |x| x.asin());
        row("acos", &unit, mapped!(|x: $t| $module::acos(x)), |x| x.acos());
        row("atan", &wide, mapped!(|x: $t| $module::atan(x)), |x| x.atan());
        row("atan2", &wide, mapped!(|x: $t| $module::atan2(x, 0.7)), |x| x.atan2(0.7));
        row("sinh", &wide, mapped!(|x: $t| $module::sinh(x)), |x| x.sinh());
        row("cosh", &wide, mapped!(|x: $t| $module::cosh(x)), |x| x.cosh());
        row("tanh", &wide, mapped!(|x: $t| $module::tanh(x)), |x| x.tanh());
        row("asinh", &wide, mapped!(|x: $t| $module::asinh(x)), |x| libm::asinh(x as f64) as $t);
        row("acosh", &above, mapped!(|x: $t| $module::acosh(x)), |x| libm::acosh(x as f64) as $t);
        row("atanh", &unit, mapped!(|x: $t| $module::atanh(x)), |x| libm::atanh(x as f64) as $t);
        row("erf", &near, mapped!(|x: $t| $module::erf(x)), |x| libm::erf(x as f64) as $t);
        row("erfc", &near, mapped!(|x: $t| $module::erfc(x)), |x| libm::erfc(x as f64) as $t);
        row("gelu", &near, mapped!(|x: $t| $module::gelu(x)), |x| {
            let x = x as f64;
            (0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)) as $t
        });
        row("pow", &positive, mapped!(|x: $t| $module::pow(x, 1.7)), |x| x.powf(1.7));
    };
}

/// A copy followed by an in-place slice function, in pieces that fit in the L1 cache and are copied by vector moves:
/// long copies between buffers at equal page offsets can be slow.
macro_rules! sliced {
    ($name:ident) => {{
        struct Slices<'a>(&'a [f64], &'a mut [f64]);
        impl Loop for Slices<'_> {
            type Output = ();
            #[inline(always)]
            fn run(self) {
                for (y, x) in self.1.chunks_mut(128).zip(self.0.chunks(128)) {
                    y.copy_from_slice(x);
                    double::$name(y);
                }
            }
        }
        |x: &[f64], y: &mut [f64]| dispatch(Slices(x, y))
    }};
}

fn main() {
    println!("{:?}, {LEN} elements, one thread", Isa::detect());
    table!(single, f32);
    table!(double, f64);
    let wide = arguments!(f64, -10.0, 10.0);
    row("sin_slice", &wide, sliced!(sin_slice), |x| x.sin());
    row("cos_slice", &wide, sliced!(cos_slice), |x| x.cos());
    row("tan_slice", &wide, sliced!(tan_slice), |x| x.tan());
}
