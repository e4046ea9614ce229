//! Activation functions: one row per method.

use burn_backend::ops::ActivationOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Scalar};

use super::methods;
use crate::backend::Traced;
use crate::fuse::{Binary, Elementwise, Unary};

methods! {
    impl ActivationOps, activation {
    }

    fn gelu(tensor: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Unary(Unary::Gelu);
    fn gelu_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Binary(Binary::GeluBackward);
    fn hard_sigmoid(tensor: FloatTensor<Self>, alpha: Scalar, beta: Scalar) -> FloatTensor<Self>;
    fn leaky_relu(tensor: FloatTensor<Self>, negative_slope: Scalar) -> FloatTensor<Self> => Elementwise::Leaky(negative_slope.elem());
    fn log_sigmoid(tensor: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Unary(Unary::LogSigmoid);
    fn log_sigmoid_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Binary(Binary::LogSigmoidBackward);
    fn log_softmax(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self>;
    fn prelu(tensor: FloatTensor<Self>, alpha: FloatTensor<Self>) -> FloatTensor<Self>;
    fn relu(tensor: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Unary(Unary::Relu);
    fn relu_backward(output: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Binary(Binary::ReluBackward);
    fn sigmoid(tensor: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Unary(Unary::Sigmoid);
    fn sigmoid_backward(output: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Binary(Binary::SigmoidBackward);
    fn softmax(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self>;
    fn softmin(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self>;
}
