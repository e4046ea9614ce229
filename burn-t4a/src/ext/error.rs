//! What the extension functions reject, before any arithmetic.

use burn_backend::{DType, Shape};
use t4a_einsum::EinsumError;
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
    /// Tensors of different dtypes.
    #[error(
        "{op}: operand 0 is {}, operand {argument} is {}; `cast` one of them", word(*first), word(*dtype)
    )]
    DTypeMismatch { op: &'static str, first: DType, argument: usize, dtype: DType },
    /// Tensors on different devices.
    #[error("{op}: operand 0 is on {first}, operand {argument} on {device}; `to_device` moves one")]
    DeviceMismatch { op: &'static str, first: String, argument: usize, device: String },
    /// A result asked for as a `Tensor<B, D>` of another rank.
    #[error("{op}: the result has rank {required}, asked for was a tensor of rank {given}")]
    ResultRank { op: &'static str, required: usize, given: usize },
    /// What an einsum asks for cannot be done.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
    /// A failure of the tensors below.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// A dtype as the engine writes it.
fn word(dtype: DType) -> String {
    format!("{dtype:?}").to_lowercase()
}
