//! What structured tensors reject, before any arithmetic.

use t4a_einsum::EinsumError;
use t4a_linalg::LinalgError;
use t4a_tensor::{DType, TensorError};
use thiserror::Error;

/// Result of an operation on structured tensors.
pub type Result<T, E = StructuredError> = std::result::Result<T, E>;

/// A rejected structure or operation: what was required and what was given. Sectors and legs are given
/// as they print.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum StructuredError {
    /// A leg with a sector twice.
    #[error("leg: sector {sector} is given twice")]
    DuplicateSector { sector: String },
    /// A leg with a sector of which there is no state.
    #[error("leg: sector {sector} has dimension 0; a leg lists the sectors that it has")]
    EmptySector { sector: String },
    /// Data with sectors out of order.
    #[error("leg: sector {sector} comes behind a greater one")]
    UnsortedSectors { sector: String },
    /// A number that is none of the group.
    #[error("{sector} is not an element of its group")]
    UnknownSector { sector: String },
    /// A charge beyond the range of its type.
    #[error("{op}: the charge of {sectors} exceeds the range of its type")]
    ChargeOverflow { op: &'static str, sectors: String },
    /// More elements or blocks than can be counted.
    #[error("{op}: {what} exceed {limit}")]
    TooLarge { op: &'static str, what: &'static str, limit: usize },
    /// Legs that should be each other's dual, or the same.
    #[error("{op}: axis {axis} is {lhs}, axis {other} is {rhs}: {required}")]
    LegMismatch {
        op: &'static str,
        axis: usize,
        lhs: String,
        other: usize,
        rhs: String,
        required: &'static str,
    },
    /// A tensor with another number of legs.
    #[error("{op}: {required} legs are required, given {given}")]
    Rank { op: &'static str, required: usize, given: usize },
    /// An axis that is not there, or named twice.
    #[error("{op}: axis {axis} of {rank}, or named twice")]
    Axis { op: &'static str, axis: usize, rank: usize },
    /// A split of the legs beyond their number.
    #[error("{op}: {rows} legs of rows are asked for, there are {rank}")]
    Rows { op: &'static str, rows: usize, rank: usize },
    /// Entries that the symmetry forbids.
    #[error(
        "{op}: the entry at {index:?} is {value}, in sectors {sectors} of charge {given}; \
         the charge of the tensor is {required}"
    )]
    FluxViolation {
        op: &'static str,
        index: Vec<usize>,
        value: f64,
        sectors: String,
        given: String,
        required: String,
    },
    /// Entries where a pattern has none.
    #[error("{op}: the entry at {index:?} is {value}, where the structure has zeros")]
    NotStored { op: &'static str, index: Vec<usize>, value: f64 },
    /// A tensor that would be odd as a whole.
    #[error("{op}: an odd charge {flux} needs an odd leg of dimension 1 instead")]
    OddParity { op: &'static str, flux: String },
    /// A buffer of another length.
    #[error("{op}: the structure has {required} elements, the buffer {given}")]
    LengthMismatch { op: &'static str, required: usize, given: usize },
    /// A dense tensor of another shape.
    #[error("{op}: shape {required:?} is required, given {given:?}")]
    Shape { op: &'static str, required: Vec<usize>, given: Vec<usize> },
    /// A block pattern with a block twice.
    #[error("{op}: block {block:?} is given twice")]
    DuplicateBlock { op: &'static str, block: Vec<u32> },
    /// A block pattern out of lexicographic order, in which equal patterns have equal buffers.
    #[error("{op}: block {block:?} comes behind a greater one; sort the blocks")]
    UnsortedBlocks { op: &'static str, block: Vec<u32> },
    /// A leg that was not fused, or of other legs.
    #[error("{op}: axis {axis} was not fused of these legs")]
    NotFused { op: &'static str, axis: usize },
    /// Element types that do not go together.
    #[error("{op}: dtype {given}, required {required}")]
    DType { op: &'static str, required: DType, given: DType },
    /// Stored data of another symmetry.
    #[error("stored data: the symmetry is {given}, {required} is required")]
    Symmetry { given: String, required: String },
    /// Stored plans or tensors that contradict themselves.
    #[error("stored data: {what}")]
    Corrupt { what: &'static str },
    /// An operation that needs a neutral tensor.
    #[error("{op}: the charge {flux} is given, {required} is required")]
    Flux { op: &'static str, flux: String, required: String },
    /// Tensors of different structures.
    #[error("{op}: structures differ: {lhs} and {rhs}")]
    SpecMismatch { op: &'static str, lhs: String, rhs: String },
    /// Sizes that do not go together.
    #[error("{op}: {message}")]
    Invalid { op: &'static str, message: String },
    /// A failure of an einsum.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
    /// A failure of a factorisation.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// A failure of the tensors below.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
