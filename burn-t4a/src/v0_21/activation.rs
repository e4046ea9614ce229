//! Activation functions and their derivatives.

use burn_backend::Scalar;
use burn_backend::ops::ActivationOps;

use super::BurnT4a;
use super::flex::flex;
use super::primitive::T4aTensor;

impl ActivationOps<BurnT4a> for BurnT4a {
    fn leaky_relu(tensor: T4aTensor, negative_slope: Scalar) -> T4aTensor {
        flex!(leaky_relu(tensor.into(), negative_slope))
    }

    fn relu(tensor: T4aTensor) -> T4aTensor {
        flex!(relu(tensor.into()))
    }

    fn relu_backward(output: T4aTensor, grad: T4aTensor) -> T4aTensor {
        flex!(relu_backward(output.into(), grad.into()))
    }

    fn gelu(tensor: T4aTensor) -> T4aTensor {
        flex!(gelu(tensor.into()))
    }

    fn prelu(tensor: T4aTensor, alpha: T4aTensor) -> T4aTensor {
        flex!(prelu(tensor.into(), alpha.into()))
    }

    fn gelu_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        flex!(gelu_backward(x.into(), grad.into()))
    }

    fn sigmoid(tensor: T4aTensor) -> T4aTensor {
        flex!(sigmoid(tensor.into()))
    }

    fn sigmoid_backward(output: T4aTensor, grad: T4aTensor) -> T4aTensor {
        flex!(sigmoid_backward(output.into(), grad.into()))
    }

    fn hard_sigmoid(tensor: T4aTensor, alpha: Scalar, beta: Scalar) -> T4aTensor {
        flex!(hard_sigmoid(tensor.into(), alpha, beta))
    }

    fn log_sigmoid(tensor: T4aTensor) -> T4aTensor {
        flex!(log_sigmoid(tensor.into()))
    }

    fn softmax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(softmax(tensor.into(), dim))
    }

    fn log_sigmoid_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        flex!(log_sigmoid_backward(x.into(), grad.into()))
    }
}
