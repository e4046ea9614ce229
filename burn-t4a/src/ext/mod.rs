//! Operations beyond Burn's own, differentiable on its tape.
//!
//! | task | |
//! |---|---|
//! | contractions: log Z, best path, counts, K best | [`einsum`] |
//! | factorisations, solvers, functions of matrices | [`linalg`] |
//! | graded, block-sparse and diagonal tensors | [`structured`] |
//! | a body step by step in bounded memory; recurrences in one kernel | [`scan`] |
//! | softmax, norms, attention and cross-entropy, fused on the tape | [`nn`] |
//! | complex tensors as pairs of real ones | [`Complex`] |
//! | nested arguments and results, structs among them | [`tree`] |
//! | an operation of one's own as a value, on every backend | [`operation`] |
//! | a node of the tape with a rule of one's own | [`tape`] |
//! | functions of one backend in each other, refused | [`level`] |
//! | precision of products on GPUs, with the feature `cubecl` | `cube` |
//! | the vocabulary of derivative rules on a backend's primitives | [`primitive`] |

pub mod complex;
#[cfg(feature = "cubecl")]
pub mod cube;
pub mod einsum;
mod engine;
mod error;
pub mod level;
#[cfg(feature = "linalg")]
pub mod linalg;
mod line;
pub mod nn;
pub mod operation;
pub mod primitive;
pub mod scan;
#[cfg(feature = "structured")]
pub mod structured;
pub mod tape;
pub mod tree;
mod user;

pub use complex::Complex;
pub use error::{ExtError, Result};
pub use t4a_einsum::MismatchError;
