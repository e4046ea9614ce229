//! Errors of functions with user-defined derivative rules.

use burn_backend::{DType, Shape};
use t4a_algebra::message::{cut, differing, first, short};
#[cfg(burn_line = "0.22")]
use t4a_tensor::TensorError;
use thiserror::Error;

use crate::ext::tree::TreeError;

/// Result of a function with a user-defined rule.
pub type Result<T, E = CustomError> = std::result::Result<T, E>;

/// Error of a rule: the required tree and the one that a method of the rule has returned.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CustomError {
    /// A tree of another structure, kind or rank than required.
    #[error("{rule}: {what}: {error}", rule = short(.rule), error = cut(.error, 300))]
    Tree {
        /// Type of the rule.
        rule: &'static str,
        /// Role of the tree.
        what: &'static str,
        /// The mismatch.
        error: TreeError,
    },
    /// Two trees that should be alike have different structures.
    #[error(
        "{rule}: {what} have the structure {given}, required is {required}",
        rule = short(.rule), given = differing(.given, .required), required = differing(.required, .given)
    )]
    Structure {
        /// Type of the rule.
        rule: &'static str,
        /// Role of the tree.
        what: &'static str,
        /// Structure of the tree.
        given: String,
        /// Structure of its counterpart.
        required: String,
    },
    /// Tensors of another shape or dtype than their counterparts.
    #[error("{rule}: {what} do not fit: {}", list(.tensors), rule = cut(.rule, 64))]
    Tensors {
        /// Type of the rule.
        rule: &'static str,
        /// Role of the tree.
        what: &'static str,
        /// Every tensor that differs.
        tensors: Vec<TensorMismatch>,
    },
    /// The tangent of a [`CustomVjp`](super::CustomVjp) was requested inside a reverse pass of Burn 0.21, where no other reverse pass can run.
    #[error(
        "{rule}: the tangent of a function with a rule for cotangents needs a reverse pass, and one is active on this \
         thread: give the function a CustomJvp rule",
        rule = short(.rule)
    )]
    #[cfg(burn_line = "0.21")]
    InsidePass {
        /// Type of the rule.
        rule: &'static str,
    },
    /// A tracked argument is on a backend whose tape cannot record a rule, or arguments and results are on several backends.
    #[error("{rule}: {error}", rule = short(.rule), error = cut(.error, 300))]
    #[cfg(burn_line = "0.22")]
    Backend {
        /// Type of the rule.
        rule: &'static str,
        /// The reason.
        error: TensorError,
    },
}

/// A tensor that a rule has returned with a wrong shape or dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMismatch {
    /// Path of the tensor in its tree.
    pub path: String,
    /// Its shape and dtype.
    pub given: (Shape, DType),
    /// The required shape and dtype.
    pub required: (Shape, DType),
}

fn list(tensors: &[TensorMismatch]) -> String {
    first(tensors, ", ", |TensorMismatch { path, given, required }| {
        let [given, required] =
            [given, required].map(|(shape, dtype)| format!("{}{:?}", dtype.name(), shape.to_vec()));
        format!("{path} is {given} instead of {required}")
    })
}
