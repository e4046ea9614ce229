//! What it takes to differentiate: the vocabulary in which rules are written, and operations as values.
//!
//! ```text
//! array        Array, Integers, Flags: the vocabulary
//!   engine     Eager: engine tensors
//!   dual       Dual: any implementor with a tangent beside it
//! operation    Operation: name, results, forward, vjp, jvp, portable definition
//! check        what rules are tested with: finite differences, adjointness
//! ```
//!
//! A rule is written once, over [`Array`]. The engine, duals (jvp, second order) and the primitives of
//! a Burn backend implement that, so the same rule serves all of them; it can be differentiated again
//! because every operation of the vocabulary has a derivative in the vocabulary.
//!
//! Convention: for a real loss `L` the cotangent of a float array is `∂L/∂x`, in the shape of `x`.

pub mod array;
pub mod check;
pub mod operation;

pub use array::{Array, Dual, Eager, Flags, Integers};
pub use operation::{Cotangents, Keep, Kept, Meta, OnBatch, Operation, Outcome, Reverse, Value};
