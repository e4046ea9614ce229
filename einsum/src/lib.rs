//! Einsum over any semiring: n operands, search for the contraction order, slicing to fit into memory, derivatives. A
//! [`Plan`] depends on shapes only and is cached; it runs over every element type and semiring. Burn users call
//! `burn_t4a::ext::einsum`.
//!
//! ```
//! use t4a_algebra::{MaxPlus, Standard};
//! use t4a_einsum::{Einsum, einsum};
//! use t4a_tensor::Tensor;
//!
//! let m = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0], &[2, 2])?;
//! let product = einsum::<Standard, f64>("ij,jk->ik", &[&m, &m])?;
//! assert_eq!(product.to_vec()?, [7.0, 10.0, 15.0, 22.0]);
//! let best = einsum::<MaxPlus, f64>("ij,jk->ik", &[&m, &m])?;
//! assert_eq!(best.to_vec()?, [5.0, 6.0, 7.0, 8.0]);
//! println!("{}", Einsum::new("ij,jk->ik")?.plan(&[&[2, 2], &[2, 2]], 8)?.report(8));
//! # Ok::<(), t4a_einsum::EinsumError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | a single contraction | [`einsum()`] |
//! | sizes of new labels, a given path, a memory budget | [`Einsum`] |
//! | the cost before execution | [`Plan::cost`], printed by [`Plan::report`] |
//! | ln Z, best values, counts | the semirings of `t4a-algebra` |
//! | K best values | [`Plan::k_best`] |
//! | a derivative | [`Contraction`] as an operation; [`Plan::steps`] for a tape |
//! | a user-defined semiring or product | [`Custom`], [`ProductBackends`] |
//! | labels built by a program | [`Subscripts`], [`Label`] |

// subscripts   text, labels, builder          labels of the operands and of the result
// network      subscripts with shapes         numbered labels, one per axis
// order        pairs of slots, and their time
// path         contraction order              given, or searched: search, greedy, anneal, refine
// plan         labels of each step, slices    shape-only; cached by structure
// slices       loops over labels fixed to save memory; slice_rules: their derivatives
// step         one plan per step, for autodiff tapes
// contract     executes a plan over a semiring    pair: one pairwise contraction; direct: of row-major operands
// backend      user-supplied products
// rules        derivative of one sum, by semiring
// semirings    derivatives of each semiring
// derivative   vjp and jvp of a plan
// cotangent    the vjp over (+, ×) as plans
// report       text report of a plan: order, sizes, cost, memory
// data         serialised form of plans, with the feature `serde`
// given        argument types of frontends: subscripts, operand lists; described: checks and plans
// roles        roles of the labels of a step
// operation    contractions as operations with a derivative, semirings as values
#![forbid(unsafe_code)]
// Unit tests cover text and contraction orders; kernels are tested by integration tests, and not compiled a second
// time.
#![cfg_attr(test, allow(dead_code))]

#[cfg_attr(not(feature = "omeco"), path = "no_anneal.rs")]
mod anneal;
mod backend;
mod cache;
mod contract;
mod cotangent;
#[cfg(feature = "serde")]
mod data;
mod derivative;
mod described;
mod direct;
#[cfg(not(test))]
mod discrete;
mod einsum;
mod error;
mod given;
mod greedy;
mod label;
mod labelled;
mod memory;
mod network;
#[cfg(not(test))]
mod operation;
mod order;
mod pair;
mod path;
mod plan;
mod refine;
mod report;
mod roles;
mod rules;
mod search;
#[cfg(not(test))]
mod semirings;
mod slice_rules;
mod slices;
mod step;
mod subscripts;
mod table;

pub use backend::{BgemmBackend, BgemmShape, ProductBackends, TensordotAxes, TensordotBackend};
pub use cache::{cached_plans, clear_plans};
pub use described::agree;
#[cfg(not(test))]
pub use discrete::{FloatCancellative, FloatSelective, IntSemiring};
pub use einsum::{Einsum, einsum};
pub use error::{EinsumError, MismatchError, Result};
pub use given::{Expression, Operands};
pub use label::Label;
#[cfg(not(test))]
pub use operation::{
    ArraySemiring, Contraction, Custom, DeviceElements, FloatSemiring, MOST_BEST, MovableAxes,
    Optima, OptimalAssignments, Tag, contract_arrays,
};
pub use path::Path;
pub use plan::{Cost, PairwiseStep, Plan};
pub use report::PlanReport;
pub use roles::Roles;
pub use rules::{Differentiable, MatrixProduct, Share, selective_matmul};
pub use search::Optimizer;
pub use subscripts::Subscripts;
