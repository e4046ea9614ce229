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

// boundary     typed errors of the engine become panics, in one place
// backend      the type and its device
// handles      its primitives: Backend, BackendIr
// primitive    the one tensor primitive: AnyTensor and the store of its booleans
// data         TensorData in and out without copying
// slot         names of burn-flex for the elements of a tensor
// movement     Burn's arguments for moving data
// image        its options of operations on images
// float int bool module activation quantized transaction     the operations, one line each

mod activation;
mod backend;
mod bool;
mod boundary;
mod data;
mod float;
mod handles;
mod image;
mod int;
mod module;
mod movement;
mod primitive;
mod quantized;
mod slot;
mod transaction;

pub use backend::{BurnT4a, T4aDevice};
pub use module::{irfft, rfft};
pub use primitive::{T4aTensor, burn_dtype, engine_dtype};
pub use quantized::T4aQTensor;
pub use slot::Layout;
pub use t4a_tensor::config::{BackendConfig, ConfigError};
pub use t4a_tensor::route;
