//! Conditional random field as a layer.

use burn_core as burn;
use burn_core::config::Config;
use burn_core::module::{Initializer, Module, Param};
use burn_core::tensor::backend::Backend;
use burn_core::tensor::{Bool, Int, Tensor};
use t4a_tensor::TensorError;

use super::chain::{LinearChain, mask_lengths};
use crate::ext::Result;
use crate::ext::operation::Operations;

/// Configuration of a [`Crf`].
///
/// ```
/// use burn::module::Module;
/// use burn_t4a::models::CrfConfig;
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// let crf = CrfConfig::new(3).with_range(0.01).init::<BurnT4a>(&T4aDevice);
/// assert_eq!(crf.num_params(), 3 * 3 + 3 + 3);
/// ```
#[derive(Config, Debug)]
pub struct CrfConfig {
    /// Number of tags.
    pub tags: usize,
    /// Parameters are drawn uniformly from [−range, range].
    #[config(default = 0.1)]
    pub range: f64,
}

impl CrfConfig {
    /// Creates the layer with random parameters.
    pub fn init<B: Backend>(&self, device: &B::Device) -> Crf<B> {
        let small = Initializer::Uniform { min: -self.range, max: self.range };
        Crf {
            transitions: small.init([self.tags, self.tags], device),
            start: small.init([self.tags], device),
            end: small.init([self.tags], device),
        }
    }
}

/// Linear-chain conditional random field over the tag scores of a network, with learnt scores of transitions, first
/// and last tags.
///
/// ```
/// use burn::backend::Autodiff;
/// use burn::nn::LinearConfig;
/// use burn::optim::{AdamConfig, GradientsParams, Optimizer};
/// use burn::tensor::{Bool, Distribution, Int, Tensor};
/// use burn_t4a::models::{Crf, CrfConfig};
/// use burn_t4a::{BurnT4a, T4aDevice};
///
/// type B = Autodiff<BurnT4a>;
/// // Scores of 3 tags from a network, for two sentences of at most 4 words.
/// let net = LinearConfig::new(5, 3).init::<B>(&T4aDevice);
/// let words = Tensor::<B, 3>::random([2, 4, 5], Distribution::Default, &T4aDevice);
/// let scores = net.forward(words);
/// // Padding follows the words of a sentence; its tags are ignored.
/// let mask = [[true, true, true, true], [true, true, false, false]];
/// let mask = Tensor::<B, 2, Bool>::from_data(mask, &T4aDevice);
/// let tags = Tensor::<B, 2, Int>::from_ints([[0, 1, 2, 1], [2, 0, 0, 0]], &T4aDevice);
///
/// let mut crf = CrfConfig::new(3).init::<B>(&T4aDevice);
/// let loss = |crf: &Crf<B>| {
///     crf.forward(scores.clone().detach(), tags.clone(), Some(mask.clone()))
/// };
/// let (mut optimizer, before) = (AdamConfig::new().init(), loss(&crf)?.into_scalar());
/// for _ in 0..20 {
///     let gradients = GradientsParams::from_grads(loss(&crf)?.backward(), &crf);
///     crf = optimizer.step(0.1, crf, gradients);
/// }
/// assert!(loss(&crf)?.into_scalar() < before);
/// // Prediction: tags of the best sequences.
/// assert_eq!(crf.decode(scores, Some(mask))?.dims(), [2, 4]);
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
    /// Parameters drawn uniformly from [−0.1, 0.1], as from [`CrfConfig`].
    pub fn new(tags: usize, device: &B::Device) -> Self {
        CrfConfig::new(tags).init(device)
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

    /// Loss: mean over the batch of −ln p of the correct tags, shape `[1]`, as the losses of Burn. Shapes: network scores
    /// `[batch, length, tags]`, tags and mask `[batch, length]`. The mask is true at the steps of a sequence, and padding
    /// follows them; without one all sequences have `length` steps.
    ///
    /// Tags and mask are copied to the host: see [`mask_lengths`], [`LinearChain::padded_tags`].
    ///
    /// # Errors
    /// As [`chain`](Self::chain), `mask_lengths` and `padded_tags`; `Tensor` for a mask of another shape and tags out of
    /// range.
    pub fn forward(
        &self,
        scores: Tensor<B, 3>,
        tags: Tensor<B, 2, Int>,
        mask: Option<Tensor<B, 2, Bool>>,
    ) -> Result<Tensor<B, 1>> {
        let chain = self.masked(scores, mask)?;
        let tags = chain.padded_tags(tags)?;
        Ok(chain.log_likelihood(&tags)?.mean().neg())
    }

    /// Prediction: tags of the best sequences, shape `[batch, length]`, 0 at padding. Arguments as in
    /// [`forward`](Self::forward).
    ///
    /// # Errors
    /// As [`chain`](Self::chain) and [`mask_lengths`]; `Tensor` for a mask of another shape.
    pub fn decode(
        &self,
        scores: Tensor<B, 3>,
        mask: Option<Tensor<B, 2, Bool>>,
    ) -> Result<Tensor<B, 2, Int>> {
        Ok(self.masked(scores, mask)?.viterbi()?.0)
    }

    fn masked(
        &self,
        scores: Tensor<B, 3>,
        mask: Option<Tensor<B, 2, Bool>>,
    ) -> Result<LinearChain<B>> {
        let Some(mask) = mask else { return self.chain(scores, None) };
        let (given, required) = (mask.dims(), scores.dims());
        if given[..] != required[..2] {
            let rule = "the mask is [batch, length] of the scores [batch, length, tags]";
            return Err(TensorError::shapes("crf", &given, &required, rule).into());
        }
        self.chain(scores, Some(&mask_lengths(mask)?))
    }
}
