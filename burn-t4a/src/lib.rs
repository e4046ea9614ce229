//! A [Burn](https://burn.dev) 0.21 backend for CPUs, [`BurnT4a`], and operations beyond Burn's own on the same
//! autodiff tape: einsum over semirings, linear algebra, structured tensors, scans. A model takes it in as its
//! backend type and stays as it is; what Burn lacks is in [`ext`].
//!
//! ```
//! use burn::backend::Autodiff;
//! use burn_t4a::ext::{einsum::{LogSumExp, semiring_einsum}, linalg::svd};
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn::tensor::Tensor;
//!
//! type B = Autodiff<BurnT4a>;
//! let scores = Tensor::<B, 2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &T4aDevice).require_grad();
//! // ln Σ exp(score) over all paths of two steps.
//! let log_z: Tensor<B, 1> = semiring_einsum::<LogSumExp, _, _>("ij,jk->", [&scores, &scores])?;
//! let gradients = (log_z + svd(scores.clone())?.s.sum()).backward();
//! assert_eq!(scores.grad(&gradients).unwrap().dims(), [2, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | the backend | [`BurnT4a`], `Autodiff<BurnT4a>` |
//! | log Z, best path, K best, contractions | [`ext::einsum`] |
//! | svd, truncated svd, eigh, solve, functions of matrices | [`ext::linalg`] |
//! | quantum numbers, blocks, diagonals | [`ext::structured`] |
//! | recurrences, Kalman filters, a body step by step in bounded memory | [`ext::scan`] |
//! | fused softmax, norms, attention, cross-entropy on the tape | [`ext::nn`] |
//! | an operation of one's own | [`ext::operation`], [`ext::tape`] |
//! | a CRF, a Gaussian process, a layer of low rank | [`models`] |
//! | threads, memory, fallbacks | [`BackendConfig`] |
//! | how a result was computed | [`route`] |
//!
//! | feature | |
//! |---|---|
//! | none | the backend |
//! | `ext`, on by default | [`ext`] and [`models`], as far as they need no feature below |
//! | `linalg`, on by default | [`ext::linalg`], Gaussian processes, layers of low rank |
//! | `structured`, on by default | [`ext::structured`]; turns `linalg` on |
//! | `module` | structured tensors, CRFs and layers of low rank as parameters of Burn's modules |
//! | `flex` | the operations on burn-flex too |
//! | `ndarray` | the operations on burn-ndarray too |
//! | `cubecl` | the operations on Burn's GPU backends without fusion too, with kernels of their own |
//! | `router` | the operations on burn-router's backends too, burn-remote's among them |
//!
//! Burn's backend traits are infallible: a rejected operation panics with the text of the
//! [`TensorError`](t4a_tensor::TensorError), which names the operation, shapes and dtypes. The operations of
//! [`ext`] return typed errors before any work.

// backend         the face of Burn: one line per method
// boundary        typed errors of the engine become panics, in one place
// ext             operations beyond Burn's, with gradients
// models          what is most often built of them: chains of tags, Gaussian processes, low rank

mod backend;
mod boundary;
#[cfg(feature = "ext")]
pub mod ext;
#[cfg(feature = "ext")]
pub mod models;

pub use backend::{
    BurnT4a, T4aDevice, T4aQTensor, T4aTensor, burn_dtype, engine_dtype, irfft, rfft,
};
pub use t4a_tensor::config::{BackendConfig, ConfigError};
pub use t4a_tensor::route;
