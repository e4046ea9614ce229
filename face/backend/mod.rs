//! Implementation of Burn's backend traits, one source for Burn 0.21 and 0.22. Each trait method is one call of the
//! engine.
//!
//! ```text
//! device       the backend type and its device
//! handles      the primitive types and handles of burn-router: Backend, BackendIr
//! primitive    the tensor primitive: AnyTensor and the store of its booleans
//! data         conversion from and to TensorData without copying
//! slot         methods of burn-flex's tensor for access to elements, 0.22 only
//! movement     slices, concatenation, padding, scatter: conversion of arguments
//! saved        products that a checkpointed function keeps
//! image        conversion of options for image operations
//! float int bool module activation quantized transaction     the operations, one call each
//! ```

mod activation;
mod bool;
#[allow(unsafe_code)]
mod data;
mod device;
mod float;
mod handles;
mod image;
mod int;
pub(crate) mod module;
mod movement;
pub(crate) mod primitive;
mod quantized;
pub mod saved;
#[cfg(burn_line = "0.22")]
#[allow(unsafe_code)]
mod slot;
mod transaction;

pub use device::{BurnT4a, T4aDevice};
pub use module::{irfft, rfft};
pub use primitive::{T4aTensor, burn_dtype, engine_dtype};
pub use quantized::T4aQTensor;
#[cfg(burn_line = "0.22")]
pub use slot::Layout;
