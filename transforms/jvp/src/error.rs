//! What the functions of this crate reject.

use std::fmt;

use burn_backend::{DType, Shape};
use burn_t4a::ext::tree::TreeError;
use thiserror::Error;

/// Result of a transformation.
pub type Result<T, E = JvpError> = std::result::Result<T, E>;

/// A leaf whose tangent does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafMismatch {
    /// Where in the tree, `.0.1` say.
    pub path: String,
    /// Shape and dtype of the primal.
    pub primal: (Shape, DType),
    /// Shape and dtype of the tangent.
    pub tangent: (Shape, DType),
}

/// All of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatches(pub Vec<LeafMismatch>);

impl fmt::Display for Mismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, LeafMismatch { path, primal, tangent }) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            let ((a, t), (b, u)) = (primal, tangent);
            write!(f, "{separator}leaf {path} is {a:?} {t:?}, its tangent {b:?} {u:?}")?;
        }
        Ok(())
    }
}

/// A rejected derivative: what was required and what was given.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum JvpError {
    /// A derivative inside of another one of the same type.
    #[error(
        "jvp inside of another one on the same backend, whose tensors could not be told apart: take it on the \
         outer one's backend, Jvp<Jvp<B>>, or before it"
    )]
    Nested,
    /// Tangents that branch in another way than primals.
    #[error("jvp: tangents have the structure {tangents}, primals have {primals}")]
    Structure {
        /// Of the primals.
        primals: String,
        /// Of the tangents.
        tangents: String,
    },
    /// Tangents of other shapes or dtypes than primals: every such leaf.
    #[error("jvp: {0}")]
    Leaves(Mismatches),
    /// A tree with integers or booleans, or of another type than is asked for.
    #[error("jvp: {0}")]
    Tree(#[from] TreeError),
}
