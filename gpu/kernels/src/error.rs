//! Why a kernel is not launched.

/// Why a kernel is not launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CubeError {
    /// Indices have 32 bits.
    #[error("{kernel}: {elements} elements, and indices of kernels have 31 bits")]
    TooLarge {
        /// The kernel.
        kernel: &'static str,
        /// Number of elements.
        elements: usize,
    },
    /// The device runs no kernels over these numbers.
    #[error("{kernel}: no kernel for {dtype}")]
    DType {
        /// The kernel.
        kernel: &'static str,
        /// The element type.
        dtype: String,
    },
    /// Sizes of operands do not go together.
    #[error("{kernel}: {required}, given {given:?}")]
    Sizes {
        /// The kernel.
        kernel: &'static str,
        /// The requirement.
        required: &'static str,
        /// Sizes of both operands.
        given: [Vec<usize>; 2],
    },
    /// The tile does not fit the device or itself.
    #[error("{kernel}: {required}, given {tile}")]
    Tile {
        /// The kernel.
        kernel: &'static str,
        /// The requirement.
        required: &'static str,
        /// The tile.
        tile: String,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, CubeError>;
