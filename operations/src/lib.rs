//! Every differentiable operation as one value type, for code that stores operations of any kind: recorders, servers,
//! bindings to other languages.
//!
//! A value can be compared, hashed, printed and serialised; it runs and is differentiated as the operation that it
//! holds ([`Operation`]). A new operation is one line of the table in this file.
//!
//! ```
//! use t4a_diff::{Eager, Operation, Value, check};
//! use t4a_operations::AnyOperation;
//! use t4a_nn::Softmax;
//! let op = AnyOperation::from(Softmax { axis: 1 });
//! let sent = serde_json::to_string(&op)?;
//! assert_eq!(sent, r#"{"softmax":{"axis":1}}"#);
//! let received: AnyOperation = serde_json::from_str(&sent)?;
//! let x = Value::Float(check::array(&[1, 2], |_| 3.0));
//! let y = received.forward(&[x], &[false]).unwrap();
//! assert_eq!(check::elements(&y.results[0]), [0.5, 0.5]);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | store, compare, hash, print, serialise an operation | [`AnyOperation`] |
//! | run and differentiate it | [`Operation`] on it, over any arrays of `t4a-diff` |
//! | its derivative as an operation, to any order | [`Jvp`], [`Vjp`] |
//! | text format | [`AnyOperation::to_text`], [`AnyOperation::from_text`] |
//! | a contraction by integer labels and shapes | [`einsum()`] |
//! | send an operation with its operands to another process and run it there | [`wire`] |
//! | errors of all of them | [`OperationError`] |
#![forbid(unsafe_code)]

// derivative   Jvp, Vjp: derivatives as operations
//   erased     type-erased arrays
// einsum       contractions by integer labels
// text         operations as versioned text
// wire         binary format; operations on tensors of any dtype

mod derivative;
mod einsum;
mod text;
pub mod wire;

use std::any::Any;
use std::fmt;

use serde::{Deserialize, Serialize};
use t4a_algebra::message::long;
use t4a_diff::array::Kernel as DeviceKernel;
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Keep, Kind, Meta, OnBatch, Operation, Outcome, Pairs, Reverse,
    Value,
};
use t4a_einsum::{Contraction, EinsumError, OptimalAssignments};
use t4a_linalg::{Linalg, LinalgError};
use t4a_nn::{Attention, CrossEntropy, LayerNorm, LogSoftmax, RmsNorm, Softmax};
use t4a_scan::{
    AssociativeScan, Cumulative, KalmanFilter, LinearRecurrence, LogPartition, MatrixRecurrence,
    Recurrent, ScanError,
};
use t4a_structured::{
    ByMatrix, Contract, ContractOver, ContractionNetwork, FrobeniusNorm, InnerProduct, Rearrange,
    ScaleBond, StructuredError,
};
use t4a_tensor::TensorError;
use thiserror::Error;

pub use derivative::{Jvp, MAX_ORDER, Vjp};
pub use einsum::{ContractionOptions, Labelled, einsum};
pub use text::FORMAT;

/// Errors of operations.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum OperationError {
    /// Error of an operation on dense tensors.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Error of a contraction.
    #[error(transparent)]
    Einsum(#[from] EinsumError),
    /// Error of linear algebra.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// Error of a scan over a monoid.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// Error of structured tensors.
    #[error(transparent)]
    Structured(#[from] StructuredError),
    /// Error of a derivative: [`Jvp`], [`Vjp`].
    #[error("a derivative of {op}: {reason}", reason = long(.reason))]
    Derivative {
        /// Name of the differentiated operation.
        op: &'static str,
        /// Violated requirement.
        reason: String,
    },
    /// Text or words do not encode a valid operation.
    #[error("an operation as data: {}", long(.0))]
    Data(String),
}

impl OperationError {
    /// Converts to the error type of an operation that [`AnyOperation`] holds.
    pub fn into_of<O: Operation>(self) -> O::Error {
        fn find<E: 'static>(error: impl Any) -> Option<E> {
            (Box::new(error) as Box<dyn Any>).downcast().ok().map(|error| *error)
        }
        let own = match self.clone() {
            Self::Tensor(error) => Some(error.into()),
            Self::Einsum(error) => find(error),
            Self::Linalg(error) => find(error),
            Self::Scan(error) => find(error),
            Self::Structured(error) => find(error),
            _ => None,
        };
        own.or_else(|| find(self.clone())).unwrap_or_else(|| TensorError::from(self).into())
    }
}

impl From<OperationError> for TensorError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Tensor(error) => error,
            other => TensorError::value("an operation of the table", other.to_string()),
        }
    }
}

/// Table of operations: variant, type, documentation.
macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident($type:ty),)*) => {
        /// Any operation of the table.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum AnyOperation {
            $($(#[$doc])* $variant($type),)*
        }

        $(impl From<$type> for AnyOperation {
            fn from(op: $type) -> Self {
                Self::$variant(op)
            }
        })*

        impl AnyOperation {
            /// The operation as a variant of this type; `None` for an operation outside of the table.
            pub fn of<O: Operation>(op: &O) -> Option<Self> {
                let op: &dyn Any = op;
                if let Some(op) = op.downcast_ref::<Self>() {
                    return Some(op.clone());
                }
                $(if let Some(op) = op.downcast_ref::<$type>() {
                    return Some(op.clone().into());
                })*
                None
            }
        }

        /// Calls a method of the held operation.
        macro_rules! held {
            ($any:expr, $op:ident => $body:expr) => {
                match $any {
                    $(AnyOperation::$variant($op) => $body,)*
                }
            };
        }
    };
}

operations! {
    /// Softmax `eˣ / Σ eˣ`.
    Softmax(Softmax),
    /// Log-softmax `x − ln Σ eˣ`.
    LogSoftmax(LogSoftmax),
    /// Layer normalisation.
    LayerNorm(LayerNorm),
    /// Root-mean-square normalisation.
    RmsNorm(RmsNorm),
    /// Scaled dot-product attention.
    Attention(Attention),
    /// Cross-entropy of logits and class indices.
    CrossEntropy(CrossEntropy),
    /// Contraction over a semiring.
    Einsum(Contraction),
    /// Contraction of complex numbers.
    ComplexEinsum(Pairs<Contraction>),
    /// Argmax, number of optima or K best values of a contraction.
    OptimalAssignments(OptimalAssignments),
    /// Matrix factorisation or matrix function.
    Linalg(Linalg),
    /// Running sums, products, extrema and log-sum-exp.
    Cumulative(Cumulative),
    /// Linear recurrence `h ← a h + b`.
    LinearRecurrence(LinearRecurrence),
    /// Matrix recurrence `H ← A H + B`.
    MatrixRecurrence(MatrixRecurrence),
    /// Associative scan over a named monoid.
    AssociativeScan(AssociativeScan),
    /// Recurrent layer applied to a sequence.
    Recurrent(Recurrent),
    /// Kalman filter applied to a sequence.
    KalmanFilter(KalmanFilter),
    /// ln Z of linear-chain conditional random fields.
    LogPartition(LogPartition),
    /// Moves blocks of a flat array, with signs.
    Rearrange(Rearrange),
    /// Products of the matrices of two flat arrays.
    Contract(Contract),
    /// [`Contract`] of complex numbers.
    ComplexContract(Pairs<Contract>),
    /// [`Contract`] over another semiring.
    ContractOver(ContractOver),
    /// Sequence of rearrangements and contractions.
    Network(ContractionNetwork),
    /// Linear algebra on each matrix of a flat array.
    ByMatrix(ByMatrix),
    /// Entries times the values of a diagonal tensor on a leg.
    ScaleBond(ScaleBond),
    /// Inner product `Σ x* y`.
    Inner(InnerProduct),
    /// Norm `√Σ |x|²`.
    Norm(FrobeniusNorm),
    /// Results of an operation and their tangents.
    Jvp(Jvp),
    /// Cotangents of operands of an operation.
    Vjp(Vjp),
}

impl fmt::Display for AnyOperation {
    /// Prints the name and the parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyOperation::Einsum(op) => op.fmt(f),
            AnyOperation::Jvp(jvp) => write!(f, "jvp by {:?} of {}", jvp.moving(), jvp.op()),
            AnyOperation::Vjp(vjp) => {
                write!(f, "vjp of {:?} by {:?} of {}", vjp.given(), vjp.wanted(), vjp.op())
            }
            other => held!(other, op => write!(f, "{}: {op:?}", op.name())),
        }
    }
}

impl Operation for AnyOperation {
    type Error = OperationError;

    fn name(&self) -> &'static str {
        held!(self, op => op.name())
    }

    fn kind(&self, operand: usize) -> Kind {
        held!(self, op => op.kind(operand))
    }

    fn arity(&self) -> Option<[usize; 2]> {
        held!(self, op => op.arity())
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, OperationError> {
        held!(self, op => Ok(op.results(inputs)?))
    }

    fn indices(&self, inputs: &[Meta]) -> Vec<Vec<usize>> {
        held!(self, op => op.indices(inputs))
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        held!(self, op => op.keep(tracked))
    }

    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        tracked: &[bool],
    ) -> Result<Outcome<A>, OperationError> {
        held!(self, op => Ok(op.portable(inputs, tracked)?))
    }

    fn forward(
        &self,
        inputs: &[Value<Eager>],
        tracked: &[bool],
    ) -> Result<Outcome<Eager>, OperationError> {
        held!(self, op => Ok(op.forward(inputs, tracked)?))
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, OperationError> {
        held!(self, op => Ok(op.vjp(reverse)?))
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>, OperationError> {
        held!(self, op => Ok(op.fused_vjp(reverse)?))
    }

    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<A>>, OperationError> {
        held!(self, op => Ok(op.jvp(inputs, tracked)?))
    }

    fn fused_jvp(
        &self,
        inputs: &[Value<Dual<Eager>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Eager>>, OperationError> {
        held!(self, op => Ok(op.fused_jvp(inputs, tracked)?))
    }

    fn check_second_order(&self) -> Result<(), OperationError> {
        held!(self, op => Ok(op.check_second_order()?))
    }

    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        held!(self, op => Some(op.on_batch(size, differ)?.map(Self::from)))
    }

    fn is_composite(&self) -> bool {
        held!(self, op => op.is_composite())
    }

    fn kernels(&self, inputs: &[Meta]) -> Vec<DeviceKernel> {
        held!(self, op => op.kernels(inputs))
    }

    fn is_on_host(&self) -> bool {
        held!(self, op => op.is_on_host())
    }
}
