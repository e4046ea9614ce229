//! Einsum over semirings on Burn tensors, with gradients.
//!
//! | task | |
//! |---|---|
//! | a contraction of any number of tensors | [`einsum()`] |
//! | the same over another semiring: log Z, best path | [`semiring_einsum`] of [`LogSumExp`], [`MaxPlus`], … |
//! | complex tensors | [`complex_einsum`] |
//! | how many ways attain the best, the K best | [`counting_einsum`], [`k_best_einsum`] |
//! | booleans, integers | [`bool_einsum`], [`int_einsum`] |
//! | an order, sizes of new labels, a bound of memory, what it will cost | [`Einsum`], [`Plan::report`] |
//! | a semiring of one's own | [`ArraySemiring`], [`Custom`] |
//!
//! Contractions are operations of [`t4a_einsum`], see [`Contraction`]: on the tape every pairwise step of
//! the plan is one node.
//!
//! Burn has no tensors of rank 0: a scalar has shape `[1]` here, as operand and as result.
//!
//! # Gradients
//!
//! [`MaxPlus`], [`MinPlus`], [`MaxMul`]
//! and [`MaxMin`] pass the cotangent on to the first of the best terms, a
//! subgradient; [`LogSumExp`] to all terms by their share.
//!
//! - A 0 of the semiring has no candidate and passes nothing on, in any order of derivative:
//!   −∞ in a log-sum-exp leaves gradients and Hessians of the rest finite and right. That holds for
//!   an operand that is only copied too. Factors of +∞ of (max, ×) have infinite derivatives, NaN in
//!   the second order.
//! - Ties go to the first term: terms are numbered by the labels that a step of the plan sums, those
//!   that occur first in the subscripts slowest ([`Plan::labels`]), sliced labels before others. Of
//!   two equal factors of (max, min) the one counts that the path names first.
//! - NaN comes out wherever it goes in and wins against every number. Terms of +∞ of a log-sum-exp
//!   share equally, at each step and among slices.

mod call;
mod contract;
mod discrete;
mod host;
mod operand;

pub use call::{complex_einsum, einsum, semiring_einsum};
pub use discrete::{bool_einsum, counting_einsum, int_einsum, k_best_einsum};
#[cfg(burn_line = "0.21")]
pub use operand::FlagOperand;
pub use operand::{ComplexOperand, HostOperand, Operand};
pub use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Standard};
pub use t4a_einsum::{ArraySemiring, Contraction, Custom, FloatSemiring};
pub use t4a_einsum::{
    Cost, Einsum, EinsumError, Label, Optimizer, Path, Plan, PlanReport, Subscripts,
};
pub use t4a_einsum::{Expression, Operands};
pub use t4a_einsum::{FloatCancellative, FloatSelective, IntSemiring};
