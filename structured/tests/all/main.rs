//! Structured tensors against dense ones, on random legs: irregular degeneracies, sectors that no block
//! reaches, empty legs, charged tensors. The invariant is checked after each operation.

mod bad_input;
mod classes;
mod dense;
mod factor;
mod fermions;
mod operations;
mod oracle;
