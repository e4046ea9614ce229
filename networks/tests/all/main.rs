//! Tensor networks against dense matrices, exact diagonalisation and published numbers.

mod dense;
mod sums;
