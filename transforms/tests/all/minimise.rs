//! Minimisation of functions with known minima.

use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_autodiff::Autodiff;
use burn_t4a::BurnT4a;
use burn_t4a_transforms::derivatives::DerivativeError;
use burn_t4a_transforms::jvp::Jvp;
use burn_t4a_transforms::minimise::{Minimise, lbfgs, newton_cg};

use scipy_numbers as scipy;

#[rustfmt::skip]
mod scipy_numbers;

type B = BurnT4a;

fn of<A: Backend, const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<A, D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (&A::Device::default(), DType::F64))
}

fn numbers<const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

/// Σ 100 (x_{i+1} − x_i²)² + (1 − x_i)², with the minimum 0 at ones.
fn rosenbrock<A: Backend>(x: Tensor<A, 1>) -> Tensor<A, 1> {
    let n = x.dims()[0];
    let (a, b) = (x.clone().narrow(0, 0, n - 1), x.narrow(0, 1, n - 1));
    let bend = (b - a.clone().powi_scalar(2)).powi_scalar(2) * 100.0;
    (bend + (-a + 1.0).powi_scalar(2)).sum()
}

#[test]
fn rosenbrock_has_its_minimum_at_ones() {
    let settings = Minimise { tolerance: 1e-9, steps: 400, ..Minimise::default() };
    for n in [2, 10, 30] {
        let start: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { -1.2 } else { 1.0 }).collect();
        let start = || of::<B, 1>(&start, [n]);
        let by_steps = lbfgs(rosenbrock::<Autodiff<B>>, start(), &settings).unwrap();
        let by_newton = newton_cg(
            rosenbrock::<Autodiff<Jvp<B>>>,
            rosenbrock::<Autodiff<B>>,
            start(),
            &settings,
        );
        for found in [by_steps, by_newton.unwrap()] {
            assert!(found.converged, "{n}: {found:?}");
            // For ten or more variables there is another local minimum, with the first variable near −1 and the
            // value 3.99.
            let at_ones = numbers(found.x).iter().all(|x| (x - 1.0).abs() < 1e-7);
            assert!(at_ones && found.value < 1e-14 || (found.value - 3.986).abs() < 0.01);
            assert!(found.evaluations >= found.steps);
        }
    }
}

/// `sin(seed)`, `sin(seed + 1)`, …
fn wave<A: Backend, const D: usize>(seed: usize, shape: [usize; D]) -> Tensor<A, D> {
    let count = shape.iter().product::<usize>();
    of(&(0..count).map(|k| ((seed + k) as f64).sin()).collect::<Vec<_>>(), shape)
}

/// The functions of `scipy_numbers.py`.
fn named<A: Backend>(name: &str, x: Tensor<A, 1>) -> Tensor<A, 1> {
    let at = |i: usize| x.clone().narrow(0, i, 1);
    let square = |x: Tensor<A, 1>| x.powi_scalar(2);
    match name {
        "beale" => {
            let (a, b) = (at(0), at(1));
            let term =
                |c: f64, n: i32| square(a.clone() * b.clone().powi_scalar(n) - a.clone() + c);
            term(1.5, 1) + term(2.25, 2) + term(2.625, 3)
        }
        "wood" => {
            let (a, b, c, d) = (at(0), at(1), at(2), at(3));
            let far = square(b.clone() - square(a.clone())) * 100.0 + square(-a + 1.0);
            let far = far + square(d.clone() - square(c.clone())) * 90.0 + square(-c + 1.0);
            let (b, d) = (b - 1.0, d - 1.0);
            far + (square(b.clone()) + square(d.clone())) * 10.1 + b * d * 19.8
        }
        "logistic" => {
            let z = wave::<A, 2>(1, [20, 4]).matmul(x.clone().unsqueeze_dim(1)).squeeze_dim::<1>(1);
            let y = wave::<A, 1>(3, [20]).greater_elem(0.0).float().cast(DType::F64);
            (z.clone().exp().log1p() - y * z).sum() + square(x).sum() * 0.05
        }
        _ => {
            let roots = (square(x.clone() - wave(2, [6])) + 1.0).sqrt().sum();
            roots + square(x.sum()) * 0.5
        }
    }
}

#[test]
fn minima_are_those_of_scipy() {
    let settings = Minimise { tolerance: 1e-10, steps: 2000, ..Minimise::default() };
    for (name, start, want) in [
        ("beale", of(&[1.0, 0.8], [2]), scipy::BEALE),
        ("wood", of(&[-3.0, -1.0, -3.0, -1.0], [4]), scipy::WOOD),
        ("logistic", of(&[0.0; 4], [4]), scipy::LOGISTIC),
        ("softened", wave(5, [6]), scipy::SOFTENED),
    ] {
        let start: Tensor<B, 1> = start;
        let by_steps = lbfgs(|x: Tensor<Autodiff<B>, 1>| named(name, x), start.clone(), &settings);
        let by_newton = newton_cg(
            |x: Tensor<Autodiff<Jvp<B>>, 1>| named(name, x),
            |x: Tensor<Autodiff<B>, 1>| named(name, x),
            start,
            &settings,
        );
        for found in [by_steps.unwrap(), by_newton.unwrap()] {
            assert!(found.converged, "{name}: {found:?}");
            assert!((found.value - want[0]).abs() < 1e-12 * want[0].max(1.0), "{name}: {found:?}");
            for (x, want) in numbers(found.x).iter().zip(&want[1..]) {
                assert!((x - want).abs() < 1e-7, "{name}: {x} {want}");
            }
        }
    }
}

/// A quadratic function of a tree of four numbers.
#[test]
fn quadratic_functions_of_trees() {
    // (a − 1)² + Σ (b + 2)² i + a b₀
    fn f<A: Backend>((a, b): (Tensor<A, 1>, Tensor<A, 2>)) -> Tensor<A, 1> {
        let weights = of::<A, 2>(&[1.0, 2.0, 3.0], [1, 3]);
        let first = b.clone().narrow(1, 0, 1).reshape([1]);
        (a.clone() - 1.0).powi_scalar(2).sum()
            + ((b + 2.0).powi_scalar(2) * weights).sum()
            + a * first
    }
    let start = || (of::<B, 1>(&[5.0], [1]), of::<B, 2>(&[1.0, 2.0, -7.0], [1, 3]));
    let settings = Minimise { tolerance: 1e-10, ..Minimise::default() };
    // 2 (a − 1) + b₀ = 0 and 2 (b₀ + 2) + a = 0.
    let want = [8.0 / 3.0, -10.0 / 3.0, -2.0, -2.0];
    let one = lbfgs(f::<Autodiff<B>>, start(), &settings).unwrap();
    let two = newton_cg(f::<Autodiff<Jvp<B>>>, f::<Autodiff<B>>, start(), &settings).unwrap();
    assert!(one.steps < 20 && two.steps < 10, "{} {}", one.steps, two.steps);
    for found in [one, two] {
        assert!(found.converged);
        let (a, b) = found.x;
        for (x, want) in [numbers(a), numbers(b)].concat().iter().zip(want) {
            assert!((x - want).abs() < 1e-9, "{x} {want}");
        }
    }
}

/// From a point with negative curvature to one of the two minima of x⁴ − x².
#[test]
fn negative_curvature() {
    fn f<A: Backend>(x: Tensor<A, 1>) -> Tensor<A, 1> {
        (x.clone().powi_scalar(4) - x.powi_scalar(2)).sum()
    }
    let settings = Minimise { tolerance: 1e-10, ..Minimise::default() };
    for start in [0.1, -0.2] {
        let start = || of::<B, 1>(&[start], [1]);
        let one = lbfgs(f::<Autodiff<B>>, start(), &settings).unwrap();
        let two = newton_cg(f::<Autodiff<Jvp<B>>>, f::<Autodiff<B>>, start(), &settings).unwrap();
        for found in [one, two] {
            assert!(found.converged && (found.value + 0.25).abs() < 1e-15, "{found:?}");
        }
    }
}

#[test]
fn a_search_that_finds_nothing_says_so() {
    // Unbounded below.
    let falls = |x: Tensor<Autodiff<B>, 1>| -x.exp();
    let settings = Minimise { steps: 50, ..Minimise::default() };
    let found = lbfgs(falls, of(&[0.0], [1]), &settings).unwrap();
    assert!(!found.converged);
    // The initial value is NaN.
    let nothing = |x: Tensor<Autodiff<B>, 1>| x.log();
    let found = lbfgs(nothing, of(&[-1.0], [1]), &settings).unwrap();
    assert!(!found.converged && found.value.is_nan() && found.steps == 0);
    // The initial point is a minimum.
    let square = |x: Tensor<Autodiff<B>, 1>| x.powi_scalar(2).sum();
    let found = lbfgs(square, of(&[0.0, 0.0], [2]), &settings).unwrap();
    assert!(found.converged && found.steps == 0 && found.evaluations == 1);
    // The loss has two elements.
    let two = lbfgs(|x: Tensor<Autodiff<B>, 1>| x, of::<B, 1>(&[0.0, 0.0], [2]), &settings);
    assert!(matches!(two, Err(DerivativeError::Loss { .. })));
}
