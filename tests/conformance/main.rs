//! BurnT4a against Burn's own CPU backend.
//!
//! `material` builds the cases; `float int bool activation module quantized` call every method of
//! the backend traits on both backends; `nn` and `training` do the same for whole modules forward
//! and backward; `record remote threads settings bad_input` check what surrounds them.

mod activation;
mod bad_input;
mod bool;
mod flex_is_wrong;
mod float;
mod fuzz_data;
mod fuzz_records;
mod int;
mod material;
mod module;
mod nn;
mod quantized;
mod random;
mod record;
mod remote;
mod route;
mod settings;
mod tensor;
mod threads;
mod training;
