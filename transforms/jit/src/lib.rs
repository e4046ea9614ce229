//! Machine code for loops over few scalars, such as the recorded body of a filter with two states: values of a step and
//! carries stay in registers.
//!
//! ```text
//! StepProgram   one step in static single assignment form
//! MachineCode   loop over the steps, compiled by Cranelift for this machine
//! ```
//!
//! ```
//! use t4a_jit::{MachineCode, ValueDef, StepProgram, Stream};
//!
//! // c ← c / 2 + x, and y = c.
//! let mut program = StepProgram::<f64>::default();
//! let c = program.push(ValueDef::Carry(0));
//! let half = program.push(ValueDef::Constant(0.5));
//! let product = program.push(ValueDef::Mul([c, half]));
//! let x = program.push(ValueDef::Input { stream: 0, element: 0 });
//! let next = program.push(ValueDef::Add([product, x]));
//! program.inputs = vec![Stream { elements: 1, reverse: false }];
//! program.carries = vec![(0, next)];
//! program.outputs = vec![(Stream { elements: 1, reverse: false }, vec![next])];
//! let code = MachineCode::new(&program)?;
//! let (mut memory, mut ys) = ([1.0], [0.0; 3]);
//! code.run(&mut memory, &[&[1.0, 1.0, 1.0]], &mut [&mut ys], 3)?;
//! assert_eq!((memory, ys), ([1.875], [1.5, 1.75, 1.875]));
//! # Ok::<(), t4a_jit::JitError>(())
//! ```

mod code;
mod program;

pub use code::{JitError, MachineCode};
pub use program::{Function, MachineFloat, StepProgram, Stream, ValueDef, ValueId};
