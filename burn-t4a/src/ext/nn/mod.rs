//! Fused operations of neural networks that stay fused on the tape.
//!
//! Under `Autodiff`, Burn computes softmax, layer norm, attention and cross-entropy as chains of
//! elementary operations, each with a node and a tensor of its own. The functions here record one
//! node with a derivative rule of its own. They take the arguments of Burn's functions, panic
//! where those do, and compute on any backend that implements [`NnOps`].
//!
//! ```
//! use burn_autodiff::Autodiff;
//! use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
//! use burn_tensor::Tensor;
//!
//! let x = Tensor::<Autodiff<BurnT4a>, 2>::from_floats([[0.0, 1.0, 2.0]], &T4aDevice).require_grad();
//! let y = nn::log_softmax(x.clone(), 1);           // was: activation::log_softmax
//! let grads = y.slice([0..1, 0..1]).sum().backward();
//! assert!((x.grad(&grads).unwrap().sum().into_scalar() as f64).abs() < 1e-6);
//! ```

mod ops;
#[cfg(test)]
mod tests;

use burn_backend::ops::AttentionModuleOptions;
use burn_backend::tensor::FloatTensor;
use burn_tensor::{Bool, Int, Tensor, TensorPrimitive};

pub use ops::{AttentionCotangents, NnOps};

fn float<B: NnOps, const D: usize>(x: Tensor<B, D>) -> FloatTensor<B> {
    x.into_primitive().tensor()
}

fn tensor<B: NnOps, const D: usize>(x: FloatTensor<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

/// `eˣ / Σ eˣ` along `dim`.
///
/// # Panics
/// If there is no such axis.
pub fn softmax<B: NnOps, const D: usize>(x: Tensor<B, D>, dim: usize) -> Tensor<B, D> {
    assert!(dim < D, "softmax: axis {dim} of a tensor of rank {D}");
    tensor(B::nn_softmax(float(x), dim))
}

/// `x − ln Σ eˣ` along `dim`.
///
/// # Panics
/// If there is no such axis.
pub fn log_softmax<B: NnOps, const D: usize>(x: Tensor<B, D>, dim: usize) -> Tensor<B, D> {
    assert!(dim < D, "log_softmax: axis {dim} of a tensor of rank {D}");
    tensor(B::nn_log_softmax(float(x), dim))
}

/// `γ·(x − μ)/√(σ² + ε) + β` along the last axis, with its mean μ and biased variance σ²
/// (Ba, Kiros, Hinton 2016).
///
/// # Panics
/// Unless γ and β have one element per element of the last axis.
pub fn layer_norm<B: NnOps, const D: usize>(
    x: Tensor<B, D>,
    gamma: Tensor<B, 1>,
    beta: Option<Tensor<B, 1>>,
    epsilon: f64,
) -> Tensor<B, D> {
    check_weights("layer_norm", &x, &gamma);
    if let Some(beta) = &beta {
        check_weights("layer_norm", &x, beta);
    }
    tensor(B::nn_layer_norm(float(x), float(gamma), beta.map(float), epsilon))
}

/// `γ·x/√(mean(x²) + ε)` along the last axis (Zhang, Sennrich 2019).
///
/// # Panics
/// Unless γ has one element per element of the last axis.
pub fn rms_norm<B: NnOps, const D: usize>(
    x: Tensor<B, D>,
    gamma: Tensor<B, 1>,
    epsilon: f64,
) -> Tensor<B, D> {
    check_weights("rms_norm", &x, &gamma);
    tensor(B::nn_rms_norm(float(x), float(gamma), epsilon))
}

/// `softmax(S)·V` with scores `S = cap·tanh(scale·Q·Kᵀ/cap)`, −∞ where `mask` is true, plus `bias`.
///
/// Shapes: `query: [B, H, L, d]`, `key: [B, H, S, d]`, `value: [B, H, S, e]`; mask and bias
/// broadcast to `[B, H, L, S]`. On `BurnT4a` scores exist in tiles only, and a query that sees no
/// key gets zeros.
///
/// # Panics
/// For shapes that do not fit.
pub fn attention<B: NnOps>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    mask: Option<Tensor<B, 4, Bool>>,
    bias: Option<Tensor<B, 4>>,
    options: AttentionModuleOptions,
) -> Tensor<B, 4> {
    let (q, k, v) = (query.dims(), key.dims(), value.dims());
    assert!(
        q[..2] == k[..2] && k[..3] == v[..3] && q[3] == k[3],
        "attention: queries {q:?}, keys {k:?}, values {v:?}; \
         required [B, H, L, d], [B, H, S, d] and [B, H, S, e]"
    );
    let scores = [q[0], q[1], q[2], k[2]];
    for given in [mask.as_ref().map(|x| x.dims()), bias.as_ref().map(|x| x.dims())] {
        let fits = given.is_none_or(|x| x.iter().zip(scores).all(|(&x, s)| x == s || x == 1));
        assert!(fits, "attention: mask or bias {given:?} over scores {scores:?}");
    }
    let mask = mask.map(Tensor::into_primitive);
    tensor(B::nn_attention(float(query), float(key), float(value), mask, bias.map(float), options))
}

/// Mean over the rows of `ln Σ eˣ − x[target]`, the cross-entropy of `softmax(logits)`.
///
/// Shapes: `logits: [N, C]`, `targets: [N]` with values in `0..C`.
///
/// # Panics
/// For shapes that do not fit; on `BurnT4a` also for targets that are no classes.
pub fn cross_entropy<B: NnOps>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1> {
    cross_entropies(logits, targets).mean()
}

/// [`cross_entropy`] of every row. Panics as there.
pub fn cross_entropies<B: NnOps>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1> {
    let (x, t) = (logits.dims(), targets.dims());
    assert!(x[0] == t[0], "cross_entropy: logits {x:?} and targets {t:?}; required [N, C] and [N]");
    tensor(B::nn_cross_entropy(float(logits), targets.into_primitive()))
}

fn check_weights<B: NnOps, const D: usize>(op: &str, x: &Tensor<B, D>, weight: &Tensor<B, 1>) {
    let (x, [d]) = (x.dims(), weight.dims());
    assert!(x.last() == Some(&d), "{op}: {d} weights over the last axis of {x:?}");
}
