//! Forward and backward messages of a linear chain.

use t4a_diff::array::{Flags, Integers};
use t4a_diff::{Array, Meta, Outcome};
use t4a_einsum::{EinsumError, FloatSemiring, contract_arrays};
use t4a_tensor::{AnyTensor, Tensor, TensorError};

/// Result of a chain.
pub(super) type Result<T, E = EinsumError> = std::result::Result<T, E>;

pub(super) const OP: &str = "linear_chain";

pub(super) fn rejected<T>(message: String) -> Result<T> {
    Err(TensorError::value(OP, message).into())
}

/// A batch of chains. A sequence of tags `y` scores
/// `Σ_t emissions[b, t, y_t] + Σ_t transitions[y_{t−1}, y_t]`, and its probability is `exp(score − ln Z)`.
///
/// All results are differentiable if the arrays are.
///
/// Cost of ln Z, marginals and Viterbi: `batch · length · tags²` multiply-adds, and `length` operations.
#[derive(Clone, Debug)]
pub struct LinearChain<A> {
    /// `[batch, length, tags]`.
    pub(super) emissions: A,
    /// `[tags (from), tags (to)]`.
    pub(super) transitions: A,
    pub(super) lengths: Vec<usize>,
    /// Batch, length and tags, stored because arrays in an error state have no shape.
    pub(super) sizes: [usize; 3],
}

impl<A: Array> LinearChain<A> {
    /// Batch, length and tags.
    pub fn sizes(&self) -> [usize; 3] {
        self.sizes
    }

    /// Mask `[batch, steps, 1]` of `holds(step, length of the sequence)`.
    pub(super) fn flags(
        &self,
        steps: usize,
        holds: impl Fn(usize, usize) -> bool,
    ) -> Result<A::Flags> {
        let of = |&n: &usize| (0..steps).map(move |t| (t, n));
        let ones: Vec<i64> =
            self.lengths.iter().flat_map(of).map(|(t, n)| i64::from(holds(t, n))).collect();
        let ones = Tensor::from_vec(ones, &[self.lengths.len(), steps, 1])?;
        Ok(self.emissions.indices(AnyTensor::from(ones)).at_least(1))
    }

    /// Mask `[batch, 1]` of the sequences that end before step t; `None` if there are none.
    pub(super) fn past(&self, t: usize) -> Result<Option<A::Flags>> {
        if self.lengths.iter().all(|&n| t < n) {
            return Ok(None);
        }
        let [batch, ..] = self.sizes;
        Ok(Some(self.flags(1, |_, n| t >= n)?.reshape(&[batch, 1])))
    }

    pub(super) fn emission(&self, t: usize) -> A {
        let [batch, _, tags] = self.sizes;
        self.emissions.narrow(1, t, 1).reshape(&[batch, tags])
    }

    /// `new`, with `old` for the sequences that end before step t.
    pub(super) fn held(&self, t: usize, new: A, old: &A) -> Result<A> {
        Ok(match self.past(t)? {
            None => new,
            Some(past) => new.replace(&past.expand(&new.shape()), old),
        })
    }

    /// Forward messages: per tag and step, `⊕` of the scores of all prefixes that end in the tag.
    pub(super) fn ahead(&self, semiring: FloatSemiring) -> Result<Messages<A>> {
        let [_, length, _] = self.sizes;
        let mut all = Messages::of(self.emission(0));
        for t in 1..length {
            let old = all.last();
            let sum = contract_arrays(semiring, "bi,ij->bj", &[old, &self.transitions])?;
            let next = self.held(t, sum.add(&self.emission(t)), old)?;
            all.push(next);
        }
        Ok(all)
    }

    /// Backward messages: per tag and step, `⊕` of the scores of all suffixes that follow the tag.
    pub(super) fn behind(&self, semiring: FloatSemiring) -> Result<Messages<A>> {
        let [batch, length, tags] = self.sizes;
        let mut all = Messages::of(self.emissions.full(&[batch, tags], 0.0));
        for t in (1..length).rev() {
            let old = all.last();
            let next = old.add(&self.emission(t));
            let sum = contract_arrays(semiring, "ij,bj->bi", &[&self.transitions, &next])?;
            let held = self.held(t, sum, old)?;
            all.push(held);
        }
        all.steps.reverse();
        all.off.reverse();
        Ok(all)
    }

    /// Stacks arrays `[batch, last]` of all steps into `[batch, length, last]`.
    fn stacked(&self, steps: Vec<A>, last: usize) -> A {
        let [batch, ..] = self.sizes;
        let one = |x: A| x.reshape(&[batch, 1, last]);
        A::cat(&steps.into_iter().map(one).collect::<Vec<_>>(), 1)
    }

    /// `x[batch, length, tags]`, with steps past the end of a sequence set to `c`.
    pub(super) fn without_past(&self, x: A, c: f64) -> Result<A> {
        let all @ [_, length, _] = self.sizes;
        Ok(match self.past(length - 1)? {
            None => x,
            Some(_) => x.fill(&self.flags(length, |t, n| t >= n)?.expand(&all), c),
        })
    }

    /// Forward and backward messages and the tag probabilities.
    pub(super) fn posterior(&self) -> Result<Posterior<A>> {
        let [batch, _, tags] = self.sizes;
        let semiring = FloatSemiring::LogSumExp;
        let (ahead, behind) = (self.ahead(semiring)?, self.behind(semiring)?);
        let none = self.emissions.full(&[batch, 1], 0.0);
        let off = ahead.off.into_iter().map(|off| off.unwrap_or_else(|| none.clone()));
        let off = self.stacked(off.collect(), 1);
        let ahead = self.stacked(ahead.steps, tags);
        let behind = self.stacked(behind.steps, tags);
        let both = ahead.add(&behind);
        // The subtracted maximum cancels, so it is detached.
        let most = finite(both.max(2)).detach();
        let terms = both.sub(&most).exp();
        let sum = terms.sum(2);
        // If ln Z is −∞ every term is 0; a divisor of 1 keeps the quotient 0.
        let sum = sum.fill(&sum.equals(0.0), 1.0);
        let total = most.add(&sum.ln()).add(&off);
        let of_tags = self.without_past(terms.div(&sum), 0.0)?;
        Ok(Posterior { tags: of_tags, ahead, behind, total })
    }
}

/// Number of steps after which messages are normalised: the maximum of each sequence is subtracted. Without it,
/// messages of long sequences grow to the size of ln Z, and the differences from which probabilities are computed lose
/// all digits (in `f32`, errors of 0.1 at a thousand steps).
const RENEWED: usize = 8;

/// Messages of all steps, up to an additive constant per sequence.
pub(super) struct Messages<A> {
    /// `[batch, tags]` each.
    pub(super) steps: Vec<A>,
    /// Normalisation subtracted at a step, `[batch, 1]`; `None` at steps without one.
    pub(super) off: Vec<Option<A>>,
}

impl<A: Array> Messages<A> {
    fn of(first: A) -> Self {
        Self { steps: vec![first], off: vec![None] }
    }

    pub(super) fn last(&self) -> &A {
        &self.steps[self.steps.len() - 1]
    }

    fn push(&mut self, x: A) {
        if !self.steps.len().is_multiple_of(RENEWED) {
            self.steps.push(x);
            return self.off.push(None);
        }
        // Detached: the subtracted constant is added back, so it has no derivative.
        let off = finite(x.max(1)).detach();
        self.steps.push(x.sub(&off));
        self.off.push(Some(off));
    }

    /// `x[batch]` plus the sum of all subtracted normalisations.
    pub(super) fn with_all(&self, x: A) -> A {
        let off = self.off.iter().flatten();
        off.fold(x, |sum, off| sum.add(&off.reshape(&sum.shape())))
    }
}

/// Replaces −∞ by 0, so that −∞ − max stays −∞.
fn finite<A: Array>(x: A) -> A {
    x.fill(&x.equals(f64::NEG_INFINITY), 0.0)
}

/// Posterior of each step.
pub(super) struct Posterior<A> {
    /// Probabilities of tags, `[batch, length, tags]`; 0 past the end.
    pub(super) tags: A,
    /// Messages, `[batch, length, tags]`.
    pub(super) ahead: A,
    pub(super) behind: A,
    /// Log-sum-exp over pairs of tags of forward message of the previous step + transition + emission + backward
    /// message, `[batch, length, 1]`: ln Z minus the normalisations of these two messages.
    pub(super) total: A,
}

/// Checks shapes, dtypes and sequence lengths of a chain; returns batch, length and tags.
pub(super) fn check(emissions: &Meta, transitions: &Meta, lengths: &[usize]) -> Result<[usize; 3]> {
    let (of, between) = (&emissions.shape, &transitions.shape);
    let &[batch, length, tags] = &of[..] else {
        return rejected(format!("emissions [batch, length, tags] are required, given {of:?}"));
    };
    if between[..] != [tags, tags] || length == 0 || tags == 0 {
        return rejected(format!(
            "emissions [batch, length ≥ 1, tags ≥ 1] and transitions [tags, tags] are required, given \
             {of:?} and {between:?}"
        ));
    }
    same_dtype(emissions, transitions)?;
    if lengths.len() != batch {
        let given = lengths.len();
        return rejected(format!("lengths of {batch} sequences are required, given {given}"));
    }
    if let Some(b) = lengths.iter().position(|&n| n == 0 || n > length) {
        let given = lengths[b];
        return rejected(format!(
            "sequence {b}: a length between 1 and {length} is required, given {given}"
        ));
    }
    Ok([batch, length, tags])
}

/// Checks that there are tags below `count` for sequences of these lengths; an error names the first place.
pub(super) fn check_tags(tags: &[Vec<usize>], lengths: &[usize], count: usize) -> Result<()> {
    if tags.len() != lengths.len() {
        let (batch, given) = (lengths.len(), tags.len());
        return rejected(format!("tags of {batch} sequences are required, given {given}"));
    }
    for (b, (y, &n)) in tags.iter().zip(lengths).enumerate() {
        if y.len() < n {
            let given = y.len();
            return rejected(format!("sequence {b} of length {n}: {given} tags are given"));
        }
        if let Some(t) = y[..n].iter().position(|&y| y >= count) {
            let given = y[t];
            let last = count.saturating_sub(1);
            let text = format!("tag {given}, but the {count} tags are 0 to {last}");
            return rejected(format!("sequence {b}, step {t}: {text}"));
        }
    }
    Ok(())
}

pub(super) fn meta<A: Array>(x: &A) -> Meta {
    Meta { shape: x.shape(), dtype: x.dtype() }
}

pub(super) fn same_dtype(x: &Meta, y: &Meta) -> Result<()> {
    let (lhs, rhs) = (x.dtype, y.dtype);
    match lhs == rhs {
        true => Ok(()),
        false => Err(TensorError::DTypeMismatch { op: OP, lhs, rhs }.into()),
    }
}

/// The only result of an operation.
pub(super) fn only<A: Array>(out: Outcome<A>) -> A {
    out.results.into_iter().next().unwrap_or_else(|| unreachable!("one result"))
}
