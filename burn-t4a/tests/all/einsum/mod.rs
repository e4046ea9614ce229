//! Einsum on Burn over every semiring, on the engine, by the portable definition and on the tape.
//!
//! Oracles: for values a loop over all labels; for gradients central differences of it in `f64`, and the portable
//! definition on Flex.

mod calls;
mod cases;
mod discrete;
mod edges;
mod gradients;
mod random;
