//! Operations beyond Burn's own on tensors of Burn 0.22, with gradients: einsum over semirings, linear algebra,
//! scans, structured tensors, fused layers, user-defined operations. With `burn-flex` patched by `burn-t4a` they
//! run on its engine; on Burn's own Flex, and on NdArray with the feature `ndarray`, by portable definitions, with
//! one node of the tape per operation; on tensors of a `burn-t4a-022-server`, with the feature `remote`, on the
//! engine of the server; on other backends Burn records the operations of the portable definitions one by one.
//!
//! ```
//! use burn_t4a_022_ext::einsum::{LogSumExp, semiring_einsum};
//! use burn_t4a_022_ext::linalg::svd;
//! use burn::tensor::{Device, Tensor};
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
//! | log Z, best path, K best, tensor contractions | [`einsum`] |
//! | svd, truncated svd, eigh, solve, matrix functions | [`linalg`] |
//! | tensors with quantum numbers, block-sparse and diagonal tensors | [`structured`] |
//! | matrix product states, DMRG, TEBD, TDVP, cross interpolation | [`networks`] |
//! | recurrences, Kalman filters, scans of a user's body in bounded memory | [`scan`] |
//! | fused softmax, norms, attention, cross-entropy on the tape | [`nn`] |
//! | CRFs, Gaussian processes, low-rank layers | [`models`] |
//! | functions with derivative rules written in tensors | [`custom`] |
//! | nested arguments and results, including structs (pytrees) | [`tree`] |
//! | parameters of a Burn module as a tree | [`module`] |
//! | user-defined operation with a derivative rule | [`operation`], [`tape`] |
//! | complex tensors as pairs of real tensors | [`Complex`] |
//! | threads, memory limits, fallbacks | [`BackendConfig`] |
//! | kernel that computed a result | [`route`], [`operation::route`] |
//!
//! | feature | |
//! |---|---|
//! | `linalg`, on by default | [`linalg`] |
//! | `structured`, on by default | [`structured`]; enables `linalg` |
//! | `networks` | [`networks`]; enables `structured` |
//! | `module` | [`module`]; structured tensors, CRFs, low-rank layers as Burn modules |
//! | `ndarray` | the operations on burn-ndarray |
//! | `remote` | the operations on tensors of a server |
//!
//! `Tensor<D>` has first derivatives only; the crate for Burn 0.21 has derivatives of any order.
//!
#![cfg_attr(
    not(feature = "module"),
    doc = "[`module`]: https://docs.rs/burn-t4a-022-ext/latest/burn_t4a_022_ext/module/"
)]
#![cfg_attr(
    not(feature = "networks"),
    doc = "[`networks`]: https://docs.rs/burn-t4a-022-ext/latest/burn_t4a_022_ext/networks/"
)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// operation  the trait that runs operations on a backend
// dispatch   selection of the backend of the operands
// primitive  array traits of derivative rules, for primitives of a backend
// remote     operations sent to a server
// tape       operations with their own derivative rules as nodes of the tape
// engine     operations as kernels of the engine
// line       names of Burn 0.22 for items that differ between versions
// user       calls of operations on Burn tensors
// einsum     contractions over semirings
// linalg     factorisations and functions of matrices
// scan       scans of a user's body, and recurrences in one kernel
// structured graded, block-sparse and diagonal tensors
// networks   matrix product states and operators, tensor trains
// complex    complex tensors as pairs
// custom     functions with derivative rules written in tensors
// tree       nested arguments and results
// module     parameters of a Burn module as a tree
// models     linear-chain CRFs, Gaussian processes, low-rank layers
// nn         fused softmax, norms, attention and cross-entropy
// error      errors of the functions of this crate
#![forbid(unsafe_code)]

mod boundary;
mod complex;
pub mod custom;
mod dispatch;
pub mod einsum;
mod engine;
mod error;
#[cfg(feature = "linalg")]
pub mod linalg;
mod line;
pub mod models;
#[cfg(feature = "module")]
pub mod module;
#[cfg(feature = "networks")]
pub mod networks;
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

// Files shared with `burn-t4a` use its module paths.
use crate as ext;
