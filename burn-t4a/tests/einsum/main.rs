//! Einsum on Burn: every semiring on the engine, on the portable path and on the tape.
//!
//! The oracle for values is a loop over all labels, for gradients central differences of it in
//! `f64`, and the portable path on Flex.

mod calls;
mod cases;
mod discrete;
mod edges;
mod gradients;
mod random;
