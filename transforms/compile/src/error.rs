//! What compilation rejects.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn_t4a::ext::tree::TreeError;

/// Why a compiled function could not be called.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The function reads elements of a tensor that depends on its inputs, which a recording cannot do.
    #[error(
        "compile: the function reads data by {operation} in {place}, after {recorded} recorded operations \
         (the last: {last}); without `fullgraph` such calls run eagerly"
    )]
    ReadsData {
        /// The operation that reads.
        operation: &'static str,
        /// The function that does it, with file and line where there is debug information.
        place: String,
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
    /// A tensor that the function has computed outlives the call.
    #[error(
        "compile: the function keeps a tensor that it has computed, which later calls would not exchange: parameters \
         that are drawn at their first use (draw them before: \
         `lift` a module of the backend below), running statistics, a cache (return it from the function and pass it \
         as an input); without `fullgraph` such functions run eagerly"
    )]
    Keeps,
    /// A tree is another one than the function's input or output.
    #[error("compile: {0}")]
    Tree(#[from] TreeError),
    /// An axis that was named is not there.
    #[error(
        "compile: axis {axis} of leaf {leaf} is named `{name}`, but {given} (leaves are counted in the order \
         of the tree)"
    )]
    Axis {
        /// The name.
        name: String,
        /// Of which leaf.
        leaf: usize,
        /// The axis.
        axis: usize,
        /// What there is.
        given: String,
    },
    /// Axes of one name have several sizes.
    #[error("compile: axes named `{name}` have different sizes: {}", list(.sizes))]
    Sizes {
        /// The name.
        name: String,
        /// Leaf, axis and size of each.
        sizes: Vec<(String, usize, usize)>,
    },
    /// A program that cannot be saved.
    #[error("compile: a program cannot be saved, because of {what}")]
    Save {
        /// What cannot be written.
        what: String,
    },
    /// Bytes that are no programs of this version, backend and function.
    #[error("compile: saved programs cannot be loaded: {what}")]
    Load {
        /// What is wrong with them.
        what: String,
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

/// The result of `run`, or its panic as an error: for programs that were not recorded in this process.
pub(crate) fn caught<T>(operation: &'static str, run: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        CompileError::Operation { operation, message: text.unwrap_or("a panic").to_owned() }
    })
}

fn list(sizes: &[(String, usize, usize)]) -> String {
    let one = |(leaf, axis, size): &(String, usize, usize)| {
        format!("{size} along axis {axis} of leaf {leaf}")
    };
    sizes.iter().map(one).collect::<Vec<_>>().join(", ")
}
