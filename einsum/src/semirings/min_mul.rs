//! Derivative of (min, ×) on numbers ≥ 0.

use t4a_algebra::{Extended, MinMul};
use t4a_diff::{Array, Flags};
use t4a_tensor::Tensor;

use crate::error::Result;
use crate::operation::semiring::{broadcast, least, scaled};
use crate::operation::{ArraySemiring, FloatSemiring};
use crate::rules::{Differentiable, Share, selective_matmul};

impl<T: Extended> Differentiable<T> for MinMul {
    const SHARE: Share = Share::Argmax;

    fn partials(a: T, b: T) -> (T, T) {
        (b, a)
    }

    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        selective_matmul::<Self, T>(a, b)
    }
}

impl ArraySemiring for MinMul {
    type Tag = FloatSemiring;
    const TAG: FloatSemiring = FloatSemiring::MinMul;

    fn product<A: Array>(a: &A, b: &A) -> A {
        // ∞ is masked in the operands: a factor ∞ would make the derivative 0 of a term that is not the least NaN.
        let [a, b] = broadcast(a, b);
        let absorbs = |x: &A, other: &A| x.equals(f64::INFINITY).and(&other.is_nan().not());
        let absorbed = absorbs(&a, &b).or(&absorbs(&b, &a));
        let finite = a.fill(&absorbed, 1.0).mul(&b.fill(&absorbed, 1.0));
        finite.fill(&absorbed, f64::INFINITY)
    }

    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        least(terms, axis)
    }

    fn factors<A: Array>(a: &A, b: &A, g: &A) -> [A; 2] {
        [scaled(g, b), scaled(g, a)]
    }
}
