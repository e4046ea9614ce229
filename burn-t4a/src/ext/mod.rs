//! Operations beyond Burn's own, differentiable on its tape.
//!
//! | task | |
//! |---|---|
//! | contractions: log Z, best path, counts, K best | [`einsum`] |
//! | factorisations, solvers, functions of matrices | [`linalg`] |
//! | graded, block-sparse and diagonal tensors | [`structured`] |
//! | matrix product states, searches, evolutions, cross interpolation, with the feature `networks` | [`networks`] |
//! | scans of a user's body in bounded memory; recurrences in one kernel | [`scan`] |
//! | softmax, norms, attention and cross-entropy, fused on the tape | [`nn`] |
//! | complex tensors as pairs of real tensors | [`Complex`] |
//! | the element of a tensor with one element, in full precision | [`scalar()`] |
//! | nested arguments and results, including structs (pytrees) | [`tree`] |
//! | parameters of a Burn module as a tree, with the feature `module` | [`module`] |
//! | user-defined operation as a value, on every backend | [`operation`] |
//! | functions with user-defined derivative rules, in Burn's tensors ([`custom_vjp`](custom::custom_vjp), [`custom_jvp`](custom::custom_jvp)) | [`custom`] |
//! | node of the tape with a user-defined rule | [`tape`] |
//! | rejection of nested functions on one backend type | [`level`] |
//! | precision of products on GPUs, with the feature `cubecl` | [`cube`] |
//! | array traits of derivative rules, implemented for primitives of a backend | [`primitive`] |
//!
#![cfg_attr(
    not(feature = "module"),
    doc = "[`module`]: https://docs.rs/burn-t4a/latest/burn_t4a/ext/module/"
)]
#![cfg_attr(
    not(feature = "networks"),
    doc = "[`networks`]: https://docs.rs/burn-t4a/latest/burn_t4a/ext/networks/"
)]
#![cfg_attr(
    not(feature = "cubecl"),
    doc = "[`cube`]: https://docs.rs/burn-t4a/latest/burn_t4a/ext/cube/"
)]

pub mod complex;
#[cfg(feature = "cubecl")]
pub mod cube;
pub mod custom;
pub mod einsum;
mod engine;
mod error;
#[cfg(feature = "fusion")]
mod fusion;
pub mod level;
#[cfg(feature = "linalg")]
pub mod linalg;
mod line;
#[cfg(feature = "module")]
pub mod module;
#[cfg(feature = "networks")]
pub mod networks;
pub mod nn;
pub mod operation;
pub mod primitive;
mod scalar;
pub mod scan;
#[cfg(feature = "structured")]
pub mod structured;
pub mod tape;
pub mod tree;
mod user;

pub use complex::Complex;
pub use error::{ExtError, Result};
pub use scalar::{ScalarKind, scalar};
pub use t4a_einsum::MismatchError;
