//! Linear chains of tags: conditional random fields, hidden Markov models.

use std::cmp::Ordering;

use burn_backend::TensorData;
use burn_tensor::{Bool, Int, Tensor};
use t4a_algebra::{LogSumExp, MaxPlus};
use t4a_einsum::ArraySemiring;
use t4a_tensor::TensorError;

use crate::ext::einsum::semiring_einsum;
use crate::ext::operation::Operations;
use crate::ext::{ExtError, Result};

const OP: &str = "linear_chain";

fn rejected(message: String) -> ExtError {
    TensorError::value(OP, message).into()
}

/// A sequence of tags and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredTags {
    /// The tags, as many as the sequence is long.
    pub tags: Vec<usize>,
    /// The sum of their scores.
    pub score: f64,
}

/// A batch of chains. A sequence of tags `y` scores
/// `Σ_t emissions[b, t, y_t] + Σ_t transitions[y_{t−1}, y_t]`, and its probability is `exp(score − ln Z)`.
///
/// Scores of first and last tags are added to the emissions ([`start`](Self::start), [`end`](Self::end)).
/// Transitions of −∞ are forbidden. For a hidden Markov model scores are log-probabilities.
///
/// ```
/// use burn::backend::Autodiff;
/// use burn_t4a::models::LinearChain;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::Tensor;
///
/// type B = Autodiff<BurnT4a>;
/// // One sequence of two tags out of two.
/// let emissions = Tensor::<B, 3>::from_floats([[[1.0, 0.0], [0.0, 0.5]]], &T4aDevice).require_grad();
/// let transitions = Tensor::<B, 2>::from_floats([[0.0, 0.0], [0.0, 0.0]], &T4aDevice);
/// let chain = LinearChain::new(emissions.clone(), transitions, None)?;
/// let (tags, score) = chain.viterbi()?;
/// tags.into_data().assert_eq(&[[0i64, 1]].into(), false);
/// score.into_data().assert_eq(&[1.5f32].into(), false);
/// // The loss of a CRF, and its gradient.
/// let gradients = chain.log_likelihood(&[vec![0, 1]])?.neg().sum().backward();
/// assert!(emissions.grad(&gradients).is_some());
/// # Ok::<(), burn_t4a::ext::ExtError>(())
/// ```
///
/// Cost of ln Z, marginals and Viterbi: `batch · length · tags²` multiply-adds, and `length` operations.
#[derive(Clone, Debug)]
pub struct LinearChain<B: Operations> {
    emissions: Tensor<B, 3>,
    transitions: Tensor<B, 2>,
    lengths: Vec<usize>,
    /// Which steps lie past the end of their sequence, if any do.
    past: Option<Tensor<B, 2, Bool>>,
}

impl<B: Operations> LinearChain<B> {
    /// Emissions `[batch, length, tags]`, transitions `[tags (from), tags (to)]`, and how long each sequence
    /// is, all of them `length` by default. What lies past the end of a sequence is ignored.
    ///
    /// # Errors
    /// `Tensor` for sizes that disagree and for lengths that are 0 or larger than `length`; `DTypeMismatch`.
    pub fn new(
        emissions: Tensor<B, 3>,
        transitions: Tensor<B, 2>,
        lengths: Option<&[usize]>,
    ) -> Result<Self> {
        let [batch, length, tags] = emissions.dims();
        if transitions.dims() != [tags, tags] || length == 0 || tags == 0 {
            return Err(rejected(format!(
                "emissions [batch, length ≥ 1, tags ≥ 1] and transitions [tags, tags] are required, given \
                 {:?} and {:?}",
                emissions.dims(),
                transitions.dims()
            )));
        }
        if emissions.dtype() != transitions.dtype() {
            let (first, dtype) = (emissions.dtype(), transitions.dtype());
            return Err(ExtError::DTypeMismatch { op: OP, first, argument: 1, dtype });
        }
        let lengths = lengths.map_or_else(|| vec![length; batch], <[usize]>::to_vec);
        if lengths.len() != batch || lengths.iter().any(|&n| n == 0 || n > length) {
            return Err(rejected(format!(
                "a length between 1 and {length} for each of {batch} sequences is required, given {lengths:?}"
            )));
        }
        let past = lengths.iter().any(|&n| n < length).then(|| {
            let past: Vec<bool> =
                lengths.iter().flat_map(|&n| (0..length).map(move |t| t >= n)).collect();
            Tensor::from_data(TensorData::new(past, [batch, length]), &emissions.device())
        });
        Ok(Self { emissions, transitions, lengths, past })
    }

    /// Adds scores `[tags]` of being the first tag.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn start(self, scores: Tensor<B, 1>) -> Result<Self> {
        let first = self.lengths.iter().map(|_| 0).collect();
        self.add_at(first, scores)
    }

    /// Adds scores `[tags]` of being the last tag.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn end(self, scores: Tensor<B, 1>) -> Result<Self> {
        let last = self.lengths.iter().map(|n| n - 1).collect();
        self.add_at(last, scores)
    }

    fn add_at(mut self, steps: Vec<usize>, scores: Tensor<B, 1>) -> Result<Self> {
        let [batch, length, tags] = self.emissions.dims();
        if scores.dims() != [tags] {
            let given = scores.dims();
            return Err(rejected(format!(
                "a score for each of {tags} tags is required, given {given:?}"
            )));
        }
        if scores.dtype() != self.emissions.dtype() {
            let (first, dtype) = (self.emissions.dtype(), scores.dtype());
            return Err(ExtError::DTypeMismatch { op: OP, first, argument: 1, dtype });
        }
        let elsewhere: Vec<bool> =
            steps.iter().flat_map(|&at| (0..length).map(move |t| t != at)).collect();
        let elsewhere = Tensor::<B, 3, Bool>::from_data(
            TensorData::new(elsewhere, [batch, length, 1]),
            &self.emissions.device(),
        );
        // Filled rather than multiplied: −∞ · 0 is no number.
        let scores = scores.reshape([1, 1, tags]).expand([batch, length, tags]);
        let scores = scores.mask_fill(elsewhere.expand([batch, length, tags]), 0.0);
        self.emissions = self.emissions + scores;
        Ok(self)
    }

    fn emission(&self, t: usize) -> Tensor<B, 2> {
        self.emissions.clone().narrow(1, t, 1).squeeze_dim(1)
    }

    /// `old` where step t lies past the end.
    fn held(&self, t: usize, new: Tensor<B, 2>, old: Tensor<B, 2>) -> Tensor<B, 2> {
        match &self.past {
            None => new,
            Some(past) => {
                new.clone().mask_where(past.clone().narrow(1, t, 1).expand(new.dims()), old)
            }
        }
    }

    /// `⊕` over all beginnings of the scores of ending in a tag, after each step.
    fn forward<S: ArraySemiring>(&self) -> Result<Vec<Tensor<B, 2>>> {
        let [_, length, _] = self.emissions.dims();
        let mut all = vec![self.emission(0)];
        for t in 1..length {
            let old = all[t - 1].clone();
            let sum: Tensor<B, 2> =
                semiring_einsum::<S, B, 2>("bi,ij->bj", (&old, &self.transitions))?;
            all.push(self.held(t, sum + self.emission(t), old));
        }
        Ok(all)
    }

    /// `⊕` over all continuations of the scores that follow a tag, after each step.
    fn backward<S: ArraySemiring>(&self) -> Result<Vec<Tensor<B, 2>>> {
        let [_, length, _] = self.emissions.dims();
        let mut all = vec![self.emission(0).zeros_like()];
        for t in (1..length).rev() {
            let old = all[length - 1 - t].clone();
            let next = old.clone() + self.emission(t);
            let sum = semiring_einsum::<S, B, 2>("ij,bj->bi", (&self.transitions, &next))?;
            all.push(self.held(t, sum, old));
        }
        all.reverse();
        Ok(all)
    }

    /// ln Σ exp(score) over all sequences of tags, `[batch]`.
    ///
    /// # Errors
    /// Those of [`semiring_einsum`].
    pub fn log_partition(&self) -> Result<Tensor<B, 1>> {
        let mut last = self.forward::<LogSumExp>()?;
        let last = last.pop().unwrap_or_else(|| self.emission(0));
        semiring_einsum::<LogSumExp, B, 1>("bi->b", [&last])
    }

    /// Scores of given sequences, `[batch]`; tags past the end of a sequence may be left out.
    ///
    /// # Errors
    /// `Tensor` for sequences that are too short or too many, and for tags that do not exist.
    pub fn score(&self, tags: &[Vec<usize>]) -> Result<Tensor<B, 1>> {
        let [batch, length, count] = self.emissions.dims();
        let fits =
            |(y, &n): (&Vec<usize>, &usize)| y.len() >= n && y[..n].iter().all(|&y| y < count);
        if tags.len() != batch || !tags.iter().zip(&self.lengths).all(fits) {
            return Err(rejected(format!(
                "tags below {count} for {batch} sequences of lengths {:?} are required, given {tags:?}",
                self.lengths
            )));
        }
        // The places of the scores in flat memory, and whose they are.
        let (mut at, mut from) = (Vec::new(), Vec::new());
        let (mut of_emission, mut of_transition) = (Vec::new(), Vec::new());
        for (b, (y, &n)) in tags.iter().zip(&self.lengths).enumerate() {
            at.extend((0..n).map(|t| ((b * length + t) * count + y[t]) as i64));
            from.extend((1..n).map(|t| (y[t - 1] * count + y[t]) as i64));
            of_emission.extend((0..n).map(|_| b as i64));
            of_transition.extend((1..n).map(|_| b as i64));
        }
        let device = self.emissions.device();
        let indices = |x: Vec<i64>| {
            let n = x.len();
            Tensor::<B, 1, Int>::from_data(TensorData::new(x, [n]), &device)
        };
        let zeros = self.emissions.clone().narrow(2, 0, 1).narrow(1, 0, 1).zeros_like();
        let mut sums: Tensor<B, 1> = zeros.reshape([batch]);
        let flat: Tensor<B, 1> = self.emissions.clone().reshape([batch * length * count]);
        sums = sums.select_assign(
            0,
            indices(of_emission),
            flat.select(0, indices(at)),
            burn_tensor::IndexingUpdateOp::Add,
        );
        if !from.is_empty() {
            let flat: Tensor<B, 1> = self.transitions.clone().reshape([count * count]);
            sums = sums.select_assign(
                0,
                indices(of_transition),
                flat.select(0, indices(from)),
                burn_tensor::IndexingUpdateOp::Add,
            );
        }
        Ok(sums)
    }

    /// ln p of given sequences, `[batch]`: the negative of the loss of a conditional random field.
    ///
    /// # Errors
    /// As [`score`](Self::score).
    pub fn log_likelihood(&self, tags: &[Vec<usize>]) -> Result<Tensor<B, 1>> {
        Ok(self.score(tags)? - self.log_partition()?)
    }

    /// Probabilities of each tag at each step, `[batch, length, tags]`; 0 past the end. Differentiable.
    ///
    /// # Errors
    /// Those of [`semiring_einsum`].
    pub fn marginals(&self) -> Result<Tensor<B, 3>> {
        let (ahead, behind) = (self.forward::<LogSumExp>()?, self.backward::<LogSumExp>()?);
        let joint: Vec<_> = ahead.into_iter().zip(behind).map(|(a, b)| a + b).collect();
        let joint: Tensor<B, 3> = Tensor::stack(joint, 1);
        let total = self.log_partition()?.reshape([-1, 1, 1]);
        let p = (joint - total).exp();
        Ok(match &self.past {
            None => p,
            Some(past) => {
                let dims = p.dims();
                p.mask_fill(past.clone().unsqueeze_dim::<3>(2).expand(dims), 0.0)
            }
        })
    }

    /// The best sequence of tags `[batch, length]`, 0 past the end, and its score `[batch]`. Among equal ones
    /// the first. The gradient of the score marks the sequence.
    ///
    /// # Errors
    /// Those of [`semiring_einsum`].
    pub fn viterbi(&self) -> Result<(Tensor<B, 2, Int>, Tensor<B, 1>)> {
        let [batch, length, _] = self.emissions.dims();
        let behind = self.backward::<MaxPlus>()?;
        let first = behind[0].clone() + self.emission(0);
        let score = semiring_einsum::<MaxPlus, B, 1>("bi->b", [&first])?;
        let mut tags: Vec<Tensor<B, 2, Int>> = vec![first.argmax(1)];
        for t in 1..length {
            let from = tags[t - 1].clone().reshape([batch]);
            // Summed as in the messages, so that both choose alike.
            let ahead = behind[t].clone() + self.emission(t);
            let here = self.transitions.clone().select(0, from) + ahead;
            tags.push(here.argmax(1));
        }
        let mut tags = Tensor::cat(tags, 1);
        if let Some(past) = &self.past {
            tags = tags.mask_fill(past.clone(), 0);
        }
        Ok((tags, score))
    }

    /// The `k` best sequences of each chain, best first, fewer if there are fewer with a score above −∞.
    /// Off the tape, on the host, in `f64`.
    ///
    /// Cost: `length · tags² · k` additions a chain.
    ///
    /// # Errors
    /// `Tensor` for scores that are NaN or for `k` = 0.
    pub fn k_best(&self, k: usize) -> Result<Vec<Vec<ScoredTags>>> {
        if k == 0 {
            return Err(rejected("k_best: k must be at least 1".into()));
        }
        let [_, length, tags] = self.emissions.dims();
        let emissions: Vec<f64> = self.emissions.to_data().iter::<f64>().collect();
        let transitions: Vec<f64> = self.transitions.to_data().iter::<f64>().collect();
        if emissions.iter().chain(&transitions).any(|x| x.is_nan()) {
            return Err(rejected("k_best: a score is NaN".into()));
        }
        let chains = emissions.chunks(length * tags).zip(&self.lengths);
        Ok(chains
            .map(|(emissions, &n)| k_best(&emissions[..n * tags], &transitions, tags, k))
            .collect())
    }
}

/// A prefix that ends in a tag: its score, the tag before and the rank of that tag's prefix.
type Prefix = (f64, usize, usize);

fn k_best(emissions: &[f64], transitions: &[f64], tags: usize, k: usize) -> Vec<ScoredTags> {
    let keep = |mut prefixes: Vec<Prefix>| {
        prefixes.retain(|p| p.0 > f64::NEG_INFINITY);
        // Stable: among equal scores the first.
        prefixes.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
        prefixes.truncate(k);
        prefixes
    };
    let mut steps: Vec<Vec<Vec<Prefix>>> = Vec::new();
    for here in emissions.chunks(tags) {
        let lists = here.iter().enumerate().map(|(tag, &score)| {
            let Some(before) = steps.last() else {
                return keep(vec![(score, 0, 0)]);
            };
            let longer = before.iter().enumerate().flat_map(|(from, list)| {
                let step = transitions[from * tags + tag] + score;
                list.iter().enumerate().map(move |(rank, p)| (p.0 + step, from, rank))
            });
            keep(longer.collect())
        });
        let lists = lists.collect();
        steps.push(lists);
    }
    let Some(last) = steps.last() else {
        return Vec::new();
    };
    let ends = last
        .iter()
        .enumerate()
        .flat_map(|(tag, list)| list.iter().enumerate().map(move |(rank, p)| (p.0, tag, rank)));
    let trace = |(score, mut tag, mut rank): Prefix| {
        let mut path = Vec::with_capacity(steps.len());
        for step in steps.iter().rev() {
            path.push(tag);
            (_, tag, rank) = step[tag][rank];
        }
        path.reverse();
        ScoredTags { tags: path, score }
    };
    keep(ends.collect()).into_iter().map(trace).collect()
}
