//! Fused neural-network operations that are one node on the tape.
//!
//! Under `Autodiff`, Burn computes softmax, layer norm, attention and cross-entropy as chains of elementary
//! operations, each with its own node and tensor. The functions here record one node with its own derivative rule.
//! They have the arguments and panics of Burn's functions and run on the backend of their tensors; the operations
//! themselves are values of [`t4a_nn`].
//!
//! ```
//! use burn_t4a_022_ext::nn;
//! use burn::tensor::{Device, Tensor};
//!
//! let device = Device::flex().autodiff();
//! let x = Tensor::<2>::from_floats([[0.0, 1.0, 2.0]], &device).require_grad();
//! let y = nn::log_softmax(x.clone(), 1);           // was: activation::log_softmax
//! let grads = y.slice([0..1, 0..1]).sum().backward();
//! assert!(x.grad(&grads).unwrap().sum().into_scalar::<f32>().abs() < 1e-6);
//! ```

use burn_backend::ops::AttentionModuleOptions;
use burn_dispatch::Dispatch;
use burn_tensor::{Bool, Int, Tensor};
use t4a_diff::Operation;
use t4a_nn::{Attention, CrossEntropy, LayerNorm, LogSoftmax, RmsNorm, Softmax};
use t4a_tensor::nn::attention::AttentionOptions;

use crate::boundary::accept;
use crate::operation::{Operand, call, flags, float, integers};

/// Applies an operation with one result; panics on its errors.
#[track_caller]
fn result<O: Operation, const D: usize>(op: O, inputs: &[Operand<Dispatch>]) -> Tensor<D> {
    accept(call(&op, inputs))
}

/// Softmax `eˣ / Σ eˣ` along `dim`.
///
/// # Panics
/// If `dim` is not an axis of `x`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::nn;
///
/// let x = Tensor::<2>::from_floats([[7.0, 7.0], [0.0, 0.0]], &Device::flex());
/// nn::softmax(x, 1).into_data().assert_eq(&[[0.5f32; 2]; 2].into(), false);
/// ```
pub fn softmax<const D: usize>(x: Tensor<D>, dim: usize) -> Tensor<D> {
    result(Softmax { axis: dim }, &[float(x)])
}

/// Log-softmax `x − ln Σ eˣ` along `dim`.
///
/// # Panics
/// If `dim` is not an axis of `x`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::nn;
///
/// let x = Tensor::<2>::from_floats([[500.0, 500.0]], &Device::flex());
/// let y = nn::log_softmax(x, 1).max().into_scalar::<f32>();
/// assert!((y + 2f32.ln()).abs() < 1e-6);
/// ```
pub fn log_softmax<const D: usize>(x: Tensor<D>, dim: usize) -> Tensor<D> {
    result(LogSoftmax { axis: dim }, &[float(x)])
}

/// Layer norm `γ·(x − μ)/√(σ² + ε) + β` along the last axis, with mean μ and biased variance σ² (Ba, Kiros, Hinton
/// 2016).
///
/// # Panics
/// Unless γ and β have the size of the last axis.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::nn;
///
/// // The mean is 2, the variance 1.
/// let x = Tensor::<2>::from_floats([[1.0, 3.0]], &Device::flex());
/// let gamma = Tensor::from_floats([10.0, 20.0], &Device::flex());
/// let y = nn::layer_norm(x, gamma, None, 0.0);
/// y.into_data().assert_eq(&[[-10.0f32, 20.0]].into(), false);
/// ```
pub fn layer_norm<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Option<Tensor<1>>,
    epsilon: f64,
) -> Tensor<D> {
    let mut inputs = vec![float(x), float(gamma)];
    inputs.extend(beta.map(float));
    result(LayerNorm { epsilon }, &inputs)
}

/// RMS norm `γ·x/√(mean(x²) + ε)` along the last axis (Zhang, Sennrich 2019).
///
/// # Panics
/// Unless γ has the size of the last axis.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::nn;
///
/// let x = Tensor::<2>::from_floats([[3.0, 4.0]], &Device::flex());
/// let y = nn::rms_norm(x, Tensor::ones([2], &Device::flex()), 0.0);
/// // The mean of the squares is 1.
/// assert!((y.powi_scalar(2).mean().into_scalar::<f32>() - 1.0).abs() < 1e-6);
/// ```
pub fn rms_norm<const D: usize>(x: Tensor<D>, gamma: Tensor<1>, epsilon: f64) -> Tensor<D> {
    result(RmsNorm { epsilon }, &[float(x), float(gamma)])
}

/// Scaled dot-product attention `softmax(S)·V` with scores `S = cap·tanh(scale·Q·Kᵀ/cap)`, −∞ where `mask` is true,
/// plus `bias`.
///
/// Shapes: `query: [B, H, L, d]`, `key: [B, H, S, d]`, `value: [B, H, S, e]`; mask and bias broadcast to
/// `[B, H, L, S]`. On the engine scores exist in tiles only, and the result for a query whose keys are all masked is
/// zero.
///
/// # Panics
/// If shapes do not match.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn::tensor::ops::AttentionModuleOptions;
/// use burn_t4a_022_ext::nn;
///
/// // A query that is orthogonal to both keys: the mean of the values.
/// let query = Tensor::<4>::zeros([1, 1, 1, 2], &Device::flex());
/// let key = Tensor::from_floats([[[[1.0, 0.0], [0.0, 1.0]]]], &Device::flex());
/// let value = Tensor::from_floats([[[[1.0], [3.0]]]], &Device::flex());
/// let y = nn::attention(query, key, value, None, None, AttentionModuleOptions::default());
/// y.into_data().assert_eq(&[[[[2.0f32]]]].into(), false);
/// ```
pub fn attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    let AttentionModuleOptions { scale, softcap, is_causal } = options;
    let op = Attention {
        options: AttentionOptions { scale, softcap, causal: is_causal },
        masked: mask.is_some(),
        biased: bias.is_some(),
    };
    let mut inputs = vec![float(query), float(key), float(value)];
    inputs.extend(mask.map(flags));
    inputs.extend(bias.map(float));
    result(op, &inputs)
}

/// Cross-entropy of `softmax(logits)`: the mean over rows of `ln Σ eˣ − x[target]`.
///
/// Shapes: `logits: [N, C]`, `targets: [N]` with values in `0..C`.
///
/// # Panics
/// If shapes do not match; on the engine also for targets outside of `0..C`.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_t4a_022_ext::nn;
///
/// // Four classes of equal probability.
/// let logits = Tensor::<2>::zeros([2, 4], &Device::flex());
/// let targets = Tensor::<1, Int>::from_ints([0, 3], &Device::flex());
/// let loss = nn::cross_entropy(logits, targets).into_scalar::<f32>();
/// assert!((loss - 4f32.ln()).abs() < 1e-6);
/// ```
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    cross_entropies(logits, targets).mean()
}

/// [`cross_entropy`] of each row, shape `[N]`. Panics as [`cross_entropy`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use burn_t4a_022_ext::nn;
///
/// let logits = Tensor::<2>::from_floats([[0.0, 0.0], [0.0, 100.0]], &Device::flex());
/// let targets = Tensor::<1, Int>::from_ints([0, 0], &Device::flex());
/// let losses: Vec<f32> = nn::cross_entropies(logits, targets).into_data().iter().collect();
/// assert!((losses[0] - 2f32.ln()).abs() < 1e-6 && (losses[1] - 100.0).abs() < 1e-4);
/// ```
pub fn cross_entropies(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    result(CrossEntropy, &[float(logits), integers(targets)])
}
