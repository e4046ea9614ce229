//! Tensors with known zeros: graded by quantum numbers (abelian symmetries), block-sparse, or generalised diagonal.
//! Their structure is planned once and cached, their elements are one flat buffer, and every operation on the buffer
//! has derivatives of any order. The cost of a product is that of its allowed blocks. The interface for Burn is
//! `burn_t4a::ext::structured`.
//!
//! ```
//! use t4a_diff::Array;
//! use t4a_structured::{Direction, GradedTensor, Leg, Spec, U1};
//! use t4a_tensor::DType;
//!
//! // Two spins, and operators that conserve the total magnetisation.
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
//! | axes, structures, tensors | [`Leg`], [`Spec`], [`GradedTensor`] |
//! | contraction, einsum, named legs | [`GradedTensor::contract`], [`einsum`], [`Named`] |
//! | construction | [`GradedTensor::from_blocks`], [`GradedTensor::from_elements`], [`GradedTensor::operator`], [`GradedTensor::direct_sum`], [`GradedTensor::delta`], [`Leg::from_states`] |
//! | permutation, fusion, trace, conjugation | methods of [`GradedTensor`] |
//! | svd, qr, lq, polar, eigh, eig; truncation over all sectors | [`GradedTensor::svd`], [`BondTruncation`] |
//! | inverses, linear systems, null spaces, matrix functions | [`GradedTensor::inverse`], [`GradedTensor::solve`], [`GradedTensor::null_space`], [`GradedTensor::exp`] |
//! | graded diagonal tensors, entropies | [`Bond`] |
//! | eigenvalues and exponentials of operators given as functions | [`t4a_linalg::krylov`] |
//! | fermions | [`fermions`]: sign conventions |
//! | generalised diagonal tensors, δ | [`DiagTensor`], [`diag_einsum`] |
//! | block-sparse tensors without charges, also over semirings | [`BlockSparseTensor`], [`Pattern`] |
//! | operations as values | [`operation`] |
//! # Basis order
//! The states of a leg are ordered by ascending sectors, then by their index within the sector; dense arrays use this
//! order for both directions of a leg. Within each sector of a fused leg, sector tuples of its constituents are in
//! lexicographic order, and the states of a tuple in row-major order. [`Leg::from_states`] returns the permutation of
//! states that are given in another order, and [`GradedTensor::from_dense_in`] reads arrays in that order.

// sector        quantum numbers of abelian symmetries
// leg           axes graded by sectors; fusion of several
// stack         legs from states in any order, direct sums of legs
// tuples        sector tuples of several legs, by coupled sector
// spec          allowed blocks of a graded tensor and their offsets
// plan          operations on flat buffers, independent of symmetries
// kernels       execution of plans on memory
// structural    structures of results and their plans
// operation     plans as operations with derivatives
// graded        graded tensors of any array type
// entries       elementwise functions that keep zeros
// layout        structures without elements, for all three classes of tensors
// picture       stored entries of a matrix as text
// fermions      sign conventions
// diag          generalised diagonal tensors: einsum of payloads
// block_sparse  block-sparse tensors without charges
// complex       complex diagonal and block-sparse tensors
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
mod tuples;

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
pub use operation::{
    ByMatrix, Contract, ContractOver, ContractionNetwork, FrobeniusNorm, InnerProduct, Rearrange,
    ScaleBond,
};
pub use sector::{FermionNumber, FermionParity, Product, Sector, Trivial, U1, Z2, Zn};
pub use spec::{SectorBlock, SectorMatrix, Spec};
pub use stack::Stacked;
