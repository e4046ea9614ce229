//! Tensor networks: chains of graded tensors, operator sums, sweeps, cross interpolation.
#![forbid(unsafe_code)]

pub mod cross;
pub mod quantics;
pub mod train;
mod error;
mod fill;
mod mpo;
mod scalar;
pub mod sites;
mod sums;

pub use error::{NetworksError, Result};
pub use mpo::Mpo;
pub use sites::{Site, Sites};
pub use sums::{Sum, lattice};
