//! Derivative of (max, min).

use t4a_algebra::{Extended, MaxMin};
use t4a_diff::{Array, Flags};
use t4a_tensor::Tensor;

use crate::error::Result;
use crate::operation::semiring::{broadcast, greatest};
use crate::operation::{ArraySemiring, FloatSemiring};
use crate::rules::{Differentiable, Share, selective_matmul};

impl<T: Extended> Differentiable<T> for MaxMin {
    const SHARE: Share = Share::Argmax;

    /// Ties choose the left factor; a NaN is chosen over a number.
    fn partials(a: T, b: T) -> (T, T) {
        if a <= b || a.is_nan() { (T::ONE, T::ZERO) } else { (T::ZERO, T::ONE) }
    }

    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        selective_matmul::<Self, T>(a, b)
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
