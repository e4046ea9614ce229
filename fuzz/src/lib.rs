//! Fuzz targets: each reads a case from bytes, runs it on the engine, and compares with a naive
//! reference.
//!
//! ```text
//! input      bytes as choices: mostly small numbers, now and then absurd ones
//! views      chains of views, then an operation on what they show
//! indices    gather, scatter, select, masks with any indices
//! windows    options of convolutions and pools
//! einsum     subscripts, shapes, paths, budgets; every semiring and its derivatives
//! messages   operations as they are sent, with changed data, tensors and flags
//! stored     structured tensors as data, with changed bytes
//! ```
//!
//! A case ends in the result of the reference or, if the reference has none, in a typed error. It
//! may panic in no other way, and takes memory in proportion to its operands and results.
//!
//! `tests/fuzz.rs` runs every target for a short while on any toolchain, and
//! `tests/conformance/fuzz_*.rs` of the workspace those that go through Burn. CONTRIBUTING tells how to
//! run them for long, and under Miri.

pub mod einsum;
pub mod indices;
pub mod input;
pub mod messages;
pub mod reference;
pub mod stored;
pub mod views;
pub mod windows;
