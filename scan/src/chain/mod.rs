//! Linear chains over tags: conditional random fields, hidden Markov models. Generic in the array type.
//!
//! ```text
//! ahead   a_t[j] = ⊕_i a_{t−1}[i] ⊗ W[i, j] ⊗ x_t[j]      a product per step, over log-sum-exp or (max, +)
//! behind  b_t[i] = ⊕_j W[i, j] ⊗ x_{t+1}[j] ⊗ b_{t+1}[j]
//! ```
//!
//! Messages are unchanged in steps past the end of a sequence. Every few steps the maximum is subtracted from the
//! messages, so that they stay small, and added to the result. Reference: Lafferty, McCallum, Pereira 2001.

// kernel      ln Z on the engine
// marginals   its cotangents on the engine
// messages    forward and backward messages; checks of the operands
// padded      lengths and tags of padded arrays
// partition   LogPartition: ln Z as one operation, whose derivatives are marginals

use std::cmp::Ordering;

use t4a_diff::array::{Flags, Integers, first_error};
use t4a_diff::{Array, Value};
use t4a_einsum::{FloatSemiring, contract_arrays};
use t4a_tensor::{AnyTensor, DType, Tensor};

mod kernel;
mod marginals;
mod messages;
mod padded;
mod partition;

pub use messages::LinearChain;
pub use padded::mask_lengths;
pub use partition::LogPartition;

use messages::{Result, check, check_tags, meta, only, rejected, same_dtype};

/// A sequence of tags and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredTags {
    /// The tags, one per step of the sequence.
    pub tags: Vec<usize>,
    /// The sum of their scores.
    pub score: f64,
}

impl<A: Array> LinearChain<A> {
    /// A batch of chains with emissions `[batch, length, tags]`, transitions `[tags (from), tags (to)]` and the length
    /// of each sequence (`length` by default). Steps past the end of a sequence are ignored.
    ///
    /// # Errors
    /// `Tensor` for sizes and dtypes that disagree and for lengths that are 0 or larger than `length`.
    pub fn new(emissions: A, transitions: A, lengths: Option<&[usize]>) -> Result<Self> {
        let length = emissions.shape().get(1).copied().unwrap_or_default();
        let batch = emissions.shape().first().copied().unwrap_or_default();
        let lengths = lengths.map_or_else(|| vec![length; batch], <[usize]>::to_vec);
        let sizes = check(&meta(&emissions), &meta(&transitions), &lengths)
            .map_err(|error| first_error(&[&emissions, &transitions], error))?;
        Ok(Self { emissions, transitions, lengths, sizes })
    }

    /// Length of each sequence.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// Adds scores `[tags]` of being the first tag.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn start(self, scores: &A) -> Result<Self> {
        self.add_at(|_| 0, scores)
    }

    /// Adds scores `[tags]` of being the last tag.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn end(self, scores: &A) -> Result<Self> {
        self.add_at(|n| n - 1, scores)
    }

    fn add_at(mut self, step: impl Fn(usize) -> usize, scores: &A) -> Result<Self> {
        let all @ [_, length, tags] = self.sizes;
        let refused = |error| first_error(&[&self.emissions, scores], error);
        let given = scores.shape();
        if given[..] != [tags] {
            let message = format!("a score for each of {tags} tags is required, given {given:?}");
            return rejected(message).map_err(refused);
        }
        same_dtype(&meta(&self.emissions), &meta(scores)).map_err(refused)?;
        let elsewhere = self.flags(length, |t, n| t != step(n))?;
        // A fill, not a product with 0: −∞ · 0 is NaN.
        let scores = scores.reshape(&[1, 1, tags]).expand(&all);
        let scores = scores.fill(&elsewhere.expand(&all), 0.0);
        self.emissions = self.emissions.add(&scores);
        Ok(self)
    }

    /// ln Σ exp(score) over all sequences of tags, `[batch]`: [`LogPartition`].
    ///
    /// # Errors
    /// Those of the contractions.
    pub fn log_partition(&self) -> Result<A> {
        let inputs = [&self.emissions, &self.transitions].map(|x| Value::Float(x.clone()));
        let out = A::apply(&LogPartition { lengths: self.lengths.clone() }, &inputs, &[false; 2])?;
        Ok(only(out))
    }

    /// Scores of given sequences, `[batch]`; tags past the end of a sequence may be left out.
    ///
    /// # Errors
    /// `Tensor` for sequences that are too short or too many, and for tags that do not exist.
    pub fn score(&self, tags: &[Vec<usize>]) -> Result<A> {
        let [batch, length, count] = self.sizes;
        check_tags(tags, &self.lengths, count)?;
        // Flat indices of the scores, and the sequence to which each belongs.
        let (mut at, mut from) = (Vec::new(), Vec::new());
        let (mut of_emission, mut of_transition) = (Vec::new(), Vec::new());
        for (b, (y, &n)) in tags.iter().zip(&self.lengths).enumerate() {
            at.extend((0..n).map(|t| ((b * length + t) * count + y[t]) as i64));
            from.extend((1..n).map(|t| (y[t - 1] * count + y[t]) as i64));
            of_emission.extend((0..n).map(|_| b as i64));
            of_transition.extend((1..n).map(|_| b as i64));
        }
        let indices = |x: Vec<i64>| -> Result<A::Integers> {
            let n = x.len();
            Ok(self.emissions.indices(AnyTensor::from(Tensor::from_vec(x, &[n])?)))
        };
        let mut sums = self.emissions.full(&[batch], 0.0);
        for (scores, at, of) in
            [(&self.emissions, at, of_emission), (&self.transitions, from, of_transition)]
        {
            if !at.is_empty() {
                let scores = scores.reshape(&[scores.shape().iter().product()]);
                sums = sums.scatter_add(0, &indices(of)?, &scores.gather(0, &indices(at)?));
            }
        }
        Ok(sums)
    }

    /// ln p of given sequences, `[batch]`: the negative of the loss of a conditional random field.
    ///
    /// # Errors
    /// As [`score`](Self::score).
    pub fn log_likelihood(&self, tags: &[Vec<usize>]) -> Result<A> {
        Ok(self.score(tags)?.sub(&self.log_partition()?))
    }

    /// Probabilities of each tag at each step, `[batch, length, tags]`; 0 past the end, and where ln Z is −∞.
    ///
    /// # Errors
    /// Those of the contractions.
    pub fn marginals(&self) -> Result<A> {
        Ok(self.posterior()?.tags)
    }

    /// The highest-scoring sequence of tags, `[batch, 1]` for each step, 0 past the end, and its score `[batch]`. Ties
    /// resolve to the first. The gradient of the score is the one-hot encoding of the sequence.
    ///
    /// # Errors
    /// Those of the contractions.
    pub fn viterbi(&self) -> Result<(Vec<A::Integers>, A)> {
        let [batch, length, tags] = self.sizes;
        let all = self.behind(FloatSemiring::MaxPlus)?;
        let behind = &all.steps;
        let first = behind[0].add(&self.emission(0));
        let score = contract_arrays(FloatSemiring::MaxPlus, "bi->b", &[&first])?;
        let mut path = vec![first.argmax(1)];
        for t in 1..length {
            let from = path[t - 1].reshape(&[batch, 1]).expand(&[batch, tags]);
            // The same order of additions as in the messages, so that rounding does not change the argmax.
            let ahead = behind[t].add(&self.emission(t));
            let here = self.transitions.gather(0, &from).add(&ahead).argmax(1);
            path.push(match self.past(t)? {
                None => here,
                Some(past) => here.fill(&past, 0),
            });
        }
        Ok((path, all.with_all(score)))
    }

    /// The `k` highest-scoring sequences of each chain in descending order; fewer if fewer have a score above −∞.
    /// Computed on the host in `f64`, not differentiable.
    ///
    /// Cost: `length · tags² · k` additions a chain.
    ///
    /// # Errors
    /// `Tensor` for scores that are NaN or for `k` = 0.
    pub fn k_best(&self, k: usize) -> Result<Vec<Vec<ScoredTags>>> {
        if k == 0 {
            return rejected("k_best: k must be at least 1".into());
        }
        let [_, length, tags] = self.sizes;
        let host = |x: &A| -> Result<Vec<f64>> {
            Ok(x.elements()?.cast(DType::F64)?.typed::<f64>()?.to_vec()?)
        };
        let (emissions, transitions) = (host(&self.emissions)?, host(&self.transitions)?);
        if emissions.iter().chain(&transitions).any(|x| x.is_nan()) {
            return rejected("k_best: a score is NaN".into());
        }
        let chains = emissions.chunks(length * tags).zip(&self.lengths);
        let best = |(x, &n): (&[f64], &usize)| k_best(&x[..n * tags], &transitions, tags, k);
        Ok(chains.map(best).collect())
    }
}

/// A prefix that ends in a tag: its score, the previous tag, and the rank of its prefix there.
type Prefix = (f64, usize, usize);

fn k_best(emissions: &[f64], transitions: &[f64], tags: usize, k: usize) -> Vec<ScoredTags> {
    let keep = |mut prefixes: Vec<Prefix>| {
        prefixes.retain(|p| p.0 > f64::NEG_INFINITY);
        // A stable sort: ties resolve to the first.
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
