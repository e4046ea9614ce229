//! Errors of structured tensors. All are found before any arithmetic.

use t4a_algebra::message::{cut, differing, long, short};
use t4a_einsum::EinsumError;
use t4a_linalg::LinalgError;
use t4a_tensor::{DType, TensorError};
use thiserror::Error;

/// Result of an operation on structured tensors.
pub type Result<T, E = StructuredError> = std::result::Result<T, E>;

/// Error of a structure or an operation, with the required and the given structure. Sectors and legs are stored in
/// their printed form.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum StructuredError {
    /// The sectors of a leg contain a duplicate.
    #[error("leg: sector {sector} is repeated", sector = short(.sector))]
    DuplicateSector { sector: String },
    /// A sector of a leg has dimension 0.
    #[error(
        "leg: sector {sector} has dimension 0; a leg lists the sectors that it has",
        sector = short(.sector)
    )]
    EmptySector { sector: String },
    /// Deserialised sectors are not in ascending order.
    #[error("leg: sectors are not in ascending order at {sector}", sector = short(.sector))]
    UnsortedSectors { sector: String },
    /// A number is not an element of the symmetry group, such as a residue ≥ N.
    #[error("{sector} is not an element of its group", sector = short(.sector))]
    UnknownSector { sector: String },
    /// The sum of charges exceeds the range of the charge type.
    #[error(
        "{op}: the charge of {sectors} exceeds the range of its type",
        sectors = short(.sectors)
    )]
    ChargeOverflow { op: &'static str, sectors: String },
    /// The number of elements or blocks exceeds the limit.
    #[error("{op}: {what} exceed {limit}")]
    TooLarge { op: &'static str, what: &'static str, limit: usize },
    /// Two legs are required to be dual or equal.
    #[error(
        "{op}: axis {axis} is {lhs}, axis {other} is {rhs}: {required}",
        lhs = differing(.lhs, .rhs), rhs = differing(.rhs, .lhs)
    )]
    LegMismatch {
        op: &'static str,
        axis: usize,
        lhs: String,
        other: usize,
        rhs: String,
        required: &'static str,
    },
    /// The number of legs differs from the required one.
    #[error("{op}: {required} legs are required, given {given}")]
    Rank { op: &'static str, required: usize, given: usize },
    /// An axis is out of range or repeated.
    #[error("{op}: axis {axis} is out of range for rank {rank}, or repeated")]
    Axis { op: &'static str, axis: usize, rank: usize },
    /// The number of row legs exceeds the number of legs.
    #[error("{op}: {rows} row legs are requested, the tensor has {rank} legs")]
    Rows { op: &'static str, rows: usize, rank: usize },
    /// An entry of a dense array is forbidden by the symmetry.
    #[error(
        "{op}: the entry at {index:?} is {value:?}, in sectors {sectors} of charge {given}; \
         the charge of the tensor is {required}",
        index = short(.index), sectors = short(.sectors), given = cut(.given, 64), required = cut(.required, 64)
    )]
    FluxViolation {
        op: &'static str,
        index: Vec<usize>,
        value: f64,
        sectors: String,
        given: String,
        required: String,
    },
    /// An entry of a dense array is not stored by the structure.
    #[error(
        "{op}: the entry at {index:?} is {value:?}, where the structure has zeros",
        index = short(.index)
    )]
    NotStored { op: &'static str, index: Vec<usize>, value: f64 },
    /// The flux of a tensor is odd; fermionic tensors are even.
    #[error(
        "{op}: the flux {flux} is odd; add an odd leg of dimension 1 instead",
        flux = short(.flux)
    )]
    OddParity { op: &'static str, flux: String },
    /// The length of a buffer differs from that of the structure.
    #[error("{op}: the structure has {required} elements, the buffer {given}")]
    LengthMismatch { op: &'static str, required: usize, given: usize },
    /// A dense array has another shape.
    #[error(
        "{op}: shape {required:?} is required, given {given:?}",
        required = differing(.required, .given), given = differing(.given, .required)
    )]
    Shape { op: &'static str, required: Vec<usize>, given: Vec<usize> },
    /// A block pattern contains a block twice.
    #[error("{op}: block {block:?} is repeated", block = short(.block))]
    DuplicateBlock { op: &'static str, block: Vec<u32> },
    /// The blocks of a pattern are not in lexicographic order. The order makes buffers of equal patterns comparable.
    #[error(
        "{op}: blocks are not in ascending order at {block:?}; sort the blocks",
        block = short(.block)
    )]
    UnsortedBlocks { op: &'static str, block: Vec<u32> },
    /// The leg was not fused, or was fused from other legs.
    #[error("{op}: axis {axis} was not fused from these legs")]
    NotFused { op: &'static str, axis: usize },
    /// The dtypes of the operands differ.
    #[error("{op}: dtype {given}, required {required}")]
    DType { op: &'static str, required: DType, given: DType },
    /// The stored data has another symmetry.
    #[error(
        "stored data: the symmetry is {given}, {required} is required",
        given = short(.given), required = short(.required)
    )]
    Symmetry { given: String, required: String },
    /// Stored plans or tensors are inconsistent.
    #[error("stored data: {what}")]
    Corrupt { what: &'static str },
    /// The operation requires another flux, usually the neutral one.
    #[error(
        "{op}: flux {required} is required, given {flux}",
        required = short(.required), flux = short(.flux)
    )]
    Flux { op: &'static str, flux: String, required: String },
    /// The structures of two tensors differ.
    #[error("{op}: structures differ: {lhs} and {rhs}", lhs = differing(.lhs, .rhs), rhs = differing(.rhs, .lhs))]
    SpecMismatch { op: &'static str, lhs: String, rhs: String },
    /// Inconsistent arguments.
    #[error("{op}: {message}", message = long(.message))]
    Invalid { op: &'static str, message: String },
    /// Error of an einsum.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
    /// Error of a factorisation.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// Error of the tensor engine.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
