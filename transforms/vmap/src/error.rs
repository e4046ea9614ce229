//! What is found before the mapped function runs, and what its results cannot be.

use std::fmt;

use burn_backend::Shape;
use burn_t4a::ext::tree::TreeError;
use thiserror::Error;

/// What a call of [`vmap`](crate::vmap()) rejects.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VmapError {
    /// A mapped function inside of another one of the same type.
    #[error(
        "vmap inside of another one on the same backend, whose batches could not be told apart: map over the \
         outer one's tensors, Vmap<Vmap<B>>, or before it"
    )]
    Nested,
    /// A tree that is not the one that the function or the caller asks for.
    #[error("vmap: {0}")]
    Tree(#[from] TreeError),
    /// Axes that are no prefix of the tree.
    #[error("{what} {axes} do not fit the tree {structure}")]
    Axes {
        /// `in_axes` or `out_axes`.
        what: &'static str,
        /// As they were given.
        axes: String,
        /// Of inputs or outputs.
        structure: String,
    },
    /// An axis that a leaf does not have.
    #[error("{what}: leaf {leaf} of shape {shape:?} has no axis {axis}")]
    Axis {
        /// `in_axes` or `out_axes`.
        what: &'static str,
        /// The path of the leaf.
        leaf: String,
        /// The axis as it was given.
        axis: isize,
        /// Of the input; of an example of the output.
        shape: Shape,
    },
    /// Inputs with batches of several sizes.
    #[error("batch sizes differ:{}", Listed(*.given, .leaves))]
    Sizes {
        /// The size that was asked for.
        given: Option<usize>,
        /// Every input that is mapped over.
        leaves: Vec<Mapped>,
    },
    /// Nothing to map over.
    #[error("no input is mapped over: in_axes is none for every leaf, and no size is given")]
    Nothing,
    /// A result that is asked for without a batch, and differs between examples.
    #[error(
        "out_axes is none for leaf {leaf}, which differs between examples: name the axis of the batch"
    )]
    Batched {
        /// The path of the leaf.
        leaf: String,
    },
    /// A tensor that differs between examples and outlives the call.
    #[error(
        "the function keeps a tensor that differs between examples, as modules keep running statistics, or \
         parameters that are drawn at their first use: return it as a result, draw parameters before the call, or allow it by keeping()"
    )]
    Keeps,
    /// Chunks of no example.
    #[error("a chunk has at least one example")]
    Chunk,
}

/// A leaf with its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The path of the leaf.
    pub leaf: String,
    /// Its shape.
    pub shape: Shape,
    /// The axis that is mapped over.
    pub axis: usize,
}

impl Mapped {
    /// How many examples the leaf has.
    pub fn size(&self) -> usize {
        self.shape[self.axis]
    }
}

/// One leaf per line.
struct Listed<'a>(Option<usize>, &'a [Mapped]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(size) = self.0 {
            write!(f, "\n  size: {size}")?;
        }
        self.1.iter().try_for_each(|leaf| {
            let Mapped { leaf: path, shape, axis } = leaf;
            write!(f, "\n  {path}: {} along axis {axis} of {shape:?}", leaf.size())
        })
    }
}
