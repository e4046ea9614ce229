//! Forward-mode derivatives: [`Jvp<B>`](Jvp) is a Burn backend whose float tensors carry a tangent, so a
//! function or an unmodified module that runs on it returns its value and its derivative along a direction, in
//! one pass and without a tape. That is the mode for few inputs and many outputs, for a direction known in
//! advance, and for derivatives of derivatives: `Autodiff<Jvp<B>>` is a Hessian times a vector, `Jvp<Jvp<B>>`
//! the second derivative along two directions. What has no tangent costs nothing: an operation without one is
//! the operation of `B`.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_jvp::{Jvp, jvp};
//!
//! type T = Tensor<Jvp<BurnT4a>, 1>;
//! let of = |x: [f32; 2]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
//! // Σ x³ along v is Σ 3 x² v.
//! let f = |x: T| x.powi_scalar(3).sum();
//! let (y, slope): (Tensor<BurnT4a, 1>, _) = jvp(f, of([1.0, 2.0]), of([1.0, 10.0]))?;
//! assert_eq!((y.into_scalar(), slope.into_scalar()), (9.0, 123.0));
//! # Ok::<(), burn_t4a_jvp::JvpError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | a value and its derivative along tangents | [`jvp`] |
//! | the derivative at one place along many tangents | [`linearize`] |
//! | trees in and out by hand, as a transformation of one's own does | [`dual`], [`unzip`] |
//! | a tensor of `B` as a constant of a function on [`Jvp`] | [`constant`] |
//! | structs in and out | `#[derive(Tree)]` of `burn_t4a::ext::tree` |
//! | gradients, Hessians, Jacobians | the crate `burn-t4a-transforms` |
//!
//! What reads data (`into_data`, comparisons, indices) sees values; `detach` removes tangents of all levels.

// user         jvp, linearize: on trees
// backend      the backend; primitive: a tensor and its tangent
// real, rows   rules as formulas, and as one line each
// float        rules of tensors   extrema, indexed, cumulative, powers: those of more than a row
// activation   of activation functions
// module       of convolutions, pools, attention …   deform: deformable convolutions
// passed       integers, truth values, quantized tensors: without tangents
// operations   operations as values: einsum, linalg, nn, scans, structured, one's own
// boundary     where a missing derivative becomes a panic

#![forbid(unsafe_code)]

mod activation;
mod backend;
mod boundary;
mod cumulative;
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
