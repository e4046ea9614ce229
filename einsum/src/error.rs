//! Errors of contractions. Every error is raised before any arithmetic.

use std::fmt::{self, Debug};

use t4a_algebra::message::{differing, long, short};
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
    /// A character that is not a label, comma, arrow or ellipsis.
    #[error("einsum: unexpected {found:?} at byte {position} of the subscripts")]
    UnexpectedCharacter { position: usize, found: char },
    /// A dot outside of `...`, or a second ellipsis in one term.
    #[error("einsum: malformed or repeated ellipsis at byte {position} of the subscripts")]
    Ellipsis { position: usize },
    /// A dash without `>`, or a second arrow.
    #[error("einsum: malformed or repeated arrow at byte {position} of the subscripts")]
    Arrow { position: usize },
    /// A comma after the arrow.
    #[error("einsum: second output term at byte {position} of the subscripts")]
    OutputTerms { position: usize },
    /// Operands have axes under an ellipsis, and the explicit output has no ellipsis.
    #[error("einsum: the axes under the ellipsis must be in the output: write `...` there too")]
    EllipsisDropped,
    /// The number of operands differs from that of the subscripts.
    #[error("einsum: the subscripts name {expected} operands, {given} were given")]
    OperandCount { expected: usize, given: usize },
    /// The rank of an operand differs from its number of labels.
    #[error(
        "einsum: operand {operand} has shape {shape:?}, its subscripts ask for {labels} axes",
        shape = short(.shape), labels = short(.labels)
    )]
    Rank { operand: usize, labels: String, shape: Vec<usize> },
    /// A label has two sizes, neither of them 1.
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
    /// An operand contradicts the size set with [`Einsum::size`](crate::Einsum::size). A summed label whose axes have
    /// size 1 has size 1; along an output label such axes are repeated.
    #[error(
        "einsum: label {label} was given size {given}, operand {operand} has size {size} there"
    )]
    GivenSizeConflict { label: Label, given: usize, size: usize, operand: usize },
    /// A size is set for a label that occurs in no operand and not in the output.
    #[error("einsum: label {label} was given size {given} and is nowhere in the subscripts")]
    UnusedSize { label: Label, given: usize },
    /// Two sizes are set for one label.
    #[error("einsum: label {label} was given the sizes {first} and {second}")]
    DuplicateSize { label: Label, first: usize, second: usize },
    /// An output label occurs in no operand, and no sizes are set.
    #[error("einsum: output label {label} is in no operand")]
    UnknownOutputLabel { label: Label },
    /// An output label occurs in no operand, and its size is not set.
    #[error("einsum: output label {label} is in no operand and its size was not given")]
    MissingSize { label: Label },
    /// A path step has no positions, repeats one, or has one out of range.
    #[error(
        "einsum: path step {step} names {indices:?}, there are {remaining} operands left",
        indices = short(.indices)
    )]
    PathStep { step: usize, indices: Vec<usize>, remaining: usize },
    /// The path leaves more than one tensor.
    #[error("einsum: the path leaves {remaining} tensors uncontracted")]
    PathIncomplete { remaining: usize },
    /// No plan fits the memory budget, even with all possible labels sliced.
    #[error(
        "einsum: no plan fits into {}, the smallest found takes {}; `Einsum::memory`, \
         `BackendConfig::einsum_memory` or `T4A_EINSUM_MEMORY` sets the budget, by default half of the free memory",
        Bytes(*budget),
        Bytes(*needed)
    )]
    BudgetTooSmall { budget: usize, needed: usize },
    /// The number of elements of a tensor overflows the address space.
    #[error(
        "einsum: a tensor with axes {shape:?} exceeds the address space",
        shape = short(.shape)
    )]
    SizeOverflow { shape: Vec<usize> },
    /// Every contraction order found has an intermediate that exceeds the address space; the smallest one is given.
    #[error("einsum: an intermediate of {elements:.1e} elements exceeds the address space")]
    IntermediateOverflow { elements: f64 },
    /// A search method of the contraction order that this build does not contain.
    #[error("einsum: Optimizer::{optimizer} needs the feature `omeco`")]
    OptimizerUnavailable { optimizer: &'static str },
    /// A sum has more terms than an argmax can index.
    #[error("einsum: a sum of {terms:.2e} terms exceeds the range of an argmax, {limit}")]
    IndexRange { terms: f64, limit: u32 },
    /// The number of assignments that attain a value exceeds `i64`, or the value is infinite or NaN, so that
    /// assignments cannot be counted.
    #[error("einsum: a value is attained more than 2⁶³ − 1 times, or is infinite or NaN")]
    CountOverflow,
    /// The operands have different element types.
    #[error("einsum: operand 0 is {first}, operand {operand} is {dtype}; `cast` one of them")]
    DTypeMismatch { first: DType, operand: usize, dtype: DType },
    /// The shape of an operand differs from that of the plan.
    #[error(
        "einsum: the plan expects shape {expected:?} for operand {operand}, given {given:?}",
        expected = differing(.expected, .given), given = differing(.given, .expected)
    )]
    PlanShape { operand: usize, expected: Vec<usize>, given: Vec<usize> },
    /// A cotangent or tangent has another shape than its primal.
    #[error(
        "einsum: {what} must have shape {expected:?}, given {given:?}",
        expected = differing(.expected, .given), given = differing(.given, .expected)
    )]
    DerivativeShape { what: &'static str, expected: Vec<usize>, given: Vec<usize> },
    /// The plan slices labels to fit a given budget, but is executed step by step: on arrays other than engine tensors,
    /// and for second derivatives, which store all intermediates.
    #[error(
        "einsum: only by slicing {labels} does the plan fit its budget, and here it is not sliced",
        labels = short(.labels)
    )]
    NotSliced { labels: String },
    /// An error reported by a user-supplied backend.
    #[error("einsum: backend: {}", long(.0))]
    Backend(String),
    /// An error of the tensor crate.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Incompatible tensors in a frontend with its own dtypes.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum MismatchError<T: Debug> {
    /// The tensors have different dtypes.
    #[error(
        "{op}: operand 0 is {}, operand {argument} is {}; `cast` one of them",
        short(&word(first)),
        short(&word(dtype))
    )]
    DType { op: &'static str, first: T, argument: usize, dtype: T },
    /// The tensors are on different devices.
    #[error(
        "{op}: operand 0 is on {first}, operand {argument} on {device}; `to_device` moves one",
        first = short(.first), device = short(.device)
    )]
    Device { op: &'static str, first: String, argument: usize, device: String },
    /// The requested rank of the result is not its rank.
    #[error("{op}: the result has rank {required}, asked for was a tensor of rank {given}")]
    ResultRank { op: &'static str, required: usize, given: usize },
}

/// A dtype in the spelling of the engine.
fn word(dtype: &impl Debug) -> String {
    format!("{dtype:?}").to_lowercase()
}

/// A number of bytes with a unit prefix.
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
