//! BurnT4a against Burn's own CPU backend.
//!
//! `material` builds the cases; `line` contains the calls that differ between the two supported versions of Burn, and
//! the backends that wrap BurnT4a, on which the rows run as well: `Vmap` outside of a mapped function, `Jvp` without
//! tangents, `Traced` without a recording, all bitwise equal; `float int bool activation module quantized` call every
//! method of the backend traits on both backends; `nn` and `training` do the same for whole modules, forward and
//! backward; `record remote structured threads settings bad_input` test serialisation, remote execution, modules,
//! threads, default dtypes and errors.

mod activation;
mod bad_input;
mod bool;
mod flex_is_wrong;
mod float;
mod fourier;
mod fuzz_data;
mod fuzz_records;
mod fuzz_sizes;
mod int;
mod line;
mod material;
mod matrix_programs;
mod module;
mod nn;
mod quantized;
mod random;
mod record;
mod remote;
mod reverse_rules;
mod route;
mod settings;
mod structured;
mod tensor;
mod threads;
mod training;
