//! Einsum over semirings on tensors of Burn 0.22, with gradients.
//!
//! ```text
//! call        what users write: einsum, semiring_einsum, complex_einsum
//! discrete    the same without a derivative: booleans, integers, counts, K best values
//! operand     tensors as operands
//! ```
//!
//! Contractions are operations of [`t4a_einsum`], see [`Contraction`]: on the tape every pairwise step of
//! the plan is one node.
//!
//! Burn has no tensors of rank 0: a scalar has shape `[1]` here, as operand and as result.

mod call;
mod discrete;
mod operand;

pub use call::{complex_einsum, einsum, semiring_einsum};
pub use discrete::{bool_einsum, counting_einsum, int_einsum, k_best_einsum};
pub use operand::{ComplexOperand, HostOperand, Operand};
pub use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Standard};
pub use t4a_einsum::{ArraySemiring, Contraction, Custom, FloatSemiring};
pub use t4a_einsum::{
    Cost, Einsum, EinsumError, Label, Optimizer, Path, Plan, PlanReport, Subscripts,
};
pub use t4a_einsum::{Expression, Operands};
pub use t4a_einsum::{FloatCancellative, FloatSelective, IntSemiring};
