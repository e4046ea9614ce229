//! Differentiable operations. A derivative rule is written once, over the trait [`Array`]: engine tensors, duals and
//! the primitives of a Burn backend implement it, so the same rule serves all of them. Rules are differentiable again
//! because every method of [`Array`] has a derivative expressed in [`Array`]. An [`Operation`] is a value with its
//! shapes, its definition and its rules.
//!
//! ```
//! use t4a_diff::{Array, Dual, check};
//!
//! // The derivative of x³ at 2 along 1.
//! let number = |x: f64| check::array(&[1], |_| x);
//! let x = Dual::new(number(2.0), number(1.0));
//! let y = x.mul(&x).mul(&x);
//! assert_eq!(check::elements(&y.value), [8.0]);
//! assert_eq!(check::elements(&y.into_tangent()), [12.0]);
//! ```
//!
//! A user-defined operation has a definition and a rule:
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
//! | a user-defined operation | [`Operation`], tested by [`check`] |
//! | a user-defined array type that rules run on | [`Array`], [`Integers`], [`Flags`] |
//! | forward mode, second order | [`Dual`] over any array |
//! | engine tensors as arrays | [`Eager`] |
//! | an operation on complex numbers, pairs of arrays | [`Pairs`] |
//! | the structure of nested arguments and results | [`tree`] |

// array        Array, Integers, Flags: the array traits
//   engine     Eager: engine tensors
// dual       Dual: any array type with a tangent
// operation    Operation: name, results, forward, vjp, jvp, portable definition
//   pairs      Pairs: an operation on complex numbers
// tree         Structure: nesting of trees of arrays, and their static values
// check        tests of rules: finite differences, adjointness

#![forbid(unsafe_code)]

pub mod array;
pub mod check;
pub mod operation;
pub mod tree;

pub use array::{Array, Dual, Eager, Flags, Integers};
pub use operation::{
    Cotangents, Keep, Kept, Kind, Meta, OnBatch, OnPairs, Operation, Outcome, Pairs, Reverse,
    Value, check_kinds, checked_results, vjp_of,
};
