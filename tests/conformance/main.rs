//! BurnT4a against Burn's own CPU backend.
//!
//! `material` builds the cases; `line` has what the rows, which are those of both lines of Burn, have to call
//! differently on this one, and the backends around BurnT4a on which they run as well: `Vmap` outside of a
//! mapped function, `Jvp` without tangents, `Traced` without a recording, equal to the bit; `float int bool
//! activation module quantized` call every method of the backend traits on both backends; `nn` and `training`
//! do the same for whole modules forward and backward; `record remote structured threads settings bad_input`
//! check what surrounds them.

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
