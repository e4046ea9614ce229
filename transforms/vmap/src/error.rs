//! Errors of `vmap`: invalid arguments and invalid results.

use burn_backend::Shape;
use burn_t4a::ext::tree::TreeError;
use t4a_algebra::message::{conflicting, first, short};
use thiserror::Error;

/// Error of a call of [`vmap`](crate::vmap()).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VmapError {
    /// A mapped function was called inside another one of the same type.
    #[error(
        "vmap inside of another one on the same backend, whose batches could not be told apart: map over the \
         outer one's tensors, Vmap<Vmap<B>>, or before it"
    )]
    Nested,
    /// The tree structure does not match the type of the function or of the caller.
    #[error("vmap: {0}")]
    Tree(#[from] TreeError),
    /// The axes are not a prefix of the tree.
    #[error(
        "{what} {axes} do not fit the tree {structure}",
        axes = short(.axes), structure = short(.structure)
    )]
    Axes {
        /// `in_axes` or `out_axes`.
        what: &'static str,
        /// The given axes.
        axes: String,
        /// Structure of the inputs or outputs.
        structure: String,
    },
    /// A leaf does not have the mapped axis.
    #[error(
        "{what}: leaf {leaf} of shape {shape:?} has no axis {axis}",
        leaf = short(.leaf), shape = short(.shape)
    )]
    Axis {
        /// `in_axes` or `out_axes`.
        what: &'static str,
        /// Path of the leaf.
        leaf: String,
        /// The given axis.
        axis: isize,
        /// Shape of the input, or of one example of the output.
        shape: Shape,
    },
    /// The batch sizes of the inputs differ.
    #[error("batch sizes differ:{}", sizes(*.given, .leaves))]
    Sizes {
        /// Size set by the caller.
        given: Option<usize>,
        /// All mapped inputs.
        leaves: Vec<Mapped>,
    },
    /// No input is mapped and no batch size is set.
    #[error("no input is mapped over: in_axes is none for every leaf, and no size is given")]
    Nothing,
    /// A result requested without a batch axis differs between examples.
    #[error(
        "out_axes is none for leaf {leaf}, which differs between examples: name the axis of the batch",
        leaf = short(.leaf)
    )]
    Batched {
        /// Path of the leaf.
        leaf: String,
    },
    /// A tensor that differs between examples outlives the call.
    #[error(
        "the function keeps a tensor that differs between examples, as modules keep running statistics, or \
         parameters that are drawn at their first use: return it as a result, draw parameters before the call, or allow it by keeping()"
    )]
    Keeps,
    /// The chunk size is 0.
    #[error("a chunk has at least one example")]
    Chunk,
    /// Examples cannot exchange values here.
    #[error("a collective operation: the call of vmap {problem}")]
    Collective {
        /// The reason.
        problem: &'static str,
    },
    /// The sources of a shuffle are not one example for each example.
    #[error("pshuffle: {size} numbers below {size} are required, {}", wrong_source(.sources, *.size))]
    Sources {
        /// Given sources.
        sources: Vec<usize>,
        /// Number of examples.
        size: usize,
    },
    /// A result was requested with a wrong rank.
    #[error("all_gather: the result has rank {required}, asked for with rank {given}")]
    Rank {
        /// Rank of the result.
        required: usize,
        /// Requested rank.
        given: usize,
    },
}

/// A mapped leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Path of the leaf.
    pub leaf: String,
    /// Shape of the leaf, including the batch axis.
    pub shape: Shape,
    /// The mapped axis.
    pub axis: usize,
}

impl Mapped {
    /// Number of examples of the leaf.
    pub fn size(&self) -> usize {
        self.shape[self.axis]
    }
}

/// The required size, a leaf that contradicts it or another leaf, and the number of the other leaves, one per line.
fn sizes(given: Option<usize>, leaves: &[Mapped]) -> String {
    let wrong = given.and_then(|size| leaves.iter().find(|leaf| leaf.size() != size));
    let size = given.map_or_else(String::new, |size| format!("\n  size: {size}"));
    let shown = match wrong {
        Some(leaf) => vec![leaf],
        None => conflicting(leaves, Mapped::size),
    };
    let text = |leaf: &&Mapped| {
        let Mapped { leaf: path, shape, axis } = leaf;
        format!("{path}: {} along axis {axis} of {shape:?}", leaf.size())
    };
    format!("{size}\n  {}", first(&shown, "\n  ", text))
}

/// The number of sources if it is wrong, else the first source that is.
fn wrong_source(sources: &[usize], size: usize) -> String {
    match sources.iter().enumerate().find(|&(_, &source)| source >= size) {
        Some((place, source)) if sources.len() == size => format!("number {place} is {source}"),
        _ => format!("given {}", sources.len()),
    }
}
