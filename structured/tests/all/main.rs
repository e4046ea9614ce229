//! Structured tensors against dense ones on random legs: irregular degeneracies, sectors without a block, empty legs,
//! tensors with flux. The invariants of the structure are checked after each operation.

mod bad_input;
mod bonds;
mod classes;
mod construct;
mod dense;
mod factor;
mod fermions;
mod krylov;
mod maps;
mod operations;
mod oracle;
mod properties;
mod structure;
