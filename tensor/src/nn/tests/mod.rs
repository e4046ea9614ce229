//! Every operation against naive loops in `f64` on every layout, and every derivative against
//! finite differences or the adjoint identity.

mod attention;
mod axis;
mod conv;
mod cross_entropy;
mod linear;
mod pool;

use crate::testing::Mix;
use crate::{AnyTensor, DType, Tensor};

/// Reproducible numbers in [−1, 1).
fn random(shape: &[usize], seed: u64) -> Tensor<f64> {
    let mut mix = Mix(seed);
    Tensor::from_fn(shape, |_| 2.0 * mix.unit() - 1.0).unwrap()
}

/// The elements as `f64`, in row-major order.
fn values(x: &AnyTensor) -> Vec<f64> {
    x.clone().cast(DType::F64).unwrap().into_typed::<f64>().unwrap().to_vec().unwrap()
}

fn inner(a: &Tensor<f64>, b: &Tensor<f64>) -> f64 {
    a.to_vec().unwrap().iter().zip(b.to_vec().unwrap()).map(|(x, y)| x * y).sum()
}

/// `a + h·b`.
fn step(a: &Tensor<f64>, b: &Tensor<f64>, h: f64) -> Tensor<f64> {
    let (a_vec, b_vec) = (a.to_vec().unwrap(), b.to_vec().unwrap());
    Tensor::from_fn(a.shape(), |i| a_vec[i] + h * b_vec[i]).unwrap()
}

/// `⟨dy, f(x + h·v) − f(x − h·v)⟩ / 2h` against `⟨dx, v⟩`.
#[track_caller]
fn assert_vjp(
    x: &Tensor<f64>,
    dx: &Tensor<f64>,
    dy: &Tensor<f64>,
    f: impl Fn(&Tensor<f64>) -> Tensor<f64>,
) {
    let v = random(x.shape(), 99);
    let h = 1e-6;
    let difference = inner(dy, &f(&step(x, &v, h))) - inner(dy, &f(&step(x, &v, -h)));
    let (numeric, exact) = (difference / (2.0 * h), inner(dx, &v));
    assert!((numeric - exact).abs() < 1e-6 * (1.0 + exact.abs()), "{numeric} and {exact}");
}
