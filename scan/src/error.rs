//! What scans reject.

use t4a_einsum::EinsumError;
use t4a_tensor::TensorError;
use thiserror::Error;

/// A rejected scan: which one, what it required and what it was given.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ScanError {
    /// Of operations on dense tensors.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Of products over semirings.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
}

/// Result of a scan.
pub type Result<T, E = ScanError> = std::result::Result<T, E>;
