//! A conditional random field as a layer.

use burn_core as burn;
use burn_core::module::{Initializer, Module, Param};
use burn_core::tensor::Tensor;
use burn_core::tensor::backend::Backend;

use super::chain::LinearChain;
use crate::ext::Result;
use crate::ext::operation::Operations;

/// A linear-chain conditional random field over the scores of a net: learnt scores of transitions, first and
/// last tags.
#[derive(Module, Debug)]
pub struct Crf<B: Backend> {
    /// `[tags (from), tags (to)]`.
    pub transitions: Param<Tensor<B, 2>>,
    /// `[tags]`.
    pub start: Param<Tensor<B, 1>>,
    /// `[tags]`.
    pub end: Param<Tensor<B, 1>>,
}

impl<B: Backend> Crf<B> {
    /// Parameters drawn from ±0.1.
    pub fn new(tags: usize, device: &B::Device) -> Self {
        let small = Initializer::Uniform { min: -0.1, max: 0.1 };
        Self {
            transitions: small.init([tags, tags], device),
            start: small.init([tags], device),
            end: small.init([tags], device),
        }
    }
}

impl<B: Operations> Crf<B> {
    /// The chain over scores `[batch, length, tags]` of a net, for sequences of these lengths (all by default):
    /// its log-likelihood is what is trained, its best sequences are the prediction.
    ///
    /// # Errors
    /// As [`LinearChain::new`].
    pub fn chain(&self, scores: Tensor<B, 3>, lengths: Option<&[usize]>) -> Result<LinearChain<B>> {
        LinearChain::new(scores, self.transitions.val(), lengths)?
            .start(self.start.val())?
            .end(self.end.val())
    }
}
