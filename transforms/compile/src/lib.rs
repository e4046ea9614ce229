//! Compilation: [`Traced`] records what a function does; a program is optimised once and run often.
//!
//! ```text
//! backend     Traced<B>: computes what B computes
//! methods     Burn's methods, a row each; argument takes them apart
//! operation   operations as values
//! words       their static arguments as numbers and texts
//! recording   instructions over numbered values, while the function runs
//! trace       a function runs and is recorded
//! simplify    what changes nothing, and constants that are one number
//! program     dead code, common subexpressions, liveness; the loop that runs it
//! fuse        chains of elementwise instructions as one
//! scan        a recorded body over an arena, for as many steps as there are
//! values      trees of tensors
//! key         what a program is for
//! symbolic    a recording for all sizes of named axes
//! archive     programs as bytes
//! graph       recordings for other interpreters
//! compiled    compile(f): a cache of programs
//! ```

mod archive;
mod argument;
mod backend;
mod compiled;
mod error;
mod fuse;
pub mod graph;
mod key;
mod methods;
mod operation;
mod program;
mod recording;
mod scan;
mod simplify;
mod symbolic;
mod tensor;
mod trace;
mod values;
mod words;

pub use backend::Traced;
pub use compiled::{Compiled, Counters, compile};
pub use error::{CompileError, Result};
pub use tensor::{BoolKind, FloatKind, IntKind, Kind, QuantizedKind, TracedTensor};
pub use values::{Leaf, Leaves, Static, Values};
