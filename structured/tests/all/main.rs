//! Structured tensors against dense ones, on random legs: irregular degeneracies, sectors that no block
//! reaches, empty legs, charged tensors. The invariant is checked after each operation.

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
