//! Forward-mode automatic differentiation: [`Jvp<B>`](Jvp) is a Burn backend whose float tensors carry a tangent, so a
//! function or an unmodified module on it returns its value and its directional derivative in one pass and without a
//! tape. Forward mode is efficient for few inputs and many outputs, for a given direction, and for higher derivatives:
//! `Autodiff<Jvp<B>>` computes Hessian-vector products, and `Jvp<Jvp<B>>` second derivatives along two directions.
//! Operations on tensors without tangents are those of `B` and have no extra cost.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::jvp::{Jvp, jvp};
//!
//! type T = Tensor<Jvp<BurnT4a>, 1>;
//! let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
//! // Σ x³ along v is Σ 3 x² v.
//! let f = |x: T| x.powi_scalar(3).sum();
//! let (y, slope): (Tensor<BurnT4a, 1>, _) = jvp(f, of([1.0, 2.0]), of([1.0, 10.0]))?;
//! assert_eq!((y.into_scalar(), slope.into_scalar()), (9.0, 123.0));
//! # Ok::<(), burn_t4a_transforms::jvp::JvpError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | a value and its derivative along tangents | [`jvp`] |
//! | the derivative at one point along many tangents | [`linearize`] |
//! | explicit conversion of trees, for custom transformations | [`dual`], [`unzip`] |
//! | a tensor of `B` as a constant of a function on [`Jvp`] | [`constant`] |
//! | structs as arguments and results | `#[derive(Tree)]` of [`burn_t4a::ext::tree`] |
//! | gradients, Hessians, Jacobians | the crate `burn-t4a-transforms` |
//!
//! Operations that read data (`into_data`, comparisons, indices) use primal values; `detach` removes the tangents of
//! all levels.

// user         jvp, linearize: on trees
// backend      the backend; primitive: a tensor and its tangent
// real, rows   rules as formulas, and as one line each
// float        rules of float tensors   extrema, indexed, cumulative, powers: rules longer than a row
// activation   rules of activation functions
// module       rules of convolutions, pools, attention …   deform: deformable convolutions
// custom       functions with user-defined derivative rules
// passed       integer, boolean and quantized tensors: no tangents
// operations   operations outside of Burn's traits: einsum, linalg, nn, scans, structured, user-defined
// boundary     conversion of a missing derivative into a panic

#![forbid(unsafe_code)]

mod activation;
mod backend;
mod boundary;
mod cumulative;
mod custom;
mod deform;
mod error;
mod extrema;
mod float;
mod indexed;
mod module;
mod operations;
mod passed;
mod powers;
mod primitive;
mod real;
mod rows;
mod user;

pub use backend::Jvp;
pub use error::{JvpError, LeafMismatch, Mismatches, Result};
pub use primitive::JvpTensor;
pub use user::{constant, dual, jvp, linearize, unzip};
