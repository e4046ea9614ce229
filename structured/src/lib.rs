//! Tensors with known zeros: structure in plans, numbers in one buffer.
//!
//! ```text
//! sector      quantum numbers of abelian symmetries
//! leg         axes graded by sectors; fusion of several
//! spec        which blocks a graded tensor has, and where they lie
//! plan        what is done to flat buffers, whatever the sectors
//! kernels     plans on memory
//! structural  structures of results and their plans
//! operation   plans as operations with derivatives
//! graded      graded tensors over any arrays
//! entries       functions of entries that keep zeros
//! picture       which entries are stored, as text
//! diag          equal indices: einsum of payloads
//! block_sparse  arbitrary blocks without charges
//! complex       pairs of the last two
//! ```
#![deny(unsafe_code)]

mod block_sparse;
mod cache;
mod complex;
mod diag;
mod entries;
mod error;
mod graded;
#[allow(unsafe_code)]
mod kernels;
mod leg;
pub mod operation;
mod picture;
pub mod plan;
mod sector;
mod spec;
mod structural;

pub use block_sparse::{BlockSparseTensor, Pattern};
pub use cache::clear_plans;
pub use complex::{Complex, diag_einsum_complex};
pub use diag::{DiagTensor, diag_einsum};
pub use error::{Result, StructuredError};
pub use graded::{
    Bond, BondTruncation, Eigh, FluxOn, Forbidden, GradedTensor, Qr, Svd, Truncated, einsum,
};
pub use leg::{Direction, Leg};
pub use operation::{ByMatrix, Contract, ContractOver, Inner, Network, Norm, Rearrange, ScaleBond};
pub use sector::{FermionNumber, FermionParity, Product, Sector, Trivial, U1, Z2, Zn};
pub use spec::{Block, Matrix, Spec};
