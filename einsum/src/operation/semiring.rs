//! Semirings expressed in array operations, the basis of the portable contraction and its derivative.
//!
//! The terms of a sum are along one axis. The scalar conventions apply: the zero of the semiring absorbs everything but
//! NaN, and a sum equal to that zero has derivative 0.

use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Semiring, Standard, bf16, f16};
use t4a_diff::{Array, Flags};

use super::tag::{FloatSemiring, Tag};
use crate::rules::Differentiable;

/// A semiring over floats whose contractions are differentiable operations.
///
/// Elementwise functions broadcast operands of equal rank. The engine runs the scalar rules of the supertraits; the
/// methods here are the same rules on any array type, which makes them differentiable.
///
/// A user-defined semiring has [`Custom`](super::Custom) as its tag:
/// `type Tag = Custom<Self>; const TAG: Custom<Self> = Custom::NEW;`.
pub trait ArraySemiring:
    Differentiable<f64> + Differentiable<f32> + Differentiable<f16> + Differentiable<bf16> + 'static
{
    /// The type of [`ArraySemiring::TAG`].
    type Tag: Tag;
    /// The semiring as a value.
    const TAG: Self::Tag;

    /// `a ⊗ b`.
    fn product<A: Array>(a: &A, b: &A) -> A;

    /// ⊕ along an axis of at least one element, which keeps size 1. NaN propagates.
    ///
    /// A tape differentiates this function, and [`ArraySemiring::weights`], for second derivatives: no infinite value
    /// may be the argument of an operation whose derivative is infinite or NaN there.
    fn sum<A: Array>(terms: &A, axis: usize) -> A;

    /// `∂(t₁ ⊕ t₂ ⊕ …)/∂tₖ` along an axis. The default is 1 for the first term that equals the sum, and 0 for all terms
    /// if the sum is the zero of the semiring.
    fn weights<A: Array>(terms: &A, axis: usize) -> A {
        let (place, none) = argmax::<Self, A>(terms, axis);
        let counts = terms.indicator(&none.not());
        terms.full(&terms.shape(), 0.0).scatter_add(axis, &place, &counts)
    }

    /// `g ∂(a ⊗ b)/∂a` and `g ∂(a ⊗ b)/∂b` for `g` of the shape of the product. The default is valid for ⊗ = +.
    fn factors<A: Array>(a: &A, b: &A, g: &A) -> [A; 2] {
        let _ = (a, b);
        [g.clone(), g.clone()]
    }
}

/// The zero of the semiring.
pub(super) fn zero<S: ArraySemiring>() -> f64 {
    <S as Semiring<f64>>::ZERO
}

/// Index of the first term along an axis that equals the sum (or is NaN if the sum is), and a mask of the sums that
/// equal the zero of the semiring, which have no argmax.
pub(super) fn argmax<S: ArraySemiring, A: Array>(
    terms: &A,
    axis: usize,
) -> (A::Integers, A::Flags) {
    let terms = terms.detach();
    let best = S::sum(&terms, axis);
    let hits = terms.equal(&best).or(&terms.is_nan());
    (terms.indicator(&hits).argmax(axis), best.equals(<S as Semiring<f64>>::ZERO))
}

/// Maximum along an axis that propagates NaN, which not all array types do.
fn greatest<A: Array>(terms: &A, axis: usize, least: f64) -> A {
    let nan = terms.is_nan();
    terms.fill(&nan, least).max(axis).fill(&nan.any(axis), f64::NAN)
}

/// Both arrays expanded to their common shape.
fn broadcast<A: Array>(a: &A, b: &A) -> [A; 2] {
    let (x, y) = (a.shape(), b.shape());
    let common: Vec<usize> = x.iter().zip(&y).map(|(&x, &y)| x.max(y)).collect();
    [(a, x), (b, y)].map(|(t, shape)| if shape == common { t.clone() } else { t.expand(&common) })
}

/// `a + b`. If this is NaN for operands that are not NaN, as in −∞ + ∞, the infinity other than `wrong` is the result.
fn absorbing_sum<A: Array>(a: &A, b: &A, wrong: f64) -> A {
    let plain = a.add(b);
    let without = |x: &A| x.fill(&x.equals(wrong), 0.0);
    plain.replace(&plain.is_nan(), &without(a).add(&without(b)))
}

/// `w · p`, and 0 where w is 0 and p is infinite or NaN. The mask is applied to p, not to the product, so that the
/// gradient of the product is finite too.
pub(super) fn scaled<A: Array>(w: &A, p: &A) -> A {
    // The mask is computed before p is expanded.
    let odd = p.equals(f64::INFINITY).or(&p.equals(f64::NEG_INFINITY)).or(&p.is_nan());
    let [w, p] = broadcast(w, p);
    let idle = odd.expand(&w.shape()).and(&w.equals(0.0));
    w.mul(&p.fill(&idle, 0.0))
}

impl ArraySemiring for Standard {
    type Tag = FloatSemiring;
    const TAG: FloatSemiring = FloatSemiring::Standard;

    fn product<A: Array>(a: &A, b: &A) -> A {
        a.mul(b)
    }

    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        terms.sum(axis)
    }

    fn weights<A: Array>(terms: &A, _axis: usize) -> A {
        terms.full(&terms.shape(), 1.0)
    }

    fn factors<A: Array>(a: &A, b: &A, g: &A) -> [A; 2] {
        [g.mul(b), g.mul(a)]
    }
}

impl ArraySemiring for MaxPlus {
    type Tag = FloatSemiring;
    const TAG: FloatSemiring = FloatSemiring::MaxPlus;

    fn product<A: Array>(a: &A, b: &A) -> A {
        absorbing_sum(a, b, f64::INFINITY)
    }

    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        greatest(terms, axis, f64::NEG_INFINITY)
    }
}

impl ArraySemiring for MinPlus {
    type Tag = FloatSemiring;
    const TAG: FloatSemiring = FloatSemiring::MinPlus;

    fn product<A: Array>(a: &A, b: &A) -> A {
        absorbing_sum(a, b, f64::NEG_INFINITY)
    }

    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        greatest(&terms.neg(), axis, f64::NEG_INFINITY).neg()
    }
}

impl ArraySemiring for MaxMul {
    type Tag = FloatSemiring;
    const TAG: FloatSemiring = FloatSemiring::MaxMul;

    fn product<A: Array>(a: &A, b: &A) -> A {
        // 0 · ∞ is masked in the operands: a mask on the product would leave 0 · ∞ in its gradient.
        let [a, b] = broadcast(a, b);
        let meet = |zero: &A, far: &A| zero.equals(0.0).and(&far.equals(f64::INFINITY));
        let absorbed = meet(&a, &b).or(&meet(&b, &a));
        a.fill(&absorbed, 0.0).mul(&b.fill(&absorbed, 0.0))
    }

    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        greatest(terms, axis, 0.0)
    }

    fn factors<A: Array>(a: &A, b: &A, g: &A) -> [A; 2] {
        [scaled(g, b), scaled(g, a)]
    }
}

impl ArraySemiring for MaxMin {
    type Tag = FloatSemiring;
    const TAG: FloatSemiring = FloatSemiring::MaxMin;

    fn product<A: Array>(a: &A, b: &A) -> A {
        let [a, b] = broadcast(a, b);
        a.replace(&a.greater(&b).or(&b.is_nan()), &b)
    }

    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        greatest(terms, axis, f64::NEG_INFINITY)
    }

    fn factors<A: Array>(a: &A, b: &A, g: &A) -> [A; 2] {
        // Weights of the smaller operand; ties choose a, and a NaN is chosen over a number.
        let [a, b] = broadcast(a, b);
        let nan = b.is_nan().and(&a.is_nan().not());
        let counts_b = a.greater(&b).or(&nan);
        [g.fill(&counts_b, 0.0), g.fill(&counts_b.not(), 0.0)]
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
