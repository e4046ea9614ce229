//! Trait of semirings expressed in array operations, the basis of the portable contraction and its derivative.
//!
//! The terms of a sum are along one axis. The scalar conventions apply: the zero of the semiring absorbs everything but
//! NaN, and a sum equal to that zero has derivative 0.

use t4a_algebra::{Semiring, bf16, f16};
use t4a_diff::{Array, Flags};

use super::tag::Tag;
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
pub(crate) fn greatest<A: Array>(terms: &A, axis: usize, least: f64) -> A {
    let nan = terms.is_nan();
    terms.fill(&nan, least).max(axis).fill(&nan.any(axis), f64::NAN)
}

/// Minimum along an axis that propagates NaN.
pub(crate) fn least<A: Array>(terms: &A, axis: usize) -> A {
    greatest(&terms.neg(), axis, f64::NEG_INFINITY).neg()
}

/// Both arrays expanded to their common shape.
pub(crate) fn broadcast<A: Array>(a: &A, b: &A) -> [A; 2] {
    let (x, y) = (a.shape(), b.shape());
    let common: Vec<usize> = x.iter().zip(&y).map(|(&x, &y)| x.max(y)).collect();
    [(a, x), (b, y)].map(|(t, shape)| if shape == common { t.clone() } else { t.expand(&common) })
}

/// `a + b`. If this is NaN for operands that are not NaN, as in −∞ + ∞, the infinity other than `wrong` is the result.
pub(crate) fn absorbing_sum<A: Array>(a: &A, b: &A, wrong: f64) -> A {
    let plain = a.add(b);
    let without = |x: &A| x.fill(&x.equals(wrong), 0.0);
    plain.replace(&plain.is_nan(), &without(a).add(&without(b)))
}

/// `w · p`, and 0 where w is 0 and p is infinite or NaN. The mask is applied to p, not to the product, so that the
/// gradient of the product is finite too.
pub(crate) fn scaled<A: Array>(w: &A, p: &A) -> A {
    // The mask is computed before p is expanded.
    let odd = p.equals(f64::INFINITY).or(&p.equals(f64::NEG_INFINITY)).or(&p.is_nan());
    let [w, p] = broadcast(w, p);
    let idle = odd.expand(&w.shape()).and(&w.equals(0.0));
    w.mul(&p.fill(&idle, 0.0))
}
