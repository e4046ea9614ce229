//! Values that a tape keeps of a function in a checkpoint.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::ext::line::{ProductCounts, SavedProducts};

/// Values of a checkpointed function that a tape keeps besides its arguments: the policies of `jax.checkpoint`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Saveable {
    /// None: the reverse pass runs the whole function again. `nothing_saveable`.
    #[default]
    Nothing,
    /// Results of products: matrix products, linear layers, convolutions, and contractions of two tensors over (+, ×). The
    /// reverse pass runs everything else again. `dots_saveable`.
    Products,
    /// All: the function is recorded and does not run again. `everything_saveable`.
    Everything,
}

/// Options of [`checkpoint_with`](super::checkpoint_with).
#[derive(Clone, Debug, Default)]
pub struct CheckpointOptions {
    pub(crate) saveable: Saveable,
    counts: Arc<ProductCounts>,
}

impl CheckpointOptions {
    /// Sets the values that a tape keeps.
    #[must_use]
    pub fn save(mut self, saveable: Saveable) -> Self {
        self.saveable = saveable;
        self
    }

    /// Numbers of products so far: those that were computed, and those whose result was kept. Counted under
    /// [`Saveable::Products`], on the engine, in all functions with these options or a clone of them.
    pub fn products(&self) -> [usize; 2] {
        [self.counts.computed.load(Relaxed), self.counts.reused.load(Relaxed)]
    }

    /// An empty store of products.
    pub(crate) fn saved(&self) -> SavedProducts {
        SavedProducts::new(self.counts.clone())
    }
}
