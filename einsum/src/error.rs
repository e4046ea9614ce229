//! What can go wrong. Every error is raised before any arithmetic.

use std::fmt::{self, Debug};

use t4a_tensor::{DType, TensorError};
use thiserror::Error;

use crate::label::Label;

/// Result of an einsum.
pub type Result<T, E = EinsumError> = std::result::Result<T, E>;

/// A rejected einsum: what was required and what was given.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum EinsumError {
    /// A character that is no label, comma, arrow or ellipsis.
    #[error("einsum: unexpected {found:?} at byte {position} of the subscripts")]
    UnexpectedCharacter { position: usize, found: char },
    /// A dot outside of `...`, or a second ellipsis in one term.
    #[error("einsum: malformed or repeated ellipsis at byte {position} of the subscripts")]
    Ellipsis { position: usize },
    /// A dash without `>`, or a second arrow.
    #[error("einsum: malformed or repeated arrow at byte {position} of the subscripts")]
    Arrow { position: usize },
    /// A comma behind the arrow.
    #[error("einsum: second output term at byte {position} of the subscripts")]
    OutputTerms { position: usize },
    /// Operands have leading axes under an ellipsis that an explicit output does not name.
    #[error("einsum: the axes under the ellipsis must be in the output: write `...` there too")]
    EllipsisDropped,
    /// A number of operands other than that of the subscripts.
    #[error("einsum: the subscripts name {expected} operands, {given} were given")]
    OperandCount { expected: usize, given: usize },
    /// An operand whose rank is not its number of labels.
    #[error("einsum: operand {operand} has shape {shape:?}, its subscripts ask for {labels} axes")]
    Rank { operand: usize, labels: String, shape: Vec<usize> },
    /// One label, two sizes, none of them 1.
    #[error(
        "einsum: label {label} has size {size} in operand {operand} and size {other_size} in \
         operand {other_operand}"
    )]
    SizeConflict {
        label: Label,
        size: usize,
        operand: usize,
        other_size: usize,
        other_operand: usize,
    },
    /// A size given beforehand that an operand contradicts. A summed label whose axes have size 1 has
    /// size 1; along one of the output such axes are repeated.
    #[error(
        "einsum: label {label} was given size {given}, operand {operand} has size {size} there"
    )]
    GivenSizeConflict { label: Label, given: usize, size: usize, operand: usize },
    /// A size given for a label that stands in no operand and not in the output.
    #[error("einsum: label {label} was given size {given} and is nowhere in the subscripts")]
    UnusedSize { label: Label, given: usize },
    /// A size given twice.
    #[error("einsum: label {label} was given the sizes {first} and {second}")]
    DuplicateSize { label: Label, first: usize, second: usize },
    /// An output label that no operand has, and no sizes were given.
    #[error("einsum: output label {label} is in no operand")]
    UnknownOutputLabel { label: Label },
    /// An output label that no operand has, and its size is not among the given ones.
    #[error("einsum: output label {label} is in no operand and its size was not given")]
    MissingSize { label: Label },
    /// A path step with a position out of range or repeated, or without operands.
    #[error("einsum: path step {step} names {indices:?}, there are {remaining} operands left")]
    PathStep { step: usize, indices: Vec<usize>, remaining: usize },
    /// A path that leaves more than one tensor.
    #[error("einsum: the path leaves {remaining} tensors uncontracted")]
    PathIncomplete { remaining: usize },
    /// No plan fits the memory budget, even with every label sliced that can be.
    #[error(
        "einsum: no plan fits into {}, the smallest found takes {}; `Einsum::memory` sets the budget, by \
         default half of the memory that is free",
        Bytes(*budget),
        Bytes(*needed)
    )]
    BudgetTooSmall { budget: usize, needed: usize },
    /// A tensor with more elements than an address can count.
    #[error("einsum: a tensor with axes {shape:?} exceeds the address space")]
    SizeOverflow { shape: Vec<usize> },
    /// An order of contraction with a tensor that no address space holds; the smallest found.
    #[error("einsum: an intermediate of {elements:.1e} elements exceeds the address space")]
    IntermediateOverflow { elements: f64 },
    /// A sum with more terms than can be numbered for its argmax.
    #[error("einsum: a sum of {terms:.0} terms exceeds the range of an argmax, {limit}")]
    IndexRange { terms: f64, limit: u32 },
    /// A value attained by more assignments than an `i64` can count, or an infinity or NaN, which absorbs
    /// others so that its assignments cannot be counted.
    #[error("einsum: a value is attained more than 2⁶³ − 1 times, or is infinite or NaN")]
    CountOverflow,
    /// Operands of different element types.
    #[error("einsum: operand 0 is {first}, operand {operand} is {dtype}; `cast` one of them")]
    DTypeMismatch { first: DType, operand: usize, dtype: DType },
    /// An operand whose shape is not the one that the plan was made for.
    #[error("einsum: the plan expects shape {expected:?} for operand {operand}, given {given:?}")]
    PlanShape { operand: usize, expected: Vec<usize>, given: Vec<usize> },
    /// A cotangent or tangent without the shape of what it belongs to.
    #[error("einsum: {what} must have shape {expected:?}, given {given:?}")]
    DerivativeShape { what: &'static str, expected: Vec<usize>, given: Vec<usize> },
    /// A plan that slices labels to fit the budget that was given, where every step is run on its own:
    /// on arrays that are not the engine's, and for second derivatives, which keep all intermediates.
    #[error(
        "einsum: only by slicing {labels} does the plan fit its budget, and here it is not sliced"
    )]
    NotSliced { labels: String },
    /// What a user's backend reported.
    #[error("einsum: backend: {0}")]
    Backend(String),
    /// A failure of the tensors below.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Tensors of a face that do not fit together, with its own dtypes.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum MismatchError<T: Debug> {
    /// Tensors of different dtypes.
    #[error(
        "{op}: operand 0 is {}, operand {argument} is {}; `cast` one of them",
        word(first),
        word(dtype)
    )]
    DType { op: &'static str, first: T, argument: usize, dtype: T },
    /// Tensors on different devices.
    #[error("{op}: operand 0 is on {first}, operand {argument} on {device}; `to_device` moves one")]
    Device { op: &'static str, first: String, argument: usize, device: String },
    /// A result asked for as a tensor of another rank.
    #[error("{op}: the result has rank {required}, asked for was a tensor of rank {given}")]
    ResultRank { op: &'static str, required: usize, given: usize },
}

/// A dtype as the engine writes it.
fn word(dtype: &impl Debug) -> String {
    format!("{dtype:?}").to_lowercase()
}

/// A number of bytes as people read it.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            usize::MAX => f.write_str("more than can be addressed"),
            n if n < 1 << 20 => write!(f, "{n} bytes"),
            n if n < 1 << 30 => write!(f, "{:.1} MiB", n as f64 / (1u64 << 20) as f64),
            n => write!(f, "{:.1} GiB", n as f64 / (1u64 << 30) as f64),
        }
    }
}
