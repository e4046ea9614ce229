//! Rejected operands of tensor trains, cross interpolation and quantics, and failures of user functions.

use t4a_algebra::message::{cut, differing, long, short};
use t4a_linalg::LinalgError;
use t4a_tensor::TensorError;
use thiserror::Error;

/// Result of an operation on tensor trains.
pub type Result<T, E = TrainError> = std::result::Result<T, E>;

/// Error of a user function.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A rejected operation: the requirement and the value given.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum TrainError {
    /// A train without sites.
    #[error("{op}: at least {required} sites are required, given {given}")]
    Sites { op: &'static str, required: usize, given: usize },
    /// A core of another shape.
    #[error(
        "{op}: the core of site {site} has shape {shape:?}, required {required}",
        shape = short(.shape), required = short(.required)
    )]
    Core { op: &'static str, site: usize, shape: Vec<usize>, required: String },
    /// Trains with other sites.
    #[error(
        "{op}: the sizes of the sites differ: {lhs:?} and {rhs:?}",
        lhs = differing(.lhs, .rhs), rhs = differing(.rhs, .lhs)
    )]
    Sizes { op: &'static str, lhs: Vec<usize>, rhs: Vec<usize> },
    /// A multi-index of another length.
    #[error("{op}: {required} numbers are required, given {given}")]
    Length { op: &'static str, required: usize, given: usize },
    /// An index outside of a site.
    #[error("{op}: index {index} at site {site} of size {size}")]
    Index { op: &'static str, site: usize, index: usize, size: usize },
    /// An argument outside of its range.
    #[error("{op}: {message}", message = long(.message))]
    Value { op: &'static str, message: String },
    /// A function value that is NaN or infinite.
    #[error(
        "{op}: the function is {value} at {point:?}",
        value = short(.value), point = short(.point)
    )]
    NonFinite { op: &'static str, point: Vec<usize>, value: String },
    /// A user function that failed at a point.
    #[error(
        "{op}: the function failed at {point:?}: {source}",
        point = short(.point), source = cut(.source, 250)
    )]
    Function { op: &'static str, point: Vec<usize>, source: BoxError },
    /// A user function of batches that failed.
    #[error(
        "{op}: the function failed for a batch of {points} points from {first:?} on: {source}",
        first = short(.first), source = cut(.source, 250)
    )]
    Batch { op: &'static str, points: usize, first: Vec<usize>, source: BoxError },
    /// A failure of a factorisation.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// A failure of the tensors below.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl TrainError {
    /// A [`TrainError::Value`].
    pub(crate) fn value(op: &'static str, message: impl Into<String>) -> Self {
        Self::Value { op, message: message.into() }
    }
}
