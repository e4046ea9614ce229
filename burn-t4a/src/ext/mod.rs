//! Operations beyond Burn's own, differentiable on its tape.
//!
//! ```text
//! tape       operations with derivative rules of their own, as nodes of the tape
//! complex    complex tensors as pairs of real ones
//! error      what the functions of this module reject
//! ```

pub mod complex;
mod error;
pub mod tape;

pub use complex::Complex;
pub use error::{ExtError, Result};
