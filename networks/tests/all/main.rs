//! Tensor networks against dense matrices, exact diagonalisation and published numbers.

mod dense;
mod evolution;
mod gradients;
mod ground;
mod infinite;
mod models;
mod search;
mod states;
mod sums;
