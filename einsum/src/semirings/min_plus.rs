//! Derivative of (min, +).

use t4a_algebra::{Extended, MinPlus};
use t4a_diff::Array;
use t4a_tensor::Tensor;

use crate::error::Result;
use crate::operation::semiring::{absorbing_sum, least};
use crate::operation::{ArraySemiring, FloatSemiring};
use crate::rules::{Differentiable, Share, selective_matmul};

impl<T: Extended> Differentiable<T> for MinPlus {
    const SHARE: Share = Share::Argmax;

    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }

    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        selective_matmul::<Self, T>(a, b)
    }
}

impl ArraySemiring for MinPlus {
    type Tag = FloatSemiring;
    const TAG: FloatSemiring = FloatSemiring::MinPlus;

    fn product<A: Array>(a: &A, b: &A) -> A {
        absorbing_sum(a, b, f64::NEG_INFINITY)
    }

    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        least(terms, axis)
    }
}
