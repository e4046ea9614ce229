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
//! diag          equal indices: einsum of payloads
//! block_sparse  arbitrary blocks without charges
//! ```
#![deny(unsafe_code)]

mod block_sparse;
mod cache;
mod diag;
mod error;
mod graded;
#[allow(unsafe_code)]
mod kernels;
mod leg;
pub mod operation;
pub mod plan;
mod sector;
mod spec;
mod structural;

pub use block_sparse::{BlockSparseTensor, Pattern};
pub use cache::clear_plans;
pub use diag::{DiagTensor, diag_einsum};
pub use error::{Result, StructuredError};
pub use graded::{Bond, Eigh, FluxOn, Forbidden, GradedTensor, Qr, Svd, Truncated, einsum};
pub use leg::{Direction, Leg};
pub use operation::{Contract, Rearrange};
pub use sector::{FermionNumber, FermionParity, Product, Sector, Trivial, U1, Z2, Zn};
pub use spec::{Block, Matrix, Spec};
