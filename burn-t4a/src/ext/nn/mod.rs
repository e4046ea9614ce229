//! Fused neural-network operations that are one node on the tape.
//!
//! Under `Autodiff`, Burn computes softmax, layer norm, attention and cross-entropy as chains of elementary
//! operations, each with its own node and tensor. The functions here record one node with its own derivative rule.
//! They have the arguments and panics of Burn's functions and run on any backend that implements [`Operations`];
//! the operations themselves are values of [`t4a_nn`].
//!
//! ```
//! use burn::backend::Autodiff;
//! use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
//! use burn::tensor::Tensor;
//!
//! let x = Tensor::<Autodiff<BurnT4a>, 2>::from_floats([[0.0, 1.0, 2.0]], &T4aDevice).require_grad();
//! let y = nn::log_softmax(x.clone(), 1);           // was: activation::log_softmax
//! let grads = y.slice([0..1, 0..1]).sum().backward();
//! assert!((x.grad(&grads).unwrap().sum().into_scalar() as f64).abs() < 1e-6);
//! ```

#[cfg(test)]
mod tests;

use burn_backend::ops::AttentionModuleOptions;
use burn_tensor::{Bool, Int, Tensor};
use t4a_diff::{Operation, Value};
use t4a_nn::{Attention, CrossEntropy, LayerNorm, LogSoftmax, RmsNorm, Softmax};

use super::operation::{Operand, Operations, call, float};
use super::primitive::{Bools, Indices};
use crate::backend::module::scores;
use crate::boundary::accept;

/// Applies an operation with one result; panics on its errors.
#[track_caller]
fn result<O: Operation, B: Operations, const D: usize>(
    op: O,
    inputs: &[Operand<B>],
) -> Tensor<B, D> {
    accept(call(&op, inputs))
}

/// Softmax `eˣ / Σ eˣ` along `dim`.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
///
/// let x = Tensor::<BurnT4a, 2>::from_floats([[7.0, 7.0], [0.0, 0.0]], &T4aDevice);
/// nn::softmax(x, 1).into_data().assert_eq(&[[0.5f32; 2]; 2].into(), false);
/// ```
///
/// # Panics
/// If `dim` is not an axis of `x`.
pub fn softmax<B: Operations, const D: usize>(x: Tensor<B, D>, dim: usize) -> Tensor<B, D> {
    result(Softmax { axis: dim }, &[float(x)])
}

/// Log-softmax `x − ln Σ eˣ` along `dim`.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
///
/// let x = Tensor::<BurnT4a, 2>::from_floats([[500.0, 500.0]], &T4aDevice);
/// let y = nn::log_softmax(x, 1).max().into_scalar();
/// assert!((y + 2f32.ln()).abs() < 1e-6);
/// ```
///
/// # Panics
/// If `dim` is not an axis of `x`.
pub fn log_softmax<B: Operations, const D: usize>(x: Tensor<B, D>, dim: usize) -> Tensor<B, D> {
    result(LogSoftmax { axis: dim }, &[float(x)])
}

/// Layer norm `γ·(x − μ)/√(σ² + ε) + β` along the last axis, with mean μ and biased variance σ² (Ba, Kiros, Hinton
/// 2016).
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
///
/// // The mean is 2, the variance 1.
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 3.0]], &T4aDevice);
/// let gamma = Tensor::from_floats([10.0, 20.0], &T4aDevice);
/// let y = nn::layer_norm(x, gamma, None, 0.0);
/// y.into_data().assert_eq(&[[-10.0f32, 20.0]].into(), false);
/// ```
///
/// # Panics
/// Unless γ and β have the size of the last axis.
pub fn layer_norm<B: Operations, const D: usize>(
    x: Tensor<B, D>,
    gamma: Tensor<B, 1>,
    beta: Option<Tensor<B, 1>>,
    epsilon: f64,
) -> Tensor<B, D> {
    let mut inputs = vec![float(x), float(gamma)];
    inputs.extend(beta.map(float));
    result(LayerNorm { epsilon }, &inputs)
}

/// RMS norm `γ·x/√(mean(x²) + ε)` along the last axis (Zhang, Sennrich 2019).
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
///
/// let x = Tensor::<BurnT4a, 2>::from_floats([[3.0, 4.0]], &T4aDevice);
/// let y = nn::rms_norm(x, Tensor::ones([2], &T4aDevice), 0.0);
/// // The mean of the squares is 1.
/// assert!((y.powi_scalar(2).mean().into_scalar() - 1.0).abs() < 1e-6);
/// ```
///
/// # Panics
/// Unless γ has the size of the last axis.
pub fn rms_norm<B: Operations, const D: usize>(
    x: Tensor<B, D>,
    gamma: Tensor<B, 1>,
    epsilon: f64,
) -> Tensor<B, D> {
    result(RmsNorm { epsilon }, &[float(x), float(gamma)])
}

/// Scaled dot-product attention `softmax(S)·V` with scores `S = cap·tanh(scale·Q·Kᵀ/cap)`, −∞ where `mask` is true,
/// plus `bias`.
///
/// Shapes: `query: [B, H, L, d]`, `key: [B, H, S, d]`, `value: [B, H, S, e]`; mask and bias broadcast to
/// `[B, H, L, S]`. On `BurnT4a` scores exist in tiles only, and the result for a query whose keys are all masked is
/// zero.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn::tensor::ops::AttentionModuleOptions;
/// use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
///
/// // A query that is orthogonal to both keys: the mean of the values.
/// let query = Tensor::<BurnT4a, 4>::zeros([1, 1, 1, 2], &T4aDevice);
/// let key = Tensor::from_floats([[[[1.0, 0.0], [0.0, 1.0]]]], &T4aDevice);
/// let value = Tensor::from_floats([[[[1.0], [3.0]]]], &T4aDevice);
/// let y = nn::attention(query, key, value, None, None, AttentionModuleOptions::default());
/// y.into_data().assert_eq(&[[[[2.0f32]]]].into(), false);
/// ```
///
/// # Panics
/// If shapes do not match.
pub fn attention<B: Operations>(
    query: Tensor<B, 4>,
    key: Tensor<B, 4>,
    value: Tensor<B, 4>,
    mask: Option<Tensor<B, 4, Bool>>,
    bias: Option<Tensor<B, 4>>,
    options: AttentionModuleOptions,
) -> Tensor<B, 4> {
    let op = Attention { options: scores(options), masked: mask.is_some(), biased: bias.is_some() };
    let mut inputs = vec![float(query), float(key), float(value)];
    inputs.extend(mask.map(|mask| Value::Flags(Bools(mask.into_primitive()))));
    inputs.extend(bias.map(float));
    result(op, &inputs)
}

/// Cross-entropy of `softmax(logits)`: the mean over rows of `ln Σ eˣ − x[target]`.
///
/// Shapes: `logits: [N, C]`, `targets: [N]` with values in `0..C`.
///
/// ```
/// use burn::tensor::{Int, Tensor};
/// use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
///
/// // Four classes of equal probability.
/// let logits = Tensor::<BurnT4a, 2>::zeros([2, 4], &T4aDevice);
/// let targets = Tensor::<BurnT4a, 1, Int>::from_ints([0, 3], &T4aDevice);
/// let loss = nn::cross_entropy(logits, targets).into_scalar();
/// assert!((loss - 4f32.ln()).abs() < 1e-6);
/// ```
///
/// # Panics
/// If shapes do not match; on `BurnT4a` also for targets outside of `0..C`.
pub fn cross_entropy<B: Operations>(
    logits: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
) -> Tensor<B, 1> {
    cross_entropies(logits, targets).mean()
}

/// [`cross_entropy`] of each row, shape `[N]`. Panics as [`cross_entropy`].
///
/// ```
/// use burn::tensor::{Int, Tensor};
/// use burn_t4a::{BurnT4a, T4aDevice, ext::nn};
///
/// let logits = Tensor::<BurnT4a, 2>::from_floats([[0.0, 0.0], [0.0, 100.0]], &T4aDevice);
/// let targets = Tensor::<BurnT4a, 1, Int>::from_ints([0, 0], &T4aDevice);
/// let losses: Vec<f32> = nn::cross_entropies(logits, targets).into_data().iter().collect();
/// assert!((losses[0] - 2f32.ln()).abs() < 1e-6 && (losses[1] - 100.0).abs() < 1e-4);
/// ```
pub fn cross_entropies<B: Operations>(
    logits: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
) -> Tensor<B, 1> {
    let targets = Value::Integers(Indices(targets.into_primitive()));
    result(CrossEntropy, &[float(logits), targets])
}
