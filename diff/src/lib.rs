//! What it takes to differentiate. A derivative rule is written once, over the vocabulary [`Array`]: engine
//! tensors, duals and the primitives of a Burn backend implement it, so the same rule serves all of them, and
//! can be differentiated again because every operation of the vocabulary has a derivative in it. An
//! [`Operation`] is a value with its shapes, its definition and its rules.
//!
//! ```
//! use t4a_diff::{Array, Cotangents, Meta, Operation, Outcome, Reverse, Value, check};
//! use t4a_tensor::TensorError;
//!
//! /// x³, with the rule 3x² ȳ.
//! #[derive(Clone, Debug)]
//! struct Cube;
//!
//! impl Operation for Cube {
//!     type Error = TensorError;
//!
//!     fn name(&self) -> &'static str {
//!         "cube"
//!     }
//!     fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, TensorError> {
//!         Ok(vec![inputs[0].clone()])
//!     }
//!     fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>, TensorError> {
//!         let x = inputs[0].float();
//!         Ok(x.mul(x).mul(x).into())
//!     }
//!     fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, TensorError> {
//!         let x = reverse.kept.float(0);
//!         Ok(vec![Some(x.mul(x).scale(3.0).mul(reverse.cotangent()))])
//!     }
//! }
//!
//! // Differences, adjointness, second derivatives.
//! check::operation(&Cube, &[Value::Float(check::array(&[2, 3], |i| i as f64 / 5.0))], 1e-6);
//! ```
//!
//! Convention: for a real loss `L` the cotangent of a float array is `∂L/∂x`, in the shape of `x`.
//!
//! | task | |
//! |---|---|
//! | an operation of one's own | [`Operation`], tested by [`check`] |
//! | arrays of one's own that rules run on | [`Array`], [`Integers`], [`Flags`] |
//! | forward mode, second order | [`Dual`] over any array |
//! | engine tensors as arrays | [`Eager`] |
//! | an operation on complex numbers, pairs of arrays | [`Pairs`] |
//! | the structure of nested arguments and results | [`tree`] |

// array        Array, Integers, Flags: the vocabulary
//   engine     Eager: engine tensors
//   dual       Dual: any implementor with a tangent beside it
// operation    Operation: name, results, forward, vjp, jvp, portable definition
//   pairs      Pairs: an operation on complex numbers
// tree         Structure: how trees of arrays branch, and their values that are not arrays
// check        what rules are tested with: finite differences, adjointness

pub mod array;
pub mod check;
pub mod operation;
pub mod tree;

pub use array::{Array, Dual, Eager, Flags, Integers};
pub use operation::{
    Cotangents, Keep, Kept, Kind, Meta, OnBatch, OnPairs, Operation, Outcome, Pairs, Reverse,
    Value, checked_results, vjp_of,
};
