//! Linear chains of tags: conditional random fields, hidden Markov models.

use burn_dispatch::Dispatch;
use burn_tensor::{Bool, Int, Tensor};
use t4a_einsum::agree;
pub use t4a_scan::ScoredTags;

use crate::error::Result;
use crate::primitive::Floats;
use crate::user::tensor;

/// Length of each sequence, from a mask `[batch, length]` that is true at the steps of a sequence; padding follows it. For
/// functions with an argument `lengths`.
///
/// The mask is copied to the host, so that a compiled function cannot contain this call.
///
/// # Errors
/// `Tensor` for a sequence without steps, and for a step after padding, with the first place.
///
/// ```
/// use burn::tensor::{Bool, Device, Tensor};
/// use burn_t4a_022_ext::models::mask_lengths;
///
/// let words = [[true, true, true], [true, false, false]];
/// let mask = Tensor::<2, Bool>::from_data(words, &Device::flex());
/// assert_eq!(mask_lengths(mask)?, [3, 1]);
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
pub fn mask_lengths(mask: Tensor<2, Bool>) -> Result<Vec<usize>> {
    let [_, length] = mask.dims();
    let mask: Vec<bool> = mask.into_data().iter::<bool>().collect();
    Ok(t4a_scan::mask_lengths(&mask, length)?)
}

/// A batch of linear chains. A tag sequence `y` has the score
/// `Σ_t emissions[b, t, y_t] + Σ_t transitions[y_{t−1}, y_t]` and the probability `exp(score − ln Z)`.
///
/// Scores of first and last tags are added to the emissions ([`start`](Self::start), [`end`](Self::end)). A
/// transition of −∞ is forbidden. For a hidden Markov model scores are log-probabilities.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::models::LinearChain;
///
/// let device = Device::flex().autodiff();
/// // One sequence of length two with two tags.
/// let emissions = Tensor::<3>::from_floats([[[1.0, 0.0], [0.0, 0.5]]], &device).require_grad();
/// let transitions = Tensor::<2>::from_floats([[0.0, 0.0], [0.0, 0.0]], &device);
/// let chain = LinearChain::new(emissions.clone(), transitions, None)?;
/// let (tags, score) = chain.viterbi()?;
/// assert_eq!(tags.into_data().iter::<i64>().collect::<Vec<_>>(), [0, 1]);
/// score.into_data().assert_eq(&[1.5f32].into(), false);
/// // The loss of a CRF and its gradient.
/// let gradients = chain.log_likelihood(&[vec![0, 1]])?.neg().sum().backward();
/// assert!(emissions.grad(&gradients).is_some());
/// # Ok::<(), burn_t4a_022_ext::ExtError>(())
/// ```
///
/// Cost of ln Z, marginals and Viterbi: `batch · length · tags²` multiply-adds in `length` sequential operations.
#[derive(Clone, Debug)]
pub struct LinearChain(t4a_scan::LinearChain<Floats<Dispatch>>);

impl LinearChain {
    /// Creates chains from emissions `[batch, length, tags]`, transitions `[tags (from), tags (to)]`, and the
    /// length of each sequence, by default `length`. Emissions after the end of a sequence are ignored.
    ///
    /// # Errors
    /// `Tensor` for sizes that disagree and for lengths that are 0 or larger than `length`; `Mismatch` for dtypes.
    pub fn new(
        emissions: Tensor<3>,
        transitions: Tensor<2>,
        lengths: Option<&[usize]>,
    ) -> Result<Self> {
        agree("linear_chain", &[(emissions.dtype(), (), ()), (transitions.dtype(), (), ())])?;
        let (emissions, transitions) =
            (Floats::<Dispatch>::from(emissions), Floats::<Dispatch>::from(transitions));
        Ok(Self(t4a_scan::LinearChain::new(emissions, transitions, lengths)?))
    }

    /// Adds scores `[tags]` of the first tag.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_t4a_022_ext::models::LinearChain;
    ///
    /// // One step: the scores of first and last tag add up.
    /// let emissions = Tensor::<3>::from_floats([[[1.0, 0.0]]], &Device::flex());
    /// let transitions = Tensor::<2>::zeros([2, 2], &Device::flex());
    /// let chain = LinearChain::new(emissions, transitions, None)?;
    /// let scores = |x: [f32; 2]| Tensor::<1>::from_floats(x, &Device::flex());
    /// let chain = chain.start(scores([0.5, 0.0]))?.end(scores([0.25, 4.0]))?;
    /// chain.score(&[vec![0]])?.into_data().assert_eq(&[1.75f32].into(), false);
    /// chain.viterbi()?.1.into_data().assert_eq(&[4.0f32].into(), false);
    /// # Ok::<(), burn_t4a_022_ext::ExtError>(())
    /// ```
    pub fn start(self, scores: Tensor<1>) -> Result<Self> {
        Ok(Self(self.0.start(&Floats::<Dispatch>::from(scores))?))
    }

    /// Adds scores `[tags]` of the last tag.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn end(self, scores: Tensor<1>) -> Result<Self> {
        Ok(Self(self.0.end(&Floats::<Dispatch>::from(scores))?))
    }

    /// Log-partition function ln Σ exp(score) over all tag sequences, shape `[batch]`.
    ///
    /// # Errors
    /// Errors of the contractions.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_t4a_022_ext::models::LinearChain;
    ///
    /// // Two tags, three steps, all scores 0: eight sequences of weight 1.
    /// let emissions = Tensor::<3>::zeros([1, 3, 2], &Device::flex());
    /// let transitions = Tensor::<2>::zeros([2, 2], &Device::flex());
    /// let log_z = LinearChain::new(emissions, transitions, None)?.log_partition()?;
    /// log_z.into_data().assert_approx_eq::<f32>(&[8f32.ln()].into(), Default::default());
    /// # Ok::<(), burn_t4a_022_ext::ExtError>(())
    /// ```
    pub fn log_partition(&self) -> Result<Tensor<1>> {
        Ok(tensor(self.0.log_partition()?))
    }

    /// Scores of given sequences, shape `[batch]`; tags after the end of a sequence may be left out.
    ///
    /// # Errors
    /// `Tensor` if the number of sequences differs from the batch, a sequence is too short, or a tag is out of
    /// range.
    pub fn score(&self, tags: &[Vec<usize>]) -> Result<Tensor<1>> {
        Ok(tensor(self.0.score(tags)?))
    }

    /// ln p of given sequences, shape `[batch]`: the negative loss of a conditional random field.
    ///
    /// # Errors
    /// As [`score`](Self::score).
    pub fn log_likelihood(&self, tags: &[Vec<usize>]) -> Result<Tensor<1>> {
        Ok(tensor(self.0.log_likelihood(tags)?))
    }

    /// Tags of each sequence, from a tensor `[batch, length]`, for [`score`](Self::score) and
    /// [`log_likelihood`](Self::log_likelihood). Elements after the end of a sequence are ignored.
    ///
    /// The tags are copied to the host, so that a compiled function cannot contain this call.
    ///
    /// # Errors
    /// `Tensor` for a tensor of another shape, and for a negative tag, with the first place.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_t4a_022_ext::models::LinearChain;
    ///
    /// // The second sequence has one step; the tag of its padding is ignored.
    /// let emissions = Tensor::<3>::zeros([2, 2, 2], &Device::flex());
    /// let transitions = Tensor::<2>::zeros([2, 2], &Device::flex());
    /// let chain = LinearChain::new(emissions, transitions, Some(&[2, 1]))?;
    /// let tags = Tensor::<2, Int>::from_ints([[0, 1], [1, -100]], &Device::flex());
    /// assert_eq!(chain.padded_tags(tags)?, [vec![0, 1], vec![1]]);
    /// # Ok::<(), burn_t4a_022_ext::ExtError>(())
    /// ```
    pub fn padded_tags(&self, tags: Tensor<2, Int>) -> Result<Vec<Vec<usize>>> {
        let shape = tags.dims();
        let tags: Vec<i64> = tags.into_data().iter::<i64>().collect();
        Ok(self.0.padded_tags(&tags, shape)?)
    }

    /// Probability of each tag at each step, shape `[batch, length, tags]`; 0 after the end. Differentiable.
    ///
    /// # Errors
    /// Errors of the contractions.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_t4a_022_ext::models::LinearChain;
    ///
    /// // Equal tags attract: weights e of (0, 0) and (1, 1), weight 1 of the others, and tag 0 at the first step.
    /// let emissions = Tensor::<3>::from_floats([[[0.0, f32::NEG_INFINITY], [0.0, 0.0]]], &Device::flex());
    /// let chain = LinearChain::new(emissions, Tensor::<2>::eye(2, &Device::flex()), None)?;
    /// let p = 1f32.exp() / (1f32.exp() + 1.0);
    /// let want = [[[1.0, 0.0], [p, 1.0 - p]]];
    /// chain.marginals()?.into_data().assert_approx_eq::<f32>(&want.into(), Default::default());
    /// # Ok::<(), burn_t4a_022_ext::ExtError>(())
    /// ```
    pub fn marginals(&self) -> Result<Tensor<3>> {
        Ok(tensor(self.0.marginals()?))
    }

    /// Viterbi: the best tag sequence, shape `[batch, length]`, 0 after the end, and its score `[batch]`; the first
    /// one of equal scores. The gradient of the score is one at the elements of the sequence.
    ///
    /// # Errors
    /// Errors of the contractions.
    pub fn viterbi(&self) -> Result<(Tensor<2, Int>, Tensor<1>)> {
        let (path, score) = self.0.viterbi()?;
        let path = path.into_iter().map(|tag| Tensor::from_dispatch(tag.0)).collect();
        Ok((Tensor::cat(path, 1), tensor(score)))
    }

    /// The `k` best sequences of each chain, best first; fewer if fewer have a score above −∞. Computed on the host
    /// in `f64`, without derivatives.
    ///
    /// Cost: `length · tags² · k` additions per chain.
    ///
    /// # Errors
    /// `Tensor` if a score is NaN or `k` is 0.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_t4a_022_ext::models::LinearChain;
    ///
    /// // Scores of two independent steps: 3 + 5, 3 + 4, 1 + 5 and 1 + 4.
    /// let transitions = Tensor::<2>::zeros([2, 2], &Device::flex());
    /// let emissions = Tensor::<3>::from_floats([[[3.0, 1.0], [4.0, 5.0]]], &Device::flex());
    /// let chain = LinearChain::new(emissions, transitions, None)?;
    /// let best = &chain.k_best(2)?[0];
    /// assert_eq!((&best[0].tags[..], best[0].score), (&[0, 1][..], 8.0));
    /// assert_eq!((&best[1].tags[..], best[1].score), (&[0, 0][..], 7.0));
    /// # Ok::<(), burn_t4a_022_ext::ExtError>(())
    /// ```
    pub fn k_best(&self, k: usize) -> Result<Vec<Vec<ScoredTags>>> {
        Ok(self.0.k_best(k)?)
    }
}
