//! The CPU backend of [Burn](https://burn.dev) 0.22 over the strided tensors of [`t4a_tensor`]. A program
//! reaches it in the place of `burn-flex`: `Tensor<D>` of Burn 0.22 names no backend, and the backends that it
//! knows are a closed list. So nobody names this crate: programs patch `burn-flex`, and use
//! `burn-t4a-022-ext` for what Burn lacks.
//!
//! | task | |
//! |---|---|
//! | threads, memory, fallbacks | [`BackendConfig`] |
//! | how a result was computed | [`route`] |
//!
//! Burn's backend traits are infallible: a rejected operation panics with the text of the
//! [`TensorError`](t4a_tensor::TensorError), which names the operation, shapes and dtypes.

// backend      the face of Burn: one line per method
// boundary     typed errors of the engine become panics, in one place

mod backend;
mod boundary;

pub use backend::{
    BurnT4a, Layout, T4aDevice, T4aQTensor, T4aTensor, burn_dtype, engine_dtype, irfft, rfft,
};
pub use t4a_tensor::config::{BackendConfig, ConfigError};
pub use t4a_tensor::route;
