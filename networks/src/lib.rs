//! Tensor networks: chains of graded tensors, operator sums, sweeps, cross interpolation.
#![forbid(unsafe_code)]

pub mod cross;
pub mod quantics;
pub mod train;
