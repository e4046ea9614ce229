//! Tensors with known zeros: structure in plans, numbers in one buffer.
//!
//! ```text
//! sector   quantum numbers of abelian symmetries
//! leg      axes graded by sectors; fusion of several
//! spec     which blocks a graded tensor has, and where they lie
//! ```
#![forbid(unsafe_code)]

mod error;
mod leg;
mod sector;
mod spec;

pub use error::{Result, StructuredError};
pub use leg::{Direction, Fusion, Leg};
pub use sector::{FermionNumber, FermionParity, Product, Sector, Trivial, U1, Z2, Zn};
pub use spec::{Block, Matrix, Spec};
