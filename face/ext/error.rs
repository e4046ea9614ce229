//! Errors of the extension functions. Shapes, dtypes and devices are checked before any arithmetic.

use burn_backend::{DType, Shape};
use t4a_algebra::message::short;
use t4a_einsum::{EinsumError, MismatchError};
use t4a_tensor::TensorError;
use thiserror::Error;

/// Result of an extension function.
pub type Result<T, E = ExtError> = std::result::Result<T, E>;

/// Error of an extension operation: the requirement and the given shapes, dtypes or devices.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum ExtError {
    /// Real and imaginary parts have different shapes.
    #[error(
        "{op}: the real part has shape {re:?}, the imaginary part {im:?}",
        re = short(.re), im = short(.im)
    )]
    ComplexShape { op: &'static str, re: Shape, im: Shape },
    /// Operands have different dtypes or devices, or the result has another rank than requested.
    #[error(transparent)]
    Mismatch(#[from] MismatchError<DType>),
    /// Invalid einsum: subscripts, sizes, plan or memory limit.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
    /// Error of a tensor operation of the engine.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
