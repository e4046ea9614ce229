//! The CPU backend of [Burn](https://burn.dev) 0.22 on the strided tensors of [`t4a_tensor`]. Programs use it
//! through a patch of `burn-flex`: `Tensor<D>` of Burn 0.22 has no backend parameter, and its list of backends is
//! closed. Programs do not depend on this crate directly; they patch `burn-flex`, and use `burn-t4a-022-ext` for
//! operations beyond Burn's.
//!
//! | task | |
//! |---|---|
//! | threads, memory limits, fallbacks | [`BackendConfig`] |
//! | kernel that computed a result | [`route`] |
//!
//! Burn's backend traits are infallible: an invalid operation panics with the text of the
//! [`TensorError`](t4a_tensor::TensorError), which contains the operation, shapes and dtypes.

// backend      implementation of Burn's backend traits, one engine call per method
// boundary     conversion of the engine's typed errors to panics

#![deny(unsafe_code)]

mod backend;
mod boundary;

#[doc(hidden)]
pub use backend::saved;
pub use backend::{
    BurnT4a, Layout, T4aDevice, T4aQTensor, T4aTensor, burn_dtype, engine_dtype, irfft, rfft,
};
pub use t4a_tensor::config::{BackendConfig, ConfigError};
pub use t4a_tensor::route;
