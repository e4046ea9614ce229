//! Machine code generated at run time for two kinds of loops: steps over few scalars, such as the recorded body of a
//! filter with two states, and elementwise loops over arrays. Values of a step stay in registers.
//!
//! ```text
//! StepProgram     one step over scalars in static single assignment form
//! MachineCode     loop over the steps, compiled by Cranelift for this machine
//! VectorProgram   elementwise loop body in static single assignment form
//! VectorCode      loop over the elements with AVX2 or AVX-512 vectors (x86-64)
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
//!
//! The same recurrence has no vector form, since each step uses the previous one; `y = x² + 1` has:
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use t4a_jit::{BinaryInst, VectorCode, VectorElement, VectorInst, VectorIsa, VectorProgram};
//!
//! let mut program = VectorProgram::new(VectorElement::F32);
//! let [x, y] = [(); 2].map(|()| program.operand());
//! let a = program.push(VectorInst::Load(x));
//! let one = program.push(VectorInst::Constant(1_f32.to_bits().into()));
//! let square = program.push(VectorInst::Binary(BinaryInst::Mul, [a, a]));
//! let sum = program.push(VectorInst::Binary(BinaryInst::Add, [square, one]));
//! program.push(VectorInst::Store(y, sum));
//! let (mut x, mut y) = ([1.0_f32, 2.0, 3.0], [0.0_f32; 3]);
//! if let Ok(code) = VectorCode::new(&program, VectorIsa::Avx2) {
//!     // SAFETY: both arrays have three elements and do not overlap.
//!     unsafe { code.run(&[x.as_mut_ptr().cast(), y.as_mut_ptr().cast()], 3) };
//!     assert_eq!(y, [2.0, 5.0, 10.0]);
//! }
//! # }
//! ```

mod code;
mod program;
#[cfg(target_arch = "x86_64")]
mod vector;

pub use code::{JitError, MachineCode};
pub use program::{Function, MachineFloat, StepProgram, Stream, ValueDef, ValueId};
#[cfg(target_arch = "x86_64")]
pub use vector::{
    BinaryInst, OperandId, Predicate, SUM_BYTES, UnaryInst, VectorCode, VectorElement, VectorId,
    VectorInst, VectorIsa, VectorProgram,
};
