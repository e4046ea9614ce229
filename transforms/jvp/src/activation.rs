//! Forward-mode rules of the activation functions.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use burn_backend::ops::ActivationOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Scalar};

use crate::backend::Jvp;
use crate::primitive::JvpTensor;
use crate::real::InnerFloat;

/// exp(−x²/2)/√(2π).
fn normal<B: Backend>(x: InnerFloat<B>) -> InnerFloat<B> {
    (x.square() / -2.0).map(B::float_exp) / (2.0 * PI).sqrt()
}

/// Tangent of softmax: y (ẋ − Σ y ẋ).
fn softmax_tangent<B: Backend>(t: InnerFloat<B>, y: InnerFloat<B>, dim: usize) -> InnerFloat<B> {
    let mean = (y.clone() * t.clone()).map(|x| B::float_sum_dim(x, dim));
    y * (t - mean)
}

/// `f(x, ẏ)`, linear in the cotangent ẏ; `slope` is the derivative in x of the factor of ẏ.
fn backward<B: Backend>(
    x: JvpTensor<B>,
    grad: JvpTensor<B>,
    f: impl Fn(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
    slope: impl FnOnce(InnerFloat<B>) -> InnerFloat<B>,
) -> JvpTensor<B> {
    let right = grad.tangent.map(|t| f(x.primal.clone(), t));
    let (value, cotangent) =
        (InnerFloat::<B>(x.primal.clone()), InnerFloat::<B>(grad.primal.clone()));
    let left = x.tangent.map(|t| (InnerFloat(t) * cotangent * slope(value)).0);
    JvpTensor::joined(f(x.primal, grad.primal), left, right)
}

impl<B: Backend> ActivationOps<Self> for Jvp<B> {
    fn relu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        x.chain(B::relu, |t, _, y| InnerFloat(B::relu_backward(y.0, t.0)))
    }

    fn relu_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        grad.linear(|grad| B::relu_backward(y.primal.clone(), grad))
    }

    fn leaky_relu(x: FloatTensor<Self>, slope: Scalar) -> FloatTensor<Self> {
        x.chain(
            |x| B::leaky_relu(x, slope),
            |t, x, _| {
                let scaled = B::float_mul_scalar(t.0.clone(), slope);
                let below = x.below(Scalar::Float(0.0));
                t.map(|t| B::float_mask_where(t, below, scaled))
            },
        )
    }

    fn prelu(x: FloatTensor<Self>, alpha: FloatTensor<Self>) -> FloatTensor<Self> {
        if !x.moves() && !alpha.moves() {
            return JvpTensor::constant(B::prelu(x.primal, alpha.primal));
        }
        let below = InnerFloat::<B>(x.primal.clone()).below(Scalar::Float(0.0));
        let scaled = x.clone().bilinear(alpha, B::float_mul);
        <Self as burn_backend::ops::FloatTensorOps<Self>>::float_mask_where(x, below, scaled)
    }

    /// x Φ(x), with the exact derivative Φ(x) + x φ(x); Burn's default `gelu_backward` differentiates an approximation
    /// with five digits.
    fn gelu(x: FloatTensor<Self>) -> FloatTensor<Self> {
        x.chain(B::gelu, |t, x, _| {
            let cumulative = ((x.clone() * FRAC_1_SQRT_2).map(B::float_erf) + 1.0) / 2.0;
            t * (cumulative + x.clone() * normal(x))
        })
    }

    fn gelu_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        // (x Φ)″ = (2 − x²) φ.
        backward(x, grad, B::gelu_backward, |x| (-x.clone().square() + 2.0) * normal(x))
    }

    fn sigmoid(x: FloatTensor<Self>) -> FloatTensor<Self> {
        x.chain(B::sigmoid, |t, _, y| InnerFloat(B::sigmoid_backward(y.0, t.0)))
    }

    fn sigmoid_backward(y: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        // The factor is y (1 − y).
        backward(y, grad, B::sigmoid_backward, |y| y * -2.0 + 1.0)
    }

    fn hard_sigmoid(x: FloatTensor<Self>, alpha: Scalar, beta: Scalar) -> FloatTensor<Self> {
        x.chain(
            |x| B::hard_sigmoid(x, alpha, beta),
            |t, x, _| {
                let line = x.map(|x| B::float_add_scalar(B::float_mul_scalar(x, alpha), beta));
                let slope = t.map(|t| B::float_mul_scalar(t, alpha));
                slope
                    .without(line.below(Scalar::Float(0.0)))
                    .without(line.above(Scalar::Float(1.0)))
            },
        )
    }

    fn log_sigmoid(x: FloatTensor<Self>) -> FloatTensor<Self> {
        x.chain(B::log_sigmoid, |t, x, _| t * (-x).map(B::sigmoid))
    }

    fn log_sigmoid_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        // The factor is σ(−x).
        backward(x, grad, B::log_sigmoid_backward, |x| {
            -(x.clone().map(B::sigmoid) * (-x).map(B::sigmoid))
        })
    }

    fn softmax(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        x.chain(|x| B::softmax(x, dim), |t, _, y| softmax_tangent(t, y, dim))
    }

    fn softmin(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        x.chain(|x| B::softmin(x, dim), |t, _, y| -softmax_tangent(t, y, dim))
    }

    fn log_softmax(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        x.chain(
            |x| B::log_softmax(x, dim),
            |t, _, y| {
                let mean = (y.map(B::float_exp) * t.clone()).map(|x| B::float_sum_dim(x, dim));
                t - mean
            },
        )
    }
}
