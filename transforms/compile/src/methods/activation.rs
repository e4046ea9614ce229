//! Activation functions: one row per method.

use burn_backend::ops::ActivationOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Scalar};

use super::methods;
use crate::backend::Traced;
use crate::fuse::{BinaryOp, Elementwise, UnaryOp};

methods! {
    impl ActivationOps, activation {
    }

    [Elementwise]
    fn gelu(tensor: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Unary(UnaryOp::Gelu);
    fn gelu_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Binary(BinaryOp::GeluBackward);
    fn hard_sigmoid(tensor: FloatTensor<Self>, alpha: Scalar, beta: Scalar) -> FloatTensor<Self>;
    fn leaky_relu(tensor: FloatTensor<Self>, negative_slope: Scalar) -> FloatTensor<Self> => Elementwise::Leaky(negative_slope.elem());
    fn log_sigmoid(tensor: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Unary(UnaryOp::LogSigmoid);
    fn log_sigmoid_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Binary(BinaryOp::LogSigmoidBackward);
    fn relu(tensor: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Unary(UnaryOp::Relu);
    fn relu_backward(output: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Binary(BinaryOp::ReluBackward);
    fn sigmoid(tensor: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Unary(UnaryOp::Sigmoid);
    fn sigmoid_backward(output: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> => Elementwise::Binary(BinaryOp::SigmoidBackward);

    [AlongAxis]
    fn log_softmax(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self>;
    fn softmax(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self>;
    fn softmin(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self>;

    [General]
    fn prelu(tensor: FloatTensor<Self>, alpha: FloatTensor<Self>) -> FloatTensor<Self>;
}
