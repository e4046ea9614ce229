//! Errors of Krylov methods.

use t4a_algebra::c64;
use thiserror::Error;

/// A rejected call of a Krylov method, or a map that it cannot work with.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum KrylovError {
    /// An option outside of its range.
    #[error("{op}: option {option} is {given}, {required} is required")]
    Option {
        /// The method.
        op: &'static str,
        /// The option.
        option: &'static str,
        /// Its value.
        given: String,
        /// Accepted values.
        required: &'static str,
    },
    /// A start vector without a direction.
    #[error(
        "{op}: the start vector is zero, or lies in the span of the vectors that are excluded; a random vector is a \
         good start"
    )]
    ZeroStart {
        /// The method.
        op: &'static str,
    },
    /// NaN or ∞ in a vector.
    #[error(
        "{op}: the norm of {what} is {norm} after {applications} applications of the map; a finite number is required"
    )]
    NonFinite {
        /// The method.
        op: &'static str,
        /// The vector.
        what: &'static str,
        /// Its norm.
        norm: f64,
        /// Number of applications of the map so far.
        applications: usize,
    },
    /// A map that is not Hermitian, where the method needs one that is.
    #[error(
        "{op}: the map is not Hermitian: ⟨x, A y⟩ and the conjugate of ⟨y, A x⟩ differ by {difference:.3e} for unit \
         vectors whose images have norms up to {scale:.3e}; `arnoldi`, `exponential` and `gmres` take any map"
    )]
    NotHermitian {
        /// The method.
        op: &'static str,
        /// Modulus of the difference.
        difference: f64,
        /// Largest norm of an image.
        scale: f64,
    },
    /// A map that is not positive definite, where the method needs one that is.
    #[error(
        "{op}: ⟨x, A x⟩ is {value:.3e}: the map or the preconditioner is not positive definite; `minres` takes any \
         Hermitian map"
    )]
    NotPositive {
        /// The method.
        op: &'static str,
        /// The product.
        value: f64,
    },
    /// An iteration that cannot go on.
    #[error(
        "{op}: the iteration breaks down after {applications} applications: the map is singular"
    )]
    Breakdown {
        /// The method.
        op: &'static str,
        /// Number of applications of the map.
        applications: usize,
    },
    /// A complex number times a vector that is real and stays so.
    #[error(
        "{op}: the number {number} times a vector of real elements; vectors of a complex type, and those with an \
         imaginary part (`Parts`, graded tensors), take complex numbers"
    )]
    ComplexNumber {
        /// The operation.
        op: &'static str,
        /// The number.
        number: c64,
    },
    /// Vectors of different shapes.
    #[error("{op}: vectors of shapes {lhs:?} and {rhs:?}; equal shapes are required")]
    ShapeMismatch {
        /// The operation.
        op: &'static str,
        /// Shape of the first.
        lhs: Vec<usize>,
        /// Shape of the second.
        rhs: Vec<usize>,
    },
    /// An iteration that ended before it converged, where a caller requires that it did.
    #[error(
        "{op}: a residual of {residual:.3e} after {applications} applications of the map; a larger subspace, more \
         applications or a better start vector help"
    )]
    NotConverged {
        /// The method.
        op: &'static str,
        /// Largest residual.
        residual: f64,
        /// Number of applications of the map.
        applications: usize,
    },
}
