//! Errors of operations on tensors. Every error is raised before any work.

use t4a_algebra::message::{long, short};
use thiserror::Error;

use crate::dtype::DType;
use crate::pool;

/// Result of a tensor operation.
pub type Result<T, E = TensorError> = std::result::Result<T, E>;

/// A rejected operation: the operation, the requirement and the given value.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum TensorError {
    /// The shapes of the operands are incompatible.
    #[error(
        "{op}: shapes {lhs:?} and {rhs:?} do not match: {required}",
        lhs = short(.lhs), rhs = short(.rhs)
    )]
    ShapeMismatch {
        /// The operation.
        op: &'static str,
        /// Shape of the first operand.
        lhs: Vec<usize>,
        /// Shape of the second operand.
        rhs: Vec<usize>,
        /// The rule that they break.
        required: &'static str,
    },
    /// A single shape that the operation does not accept.
    #[error("{op}: shape {shape:?} is not accepted: {required}", shape = short(.shape))]
    Shape {
        /// The operation.
        op: &'static str,
        /// The given shape.
        shape: Vec<usize>,
        /// The requirement.
        required: &'static str,
    },
    /// An axis outside of the tensor, or one named twice.
    #[error("{op}: axis {axis} is out of range or repeated for a tensor of rank {rank}")]
    Axis {
        /// The operation.
        op: &'static str,
        /// The offending axis.
        axis: usize,
        /// Rank of the tensor.
        rank: usize,
    },
    /// An index outside of an axis.
    #[error("{op}: index {index} is out of bounds for axis {axis} of size {size}")]
    Index {
        /// The operation.
        op: &'static str,
        /// The offending index.
        index: i64,
        /// The axis indexed.
        axis: usize,
        /// Its size.
        size: usize,
    },
    /// The operation does not support the element type.
    #[error("{op}: dtype {dtype} is not supported, expected {expected}")]
    DTypeUnsupported {
        /// The operation.
        op: &'static str,
        /// The given dtype.
        dtype: DType,
        /// The dtypes served.
        expected: &'static str,
    },
    /// An operand of an operation that takes another kind of elements there.
    #[error("{op}: operand {operand} has dtype {dtype}, {required} are required")]
    OperandKind {
        /// The operation.
        op: &'static str,
        /// The number of the operand.
        operand: usize,
        /// Its dtype.
        dtype: DType,
        /// The kind of elements that is required.
        required: &'static str,
    },
    /// Operands of different element types.
    #[error("{op}: dtypes {lhs} and {rhs} differ")]
    DTypeMismatch {
        /// The operation.
        op: &'static str,
        /// Dtype of the first operand.
        lhs: DType,
        /// Dtype of the second operand.
        rhs: DType,
    },
    /// A shape with more bytes than an address can count.
    #[error("{op}: a tensor of shape {shape:?} exceeds the address space", shape = short(.shape))]
    SizeOverflow {
        /// The operation.
        op: &'static str,
        /// The requested shape.
        shape: Vec<usize>,
    },
    /// The allocator refused.
    #[error("{op}: out of memory: {bytes} bytes could not be allocated; {}", memory_limit())]
    OutOfMemory {
        /// The operation.
        op: &'static str,
        /// The requested number of bytes.
        bytes: usize,
    },
    /// A value that the operation does not accept.
    #[error("{op}: {message}", message = long(.message))]
    Value {
        /// The operation.
        op: &'static str,
        /// The requirement and the given value.
        message: String,
    },
    /// The operation would have left its native path while fallbacks are rejected.
    #[error("{op}: route {route} ({reason}) is rejected by the route policy")]
    RouteRejected {
        /// The operation.
        op: &'static str,
        /// The route that would have been taken.
        route: &'static str,
        /// Why.
        reason: &'static str,
    },
}

/// The limit of memory in words.
fn memory_limit() -> String {
    match pool::memory_limit() {
        Some(limit) => format!(
            "the limit of all tensors is {limit} bytes (`T4A_MEMORY_LIMIT`, `BackendConfig::memory_limit`)"
        ),
        None => "no limit is set".into(),
    }
}

impl TensorError {
    /// A [`TensorError::ShapeMismatch`].
    pub fn shapes(op: &'static str, lhs: &[usize], rhs: &[usize], required: &'static str) -> Self {
        Self::ShapeMismatch { op, lhs: lhs.to_vec(), rhs: rhs.to_vec(), required }
    }

    /// A [`TensorError::Shape`].
    pub fn shape(op: &'static str, shape: &[usize], required: &'static str) -> Self {
        Self::Shape { op, shape: shape.to_vec(), required }
    }

    /// A [`TensorError::Value`].
    pub fn value(op: &'static str, message: impl Into<String>) -> Self {
        Self::Value { op, message: message.into() }
    }
}

/// Checks that `axis` exists.
#[inline]
pub(crate) fn check_axis(op: &'static str, axis: usize, rank: usize) -> Result<()> {
    if axis < rank { Ok(()) } else { Err(TensorError::Axis { op, axis, rank }) }
}
