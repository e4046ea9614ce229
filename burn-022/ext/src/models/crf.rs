//! Conditional random field as a layer.

use burn_core as burn;
use burn_core::module::{Module, Param};
use burn_tensor::{Device, Distribution, Tensor};

use super::chain::LinearChain;
use crate::error::Result;

/// Linear-chain conditional random field over the tag scores of a network, with learnt scores of transitions, first
/// and last tags.
///
/// ```
/// use burn::nn::LinearConfig;
/// use burn::optim::{AdamConfig, GradientsParams};
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_t4a_022_ext::models::Crf;
///
/// let device = Device::flex().autodiff();
/// // Scores of 3 tags from a network, for two sentences of at most 4 words, and the correct tags.
/// let net = LinearConfig::new(5, 3).init(&device);
/// let words = Tensor::<3>::random([2, 4, 5], Distribution::Default, &device);
/// let scores = net.forward(words).detach();
/// let tags = [vec![0, 1, 2, 1], vec![2, 0]];
///
/// let mut crf = Crf::new(3, &device);
/// let loss = |crf: &Crf| -> burn_t4a_022_ext::Result<Tensor<1>> {
///     let chain = crf.chain(scores.clone(), Some(&[4, 2]))?;
///     Ok(chain.log_likelihood(&tags)?.neg().sum())
/// };
/// let (mut optimizer, before) = (AdamConfig::new().init(), loss(&crf)?.into_scalar::<f32>());
/// for _ in 0..20 {
///     let gradients = GradientsParams::from_grads(loss(&crf)?.backward(), &crf);
///     crf = optimizer.step(0.1, crf, gradients);
/// }
/// assert!(loss(&crf)?.into_scalar::<f32>() < before);
/// // Prediction: tags of the best sequences.
/// let (best, _) = crf.chain(scores.clone(), Some(&[4, 2]))?.viterbi()?;
/// assert_eq!(best.dims(), [2, 4]);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
#[derive(Module, Debug)]
pub struct Crf {
    /// Scores of transitions, shape `[tags (from), tags (to)]`.
    pub transitions: Param<Tensor<2>>,
    /// Scores of the first tag, shape `[tags]`.
    pub start: Param<Tensor<1>>,
    /// Scores of the first tag, shape `[tags]`.
    pub end: Param<Tensor<1>>,
}

impl Crf {
    /// Draws parameters uniformly from [−0.1, 0.1].
    pub fn new(tags: usize, device: &Device) -> Self {
        let small = Distribution::Uniform(-0.1, 0.1);
        Self {
            transitions: Param::from_tensor(Tensor::random([tags, tags], small, device)),
            start: Param::from_tensor(Tensor::random([tags], small, device)),
            end: Param::from_tensor(Tensor::random([tags], small, device)),
        }
    }

    /// Builds chains from network scores `[batch, length, tags]`, for sequences of these lengths (by default
    /// `length`). Train on its log-likelihood; its best sequences are the prediction.
    ///
    /// # Errors
    /// As [`LinearChain::new`].
    pub fn chain(&self, scores: Tensor<3>, lengths: Option<&[usize]>) -> Result<LinearChain> {
        LinearChain::new(scores, self.transitions.val(), lengths)?
            .start(self.start.val())?
            .end(self.end.val())
    }
}
