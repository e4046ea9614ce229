//! Networks on the square lattice against Onsager's solution, exact contraction, and each other; gradients against
//! finite differences.

mod gradients;
mod grids;
mod infinite;
mod rejected;
mod reports;
mod search;
mod tape;
