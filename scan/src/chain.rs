//! Linear chains of tags over any arrays: conditional random fields, hidden Markov models.
//!
//! ```text
//! ahead   a_t[j] = ⊕_i a_{t−1}[i] ⊗ W[i, j] ⊗ x_t[j]      a product per step, over log-sum-exp or (max, +)
//! behind  b_t[i] = ⊕_j W[i, j] ⊗ x_{t+1}[j] ⊗ b_{t+1}[j]
//! ```
//!
//! Steps past the end of a sequence hand their messages on. Reference: Lafferty, McCallum, Pereira 2001.

use std::cmp::Ordering;

use t4a_diff::array::{Flags, Integers};
use t4a_diff::{Array, Value};
use t4a_einsum::{Contraction, Einsum, EinsumError, FloatSemiring};
use t4a_tensor::{AnyTensor, DType, Tensor, TensorError};

/// Result of a chain.
type Result<T, E = EinsumError> = std::result::Result<T, E>;

const OP: &str = "linear_chain";

fn rejected<T>(message: String) -> Result<T> {
    Err(TensorError::value(OP, message).into())
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
/// Everything that it returns is differentiable where the arrays are.
///
/// Cost of ln Z, marginals and Viterbi: `batch · length · tags²` multiply-adds, and `length` operations.
#[derive(Clone, Debug)]
pub struct LinearChain<A> {
    /// `[batch, length, tags]`.
    emissions: A,
    /// `[tags (from), tags (to)]`.
    transitions: A,
    lengths: Vec<usize>,
}

impl<A: Array> LinearChain<A> {
    /// Emissions `[batch, length, tags]`, transitions `[tags (from), tags (to)]`, and how long each sequence
    /// is, all of them `length` by default. What lies past the end of a sequence is ignored.
    ///
    /// # Errors
    /// `Tensor` for sizes and dtypes that disagree and for lengths that are 0 or larger than `length`.
    pub fn new(emissions: A, transitions: A, lengths: Option<&[usize]>) -> Result<Self> {
        let (of, between) = (emissions.shape(), transitions.shape());
        let &[batch, length, tags] = &of[..] else {
            return rejected(format!("emissions [batch, length, tags] are required, given {of:?}"));
        };
        if between[..] != [tags, tags] || length == 0 || tags == 0 {
            return rejected(format!(
                "emissions [batch, length ≥ 1, tags ≥ 1] and transitions [tags, tags] are required, given \
                 {of:?} and {between:?}"
            ));
        }
        same_dtype(&emissions, &transitions)?;
        let lengths = lengths.map_or_else(|| vec![length; batch], <[usize]>::to_vec);
        if lengths.len() != batch || lengths.iter().any(|&n| n == 0 || n > length) {
            return rejected(format!(
                "a length between 1 and {length} for each of {batch} sequences is required, given {lengths:?}"
            ));
        }
        Ok(Self { emissions, transitions, lengths })
    }

    /// Batch, length and tags.
    pub fn sizes(&self) -> [usize; 3] {
        let shape = self.emissions.shape();
        [shape[0], shape[1], shape[2]]
    }

    /// How long each sequence is.
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
        let all @ [_, length, tags] = self.sizes();
        let given = scores.shape();
        if given[..] != [tags] {
            return rejected(format!(
                "a score for each of {tags} tags is required, given {given:?}"
            ));
        }
        same_dtype(&self.emissions, scores)?;
        let elsewhere = self.flags(length, |t, n| t != step(n))?;
        // Filled rather than multiplied: −∞ · 0 is no number.
        let scores = scores.reshape(&[1, 1, tags]).expand(&all);
        let scores = scores.fill(&elsewhere.expand(&all), 0.0);
        self.emissions = self.emissions.add(&scores);
        Ok(self)
    }

    /// What holds of the steps of sequences of these lengths, `[batch, steps, 1]`.
    fn flags(&self, steps: usize, holds: impl Fn(usize, usize) -> bool) -> Result<A::Flags> {
        let of = |&n: &usize| (0..steps).map(move |t| (t, n));
        let ones: Vec<i64> =
            self.lengths.iter().flat_map(of).map(|(t, n)| i64::from(holds(t, n))).collect();
        let ones = Tensor::from_vec(ones, &[self.lengths.len(), steps, 1])?;
        Ok(self.emissions.indices(AnyTensor::from(ones)).at_least(1))
    }

    /// Which sequences have ended before step t, `[batch, 1]`, if any have.
    fn past(&self, t: usize) -> Result<Option<A::Flags>> {
        if self.lengths.iter().all(|&n| t < n) {
            return Ok(None);
        }
        let [batch, ..] = self.sizes();
        Ok(Some(self.flags(1, |_, n| t >= n)?.reshape(&[batch, 1])))
    }

    fn emission(&self, t: usize) -> A {
        let [batch, _, tags] = self.sizes();
        self.emissions.narrow(1, t, 1).reshape(&[batch, tags])
    }

    /// `old` where step t lies past the end.
    fn held(&self, t: usize, new: A, old: &A) -> Result<A> {
        Ok(match self.past(t)? {
            None => new,
            Some(past) => new.replace(&past.expand(&new.shape()), old),
        })
    }

    /// `⊕` over all beginnings of the scores of ending in a tag, after each step.
    fn ahead(&self, semiring: FloatSemiring) -> Result<Vec<A>> {
        let [_, length, _] = self.sizes();
        let mut all = vec![self.emission(0)];
        for t in 1..length {
            let old = &all[t - 1];
            let sum = contract(semiring, "bi,ij->bj", &[old, &self.transitions])?;
            let next = self.held(t, sum.add(&self.emission(t)), old)?;
            all.push(next);
        }
        Ok(all)
    }

    /// `⊕` over all continuations of the scores that follow a tag, after each step.
    fn behind(&self, semiring: FloatSemiring) -> Result<Vec<A>> {
        let [batch, length, tags] = self.sizes();
        let mut all = vec![self.emissions.full(&[batch, tags], 0.0)];
        for t in (1..length).rev() {
            let old = &all[length - 1 - t];
            let next = old.add(&self.emission(t));
            let sum = contract(semiring, "ij,bj->bi", &[&self.transitions, &next])?;
            let held = self.held(t, sum, old)?;
            all.push(held);
        }
        all.reverse();
        Ok(all)
    }

    /// ln Σ exp(score) over all sequences of tags, `[batch]`.
    ///
    /// # Errors
    /// Those of the contractions.
    pub fn log_partition(&self) -> Result<A> {
        let mut last = self.ahead(FloatSemiring::LogSumExp)?;
        let last = last.pop().unwrap_or_else(|| self.emission(0));
        contract(FloatSemiring::LogSumExp, "bi->b", &[&last])
    }

    /// Scores of given sequences, `[batch]`; tags past the end of a sequence may be left out.
    ///
    /// # Errors
    /// `Tensor` for sequences that are too short or too many, and for tags that do not exist.
    pub fn score(&self, tags: &[Vec<usize>]) -> Result<A> {
        let [batch, length, count] = self.sizes();
        let fits =
            |(y, &n): (&Vec<usize>, &usize)| y.len() >= n && y[..n].iter().all(|&y| y < count);
        if tags.len() != batch || !tags.iter().zip(&self.lengths).all(fits) {
            return rejected(format!(
                "tags below {count} for {batch} sequences of lengths {:?} are required, given {tags:?}",
                self.lengths
            ));
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

    /// Probabilities of each tag at each step, `[batch, length, tags]`; 0 past the end.
    ///
    /// # Errors
    /// Those of the contractions.
    pub fn marginals(&self) -> Result<A> {
        let all @ [batch, length, tags] = self.sizes();
        let semiring = FloatSemiring::LogSumExp;
        let both = self.ahead(semiring)?.into_iter().zip(self.behind(semiring)?);
        let joint: Vec<A> = both.map(|(a, b)| a.add(&b).reshape(&[batch, 1, tags])).collect();
        let total = self.log_partition()?.reshape(&[batch, 1, 1]);
        let p = A::cat(&joint, 1).sub(&total).exp();
        Ok(match self.past(length - 1)? {
            None => p,
            Some(_) => p.fill(&self.flags(length, |t, n| t >= n)?.expand(&all), 0.0),
        })
    }

    /// The best sequence of tags, `[batch, 1]` for each step, 0 past the end, and its score `[batch]`. Among
    /// equal ones the first. The gradient of the score marks the sequence.
    ///
    /// # Errors
    /// Those of the contractions.
    pub fn viterbi(&self) -> Result<(Vec<A::Integers>, A)> {
        let [batch, length, tags] = self.sizes();
        let behind = self.behind(FloatSemiring::MaxPlus)?;
        let first = behind[0].add(&self.emission(0));
        let score = contract(FloatSemiring::MaxPlus, "bi->b", &[&first])?;
        let mut path = vec![first.argmax(1)];
        for t in 1..length {
            let from = path[t - 1].reshape(&[batch, 1]).expand(&[batch, tags]);
            // Summed as in the messages, so that both choose alike.
            let ahead = behind[t].add(&self.emission(t));
            let here = self.transitions.gather(0, &from).add(&ahead).argmax(1);
            path.push(match self.past(t)? {
                None => here,
                Some(past) => here.fill(&past, 0),
            });
        }
        Ok((path, score))
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
            return rejected("k_best: k must be at least 1".into());
        }
        let [_, length, tags] = self.sizes();
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

fn same_dtype<A: Array>(x: &A, y: &A) -> Result<()> {
    let (lhs, rhs) = (x.dtype(), y.dtype());
    match lhs == rhs {
        true => Ok(()),
        false => Err(TensorError::DTypeMismatch { op: OP, lhs, rhs }.into()),
    }
}

fn contract<A: Array>(semiring: FloatSemiring, subscripts: &str, operands: &[&A]) -> Result<A> {
    let shapes: Vec<Vec<usize>> = operands.iter().map(|x| x.shape()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let plan = Einsum::new(subscripts)?.plan(&shapes, operands[0].dtype().size())?;
    let inputs: Vec<Value<A>> = operands.iter().map(|&x| Value::Float(x.clone())).collect();
    let out = A::apply(&Contraction { plan, semiring }, &inputs, &vec![false; inputs.len()])?;
    Ok(out.results.into_iter().next().unwrap_or_else(|| unreachable!("one result")))
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
