//! The backend of Burn 0.22 against Burn's own CPU backend.
//!
//! The rows are those of Burn 0.21, whose tests have them; `line` has what they call differently here,
//! `later` the operations that Burn 0.21 does not have.

// The rows import what only their own line needs, and read data by the name that both lines have.
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
