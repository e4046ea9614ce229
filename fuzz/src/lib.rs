//! Fuzz targets: each reads a case from bytes, runs it on the engine, and compares with a naive
//! reference.
//!
//! ```text
//! input      bytes as choices: mostly small numbers, now and then absurd ones
//! views      chains of views, then an operation on what they show
//! indices    gather, scatter, select, masks with any indices
//! windows    options of convolutions and pools
//! data       `TensorData` of any content and back
//! records    saved modules with some bytes exchanged
//! ```
//!
//! A case ends in the result of the reference or, if the reference has none, in a typed error. It
//! may panic in no other way, and takes memory in proportion to its operands and results.
//!
//! `tests/fuzz.rs` runs every target for a short while on any toolchain; CONTRIBUTING tells how to
//! run one guided by coverage, under sanitizers and under Miri.

#[cfg(feature = "burn")]
pub mod data;
pub mod indices;
pub mod input;
#[cfg(feature = "burn")]
pub mod records;
pub mod reference;
pub mod views;
pub mod windows;
