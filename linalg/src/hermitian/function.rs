//! Scalar functions of eigenvalues, with derivatives.

use t4a_algebra::{Numeric, Real};
use t4a_tensor::Tensor;

use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, RealMatrices};

/// A function of eigenvalues on one implementor of the vocabulary.
pub trait SpectralFunction<R> {
    /// The derivative of the given order at each entry; order 0 is the function.
    fn eval(&self, order: usize, x: &R) -> R;
    /// The distance over which the function changes its shape, at each entry; a sign is ignored.
    fn length(&self, x: &R) -> R;
}

/// Elementary functions; they serve every implementor of the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Elementary {
    /// `eˣ`.
    Exp,
    /// `ln x`, for `x > 0`.
    Ln,
    /// `xᵖ`, for `x > 0`, or `x ≥ 0` where it is finite; any `x` for integer `p`.
    Pow(f64),
}

impl<R: RealMatrices> SpectralFunction<R> for Elementary {
    fn eval(&self, order: usize, x: &R) -> R {
        let power = |p: f64, skip: usize| {
            // p (p − 1) … over the derivatives taken.
            let factor: f64 = (skip..order).map(|i| p - (i - skip) as f64).product();
            match factor == 0.0 {
                true => x.constant(x.rows(), x.cols(), 0.0),
                false => x.powf(p - (order - skip) as f64).scale(factor),
            }
        };
        match self {
            Elementary::Exp => x.exp(),
            Elementary::Ln if order == 0 => x.ln(),
            Elementary::Ln => power(-1.0, 1),
            Elementary::Pow(p) => power(*p, 0),
        }
    }

    fn length(&self, x: &R) -> R {
        match self {
            Elementary::Exp => x.constant(x.rows(), x.cols(), 1.0),
            Elementary::Ln | Elementary::Pow(_) => x.clone(),
        }
    }
}

/// Any function on the host, for engine tensors: `f(order, x)` gives the derivatives of order 0
/// to 3.
#[derive(Clone, Copy, Debug)]
pub struct ScalarFunction<F>(pub F);

impl<F: Fn(usize, f64) -> f64, T: LinalgScalar<R = T> + Real> SpectralFunction<Batched<T>>
    for ScalarFunction<F>
{
    fn eval(&self, order: usize, x: &Batched<T>) -> Batched<T> {
        let apply = |x: Tensor<T>| -> crate::Result<Tensor<T>> {
            let values = x.to_vec()?.into_iter();
            let mapped = values.map(|v| <T as Numeric>::from_f64(self.0(order, v.to_f64())));
            Ok(Tensor::from_vec(mapped.collect(), x.shape())?)
        };
        match x.clone().into_tensor().and_then(apply) {
            Ok(tensor) => Batched::new(&tensor),
            Err(error) => Batched::failed(error),
        }
    }

    fn length(&self, x: &Batched<T>) -> Batched<T> {
        x.clone()
    }
}
