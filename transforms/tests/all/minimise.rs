//! Minimisation of functions with known minima.

use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_autodiff::Autodiff;
use burn_t4a::BurnT4a;
use burn_t4a_transforms::derivatives::DerivativeError;
use burn_t4a_transforms::jvp::Jvp;
use burn_t4a_transforms::minimise::{Minimise, lbfgs, newton_cg};

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
