//! Activation functions.

use burn_backend::ops::ActivationOps;
use burn_backend::{Backend, Scalar};

use crate::backend::Vmap;
use crate::rows::{F, along, map, zip};

impl<B: Backend> ActivationOps<Self> for Vmap<B> {
    map! { F => F:
        relu() gelu() sigmoid() log_sigmoid() leaky_relu(slope: Scalar)
        hard_sigmoid(alpha: Scalar, beta: Scalar)
    }
    zip! { F: Float, F: Float => F:
        prelu() relu_backward() gelu_backward() sigmoid_backward() log_sigmoid_backward()
    }
    along! { F => F: softmax() log_softmax() softmin() }
}
