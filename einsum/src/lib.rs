//! Einsum over any semiring: n-ary, planned, sliced to fit memory.
//!
//! ```text
//! subscripts   text, labels, builder          what is summed over what
//! network      subscripts meet shapes         numbered labels, one per axis
//! path         order of contraction           given, or searched: search, greedy, refine
//! plan         labels of each step, slices    shape-only; cached by structure
//! slices       loops over labels that are fixed to save memory; slice_rules: their derivatives
//! step         a plan taken apart, for autodiff tapes
//! contract     runs a plan over a semiring    pair: one pairwise contraction
//! backend      products supplied by the user
//! rules        derivative of one sum, by semiring
//! derivative   vjp and jvp of a plan
//! cotangent    the vjp over (+, ×) as plans
//! report       a plan printed: order, sizes, cost, memory
//! data         plans as data, with the feature `serde`
//! roles        what becomes of the labels of a step
//! operation    contractions as operations with a derivative, semirings as values
//! ```
#![forbid(unsafe_code)]

mod backend;
mod cache;
mod contract;
mod cotangent;
#[cfg(feature = "serde")]
mod data;
mod derivative;
mod discrete;
mod einsum;
mod error;
mod greedy;
mod labelled;
mod memory;
mod network;
mod operation;
mod pair;
mod path;
mod plan;
mod refine;
mod report;
mod roles;
mod rules;
mod search;
mod slice_rules;
mod slices;
mod step;
mod subscripts;

pub use backend::{Backend, BgemmBackend, BgemmShape, TensordotAxes, TensordotBackend};
pub use cache::{cached_plans, clear_plans};
pub use discrete::{FloatCancellative, FloatSelective, IntSemiring};
pub use einsum::{Einsum, einsum};
pub use error::{EinsumError, Result};
pub use operation::{ArraySemiring, Contraction, Custom, FloatSemiring, Tag};
pub use path::Path;
pub use plan::{Cost, Plan};
pub use report::Report;
pub use roles::Roles;
pub use rules::{Differentiable, Matrices, Share, selective_matmul};
pub use search::Optimizer;
pub use step::Step;
pub use subscripts::{Label, Subscripts};
