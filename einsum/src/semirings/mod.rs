//! Derivatives of the semirings over floats, a file each: on scalars for the kernels of the engine
//! ([`Differentiable`](crate::rules::Differentiable)), and on arrays for other backends and second derivatives
//! ([`ArraySemiring`](crate::operation::ArraySemiring)). A test compares the two.
//!
//! Another one has a file here, a row in the table of [`FloatSemiring`](crate::operation::FloatSemiring) and its kernels
//! where the compiler asks for them.

mod log_sum_exp;
mod max_min;
mod max_mul;
mod max_plus;
mod min_mul;
mod min_plus;
mod standard;
