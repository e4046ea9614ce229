//! Derivative of (max, ×) on numbers ≥ 0.

use t4a_algebra::{Extended, MaxMul};
use t4a_diff::{Array, Flags};
use t4a_tensor::Tensor;

use crate::error::Result;
use crate::operation::semiring::{broadcast, greatest, scaled};
use crate::operation::{ArraySemiring, FloatSemiring};
use crate::rules::{Differentiable, Share, selective_matmul};

impl<T: Extended> Differentiable<T> for MaxMul {
    const SHARE: Share = Share::Argmax;

    fn partials(a: T, b: T) -> (T, T) {
        (b, a)
    }

    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        selective_matmul::<Self, T>(a, b)
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
