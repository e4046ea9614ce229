//! Just-in-time compilation of tensor functions: [`compile`] traces a function once per set of shapes on
//! [`Traced<B>`](Traced), a Burn backend that records its operations, and later runs the optimised recording: dead code
//! elimination, common subexpression elimination, and fusion of chains of elementwise operations into one pass over
//! memory. It suits functions of many small operations that are called often, such as training steps, solvers and
//! bodies of scans. Functions that cannot be recorded because they read tensor data run eagerly, and `explain` states
//! the reason.
//!
//! ```
//! use burn::tensor::Tensor;
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn_t4a_transforms::compile::{Traced, compile};
//!
//! type T = Tensor<Traced<BurnT4a>, 1>;
//! let f = compile(|(x, y): (T, T)| ((x.clone() * 2.0 + y).tanh() * x).sum());
//! let of = |x: [f32; 3]| Tensor::<BurnT4a, 1>::from_floats(x, &T4aDevice);
//! let first: Tensor<BurnT4a, 1> = f.call((of([0.1, 0.2, 0.3]), of([1.0, 1.0, 1.0])))?;
//! let again = f.call((of([0.1, 0.2, 0.3]), of([1.0, 1.0, 1.0])))?;
//! assert_eq!(first.into_scalar(), again.into_scalar());
//! assert_eq!((f.counters().traces, f.counters().hits), (1, 1));
//! # Ok::<(), burn_t4a_transforms::compile::CompileError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | compile a function and call it | [`compile`], [`Compiled::call`] |
//! | named axes of variable size, which must agree | [`Compiled::dynamic`] |
//! | reason of a new trace or of eager execution | [`Compiled::explain`], [`Compiled::counters`], [`Compiled::fullgraph`] |
//! | cost of every instruction, a drawing | [`Compiled::explain`], [`Compiled::svg`] |
//! | programs for another process | [`Compiled::save`], [`Compiled::load`] |
//! | arguments that are not tensors, structs | `Static` and `#[derive(Tree)]` of [`burn_t4a::ext::tree`] |
//! | a function as text for XLA and other compilers | [`stablehlo`] |
//! | recordings for a custom interpreter | [`graph`] |
//! | machine code for fused groups (x86-64), and for long scans over small states | the feature `jit` |

// backend     Traced<B>: the recording backend
// methods     Burn's backend methods, one row each; argument splits their arguments into operands and static values
// operation   operations defined outside of Burn's traits
// pass        the arrays that an instruction of such an operation holds
// words       static arguments as numbers and texts
// call        one method call: executed and recorded
// recording   instructions over numbered values, during the trace
// explain     cost of instructions, drawing of a program
// trace       execution of a function under a recording
// simplify    removal of identity operations; constants of one repeated number
// program     dead code and common subexpression elimination, liveness; the interpreter loop
// engine      programs over the engine's tensors, compiled in this crate
// fuse        fusion of elementwise instructions
// scan        a recorded body over an arena, for any number of steps
// key         cache key of a program
// archive     serialisation of programs
// graph       recordings for other interpreters
// export      recordings as StableHLO text
// cache       programs by key, and call statistics
// compiled    compile(f): looks up a program or records one

#![deny(unsafe_code)]

mod archive;
mod argument;
mod backend;
mod cache;
mod call;
mod compiled;
mod engine;
mod error;
mod explain;
mod export;
#[allow(unsafe_code)]
mod fuse;
pub mod graph;
mod host_operation;
mod key;
mod methods;
mod operation;
mod pass;
mod program;
mod recent;
mod recording;
#[allow(unsafe_code)]
mod scan;
mod simplify;
mod tensor;
mod trace;
mod words;

pub use backend::Traced;
pub use cache::Counters;
pub use compiled::{Compiled, compile};
pub use error::{CompileError, Result};
pub use export::{ExportError, stablehlo};
pub use tensor::{BoolKind, FloatKind, IntKind, PrimitiveKind, QuantizedKind, TracedTensor};
