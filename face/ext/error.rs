//! Errors of the extension functions, reported before any arithmetic.

use burn_backend::{DType, Shape};
use t4a_einsum::{EinsumError, MismatchError};
use t4a_tensor::TensorError;
use thiserror::Error;

/// Result of an extension function.
pub type Result<T, E = ExtError> = std::result::Result<T, E>;

/// A rejected extension operation: what was required and what was given.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum ExtError {
    /// Real and imaginary parts of different shapes.
    #[error("{op}: the real part has shape {re:?}, the imaginary part {im:?}")]
    ComplexShape { op: &'static str, re: Shape, im: Shape },
    /// Tensors of different dtypes or devices, or a result asked for in another rank.
    #[error(transparent)]
    Mismatch(#[from] MismatchError<DType>),
    /// An einsum that cannot be computed as asked.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
    /// A failure of the tensors below.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
