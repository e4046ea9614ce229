//! Compilation: [`compile`] calls a function once per shape on [`Traced<B>`](Traced), a Burn backend that
//! records what it computes, and afterwards runs the recording: dead code and repeated expressions left out,
//! chains of elementwise operations fused into one pass over memory. It is for functions of many small
//! operations that run often, as training steps, solvers and the bodies of scans. Calls that cannot be recorded,
//! because they look at numbers, run as they are, and `explain` says why.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_compile::{Traced, compile};
//!
//! type T = Tensor<Traced<BurnT4a>, 1>;
//! let f = compile(|(x, y): (T, T)| ((x.clone() * 2.0 + y).tanh() * x).sum());
//! let of = |x: [f32; 3]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
//! let first: Tensor<BurnT4a, 1> = f.call((of([0.1, 0.2, 0.3]), of([1.0, 1.0, 1.0])))?;
//! let again = f.call((of([0.1, 0.2, 0.3]), of([1.0, 1.0, 1.0])))?;
//! assert_eq!(first.into_scalar(), again.into_scalar());
//! assert_eq!((f.counters().traces, f.counters().hits), (1, 1));
//! # Ok::<(), burn_t4a_compile::CompileError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | a function that is recorded and run again | [`compile`], [`Compiled::call`] |
//! | axes whose sizes vary, and have to agree | [`Compiled::dynamic`] |
//! | why a call was recorded anew, or not at all | [`Compiled::explain`], [`Compiled::counters`], [`Compiled::fullgraph`] |
//! | programs for another process | [`Compiled::save`], [`Compiled::load`] |
//! | arguments that are not tensors, structs | `Static` and `#[derive(Tree)]` of `burn_t4a::ext::tree` |
//! | recordings for an interpreter of one's own | [`graph`] |
//! | long scans over a few numbers as machine code | the feature `jit` |

// backend     Traced<B>: computes what B computes
// methods     Burn's methods, a row each; argument takes them apart
// operation   operations as values
// words       their static arguments as numbers and texts
// call        one call of a method: it runs and is recorded
// recording   instructions over numbered values, while the function runs
// trace       a function runs and is recorded
// simplify    what changes nothing, and constants that are one number
// program     dead code, common subexpressions, liveness; the loop that runs it
// fuse        chains of elementwise instructions as one
// scan        a recorded body over an arena, for as many steps as there are
// key         what a program is for
// archive     programs as bytes
// graph       recordings for other interpreters
// cache       programs by their keys, and how calls went
// compiled    compile(f): finds a program, or records one

mod archive;
mod argument;
mod backend;
mod cache;
mod call;
mod compiled;
mod error;
mod fuse;
pub mod graph;
mod key;
mod methods;
mod operation;
mod program;
mod recent;
mod recording;
mod scan;
mod simplify;
mod tensor;
mod trace;
mod words;

pub use backend::Traced;
pub use cache::Counters;
pub use compiled::{Compiled, compile};
pub use error::{CompileError, Result};
pub use tensor::{BoolKind, FloatKind, IntKind, Kind, QuantizedKind, TracedTensor};
