//! Operations beyond Burn's own on tensors of Burn 0.22, with gradients.
//!
//! ```text
//! operation  operations as values: one trait for backends
//! dispatch   the backend that the operands are on
//! primitive  the vocabulary of derivative rules on a backend's primitives
//! remote     operations sent to a server as values
//! tape       operations with derivative rules of their own, as nodes of the tape
//! user       operations on tensors
//! einsum     contractions over semirings
//! linalg     factorisations and functions of matrices
//! complex    complex tensors as pairs
//! nn         fused softmax, norms, attention and cross-entropy that stay fused on the tape
//! error      what the functions of this crate reject
//! ```
//!
//! With `burn-t4a` in the place of `burn-flex` they run on its engine. On Burn's own Flex, and on NdArray
//! with the feature `ndarray`, they run by their portable definitions, each as one node of the tape; with the
//! feature `remote` and tensors on a `burn-t4a-022-server`, on its engine; on other backends as the pieces of these definitions. `Tensor<D>` has first derivatives; for higher orders
//! see the crate for Burn 0.21.

mod complex;
mod dispatch;
pub mod einsum;
mod error;
pub mod linalg;
pub mod nn;
pub mod operation;
pub mod primitive;
#[cfg(feature = "remote")]
mod remote;
pub mod tape;
mod user;

pub use complex::Complex;
pub use error::{ExtError, Result};
pub use t4a_tensor::config::{BackendConfig, ConfigError};

/// Where typed errors become panics: Burn's backward pass cannot return them.
#[inline]
#[track_caller]
pub(crate) fn accept<T, E: std::fmt::Display>(result: std::result::Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
