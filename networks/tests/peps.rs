//! Networks on the square lattice against Onsager's solution, exact contraction, and each other; gradients against
//! finite differences.

#[path = "peps/gradients.rs"]
mod gradients;
#[path = "peps/grids.rs"]
mod grids;
#[path = "peps/infinite.rs"]
mod infinite;
#[path = "peps/tape.rs"]
mod tape;
