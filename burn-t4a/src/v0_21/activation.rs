//! Activation functions and their derivatives.

use burn_backend::Scalar;
use burn_backend::ops::ActivationOps;
use t4a_tensor::route::Reason;
use t4a_tensor::{AnyTensor, DType, Result, Route};

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
        tensor.then(|x| widened(x, AnyTensor::gelu))
    }

    fn prelu(tensor: T4aTensor, alpha: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.prelu(alpha.into_any()))
    }

    fn gelu_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        x.then(|x| widened2(x, grad.into_any(), AnyTensor::gelu_backward))
    }

    fn sigmoid(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| widened(x, AnyTensor::sigmoid))
    }

    fn sigmoid_backward(output: T4aTensor, grad: T4aTensor) -> T4aTensor {
        output.then(|y| widened2(y, grad.into_any(), AnyTensor::sigmoid_backward))
    }

    fn hard_sigmoid(tensor: T4aTensor, alpha: Scalar, beta: Scalar) -> T4aTensor {
        tensor.then(|x| widened(x, |x| x.hard_sigmoid(number(alpha), number(beta))))
    }

    fn log_sigmoid(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| widened(x, AnyTensor::log_sigmoid))
    }

    fn log_sigmoid_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        x.then(|x| widened2(x, grad.into_any(), AnyTensor::log_sigmoid_backward))
    }

    fn softmax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.softmax(dim))
    }

    fn log_softmax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.log_softmax(dim))
    }
}

/// Computes a chain of operations on 16-bit floats in `f32`, so that it rounds once.
fn widened(x: AnyTensor, f: impl FnOnce(AnyTensor) -> Result<AnyTensor>) -> Result<AnyTensor> {
    match x.dtype() {
        narrow @ (DType::F16 | DType::BF16) => promoted(f(x.cast(DType::F32)?)?, narrow),
        _ => f(x),
    }
}

/// [`widened`] for two operands.
fn widened2(
    x: AnyTensor,
    y: AnyTensor,
    f: impl FnOnce(AnyTensor, AnyTensor) -> Result<AnyTensor>,
) -> Result<AnyTensor> {
    match x.dtype() {
        narrow @ (DType::F16 | DType::BF16) if y.dtype() == narrow => {
            promoted(f(x.cast(DType::F32)?, y.cast(DType::F32)?)?, narrow)
        }
        _ => f(x, y),
    }
}

fn promoted(wide: AnyTensor, narrow: DType) -> Result<AnyTensor> {
    let route = Route::because(wide.route().path, Reason::DtypePromoted);
    Ok(wide.cast(narrow)?.with_route(route))
}
