//! Loops over a few numbers as machine code: a recorded body of a filter of two states, say, whose numbers then stay in
//! registers from step to step.
//!
//! ```text
//! Program   one step as numbers, each made of earlier ones
//! Code      all steps, as machine code of this machine by Cranelift
//! ```
//!
//! ```
//! use t4a_jit::{Code, Number, Program, Stream};
//!
//! // c ← c / 2 + x, and y = c.
//! let mut program = Program::<f64>::default();
//! let c = program.push(Number::Carry(0));
//! let half = program.push(Number::Constant(0.5));
//! let product = program.push(Number::Mul([c, half]));
//! let x = program.push(Number::Input { stream: 0, element: 0 });
//! let next = program.push(Number::Add([product, x]));
//! program.inputs = vec![Stream { elements: 1, reverse: false }];
//! program.carries = vec![(0, next)];
//! program.outputs = vec![(Stream { elements: 1, reverse: false }, vec![next])];
//! let code = Code::new(&program)?;
//! let (mut memory, mut ys) = ([1.0], [0.0; 3]);
//! code.run(&mut memory, &[&[1.0, 1.0, 1.0]], &mut [&mut ys], 3)?;
//! assert_eq!((memory, ys), ([1.875], [1.5, 1.75, 1.875]));
//! # Ok::<(), t4a_jit::JitError>(())
//! ```

mod code;
mod program;

pub use code::{Code, JitError};
pub use program::{Float, Function, Id, Number, Program, Stream};
