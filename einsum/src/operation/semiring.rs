//! Semirings in the vocabulary of arrays: what the portable contraction and its derivative are made of.
//!
//! Terms of a sum stand along one axis. What holds for numbers holds here: 0 of the semiring
//! absorbs everything but NaN, and a sum without a term that counts passes no derivative on.

use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Semiring, Standard, bf16, f16};
use t4a_diff::{Array, Flags};

use super::tag::{FloatSemiring, Tag};
use crate::rules::Differentiable;

/// A semiring over floats of which contractions are operations with derivatives.
///
/// Elementwise functions broadcast operands of equal rank. The rules of the supertraits, element by
/// element, are what the engine runs; these are the same on arrays of any kind, which makes them
/// differentiable in turn.
///
/// A semiring of your own takes [`Custom`](super::Custom) for a tag:
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

    /// ⊕ along an axis, which stays with size 1. It has at least one element. NaN is passed on.
    ///
    /// A tape differentiates this, and [`ArraySemiring::weights`], for second derivatives: nothing
    /// infinite may enter an operation whose derivative is infinite or NaN there.
    fn sum<A: Array>(terms: &A, axis: usize) -> A;

    /// `∂(t₁ ⊕ t₂ ⊕ …)/∂tₖ` along an axis. The default is 1 for the first term that equals the
    /// sum, unless that is 0 of the semiring.
    fn weights<A: Array>(terms: &A, axis: usize) -> A {
        let (place, none) = argmax::<Self, A>(terms, axis);
        let counts = terms.indicator(&none.not());
        terms.full(&terms.shape(), 0.0).scatter_add(axis, &place, &counts)
    }

    /// `g ∂(a ⊗ b)/∂a` and `g ∂(a ⊗ b)/∂b` for `g` of the shape of the product. The default is
    /// that of a sum.
    fn factors<A: Array>(a: &A, b: &A, g: &A) -> [A; 2] {
        let _ = (a, b);
        [g.clone(), g.clone()]
    }
}

/// 0 of the semiring.
pub(super) fn zero<S: ArraySemiring>() -> f64 {
    <S as Semiring<f64>>::ZERO
}

/// The first term along an axis that equals the sum, or is NaN as it is, and which sums are 0 of the
/// semiring: these have no term that counts.
pub(super) fn argmax<S: ArraySemiring, A: Array>(
    terms: &A,
    axis: usize,
) -> (A::Integers, A::Flags) {
    let terms = terms.detach();
    let best = S::sum(&terms, axis);
    let hits = terms.equal(&best).or(&terms.is_nan());
    (terms.indicator(&hits).argmax(axis), best.equals(<S as Semiring<f64>>::ZERO))
}

/// The greatest along an axis, NaN if there is one: implementors differ in whether they pass that on.
fn greatest<A: Array>(terms: &A, axis: usize, least: f64) -> A {
    let nan = terms.is_nan();
    terms.fill(&nan, least).max(axis).fill(&nan.any(axis), f64::NAN)
}

/// Both arrays in their common shape.
fn broadcast<A: Array>(a: &A, b: &A) -> [A; 2] {
    let (x, y) = (a.shape(), b.shape());
    let common: Vec<usize> = x.iter().zip(&y).map(|(&x, &y)| x.max(y)).collect();
    [(a, x), (b, y)].map(|(t, shape)| if shape == common { t.clone() } else { t.expand(&common) })
}

/// `a + b`; where that is NaN for operands that are not, as −∞ + ∞ is, without the infinities of the
/// wrong sign.
fn absorbing_sum<A: Array>(a: &A, b: &A, wrong: f64) -> A {
    let plain = a.add(b);
    let without = |x: &A| x.fill(&x.equals(wrong), 0.0);
    plain.replace(&plain.is_nan(), &without(a).add(&without(b)))
}

/// `w · p`, and 0 where w is 0 and p no number: in the gradient of this product too, which is why p
/// and not the product is masked.
pub(super) fn scaled<A: Array>(w: &A, p: &A) -> A {
    // Before p is repeated.
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
        // 0 · ∞ is masked in the operands: masked in the product, its gradient would be 0 · ∞ again.
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
        // The smaller one, a of two equals, and NaN before a number.
        let [a, b] = broadcast(a, b);
        let nan = b.is_nan().and(&a.is_nan().not());
        let counts_b = a.greater(&b).or(&nan);
        [g.fill(&counts_b, 0.0), g.fill(&counts_b.not(), 0.0)]
    }
}

/// The terms of log-sum-exp as numbers between 0 and 1. Nothing here is infinite, and neither is a
/// derivative of it: what is 0 because a mask says so has none.
struct Exponentials<A: Array> {
    /// `exp(t − shift)`, 0 for infinite t.
    parts: A,
    /// Their sum, 1 where that is 0.
    total: A,
    shift: A,
    /// Where the sum is 0.
    dead: A::Flags,
    /// Terms that are +∞, and sums that are.
    high: A::Flags,
    infinite: A::Flags,
}

impl<A: Array> Exponentials<A> {
    fn new(terms: &A, axis: usize) -> Self {
        let high = terms.equals(f64::INFINITY);
        let terms = terms.fill(&high, f64::NEG_INFINITY);
        // The maximum, 0 where it is infinite; a constant.
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
        let Exponentials { total, shift, dead, infinite, .. } = Exponentials::new(terms, axis);
        let sum = total.ln().add(&shift);
        sum.fill(&dead, f64::NEG_INFINITY).fill(&infinite, f64::INFINITY)
    }

    /// `exp(t − c)`; terms of +∞ share equally.
    fn weights<A: Array>(terms: &A, axis: usize) -> A {
        let Exponentials { parts, total, high, infinite, .. } = Exponentials::new(terms, axis);
        let finite = parts.div(&total);
        let count = terms.indicator(&high).sum(axis);
        let share = terms.indicator(&high).div(&count.fill(&count.equals(0.0), 1.0));
        finite.replace(&infinite.expand(&terms.shape()), &share)
    }
}
