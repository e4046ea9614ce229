//! A [Burn](https://burn.dev) 0.21 backend for CPUs, [`BurnT4a`], and operations beyond Burn's own on the same
//! autodiff tape: einsum over semirings, linear algebra, structured tensors, scans. Models run on it unchanged,
//! with `BurnT4a` as their backend type; the additional operations are in [`ext`].
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
//! | log Z, best path, K best, tensor contractions | [`ext::einsum`] |
//! | svd, truncated svd, eigh, solve, matrix functions | [`ext::linalg`] |
//! | tensors with quantum numbers, block-sparse and diagonal tensors | [`ext::structured`] |
//! | matrix product states, DMRG, TEBD, TDVP, cross interpolation | [`ext::networks`] |
//! | recurrences, Kalman filters, scans of a user's body in bounded memory | [`ext::scan`] |
//! | fused softmax, norms, attention, cross-entropy on the tape | [`ext::nn`] |
//! | user-defined operations with derivative rules | [`ext::operation`], [`ext::tape`] |
//! | conditional random field, Gaussian process, low-rank layer | [`models`] |
//! | threads, memory limits, fallbacks | [`BackendConfig`] |
//! | kernel that computed a result | [`route`] |
//!
//! | feature | |
//! |---|---|
//! | none | the backend |
//! | `ext`, on by default | [`ext`] and [`models`], except for parts that need a feature below |
//! | `linalg`, on by default | [`ext::linalg`], Gaussian processes, low-rank layers |
//! | `structured`, on by default | [`ext::structured`]; enables `linalg` |
//! | `networks` | [`ext::networks`]; enables `structured` |
//! | `module` | [`ext::module`]; structured tensors, CRFs and low-rank layers as Burn modules |
//! | `flex` | the operations on burn-flex |
//! | `ndarray` | the operations on burn-ndarray |
//! | `cubecl` | the operations on Burn's GPU backends without fusion, with additional kernels |
//! | `fusion` | the same with fusion; enables `cubecl` |
//! | `cusolver` | factorisations of matrices of any size on `Cuda`, by cuSOLVER; enables `cubecl` |
//! | `router` | the operations on backends of burn-router, including burn-remote |
//!
//! Burn's backend traits are infallible: an invalid operation panics with the text of the
//! [`TensorError`](t4a_tensor::TensorError), which contains the operation, shapes and dtypes. The functions of
//! [`ext`] return typed errors before any work.
//!
#![cfg_attr(
    not(feature = "module"),
    doc = "[`ext::module`]: https://docs.rs/burn-t4a/latest/burn_t4a/ext/module/"
)]
#![cfg_attr(
    not(feature = "networks"),
    doc = "[`ext::networks`]: https://docs.rs/burn-t4a/latest/burn_t4a/ext/networks/"
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// backend         implementation of Burn's backend traits, one engine call per method
// boundary        conversion of the engine's typed errors to panics
// ext             operations beyond Burn's, with derivatives
// models          linear-chain CRFs, Gaussian processes, low-rank layers
#![deny(unsafe_code)]

mod backend;
mod boundary;
#[cfg(feature = "ext")]
pub mod ext;
#[cfg(feature = "ext")]
pub mod models;

#[doc(hidden)]
pub use backend::saved;
pub use backend::{
    BurnT4a, T4aDevice, T4aQTensor, T4aTensor, burn_dtype, engine_dtype, irfft, rfft,
};
pub use t4a_tensor::config::{BackendConfig, ConfigError};
pub use t4a_tensor::route;
