//! Cross interpolation: exact ranks, exact integrals, error estimates, hostile functions.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::f64::consts::{PI, TAU};
use std::ops::ControlFlow;

use t4a_algebra::c64;
use t4a_networks::cross::{
    CrossInterpolation, CrossOptions, Function, PivotSearch, Points, Rule, Status, integrate,
    interpolate,
};
use t4a_networks::train::{TensorTrain, TrainError};
use t4a_tensor::random::Generator;

const BOTH: [PivotSearch; 2] = [PivotSearch::Rook, PivotSearch::Full];

fn points(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    (0..sizes.iter().product()).map(move |mut i: usize| {
        let mut point = vec![0; sizes.len()];
        for (p, d) in point.iter_mut().zip(sizes).rev() {
            (*p, i) = (i % d, i / d);
        }
        point
    })
}

/// The elements of all cores.
fn elements(train: &TensorTrain<f64>) -> Vec<f64> {
    train.cores().iter().flat_map(|core| core.to_vec().unwrap()).collect()
}

/// The largest deviation on all points.
fn true_error(train: &TensorTrain<f64>, f: impl Fn(&[usize]) -> f64) -> f64 {
    let sizes = train.sizes();
    points(&sizes).map(|p| (train.eval(&p).unwrap() - f(&p)).abs()).fold(0.0, f64::max)
}

#[test]
fn low_rank_tensors_are_recovered() {
    let generator = Generator::new(5);
    for (sizes, bond) in
        [(vec![4; 6], 3), (vec![2, 5, 3, 4, 2, 6], 5), (vec![7, 9], 4), (vec![2; 12], 6)]
    {
        let want = TensorTrain::<f64>::random(&generator, &sizes, bond).unwrap();
        for search in BOTH {
            let options = CrossOptions::new().tolerance(1e-11).search(search);
            let f = Function::new(&sizes, |p| want.eval(p).unwrap());
            let (train, report) = interpolate(f, &options).unwrap();
            assert!(report.converged(), "{report:?}");
            assert_eq!(train.bonds(), want.bonds());
            let scale = want.norm().unwrap();
            assert!(train.distance(&want).unwrap() < 1e-9 * scale, "{search:?} {sizes:?}");
        }
    }
    let want = TensorTrain::<c64>::random(&generator, &[4; 5], 3).unwrap();
    let f = Function::new(&[4; 5], |p| want.eval(p).unwrap());
    let (train, _) = interpolate(f, &CrossOptions::new().tolerance(1e-11)).unwrap();
    assert_eq!(train.bonds(), want.bonds());
    assert!(train.distance(&want).unwrap() < 1e-9 * want.norm().unwrap());
}

#[test]
fn a_limited_cache_changes_the_cost_alone() {
    let run = |options: &CrossOptions| {
        let calls = Cell::new(0);
        let f = |p: &[usize]| {
            calls.set(calls.get() + 1);
            1.0 / (1.0 + p.iter().sum::<usize>() as f64)
        };
        let (train, report) = interpolate(Function::new(&[6; 6], f), options).unwrap();
        assert_eq!(report.evaluations, calls.get());
        (elements(&train), report.evaluations)
    };
    let (want, least) = run(&CrossOptions::new());
    let mut before = least;
    for limit in [1_000_000, 300, 50, 1, 0] {
        let (got, evaluations) = run(&CrossOptions::new().cache_values(limit));
        assert_eq!(got, want);
        assert!(evaluations >= before, "{limit}: {evaluations}, {before}");
        before = evaluations;
    }
    assert!(before > 2 * least, "{before} without a cache, {least} with one");
}

#[test]
fn each_point_is_computed_once() {
    let seen = RefCell::new(HashSet::new());
    let f = |p: &[usize]| {
        assert!(seen.borrow_mut().insert(p.to_vec()), "{p:?} twice");
        1.0 / (1.0 + p.iter().sum::<usize>() as f64)
    };
    let (_, report) = interpolate(Function::new(&[6; 5], f), &CrossOptions::new()).unwrap();
    assert_eq!(report.evaluations, seen.borrow().len());
    // More than 2¹²⁸ points: random keys.
    let calls = Cell::new(0);
    let f = |p: &[usize]| {
        calls.set(calls.get() + 1);
        p.iter().enumerate().map(|(k, &s)| (s * (k + 1)) as f64).sum::<f64>().mul_add(1e-3, 1.0)
    };
    let (train, report) = interpolate(Function::new(&[10; 50], f), &CrossOptions::new()).unwrap();
    assert_eq!((report.evaluations, train.max_bond()), (calls.get(), 2));
    let want = 1.0 + 1e-3 * 9.0 * (50.0 * 51.0 / 2.0);
    assert!((train.eval(&[9; 50]).unwrap() - want).abs() < 1e-8 * want);
}

#[test]
fn rook_finds_what_full_search_finds() {
    let f = |p: &[usize]| {
        let x: Vec<f64> = p.iter().map(|&s| s as f64 / 7.0).collect();
        (x[0] + 2.0 * x[1] * x[2] - x[3]).cos() / (1.0 + x[1] + x[3] * x[4])
    };
    let mut bonds = Vec::new();
    for search in BOTH {
        let options = CrossOptions::new().tolerance(1e-9).search(search);
        let (train, report) = interpolate(Function::new(&[8; 5], f), &options).unwrap();
        assert!(report.converged());
        assert!(true_error(&train, f) < 1e-8);
        bonds.push(train.bonds());
    }
    for (rook, full) in bonds[0].iter().zip(&bonds[1]) {
        assert!(rook.abs_diff(*full) <= 1, "{bonds:?}");
    }
}

#[test]
fn error_estimates_are_near_true_errors() {
    let f = |p: &[usize]| {
        let s = p.iter().enumerate().map(|(k, &s)| (k + 1) as f64 * s as f64).sum::<f64>();
        1.0 / (1.0 + 0.1 * s) + 0.01 * (0.3 * s).sin()
    };
    for search in BOTH {
        for tolerance in [1e-3, 1e-6, 1e-9] {
            let options = CrossOptions::new().tolerance(tolerance).search(search);
            let (train, report) = interpolate(Function::new(&[5; 5], f), &options).unwrap();
            let error = true_error(&train, f);
            assert!(report.converged() && report.pivot_error <= tolerance * report.max_value);
            // The search among points bounds the error from below; the tolerance holds within its margin.
            assert!(report.global_error <= error * (1.0 + 1e-9) + 1e-14, "{report:?} {error}");
            assert!(error < 20.0 * tolerance * report.max_value, "{search:?} {tolerance} {error}");
            assert!(error > 1e-4 * report.pivot_error, "{error} {report:?}");
        }
    }
}

#[test]
fn interpolation_is_exact_at_nested_pivots() {
    let f = |p: &[usize]| {
        (p.iter().enumerate().map(|(k, &s)| s as f64 / (k + 1) as f64).sum::<f64>()).sqrt()
    };
    let options = CrossOptions::new()
        .tolerance(1e-3)
        .nested(true)
        .search(PivotSearch::Full)
        .global_search(0)
        .max_sweeps(1);
    let mut cross = CrossInterpolation::new(Function::new(&[4; 4], f), &options).unwrap();
    assert_eq!(cross.run().unwrap().status, Status::MaxSweeps);
    for b in 1..4 {
        let [left, right] = cross.pivots(b).unwrap();
        assert_eq!((left.len(), right.len()), (cross.train().bonds()[b - 1], left.len()));
        if b > 1 {
            let before = cross.pivots(b - 1).unwrap()[0].clone();
            assert!(left.iter().all(|i| before.contains(&i[..b - 1].to_vec())));
        }
    }
    // After a sweep to the right the last bond has the values of all its rows.
    for head in &cross.pivots(3).unwrap()[0] {
        for s in 0..4 {
            let point = [head.clone(), vec![s]].concat();
            assert!((cross.train().eval(&point).unwrap() - f(&point)).abs() < 1e-13);
        }
    }
    assert!(cross.pivots(0).is_none() && cross.pivots(4).is_none());
}

#[test]
fn limits_callbacks_and_continuation() {
    let f = |p: &[usize]| 1.0 / (1.0 + p.iter().map(|&s| (s * s) as f64).sum::<f64>());
    let limited = CrossOptions::new().tolerance(1e-12).max_bond(3);
    let (train, report) = interpolate(Function::new(&[6; 6], f), &limited).unwrap();
    assert_eq!((report.status, train.max_bond()), (Status::MaxBond, 3));
    assert!(report.pivot_error > 1e-12 && true_error(&train, f) > 1e-6);
    let options = CrossOptions::new().tolerance(1e-10);
    let mut cross = CrossInterpolation::new(Function::new(&[6; 6], f), &options).unwrap();
    let mut sweeps = Vec::new();
    let report = cross.run_with(|progress, train| {
        assert_eq!(train.max_bond(), progress.max_bond);
        sweeps.push(progress.sweep);
        if progress.sweep == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((report.unwrap().status, sweeps), (Status::Stopped, vec![1, 2]));
    let report = cross.run().unwrap();
    assert!(report.converged() && report.sweeps > 2);
    assert_eq!(report.evaluations, cross.evaluations());
    assert!(true_error(&cross.into_train(), f) < 1e-9);
    // Equal seeds, equal results.
    let run = |seed| interpolate(Function::new(&[6; 6], f), &options.clone().seed(seed)).unwrap();
    let (a, b) = (run(1), run(1));
    assert_eq!(a.1, b.1);
    assert_eq!(elements(&a.0), elements(&b.0));
}

#[test]
fn all_kinds_of_functions_agree() {
    let f = |p: &[usize]| (p.iter().map(|&s| s as f64 * 0.3).sum::<f64>()).exp();
    let (sizes, options) = ([5; 5], CrossOptions::new());
    let each = interpolate(Function::new(&sizes, f), &options).unwrap();
    let shared = Function::parallel(&sizes, |p| Ok::<_, TrainError>(f(p)));
    let batch = |points: &Points<'_>| {
        assert!(!points.is_empty() && points.as_slice().len() == 5 * points.len());
        Ok::<_, TrainError>(points.iter().map(f).collect())
    };
    for other in [shared, Function::batched(&sizes, batch)] {
        let other = interpolate(other, &options).unwrap();
        assert_eq!(each.1, other.1);
        assert_eq!(elements(&each.0), elements(&other.0));
    }
    assert_eq!(each.0.max_bond(), 1);
    let one = interpolate(Function::new(&[7], |p| p[0] as f64), &options).unwrap();
    assert_eq!(one.0.to_dense().unwrap().to_vec().unwrap(), [0., 1., 2., 3., 4., 5., 6.]);
}

#[test]
fn failures_name_the_point_and_keep_the_last_train() {
    let bad = [3, 1, 2, 0, 3];
    let f = |p: &[usize]| 1.0 / (1.0 + p.iter().sum::<usize>() as f64);
    let options = CrossOptions::new().tolerance(1e-14).search(PivotSearch::Full);
    for value in [f64::NAN, f64::INFINITY] {
        let g = Function::new(&[4; 5], |p| if p[3] == 0 && p[0] == 3 { value } else { f(p) });
        match interpolate(g, &options) {
            Err(TrainError::NonFinite { point, value: given, .. }) => {
                assert_eq!((point[0], point[3], given), (3, 0, format!("{value:?}")));
            }
            other => panic!("{:?}", other.map(|pair| pair.1)),
        }
    }
    let g = Function::fallible(&[4; 5], |p| if p == bad { Err("no value") } else { Ok(f(p)) });
    let all = options.clone().initial_pivots(&[bad.to_vec()]);
    match CrossInterpolation::new(g, &all).map(|_| ()) {
        Err(TrainError::Function { point, source, .. }) => {
            assert_eq!((point, source.to_string().as_str()), (bad.to_vec(), "no value"));
        }
        other => panic!("{other:?}"),
    }
    // A function that fails for a while: the run continues with the last train.
    let broken = Cell::new(false);
    let g = Function::batched(&[4; 5], |points| match broken.get() {
        true => Err("offline"),
        false => Ok(points.iter().map(f).collect()),
    });
    let options = CrossOptions::new().tolerance(1e-10).nested(true);
    let mut cross = CrossInterpolation::new(g, &options).unwrap();
    let error = cross.run_with(|progress, _| {
        broken.set(progress.sweep == 1);
        ControlFlow::Continue(())
    });
    assert!(matches!(error, Err(TrainError::Batch { points, .. }) if points > 0));
    assert!(cross.train().max_bond() > 1);
    broken.set(false);
    assert!(cross.run().unwrap().converged());
    assert!(true_error(cross.train(), f) < 1e-8);
    let short = Function::batched(&[4; 5], |_| Ok::<_, TrainError>(vec![1.0]));
    let error = interpolate(short, &CrossOptions::new()).map(|_| ());
    assert!(matches!(error, Err(TrainError::Length { given: 1, .. })), "{error:?}");
}

#[test]
fn zeros_steps_and_peaks() {
    let (train, report) =
        interpolate(Function::new(&[5; 6], |_| 0.0), &CrossOptions::new()).unwrap();
    assert_eq!((report.max_value, train.sum().unwrap(), train.max_bond()), (0.0, 0.0, 1));
    assert!(report.converged() && report.evaluations > 1000);
    // A step along a diagonal has a bond for each value of the sum.
    let step = |p: &[usize]| if p.iter().sum::<usize>() > 9 { 1.0 } else { 0.0 };
    let (train, report) = interpolate(Function::new(&[5; 5], step), &CrossOptions::new()).unwrap();
    assert!(report.converged() && true_error(&train, step) < 1e-10);
    // One point of 10⁶ differs from zero; an initial pivot names it.
    let peak = [3, 1, 4, 1, 5, 9];
    let f = |p: &[usize]| if p == peak { 2.0 } else { 0.0 };
    let options = CrossOptions::new().initial_pivots(&[peak.to_vec()]);
    let (train, _) = interpolate(Function::new(&[10; 6], f), &options).unwrap();
    assert_eq!((train.sum().unwrap(), train.eval(&peak).unwrap()), (2.0, 2.0));
    // Two distant peaks on a smooth ground: the second one as a pivot.
    let f = |p: &[usize]| {
        let near =
            |q: usize| (-(p.iter().map(|&s| s.abs_diff(q).pow(2)).sum::<usize>() as f64)).exp();
        near(1) + near(8)
    };
    let options = CrossOptions::new().tolerance(1e-9);
    let (train, _) = interpolate(Function::new(&[10; 5], f), &options).unwrap();
    for q in [1, 8] {
        assert!((train.eval(&[q; 5]).unwrap() - 1.0).abs() < 1e-7);
    }
}

#[test]
fn options_are_checked() {
    let run = |sizes: &[usize], options: CrossOptions| {
        interpolate(Function::new(sizes, |_| 1.0), &options).map(|_| ()).unwrap_err()
    };
    let new = CrossOptions::new;
    assert!(matches!(run(&[], new()), TrainError::Sites { .. }));
    assert!(matches!(run(&[2, 0], new()), TrainError::Value { .. }));
    for options in [
        new().tolerance(-1.0),
        new().tolerance(f64::NAN),
        new().max_bond(0),
        new().max_sweeps(0),
        new().patience(0),
        new().global_margin(f64::NAN),
    ] {
        assert!(matches!(run(&[2, 2], options), TrainError::Value { .. }));
    }
    assert!(matches!(run(&[2, 2], new().initial_pivots(&[vec![0]])), TrainError::Length { .. }));
    assert!(matches!(run(&[2, 2], new().initial_pivots(&[vec![0, 2]])), TrainError::Index { .. }));
}

#[test]
fn quadrature_rules() {
    let integral = |rule: &Rule, f: &dyn Fn(f64) -> f64| {
        rule.nodes().iter().zip(rule.weights()).map(|(&x, w)| w * f(x)).sum::<f64>()
    };
    for n in [1, 2, 3, 7, 10, 15, 40] {
        let gauss = Rule::gauss_legendre(n).unwrap();
        let kronrod = Rule::gauss_kronrod(n).unwrap();
        assert_eq!((gauss.nodes().len(), kronrod.nodes().len()), (n, 2 * n + 1));
        for degree in 0..=3 * n + 1 {
            let exact = if degree % 2 == 0 { 2.0 / (degree as f64 + 1.0) } else { 0.0 };
            let power = |x: f64| x.powi(degree as i32);
            assert!((integral(&kronrod, &power) - exact).abs() < 3e-13, "kronrod {n} {degree}");
            assert!(degree >= 2 * n || (integral(&gauss, &power) - exact).abs() < 3e-14);
        }
        // One degree more is not exact.
        let power = |x: f64| x.powi(2 * n as i32);
        assert!(n > 10 || (integral(&gauss, &power) - 2.0 / (2 * n + 1) as f64).abs() > 1e-9);
        let embedded = kronrod.embedded().unwrap();
        for (i, x) in gauss.nodes().iter().enumerate() {
            assert!((kronrod.nodes()[2 * i + 1] - x).abs() < 1e-15);
            assert_eq!((embedded[2 * i + 1], embedded[2 * i]), (gauss.weights()[i], 0.0));
        }
    }
    // The largest node and its weight of the rule of 15 (R. Piessens et al., QUADPACK, 1983).
    let rule = Rule::gauss_kronrod(7).unwrap();
    assert!((rule.nodes()[14] - 0.991_455_371_120_812_6).abs() < 1e-14);
    assert!((rule.weights()[14] - 0.022_935_322_010_529_224).abs() < 1e-14);
    assert!(Rule::gauss_legendre(0).is_err() && Rule::gauss_kronrod(0).is_err());
    assert!(Rule::gauss_legendre(1000).is_err() && Rule::gauss_kronrod(190).is_err());
    assert!(rule.on(0.0, f64::INFINITY).is_err() && Rule::new(&[0.0], &[]).is_err());
}

#[test]
fn integrals_with_known_values() {
    // ∫ cos(Σ x) over [0, 1]⁶ = Re Π (e^i − 1) / i.
    let rules = vec![Rule::gauss_kronrod(4).unwrap().on(0.0, 1.0).unwrap(); 6];
    let options = CrossOptions::new().tolerance(1e-12);
    let f = |x: &[f64]| x.iter().sum::<f64>().cos();
    let integral = integrate(&rules, f, &options).unwrap();
    let one = (c64::new(0.0, 1.0).exp() - 1.0) / c64::new(0.0, 1.0);
    assert!((integral.value - one.powu(6).re).abs() < 1e-12);
    assert!(integral.train.max_bond() == 2 && integral.change < 1e-12);
    // The difference of the rules is that of n = 4, whose error is near 1e-9.
    let error = integral.quadrature_error.unwrap();
    assert!((1e-12..1e-7).contains(&error), "{error}");
    // A Gaussian that does not factorise: ∫ exp(−xᵀ A x) over all of R³ = π^(3/2) / √det A.
    let rules = vec![Rule::gauss_legendre(41).unwrap().on(-6.0, 6.0).unwrap(); 3];
    let f = |x: &[f64]| {
        let sum = x[0] + x[1] + x[2];
        (-(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + 0.5 * sum * sum)).exp()
    };
    let integral = integrate(&rules, f, &options).unwrap();
    assert!((integral.value - PI.powf(1.5) / 2.5f64.sqrt()).abs() < 1e-9, "{}", integral.value);
    assert!(integral.quadrature_error.is_none());
}

/// `1000 ∫ cos(10 Σ xᵢ²) exp(−(Σ xᵢ)⁴ / 1000)` over [−1, 1]ⁿ without cross interpolation: the integrand depends on
/// `Σ x` and `Σ x²` alone. With the Fourier series `exp(−s⁴/1000) = Σ g_k e^{iks·2π/L}` on |s| ≤ n it is
/// `1000 Re Σ g_k h(2πk/L)ⁿ`, `h(q) = ∫ e^{10 i x² + i q x} dx`.
fn oscillating(n: i32) -> f64 {
    // Periodic to rounding: exp(−s⁴/1000) = 1e-40 at |s| = L/2 = 17.5.
    let (period, samples) = (35.0, 400usize);
    let profile: Vec<f64> = (0..samples)
        .map(|j| {
            let s = period * (j as f64 / samples as f64 - 0.5);
            (-s.powi(4) / 1000.0).exp()
        })
        .collect();
    let rule = Rule::gauss_legendre(80).unwrap();
    let mut sum = c64::new(0.0, 0.0);
    for k in -120i32..=120 {
        let phase =
            |j: usize| c64::new(0.0, -TAU * f64::from(k) * (j as f64 / samples as f64 - 0.5)).exp();
        let g = profile.iter().enumerate().map(|(j, p)| p * phase(j)).sum::<c64>() / samples as f64;
        let q = TAU * f64::from(k) / period;
        let h = rule.nodes().iter().zip(rule.weights());
        let h = h.map(|(x, w)| w * c64::new(0.0, 10.0 * x * x + q * x).exp()).sum::<c64>();
        sum += g * h.powi(n);
    }
    1000.0 * sum.re
}

fn oscillating_by_cross(n: usize, tolerance: f64) -> t4a_networks::cross::Integral<f64> {
    let f = |x: &[f64]| {
        let (s, q) = x.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        1000.0 * (10.0 * q).cos() * (-(s * s * s * s) / 1000.0).exp()
    };
    let rules = vec![Rule::gauss_kronrod(20).unwrap(); n];
    integrate(&rules, f, &CrossOptions::new().tolerance(tolerance)).unwrap()
}

#[test]
fn oscillating_integral_in_three_dimensions() {
    let integral = oscillating_by_cross(3, 1e-12);
    let want = oscillating(3);
    assert!((integral.value - want).abs() < 1e-11 * want.abs(), "{} {want}", integral.value);
    // The published value of ten dimensions, by the reduction above.
    assert!((oscillating(10) + 5.496_041_521_804_9).abs() < 1e-9, "{}", oscillating(10));
}

/// 2.6 million values, 14 s of the CPU without optimisation.
#[test]
#[ignore = "14 s of the CPU"]
fn oscillating_integral_in_ten_dimensions() {
    let integral = oscillating_by_cross(10, 1e-10);
    println!("{:.13} {:?} {:?}", integral.value, integral.quadrature_error, integral.report);
    assert!((integral.value + 5.496_041_521_804_9).abs() < 1e-9, "{:.13}", integral.value);
}
