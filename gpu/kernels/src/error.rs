//! Errors that prevent the launch of a kernel.

/// Error that prevents the launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CubeError {
    /// An index exceeds 31 bits.
    #[error("{kernel}: {elements} elements, and indices of kernels have 31 bits")]
    TooLarge {
        /// The kernel.
        kernel: &'static str,
        /// Number of elements.
        elements: usize,
    },
    /// The device has no kernels for this element type.
    #[error("{kernel}: no kernel for {dtype}")]
    DType {
        /// The kernel.
        kernel: &'static str,
        /// The element type.
        dtype: String,
    },
    /// Shapes of the operands do not match.
    #[error("{kernel}: {required}, given {given:?}")]
    Sizes {
        /// The kernel.
        kernel: &'static str,
        /// The requirement.
        required: &'static str,
        /// Sizes of both operands.
        given: [Vec<usize>; 2],
    },
    /// The kernel does not serve this semiring, or this number of values.
    #[error("{kernel}: no kernel for {requested}")]
    Unsupported {
        /// The kernel.
        kernel: &'static str,
        /// The kind of elements and the semiring.
        requested: String,
    },
    /// A library or the driver failed.
    #[error("{kernel}: {message}")]
    Library {
        /// The kernel.
        kernel: &'static str,
        /// Text of the library or of the driver.
        message: String,
    },
    /// The tile exceeds the device, or its sizes are not multiples of those of a unit.
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

/// Result of a function of this crate.
pub type Result<T> = std::result::Result<T, CubeError>;
