//! Activation functions and their derivatives.

use burn_backend::Scalar;
use burn_backend::ops::ActivationOps;

use super::BurnT4a;
use super::primitive::{T4aTensor, number};

impl ActivationOps<BurnT4a> for BurnT4a {
    fn leaky_relu(tensor: T4aTensor, negative_slope: Scalar) -> T4aTensor {
        tensor.then(|x| x.leaky_relu(number(negative_slope)))
    }

    fn relu(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.relu())
    }

    fn relu_backward(output: T4aTensor, grad: T4aTensor) -> T4aTensor {
        output.then(|y| y.relu_backward(grad.into_any()))
    }

    fn gelu(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.gelu())
    }

    fn prelu(tensor: T4aTensor, alpha: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.prelu(alpha.into_any()))
    }

    fn gelu_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        x.then(|x| x.gelu_backward(grad.into_any()))
    }

    fn sigmoid(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.sigmoid())
    }

    fn sigmoid_backward(output: T4aTensor, grad: T4aTensor) -> T4aTensor {
        output.then(|y| y.sigmoid_backward(grad.into_any()))
    }

    fn hard_sigmoid(tensor: T4aTensor, alpha: Scalar, beta: Scalar) -> T4aTensor {
        tensor.then(|x| x.hard_sigmoid(number(alpha), number(beta)))
    }

    fn log_sigmoid(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.log_sigmoid())
    }

    fn log_sigmoid_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        x.then(|x| x.log_sigmoid_backward(grad.into_any()))
    }

    fn softmax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.softmax(dim))
    }

    fn log_softmax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.log_softmax(dim))
    }
}
