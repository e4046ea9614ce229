//! Derivative of `ln Σ eˣ` and +.

use t4a_algebra::{Float, LogSumExp};
use t4a_diff::{Array, Flags};

use crate::error::Result;
use crate::operation::semiring::absorbing_sum;
use crate::operation::{ArraySemiring, FloatSemiring};
use crate::rules::{Differentiable, MatrixProduct, Share, log_sum};

impl<T: Float> Differentiable<T> for LogSumExp {
    const SHARE: Share = Share::Marginal;
    const READS_SUMS: bool = false;

    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }

    /// The weight of the term in the sum, a probability.
    fn marginal(term: T, sum: T) -> T {
        term.sub(sum).exp()
    }

    fn absorbs(x: T) -> bool {
        x == T::INFINITY
    }

    fn marginal_vjp(x: &MatrixProduct<'_, T>, cotangent: &[T]) -> Result<[Vec<T>; 2]> {
        log_sum::vjp(x, cotangent)
    }

    fn marginal_jvp(x: &MatrixProduct<'_, T>, da: &[T], db: &[T]) -> Result<Vec<T>> {
        log_sum::jvp(x, da, db)
    }
}

/// The terms of log-sum-exp as numbers between 0 and 1. No value is infinite, and no derivative either; masked zeros
/// have derivative 0.
struct ScaledTerms<A: Array> {
    /// `exp(t − shift)`, 0 for infinite t.
    parts: A,
    /// Their sum, 1 where that is 0.
    total: A,
    shift: A,
    /// Mask of the sums that are 0.
    dead: A::Flags,
    /// Masks of terms equal to +∞, and of sums equal to +∞.
    high: A::Flags,
    infinite: A::Flags,
}

impl<A: Array> ScaledTerms<A> {
    fn new(terms: &A, axis: usize) -> Self {
        let high = terms.equals(f64::INFINITY);
        let terms = terms.fill(&high, f64::NEG_INFINITY);
        // The maximum, or 0 if it is infinite; detached.
        let most = terms.detach().max(axis);
        let none = most.equals(f64::INFINITY).or(&most.equals(f64::NEG_INFINITY));
        let shift = most.fill(&none, 0.0);
        let parts = terms.sub(&shift).exp();
        let total = parts.sum(axis);
        let dead = total.equals(0.0);
        let infinite = high.any(axis).and(&total.is_nan().not());
        let total = total.fill(&dead, 1.0);
        Self { parts, total, shift, dead, high, infinite }
    }
}

impl ArraySemiring for LogSumExp {
    type Tag = FloatSemiring;
    const TAG: FloatSemiring = FloatSemiring::LogSumExp;

    fn product<A: Array>(a: &A, b: &A) -> A {
        absorbing_sum(a, b, f64::INFINITY)
    }

    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        let ScaledTerms { total, shift, dead, infinite, .. } = ScaledTerms::new(terms, axis);
        let sum = total.ln().add(&shift);
        sum.fill(&dead, f64::NEG_INFINITY).fill(&infinite, f64::INFINITY)
    }

    /// `exp(t − c)`; terms of +∞ have equal weights.
    fn weights<A: Array>(terms: &A, axis: usize) -> A {
        let ScaledTerms { parts, total, high, infinite, .. } = ScaledTerms::new(terms, axis);
        let finite = parts.div(&total);
        let count = terms.indicator(&high).sum(axis);
        let share = terms.indicator(&high).div(&count.fill(&count.equals(0.0), 1.0));
        finite.replace(&infinite.expand(&terms.shape()), &share)
    }
}
