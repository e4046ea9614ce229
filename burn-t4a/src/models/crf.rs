//! Conditional random field as a layer.

use burn_core as burn;
use burn_core::module::{Initializer, Module, Param};
use burn_core::tensor::Tensor;
use burn_core::tensor::backend::Backend;

use super::chain::LinearChain;
use crate::ext::Result;
use crate::ext::operation::Operations;

/// Linear-chain conditional random field over the tag scores of a network, with learnt scores of transitions, first
/// and last tags.
///
/// ```
/// use burn::backend::Autodiff;
/// use burn::nn::LinearConfig;
/// use burn::optim::{AdamConfig, GradientsParams, Optimizer};
/// use burn::tensor::{Distribution, Tensor};
/// use burn_t4a::models::Crf;
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// type B = Autodiff<BurnT4a>;
/// // Scores of 3 tags from a network, for two sentences of at most 4 words, and the correct tags.
/// let net = LinearConfig::new(5, 3).init::<B>(&T4aDevice);
/// let words = Tensor::<B, 3>::random([2, 4, 5], Distribution::Default, &T4aDevice);
/// let scores = net.forward(words);
/// let tags = [vec![0, 1, 2, 1], vec![2, 0]];
///
/// let mut crf = Crf::<B>::new(3, &T4aDevice);
/// let loss = |crf: &Crf<B>| -> burn_t4a::ext::Result<_> {
///     let chain = crf.chain(scores.clone().detach(), Some(&[4, 2]))?;
///     Ok(chain.log_likelihood(&tags)?.neg().sum())
/// };
/// let (mut optimizer, before) = (AdamConfig::new().init(), loss(&crf)?.into_scalar());
/// for _ in 0..20 {
///     let gradients = GradientsParams::from_grads(loss(&crf)?.backward(), &crf);
///     crf = optimizer.step(0.1, crf, gradients);
/// }
/// assert!(loss(&crf)?.into_scalar() < before);
/// // Prediction: tags of the best sequences.
/// let (best, _) = crf.chain(scores, Some(&[4, 2]))?.viterbi()?;
/// assert_eq!(best.dims(), [2, 4]);
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
#[derive(Module, Debug)]
pub struct Crf<B: Backend> {
    /// Scores of transitions, shape `[tags (from), tags (to)]`.
    pub transitions: Param<Tensor<B, 2>>,
    /// Scores of the first tag, shape `[tags]`.
    pub start: Param<Tensor<B, 1>>,
    /// Scores of the last tag, shape `[tags]`.
    pub end: Param<Tensor<B, 1>>,
}

impl<B: Backend> Crf<B> {
    /// Draws parameters uniformly from [−0.1, 0.1].
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
    /// Builds chains from network scores `[batch, length, tags]`, for sequences of these lengths (by default
    /// `length`). Train on its log-likelihood; its best sequences are the prediction.
    ///
    /// # Errors
    /// As [`LinearChain::new`].
    pub fn chain(&self, scores: Tensor<B, 3>, lengths: Option<&[usize]>) -> Result<LinearChain<B>> {
        LinearChain::new(scores, self.transitions.val(), lengths)?
            .start(self.start.val())?
            .end(self.end.val())
    }
}
