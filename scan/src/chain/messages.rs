//! The messages that a chain hands along, one way and the other.

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
/// Everything that it returns is differentiable where the arrays are.
///
/// Cost of ln Z, marginals and Viterbi: `batch · length · tags²` multiply-adds, and `length` operations.
#[derive(Clone, Debug)]
pub struct LinearChain<A> {
    /// `[batch, length, tags]`.
    pub(super) emissions: A,
    /// `[tags (from), tags (to)]`.
    pub(super) transitions: A,
    pub(super) lengths: Vec<usize>,
}

impl<A: Array> LinearChain<A> {
    /// Batch, length and tags.
    pub fn sizes(&self) -> [usize; 3] {
        let shape = self.emissions.shape();
        [shape[0], shape[1], shape[2]]
    }

    /// What holds of the steps of sequences of these lengths, `[batch, steps, 1]`.
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

    /// Which sequences have ended before step t, `[batch, 1]`, if any have.
    pub(super) fn past(&self, t: usize) -> Result<Option<A::Flags>> {
        if self.lengths.iter().all(|&n| t < n) {
            return Ok(None);
        }
        let [batch, ..] = self.sizes();
        Ok(Some(self.flags(1, |_, n| t >= n)?.reshape(&[batch, 1])))
    }

    pub(super) fn emission(&self, t: usize) -> A {
        let [batch, _, tags] = self.sizes();
        self.emissions.narrow(1, t, 1).reshape(&[batch, tags])
    }

    /// `old` where step t lies past the end.
    pub(super) fn held(&self, t: usize, new: A, old: &A) -> Result<A> {
        Ok(match self.past(t)? {
            None => new,
            Some(past) => new.replace(&past.expand(&new.shape()), old),
        })
    }

    /// `⊕` over all beginnings of the scores of ending in a tag, after each step.
    pub(super) fn ahead(&self, semiring: FloatSemiring) -> Result<Vec<A>> {
        let [_, length, _] = self.sizes();
        let mut all = vec![self.emission(0)];
        for t in 1..length {
            let old = &all[t - 1];
            let sum = contract_arrays(semiring, "bi,ij->bj", &[old, &self.transitions])?;
            let next = self.held(t, sum.add(&self.emission(t)), old)?;
            all.push(next);
        }
        Ok(all)
    }

    /// `⊕` over all continuations of the scores that follow a tag, after each step.
    pub(super) fn behind(&self, semiring: FloatSemiring) -> Result<Vec<A>> {
        let [batch, length, tags] = self.sizes();
        let mut all = vec![self.emissions.full(&[batch, tags], 0.0)];
        for t in (1..length).rev() {
            let old = &all[length - 1 - t];
            let next = old.add(&self.emission(t));
            let sum = contract_arrays(semiring, "ij,bj->bi", &[&self.transitions, &next])?;
            let held = self.held(t, sum, old)?;
            all.push(held);
        }
        all.reverse();
        Ok(all)
    }

    /// Messages of all steps, `[batch, length, tags]`.
    pub(super) fn stacked(&self, messages: Vec<A>) -> A {
        let [batch, _, tags] = self.sizes();
        let one = |x: A| x.reshape(&[batch, 1, tags]);
        A::cat(&messages.into_iter().map(one).collect::<Vec<_>>(), 1)
    }

    /// `x[batch, length, tags]`, with `c` where a step lies past the end.
    pub(super) fn without_past(&self, x: A, c: f64) -> Result<A> {
        let all @ [_, length, _] = self.sizes();
        Ok(match self.past(length - 1)? {
            None => x,
            Some(_) => x.fill(&self.flags(length, |t, n| t >= n)?.expand(&all), c),
        })
    }

    /// Of each tag at each step, from stacked messages and ln Z `[batch, 1, 1]`.
    pub(super) fn probabilities(&self, ahead: &A, behind: &A, total: &A) -> Result<A> {
        self.without_past(ahead.add(behind).sub(total).exp(), 0.0)
    }
}

/// Whether these are the operands of a chain with sequences of these lengths.
pub(super) fn check(emissions: &Meta, transitions: &Meta, lengths: &[usize]) -> Result<()> {
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
    if lengths.len() != batch || lengths.iter().any(|&n| n == 0 || n > length) {
        return rejected(format!(
            "a length between 1 and {length} for each of {batch} sequences is required, given {lengths:?}"
        ));
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

/// The result of an operation that has one.
pub(super) fn only<A: Array>(out: Outcome<A>) -> A {
    out.results.into_iter().next().unwrap_or_else(|| unreachable!("one result"))
}
