//! Second derivatives of fused functions against Burn's own operations. First derivatives are tested in
//! `face/ext/tests`, for all versions of Burn.

use burn_autodiff::Autodiff;
use burn_backend::{AutodiffBackend, Backend, TensorData};
use burn_tensor::{Tensor, TensorPrimitive, activation};

use super::*;
use crate::BurnT4a;

type A = Autodiff<BurnT4a>;

fn values<const D: usize>(shape: [usize; D], salt: usize) -> TensorData {
    let value = |i: usize| ((i * 7919 + salt * 104_729) % 1000) as f32 / 500.0 - 1.0;
    TensorData::new((0..shape.iter().product()).map(value).collect::<Vec<f32>>(), shape)
}

fn leaf<B: AutodiffBackend, const D: usize>(shape: [usize; D], salt: usize) -> Tensor<B, D> {
    Tensor::from_data(values(shape, salt), &Default::default()).require_grad()
}

fn close(a: TensorData, b: TensorData, context: &str) {
    assert_eq!(a.shape, b.shape, "{context}");
    for (x, y) in a.iter::<f64>().zip(b.iter::<f64>()) {
        assert!((x - y).abs() <= 2e-5 * (1.0 + y.abs()), "{context}: {x} and {y}");
    }
}

/// Layer norm by the operations of `burn_nn::LayerNorm`.
fn burns_norm<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    gamma: Tensor<B, 1>,
    beta: Option<Tensor<B, 1>>,
    epsilon: f64,
) -> Tensor<B, D> {
    let float = |x: TensorPrimitive<B>| x.tensor();
    let (x, gamma) = (float(x.into_primitive()), float(gamma.into_primitive()));
    let beta = beta.map(|beta| float(beta.into_primitive()));
    Tensor::from_primitive(TensorPrimitive::Float(B::layer_norm(x, gamma, beta, epsilon)))
}

/// The derivative of `Σ (∂L/∂x)²`, on nested tapes.
#[test]
fn second_derivatives_go_through_the_portable_rules() {
    type AA = Autodiff<A>;
    let second = |f: &dyn Fn(Tensor<AA, 2>) -> Tensor<AA, 2>| {
        let x = leaf::<A, 2>([3, 5], 1);
        let lifted = Tensor::<AA, 2>::from_inner(x.clone()).require_grad();
        let g = Tensor::<AA, 2>::from_data(values([3, 5], 2), &Default::default());
        let grads = (f(lifted.clone()) * g).sum().backward();
        let first = lifted.grad(&grads).unwrap();
        let grads = (first.clone() * first).sum().backward();
        x.grad(&grads).unwrap().into_data()
    };
    let gamma = || Tensor::<AA, 1>::from_data(values([5], 3), &Default::default());
    close(second(&|x| softmax(x, 1)), second(&|x| activation::softmax(x, 1)), "softmax");
    close(second(&|x| log_softmax(x, 1)), second(&|x| activation::log_softmax(x, 1)), "log");
    close(
        second(&|x| layer_norm(x, gamma(), None, 1e-2)),
        second(&|x| burns_norm(x, gamma(), None, 1e-2)),
        "layer norm",
    );
}
