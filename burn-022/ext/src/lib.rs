//! Operations beyond Burn's own on tensors of Burn 0.22, with gradients: einsum over semirings, linear algebra,
//! scans, structured tensors, fused layers, any operation value. With `burn-t4a` in the place of `burn-flex` they run on its engine; on
//! Burn's own Flex, and on NdArray with the feature `ndarray`, by their portable definitions, each as one node
//! of the tape; with the feature `remote` and tensors on a `burn-t4a-022-server`, on its engine; on other
//! backends as the pieces of these definitions.
//!
//! ```
//! use burn_t4a_022_ext::einsum::{LogSumExp, semiring_einsum};
//! use burn_t4a_022_ext::linalg::svd;
//! use burn_tensor::{Device, Tensor};
//!
//! let device = Device::flex().autodiff();
//! let scores = Tensor::<2>::from_floats([[1.0, 0.0], [0.0, 1.0]], &device).require_grad();
//! let log_z: Tensor<1> = semiring_einsum::<LogSumExp, _>("ij,jk->", [&scores, &scores])?;
//! let gradients = (log_z + svd(scores.clone())?.s.sum()).backward();
//! assert_eq!(scores.grad(&gradients).unwrap().dims(), [2, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | log Z, best path, K best, contractions | [`einsum`] |
//! | svd, truncated svd, eigh, solve, functions of matrices | [`linalg`] |
//! | quantum numbers, blocks, diagonals | [`structured`] |
//! | recurrences, Kalman filters, a body step by step in bounded memory | [`scan`] |
//! | fused softmax, norms, attention, cross-entropy on the tape | [`nn`] |
//! | CRFs, Gaussian processes, layers of low rank | [`models`] |
//! | nested arguments and results, structs among them | [`tree`] |
//! | an operation of one's own | [`operation`], [`tape`] |
//! | complex tensors as pairs of real ones | [`Complex`] |
//! | threads, memory, fallbacks | [`BackendConfig`] |
//! | how a result was computed | [`route`], [`operation::route`] |
//!
//! | feature | |
//! |---|---|
//! | `linalg`, on by default | [`linalg`] |
//! | `structured`, on by default | [`structured`]; turns `linalg` on |
//! | `module` | structured tensors, CRFs, layers of low rank as Burn's modules |
//! | `ndarray` | the operations on burn-ndarray too |
//! | `remote` | the operations on tensors of a server |
//!
//! `Tensor<D>` has first derivatives; for higher orders see the crate for Burn 0.21.

// operation  operations as values: one trait for backends
// dispatch   the backend that the operands are on
// primitive  the vocabulary of derivative rules on a backend's primitives
// remote     operations sent to a server as values
// tape       operations with derivative rules of their own, as nodes of the tape
// engine     operations as kernels
// line       names of Burn 0.22 for what the lines of Burn name differently
// user       operations on tensors
// einsum     contractions over semirings
// linalg     factorisations and functions of matrices
// scan       a body step by step, and recurrences in one kernel
// structured tensors with known zeros
// complex    complex tensors as pairs
// tree       nested arguments and results
// models     what is most often built of these
// nn         fused softmax, norms, attention and cross-entropy that stay fused on the tape
// error      what the functions of this crate reject

mod boundary;
mod complex;
mod dispatch;
pub mod einsum;
mod engine;
mod error;
#[cfg(feature = "linalg")]
pub mod linalg;
mod line;
pub mod models;
pub mod nn;
pub mod operation;
pub mod primitive;
#[cfg(feature = "remote")]
mod remote;
pub mod scan;
#[cfg(feature = "structured")]
pub mod structured;
pub mod tape;
pub mod tree;
mod user;

pub use complex::Complex;
pub use error::{ExtError, Result};
pub use t4a_einsum::MismatchError;
pub use t4a_tensor::config::{BackendConfig, ConfigError};
pub use t4a_tensor::route;

// Files that both lines share name their modules as they are in `burn-t4a`.
use crate as ext;
