//! Fuzz targets: each decodes a case from bytes, runs it on the engine, and compares with a naive reference.
//!
//! ```text
//! input      bytes as choices: mostly small numbers, occasionally extreme ones
//! memory     an allocator that measures the memory of a case
//! views      chains of views, then an operation on the resulting view
//! indices    gather, scatter, select, masks with arbitrary indices
//! windows    options of convolutions and pools
//! einsum     subscripts, shapes, paths, memory budgets; every semiring and its derivatives
//! messages   serialised operations with modified data, tensors and flags
//! stored     serialised structured tensors with modified bytes
//! ```
//!
//! The outcome of a case is the result of the reference or, if the reference has none, a typed error. Any other panic
//! is a failure, and memory use must be proportional to the operands and results.
//!
//! `tests/fuzz.rs` runs every target briefly on any toolchain; `tests/conformance/fuzz_*.rs` and
//! `tests/fuzz_archives.rs` of the workspace run the targets that use Burn. CONTRIBUTING describes long runs and runs under Miri.

#![deny(unsafe_code)]

pub mod einsum;
pub mod indices;
pub mod input;
#[allow(unsafe_code)]
pub mod memory;
pub mod messages;
pub mod reference;
pub mod stored;
pub mod views;
pub mod windows;
