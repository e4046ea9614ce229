//! Einsum over semirings on Burn tensors, with gradients.
//!
//! ```text
//! call        what users write: einsum, semiring_einsum, complex_einsum
//! discrete    the same without a derivative: booleans, integers, counts, K best values
//! semiring    a semiring in the operations of any backend
//! backend     EinsumOps: the portable default, the engine for BurnT4a, nodes for Autodiff
//! portable    contraction and its vjp in ordinary Burn operations
//! axes        labelled axes ⇄ batches of matrices
//! transposed  the vjp over (+, ×): contractions again
//! ```
//!
//! On the tape every pairwise step of the plan is one node. Its vjp is written in operations of
//! the inner backend, so that it can be differentiated again.
//!
//! Burn has no tensors of rank 0: a scalar has shape `[1]` here, as operand and as result.

mod axes;
mod backend;
mod call;
mod discrete;
mod portable;
mod semiring;
mod transposed;

pub use backend::EinsumOps;
pub use call::{
    ComplexOperand, Expression, Operand, Operands, complex_einsum, einsum, semiring_einsum,
};
pub use discrete::{
    FloatCancellative, FloatSelective, HostOperand, IntSemiring, bool_einsum, counting_einsum,
    int_einsum, k_best_einsum,
};
pub use semiring::TensorSemiring;
pub use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Standard};
pub use t4a_einsum::{Cost, Einsum, EinsumError, Label, Optimizer, Path, Plan, Subscripts};
