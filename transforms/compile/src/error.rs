//! What compilation rejects.

use burn_backend::Shape;

/// Why a compiled function could not be called.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The function reads elements of a tensor that depends on its inputs, which a recording cannot do.
    #[error(
        "compile: the function reads data by {operation}, after {recorded} recorded operations (the last: \
         {last}); without `fullgraph` such calls run eagerly"
    )]
    ReadsData {
        /// The operation that reads.
        operation: &'static str,
        /// How many operations were recorded before it.
        recorded: usize,
        /// The last of them.
        last: &'static str,
    },
    /// A tensor of another call or another recording was used.
    #[error(
        "compile: {operation} uses a tensor that was recorded in another call: return it from the function \
         and pass it as an input"
    )]
    Foreign {
        /// The operation that used it.
        operation: &'static str,
    },
    /// The function captures a tensor that a tape of the inner backend follows.
    #[error(
        "compile: {operation} uses a captured tensor that requires a gradient: pass it as an input"
    )]
    CapturesTracked {
        /// The operation that used it.
        operation: &'static str,
    },
    /// A tree has another structure than the function's input or output.
    #[error("compile: the tree {required} is required, given {given}")]
    Structure {
        /// What was required.
        required: String,
        /// What was given.
        given: String,
    },
    /// A leaf has another rank or kind than its type.
    #[error("compile: a leaf of shape {shape:?} was given where {required} is required")]
    Leaf {
        /// Its shape.
        shape: Shape,
        /// What was required.
        required: String,
    },
    /// An operation of the program failed on these values.
    #[error("compile: {operation}: {message}")]
    Operation {
        /// The operation.
        operation: &'static str,
        /// Its error.
        message: String,
    },
}

/// The result of a call.
pub type Result<T, E = CompileError> = std::result::Result<T, E>;
