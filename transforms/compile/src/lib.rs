//! Compilation: [`Traced`] records what a function does; a program is optimised once and run often.
//!
//! ```text
//! backend     Traced<B>: computes what B computes
//! methods     Burn's methods, a row each; argument takes them apart
//! operation   operations as values
//! recording   instructions over numbered values, while the function runs
//! program     dead code, common subexpressions, liveness; the loop that runs it
//! fuse        chains of elementwise instructions as one
//! values      trees of tensors
//! compiled    compile(f): a cache of programs
//! ```

mod argument;
mod backend;
mod compiled;
mod error;
mod fuse;
mod methods;
mod operation;
mod program;
mod recording;
mod tensor;
mod values;

pub use backend::Traced;
pub use compiled::{Compiled, Counters, compile};
pub use error::{CompileError, Result};
pub use tensor::{BoolKind, FloatKind, IntKind, Kind, QuantizedKind, TracedTensor};
pub use values::{Leaf, Leaves, Values};
