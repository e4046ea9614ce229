//! The diagonal state-space layer.

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::activation::gelu;
use burn::tensor::backend::Backend;
use burn::tensor::{Distribution, Tensor};
use burn_t4a::ext::Complex;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::scan::fused::complex_linear_recurrence;

/// `h_t = λ ⊙ h_{t−1} + √(1 − |λ|²) ⊙ u_t` with complex λ, then a perceptron of Re h and Im h with a residual
/// connection: the linear recurrent unit of Orvieto and others, *Resurrecting recurrent neural networks for long
/// sequences*, 2023. `|λ| = exp(−eᵛ)` is below 1 for any parameters.
#[derive(Module, Debug)]
pub(crate) struct StateSpace<B: Backend> {
    norm: LayerNorm<B>,
    /// v, `[states]`.
    decay: Param<Tensor<B, 1>>,
    /// The angle of λ, `[states]`.
    angle: Param<Tensor<B, 1>>,
    input: Linear<B>,
    output: Linear<B>,
}

impl<B: Backend> StateSpace<B> {
    pub(crate) fn new(width: usize, states: usize, device: &B::Device) -> Self {
        let uniform = |from, to| Tensor::random([states], Distribution::Uniform(from, to), device);
        Self {
            norm: LayerNormConfig::new(width).init(device),
            // Time constants between 3 and 300 steps.
            decay: Param::from_tensor(uniform(-5.7, -1.1)),
            angle: Param::from_tensor(uniform(0.0, 0.5)),
            input: LinearConfig::new(width, 2 * states).init(device),
            output: LinearConfig::new(2 * states, width).init(device),
        }
    }
}

impl<B: Operations> StateSpace<B> {
    /// Maps `[n, batch, width]` to the same shape.
    pub(crate) fn forward(&self, x: Tensor<B, 3>) -> Tensor<B, 3> {
        let [n, batch, _] = x.dims();
        let states = self.decay.dims()[0];
        let shape = [n, batch, states];
        let size = self.decay.val().exp().neg().exp();
        let gain = (size.clone().powi_scalar(2).neg() + 1.0).sqrt();
        let wide = |x: Tensor<B, 1>| x.reshape([1, 1, states]).expand(shape);
        let u = self.input.forward(self.norm.forward(x.clone()));
        let part = |i: usize| {
            u.clone().narrow(2, i * states, states) * gain.clone().reshape([1, 1, states])
        };
        let h = Complex::from_polar(size, self.angle.val())
            .and_then(|a| Complex::new(wide(a.re()), wide(a.im())))
            .and_then(|a| Ok((a, Complex::new(part(0), part(1))?)))
            .map(|(a, b)| complex_linear_recurrence(a, b, None, 0, false));
        let h = match h {
            Ok(Ok(h)) => Tensor::cat(vec![h.re(), h.im()], 2),
            error => panic!("{:?}", error.map(|_| ())),
        };
        x + self.output.forward(gelu(h))
    }
}
