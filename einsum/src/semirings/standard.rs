//! Derivative of (+, ×).

use t4a_algebra::{Field, Standard};
use t4a_diff::Array;

use crate::operation::{ArraySemiring, FloatSemiring};
use crate::rules::{Differentiable, Share};

impl<T: Field> Differentiable<T> for Standard {
    const SHARE: Share = Share::Linear;

    fn partials(a: T, b: T) -> (T, T) {
        (b, a)
    }

    fn conj(x: T) -> T {
        x.conj()
    }
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
