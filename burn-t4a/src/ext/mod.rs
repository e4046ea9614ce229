//! Operations beyond Burn's own, differentiable on its tape.
//!
//! ```text
//! linalg     matrix factorisations
//! operation  operations as values: one trait for backends
//! primitive  the vocabulary of derivative rules on a backend's primitives
//! scan       a body step by step in bounded memory; recurrences in one kernel
//! tape       operations with derivative rules of their own, as nodes of the tape
//! einsum     contractions over any semiring
//! complex    complex tensors as pairs of real ones
//! nn         fused softmax, norms, attention and cross-entropy that stay fused on the tape
//! error      what the functions of this module reject
//! ```

pub mod complex;
pub mod einsum;
mod error;
pub mod linalg;
pub mod nn;
pub mod operation;
pub mod primitive;
pub mod scan;
pub mod tape;

pub use complex::Complex;
pub use error::{ExtError, Result};
