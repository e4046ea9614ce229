//! Powers.

use burn_backend::tensor::{FloatTensor, IntTensor};
use burn_backend::{Backend, Scalar, TensorMetadata};

use crate::indexed::expanded_flags;
use crate::primitive::JvpTensor;
use crate::real::InnerFloat;

/// x^y: ẋ y x^(y−1) + ẏ x^y ln x; the second term is 0 for x = 0.
pub(crate) fn float<B: Backend>(x: JvpTensor<B>, y: JvpTensor<B>) -> JvpTensor<B> {
    let z = B::float_powf(x.primal.clone(), y.primal.clone());
    let left = x.tangent.map(|t| {
        let exponent = B::float_sub_scalar(y.primal.clone(), Scalar::Float(1.0));
        let slope = InnerFloat::<B>(B::float_powf(x.primal.clone(), exponent))
            * InnerFloat(y.primal.clone());
        // For y = 0 the derivative is 0, but 0 · x⁻¹ is NaN at x = 0.
        let flat = expanded_flags::<B>(InnerFloat::<B>(y.primal).is_zero(), z.shape());
        (InnerFloat(t) * slope).without(flat).0
    });
    let right = y.tangent.map(|t| {
        let x = InnerFloat::<B>(x.primal);
        let log = x.clone().map(B::float_log).without(x.is_zero());
        (InnerFloat(t) * (InnerFloat(z.clone()) * log)).0
    });
    JvpTensor::joined(z, left, right)
}

/// x^n with integer n.
pub(crate) fn int<B: Backend>(x: JvpTensor<B>, n: IntTensor<B>) -> JvpTensor<B> {
    x.chain(
        |x| B::float_powi(x, n.clone()),
        |t, x, y| {
            let count = InnerFloat::<B>(B::int_into_float(n.clone(), y.0.dtype().into()));
            let lower = B::int_sub_scalar(n.clone(), Scalar::Int(1));
            let slope = x.map(|x| B::float_powi(x, lower)) * count.clone();
            // For n = 0 the derivative is 0, but 0 · x⁻¹ is NaN at x = 0.
            let flat = expanded_flags::<B>(count.is_zero(), y.0.shape());
            (t * slope).without(flat)
        },
    )
}

/// x^c: ẋ c x^(c−1); the tangent is zero for c = 0.
pub(crate) fn scalar<B: Backend>(
    x: JvpTensor<B>,
    c: Scalar,
    f: impl Fn(FloatTensor<B>, Scalar) -> FloatTensor<B>,
) -> JvpTensor<B> {
    let exponent: f64 = c.elem();
    if exponent == 0.0 {
        return JvpTensor::constant(f(x.primal, c));
    }
    let lower = match c {
        Scalar::Float(c) => Scalar::Float(c - 1.0),
        c => Scalar::Int(c.elem::<i64>() - 1),
    };
    x.chain(|x| f(x, c), |t, x, _| t * x.map(|x| B::float_powf_scalar(x, lower)) * exponent)
}
