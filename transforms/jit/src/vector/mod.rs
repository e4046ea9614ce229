//! Machine code with 256- and 512-bit vectors for elementwise loops: all intermediate values stay in vector registers.
//!
//! ```text
//! program     instructions over vectors and masks, in static single assignment form
//! encode      instruction set: AVX2 or AVX-512, f32 or f64
//! allocate    registers and stack slots of the values of one iteration
//! emit        loops over the elements; body: one iteration
//! run         executable memory, and the elements beyond the last full vector
//! ```
//!
//! Every instruction computes the same bits as the scalar expression in its documentation: nothing is contracted or
//! reordered. Memory is writable or executable, never both, and complete before it becomes executable.

mod allocate;
mod body;
mod emit;
mod encode;
mod program;
mod run;

pub use program::{
    BinaryInst, OperandId, Predicate, SUM_BYTES, UnaryInst, VectorElement, VectorId, VectorInst,
    VectorIsa, VectorProgram,
};
pub use run::VectorCode;
