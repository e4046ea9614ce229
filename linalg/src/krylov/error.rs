//! Errors of Krylov methods.

use t4a_algebra::c64;
use t4a_algebra::message::{differing, short};
use thiserror::Error;

/// Rejected call of a Krylov method, or an operator that violates its assumptions.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum KrylovError {
    /// An option is out of range.
    #[error("{op}: option {option} is {given}, {required} is required", given = short(.given))]
    Option {
        /// Name of the method.
        op: &'static str,
        /// Name of the option.
        option: &'static str,
        /// Given value.
        given: String,
        /// Accepted values.
        required: &'static str,
    },
    /// The start vector is zero.
    #[error(
        "{op}: the start vector is zero, or in the span of the excluded vectors; use a random start vector"
    )]
    ZeroStart {
        /// Name of the method.
        op: &'static str,
    },
    /// A vector contains NaN or ∞.
    #[error(
        "{op}: the norm of {what} is {norm:?} after {applications} applications of the operator; a finite number is required"
    )]
    NonFinite {
        /// Name of the method.
        op: &'static str,
        /// Role of the vector.
        what: &'static str,
        /// Norm of the vector.
        norm: f64,
        /// Number of applications of the operator so far.
        applications: usize,
    },
    /// The operator is not Hermitian, which the method requires.
    #[error(
        "{op}: the operator is not Hermitian: ⟨x, A y⟩ and the conjugate of ⟨y, A x⟩ differ by {difference:.3e} for unit \
         vectors whose images have norms up to {scale:.3e}; `arnoldi`, `exponential` and `gmres` accept any operator"
    )]
    NotHermitian {
        /// Name of the method.
        op: &'static str,
        /// Modulus of the difference of the two matrix elements.
        difference: f64,
        /// Largest norm of an image.
        scale: f64,
    },
    /// The operator is not positive definite, which the method requires.
    #[error(
        "{op}: ⟨x, A x⟩ is {value:.3e}: the operator or the preconditioner is not positive definite; `minres` \
         accepts any Hermitian operator"
    )]
    NotPositive {
        /// Name of the method.
        op: &'static str,
        /// Value of `⟨x, A x⟩`.
        value: f64,
    },
    /// The recurrence broke down.
    #[error(
        "{op}: the iteration broke down after {applications} applications: the operator is singular"
    )]
    Breakdown {
        /// Name of the method.
        op: &'static str,
        /// Number of applications of the operator.
        applications: usize,
    },
    /// Product of a complex number and a vector type that is always real.
    #[error(
        "{op}: product of the complex number {number} and a vector of real elements; use a vector of a complex type, \
         or one with an imaginary part (`ArrayVector`, graded tensors)",
        number = short(.number)
    )]
    ComplexNumber {
        /// Name of the operation.
        op: &'static str,
        /// The complex number.
        number: c64,
    },
    /// The shapes of two vectors differ.
    #[error(
        "{op}: vectors of shapes {lhs:?} and {rhs:?}; equal shapes are required",
        lhs = differing(.lhs, .rhs), rhs = differing(.rhs, .lhs)
    )]
    ShapeMismatch {
        /// Name of the operation.
        op: &'static str,
        /// Shape of the first vector.
        lhs: Vec<usize>,
        /// Shape of the second vector.
        rhs: Vec<usize>,
    },
    /// The iteration ended without convergence, and the caller requires it.
    #[error(
        "{op}: not converged, the residual is {residual:.3e} after {applications} applications of the operator; use a \
         larger subspace, more applications or a better start vector"
    )]
    NotConverged {
        /// Name of the method.
        op: &'static str,
        /// Largest residual.
        residual: f64,
        /// Number of applications of the operator.
        applications: usize,
    },
}
