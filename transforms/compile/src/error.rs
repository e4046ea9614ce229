//! Errors of compilation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_t4a::ext::tree::TreeError;
use t4a_algebra::message::{conflicting, cut, first, long, short};

/// Error of compiling or calling a function.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The function reads elements of a tensor that depends on its inputs, which a recording cannot represent.
    #[error(
        "compile: the function reads data by {operation} in {place}, after {recorded} recorded operations \
         (the last: {last}); without `fullgraph` such calls run eagerly",
        place = cut(.place, 200)
    )]
    ReadsData {
        /// Operation that reads the data.
        operation: &'static str,
        /// Function that contains the read, with file and line if debug information is available.
        place: String,
        /// Number of operations recorded before the read.
        recorded: usize,
        /// Name of the last recorded operation.
        last: &'static str,
    },
    /// A tensor of another call or of another recording was used.
    #[error(
        "compile: {operation} uses a tensor that was recorded in another call: return it from the function \
         and pass it as an input"
    )]
    Foreign {
        /// Operation that uses the tensor.
        operation: &'static str,
    },
    /// The function captures a tensor that is tracked by an autodiff tape of the inner backend.
    #[error(
        "compile: {operation} uses a captured tensor that requires a gradient: pass it as an input"
    )]
    CapturesTracked {
        /// Operation that uses the tensor.
        operation: &'static str,
    },
    /// A tensor computed by the function outlives the call.
    #[error(
        "compile: the function keeps a tensor that it has computed, which later calls would not exchange: parameters \
         that are drawn at their first use (draw them before: \
         `lift` a module of the backend below), running statistics, a cache (return it from the function and pass it \
         as an input); without `fullgraph` such functions run eagerly"
    )]
    Keeps,
    /// The tree structure does not match the input or output type of the function.
    #[error("compile: {0}")]
    Tree(#[from] TreeError),
    /// A named axis does not exist.
    #[error(
        "compile: axis {axis} of leaf {leaf} is named `{name}`, but {given} (leaves are counted in the order \
         of the tree)",
        name = short(.name), given = short(.given)
    )]
    Axis {
        /// Name of the axis.
        name: String,
        /// Index of the leaf in tree order.
        leaf: usize,
        /// Index of the axis.
        axis: usize,
        /// Actual number of leaves, or actual shape of the leaf.
        given: String,
    },
    /// Axes of equal name have different sizes.
    #[error(
        "compile: axes named `{name}` have different sizes: {}",
        list(.sizes), name = short(.name)
    )]
    Sizes {
        /// Name of the axes.
        name: String,
        /// Leaf path, axis and size of each axis of that name.
        sizes: Vec<(String, usize, usize)>,
    },
    /// A program cannot be serialised.
    #[error("compile: a program cannot be saved, because of {what}", what = long(.what))]
    Save {
        /// Item that has no serialised form.
        what: String,
    },
    /// The bytes do not contain programs of this version, backend and function.
    #[error("compile: saved programs cannot be loaded: {what}", what = long(.what))]
    Load {
        /// Description of the defect.
        what: String,
    },
    /// An operation of the program failed on these values.
    #[error("compile: {operation}: {message}", message = long(.message))]
    Operation {
        /// Name of the operation.
        operation: &'static str,
        /// Error message of the operation.
        message: String,
    },
}

/// Result of compiling or calling a function.
pub type Result<T, E = CompileError> = std::result::Result<T, E>;

/// Result of `run`, with a panic converted to an error.
pub(crate) fn caught<T>(operation: &'static str, run: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        CompileError::Operation { operation, message: text.unwrap_or("a panic").to_owned() }
    })
}

fn list(sizes: &[(String, usize, usize)]) -> String {
    first(&conflicting(sizes, |&(_, _, size)| size), ", ", |(leaf, axis, size)| {
        format!("{size} along axis {axis} of leaf {leaf}")
    })
}
