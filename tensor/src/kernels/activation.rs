//! Activation functions and their derivatives, each in one pass.

use t4a_algebra::Float;

use super::{binary, unary};
use crate::loops::kernel::Unary;

unary! {
    /// `max(x, 0)`; NaN for NaN.
    Relu "relu" 1: Float |x| if x < T::ZERO { T::ZERO } else { x };
    /// `1 / (1 + e⁻ˣ)`.
    Sigmoid "sigmoid" 8: Float |x| x.sigmoid();
    /// `x·Φ(x)` with the normal distribution function `Φ(x) = (1 + erf(x/√2)) / 2`.
    Gelu "gelu" 16: Float |x| x.gelu();
    /// `ln σ(x) = min(x, 0) − ln(1 + e^−|x|)`.
    LogSigmoid "log_sigmoid" 16: Float |x| {
        let min = if x < T::ZERO { x } else { T::ZERO.mul(x) };
        min.sub(x.abs().neg().exp().ln_1p())
    };
}

binary! {
    /// `g` where the output of [`Relu`] is positive or NaN, else 0: `(output, g)`.
    ReluBackward "relu_backward" 1: Float |y, g| -> T { if y <= T::ZERO { T::ZERO } else { g } };
    /// `g·σ·(1 − σ)`: `(output, g)`.
    SigmoidBackward "sigmoid_backward" 1: Float |y, g| -> T { g.mul(y).mul(T::ONE.sub(y)) };
    /// `g·(x·Φ(x))′`: `(x, g)`.
    GeluBackward "gelu_backward" 16: Float |x, g| -> T { g.mul(x.gelu_derivative()) };
    /// `g·σ(−x)`: `(x, g)`.
    LogSigmoidBackward "log_sigmoid_backward" 8: Float |x, g| -> T { g.mul(x.neg().sigmoid()) };
    /// `x` if positive, else `a·x`: `(x, a)`.
    Prelu "prelu" 1: Float |x, a| -> T { if x < T::ZERO { x.mul(a) } else { x } };
}

/// `x` if positive, else `slope·x`.
#[derive(Clone, Copy, Debug)]
pub struct LeakyRelu<T>(pub T);

impl<T: Float> Unary<T> for LeakyRelu<T> {
    type Out = T;
    const NAME: &'static str = "leaky_relu";
    #[inline(always)]
    fn apply(self, x: T) -> T {
        if x < T::ZERO { x.mul(self.0) } else { x }
    }
}

/// `min(max(alpha·x + beta, 0), 1)`.
#[derive(Clone, Copy, Debug)]
pub struct HardSigmoid<T> {
    /// Slope.
    pub alpha: T,
    /// Value at 0.
    pub beta: T,
}

impl<T: Float> Unary<T> for HardSigmoid<T> {
    type Out = T;
    const NAME: &'static str = "hard_sigmoid";
    #[inline(always)]
    fn apply(self, x: T) -> T {
        x.mul(self.alpha).add(self.beta).max(T::ZERO).min(T::ONE)
    }
}
