//! Forward-mode derivatives: `Jvp<B>` carries a tangent beside every float tensor.
//!
//! ```text
//! user         jvp, linearize: on trees
//! lift         trees on every backend
//! backend      the backend; primitive: a tensor and its tangent
//! real, rows   rules as formulas, and as one line each
//! float        rules of tensors   extrema, indexed, cumulative, powers: those of more than a row
//! activation   of activation functions
//! module       of convolutions, pools, attention …   deform: deformable convolutions
//! passed       integers, truth values, quantized tensors: without tangents
//! operations   operations as values: einsum, linalg, nn, scans, structured, one's own
//! boundary     where a missing derivative becomes a panic
//! ```
//!
//! `Jvp<B>` is a Burn backend, so unmodified modules run on it. What has no tangent costs nothing: an
//! operation without one is the operation of `B`. Levels nest: `Jvp<Jvp<B>>` is the second derivative in
//! forward mode, `Autodiff<Jvp<B>>` the derivative of a gradient along a direction (a Hessian–vector product),
//! `Jvp<Autodiff<B>>` a directional derivative that a tape differentiates.
//!
//! What reads data (`into_data`, comparisons, indices) sees values; `detach` removes tangents of all levels.

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
mod lift;
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
pub use lift::{Leaf, Lift, Parts, build, constant, leaves};
pub use primitive::JvpTensor;
pub use user::{dual, jvp, linearize, unzip};
