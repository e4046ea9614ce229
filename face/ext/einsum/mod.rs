//! Einsum over semirings on Burn tensors, with derivatives.
//!
//! | task | |
//! |---|---|
//! | contract any number of tensors | [`einsum()`] |
//! | contract over another semiring: log Z, best path | [`semiring_einsum`] of [`LogSumExp`], [`MaxPlus`], … |
//! | complex tensors | [`complex_einsum`] |
//! | number of optimal assignments, K best values | [`counting_einsum`], [`k_best_einsum`] |
//! | booleans, integers | [`bool_einsum`], [`int_einsum`] |
//! | contraction order, sizes of new labels, memory limit, cost | [`Einsum`], [`Plan::report`] |
//! | user-defined semiring | [`ArraySemiring`], [`Custom`] |
//!
//! Contractions are operations of [`t4a_einsum`], see [`Contraction`]. On a tape every pairwise step of the plan is
//! one node.
//!
//! Examples (`cargo run --release --example NAME`): `viterbi`, `shortest_path`, `max_cut`, `ising`,
//! `tensor_train_layer`.
//!
//! Burn has no tensors of rank 0: scalars have shape `[1]` here, as operands and results.
//!
//! # Gradients
//!
//! [`MaxPlus`], [`MinPlus`], [`MaxMul`], [`MinMul`] and [`MaxMin`] pass the cotangent to the first of the best terms,
//! which is a subgradient. [`LogSumExp`] distributes it over all terms by their softmax weights.
//!
//! - If a sum equals the zero of the semiring, no term receives a cotangent, in any order of derivative: −∞ in a
//!   log-sum-exp leaves gradients and Hessians of other elements finite and correct. This holds for an operand that
//!   is only copied too. Factors of +∞ of (max, ×) have infinite first derivatives and NaN second derivatives.
//! - The first of equal terms receives the cotangent. Terms are numbered by the labels that a step of the plan
//!   sums: labels that occur first in the subscripts vary slowest ([`Plan::labels`]), sliced labels before others.
//!   Of two equal factors of (max, min), the one that is first in the path receives it.
//! - NaN propagates: it takes precedence over every number in a maximum or minimum. Terms of +∞ of a log-sum-exp
//!   share the cotangent equally, at each step and among slices.

mod call;
mod contract;
mod discrete;
mod host;
mod operand;

pub use call::{complex_einsum, einsum, semiring_einsum};
pub use discrete::{bool_einsum, counting_einsum, int_einsum, k_best_einsum};
pub use operand::{ComplexOperand, HostOperand, Operand};
pub use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard};
pub use t4a_einsum::{ArraySemiring, Contraction, Custom, FloatSemiring};
pub use t4a_einsum::{
    Cost, Einsum, EinsumError, Label, Optimizer, Path, Plan, PlanReport, Subscripts,
};
pub use t4a_einsum::{Expression, Operands};
pub use t4a_einsum::{FloatCancellative, FloatSelective, IntSemiring};
