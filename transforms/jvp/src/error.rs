//! Errors of forward-mode differentiation.

use std::fmt;

use burn_backend::{DType, Shape};
use burn_t4a::ext::tree::TreeError;
use t4a_algebra::message::{differing, first};
use thiserror::Error;

/// Result of a transformation.
pub type Result<T, E = JvpError> = std::result::Result<T, E>;

/// A leaf whose tangent differs from its primal in shape or dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafMismatch {
    /// Path in the tree, for example `.0.1`.
    pub path: String,
    /// Shape and dtype of the primal.
    pub primal: (Shape, DType),
    /// Shape and dtype of the tangent.
    pub tangent: (Shape, DType),
}

/// All mismatched leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatches(pub Vec<LeafMismatch>);

impl LeafMismatch {
    /// The mismatch in words; `derivative` is the name of its second tensor: tangent, cotangent.
    pub fn text(&self, derivative: &str) -> String {
        let Self { path, primal: (a, t), tangent: (b, u) } = self;
        format!("leaf {path} is {a:?} {t:?}, its {derivative} {b:?} {u:?}")
    }
}

impl fmt::Display for Mismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&first(&self.0, "; ", |leaf| leaf.text("tangent")))
    }
}

/// Error of a derivative: the requirement and the given arguments.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum JvpError {
    /// A derivative was taken inside another one of the same type.
    #[error(
        "jvp inside of another one on the same backend, whose tensors could not be told apart: take it on the \
         outer one's backend, Jvp<Jvp<B>>, or before it"
    )]
    Nested,
    /// The tree structures of tangents and primals differ.
    #[error(
        "jvp: tangents have the structure {tangents}, primals have {primals}",
        tangents = differing(.tangents, .primals), primals = differing(.primals, .tangents)
    )]
    Structure {
        /// Structure of the primals.
        primals: String,
        /// Structure of the tangents.
        tangents: String,
    },
    /// Shapes or dtypes of tangents and primals differ; lists every such leaf.
    #[error("jvp: {0}")]
    Leaves(Mismatches),
    /// The tree contains integers or booleans, or has another type than required.
    #[error("jvp: {0}")]
    Tree(#[from] TreeError),
}
