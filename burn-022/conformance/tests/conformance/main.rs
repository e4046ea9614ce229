//! The backend of Burn 0.22 against Burn's own CPU backend.
//!
//! The rows are shared with the tests of Burn 0.21. `line` has the functions that differ, `later` the operations
//! that Burn 0.21 does not have.

// Rows import items that one version needs, and read data by a name that both versions have.
#![allow(deprecated, unused_imports, dead_code)]

mod later;
mod line;

#[path = "../../../../tests/conformance/activation.rs"]
mod activation;
#[path = "../../../../tests/conformance/bad_input.rs"]
mod bad_input;
#[path = "../../../../tests/conformance/bool.rs"]
mod bool;
#[path = "../../../../tests/conformance/float.rs"]
mod float;
#[path = "../../../../tests/conformance/int.rs"]
mod int;
#[path = "../../../../tests/conformance/material.rs"]
mod material;
#[path = "../../../../tests/conformance/module.rs"]
mod module;
#[path = "../../../../tests/conformance/quantized.rs"]
mod quantized;
#[path = "../../../../tests/conformance/random.rs"]
mod random;
