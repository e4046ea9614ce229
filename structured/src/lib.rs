//! Tensors with known zeros: graded by quantum numbers, of given blocks, or with equal indices. Their structure
//! lies in plans that are made once, their numbers in one flat buffer, and every operation on that buffer has
//! derivatives of any order. A product of two tensors then costs what its allowed blocks cost. Burn users call
//! `burn_t4a::ext::structured`.
//!
//! ```
//! use t4a_diff::Array;
//! use t4a_structured::{Direction, GradedTensor, Leg, Spec, U1};
//! use t4a_tensor::DType;
//!
//! // Two spins, and what conserves their sum.
//! let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
//! let spec = Spec::new(vec![spin.clone(), spin.clone(), spin.dual(), spin.dual()], U1(0), 2)?;
//! assert_eq!(spec.len(), 6);                                  // of 16 entries
//! let gate = GradedTensor::identity(&[spin.clone(), spin], DType::F64)?;
//! let square = gate.contract(&gate, &[2, 3], &[0, 1])?;
//! assert_eq!(square.to_dense()?.0.shape(), [2, 2, 2, 2]);
//! # Ok::<(), t4a_structured::StructuredError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | symmetries | [`Trivial`], [`Z2`], [`Zn`], [`U1`], [`FermionParity`], [`FermionNumber`], [`Product`] of two; [`Sector`] for others |
//! | an axis, a structure, a tensor | [`Leg`], [`Spec`], [`GradedTensor`] |
//! | contraction, einsum, legs with names | [`GradedTensor::contract`], [`einsum`], [`Named`] |
//! | construction | [`GradedTensor::from_blocks`], [`GradedTensor::from_elements`], [`GradedTensor::operator`], [`GradedTensor::direct_sum`], [`GradedTensor::delta`], [`Leg::from_states`] |
//! | permutation, fusion, trace, conjugation | methods of [`GradedTensor`] |
//! | svd, qr, lq, polar, eigh, eig, truncated over all sectors | [`GradedTensor::svd`], [`BondTruncation`] |
//! | inverses, systems, null spaces, functions of maps | [`GradedTensor::inverse`], [`GradedTensor::solve`], [`GradedTensor::null_space`], [`GradedTensor::exp`] |
//! | graded diagonal tensors, entropies | [`Bond`] |
//! | eigenvalues and exponentials of maps given as functions | [`t4a_linalg::krylov`] |
//! | fermions | [`fermions`]: conventions in one table |
//! | tensors with equal indices: δ, diagonals | [`DiagTensor`], [`diag_einsum`] |
//! | known blocks without charges, also over semirings | [`BlockSparseTensor`], [`Pattern`] |
//! | operations as values | [`operation`] |
//!
//! # Basis order
//! The states of a leg are ordered by ascending sectors, then by their number within the sector; dense arrays have
//! this order, whatever the direction of a leg. A leg fused of several has, within each sector, the rows of sectors of
//! its parts in lexicographic order, and the states of a row as those of a row-major array. [`Leg::from_states`] returns
//! the permutation of states that are given in another order, and [`GradedTensor::from_dense_in`] reads arrays in it.

// sector      quantum numbers of abelian symmetries
// leg         axes graded by sectors; fusion of several
// stack       legs of states in any order, direct sums
// spec        which blocks a graded tensor has, and where they lie
// plan        what is done to flat buffers, whatever the sectors
// kernels     plans on memory
// structural  structures of results and their plans
// operation   plans as operations with derivatives
// graded      graded tensors over any arrays
// entries       functions of entries that keep zeros
// layout        structures apart from numbers, for the three kinds
// picture       which entries are stored, as text
// fermions    the conventions of signs, for users
// diag          equal indices: einsum of payloads
// block_sparse  arbitrary blocks without charges
// complex       pairs of the last two
#![deny(unsafe_code)]

mod block_sparse;
mod cache;
mod complex;
mod diag;
mod entries;
mod error;
pub mod fermions;
mod graded;
#[allow(unsafe_code)]
mod kernels;
mod layout;
mod leg;
pub mod operation;
mod picture;
pub mod plan;
mod sector;
mod spec;
mod stack;
mod structural;

pub use block_sparse::{BlockSparseTensor, Pattern};
pub use cache::clear_plans;
pub use complex::{Complex, diag_einsum_complex};
pub use diag::{DiagEigh, DiagSvd, DiagTensor, diag_einsum};
pub use error::{Result, StructuredError};
pub use graded::{
    Bond, BondTruncation, Eig, Eigh, FluxOn, Forbidden, GradedTensor, Lq, Named, Polar, Qr, Svd,
    Truncated, einsum,
};
pub use layout::{Classes, Layout};
pub use leg::{Direction, Leg};
pub use operation::{ByMatrix, Contract, ContractOver, Inner, Network, Norm, Rearrange, ScaleBond};
pub use sector::{FermionNumber, FermionParity, Product, Sector, Trivial, U1, Z2, Zn};
pub use spec::{Block, Matrix, Spec};
pub use stack::Stacked;
