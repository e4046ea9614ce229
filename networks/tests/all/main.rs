//! Tensor networks against dense matrices, exact diagonalisation and published numbers.

mod cross;
mod dense;
mod evolution;
mod gradients;
mod ground;
mod infinite;
mod models;
mod peps;
mod quantics;
mod reports;
mod search;
mod states;
mod sums;
mod train;
mod uniform;
