//! Scalar functions of eigenvalues, with derivatives.

use t4a_algebra::{Numeric, Real};
use t4a_tensor::Tensor;

use crate::degeneracy::by_bits;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

/// Scalar function of eigenvalues, on one implementor of [`RealMatrices`].
pub trait SpectralFunction<R> {
    /// `f(x)` at each entry.
    fn value(&self, x: &R) -> R;
    /// `f′(x)`.
    fn slope(&self, x: &R) -> R;
    /// `ℓ² f‴(x)` with `ℓ` the [`length`](Self::length): of the order of `f′`, where `f‴` alone would overflow.
    fn bend(&self, x: &R) -> R;
    /// Length scale `ℓ` over which the function varies; its sign is ignored.
    fn length(&self, x: &R) -> R;
}

/// Elementary functions, for every implementor of [`RealMatrices`].
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Elementary {
    /// `eˣ`.
    Exp,
    /// `ln x`, for `x > 0`.
    Ln,
    /// `xᵖ`, for `x > 0`, or `x ≥ 0` where it is finite; any `x` for integer `p`.
    Pow(f64),
}

by_bits!(Elementary, |f| match f {
    Elementary::Exp => (0, 0),
    Elementary::Ln => (1, 0),
    Elementary::Pow(p) => (2, p.to_bits()),
});

impl Elementary {
    /// `f″(x)`.
    pub(crate) fn curvature<R: RealMatrices>(self, x: &R) -> R {
        match self {
            Elementary::Exp => x.exp(),
            Elementary::Ln => power(x, -1.0, -2.0),
            Elementary::Pow(p) => power(x, p * (p - 1.0), p - 2.0),
        }
    }

    /// `ℓ² f⁗(x)`.
    pub(crate) fn curvature_bend<R: RealMatrices>(self, x: &R) -> R {
        match self {
            Elementary::Exp => x.exp(),
            Elementary::Ln => power(x, -6.0, -2.0),
            Elementary::Pow(p) => power(x, p * (p - 1.0) * (p - 2.0) * (p - 3.0), p - 2.0),
        }
    }
}

impl<R: RealMatrices> SpectralFunction<R> for Elementary {
    fn value(&self, x: &R) -> R {
        match self {
            Elementary::Exp => x.exp(),
            Elementary::Ln => x.ln(),
            Elementary::Pow(p) => x.powf(*p),
        }
    }

    fn slope(&self, x: &R) -> R {
        match self {
            Elementary::Exp => x.exp(),
            Elementary::Ln => power(x, 1.0, -1.0),
            Elementary::Pow(p) => power(x, *p, p - 1.0),
        }
    }

    fn bend(&self, x: &R) -> R {
        match self {
            Elementary::Exp => x.exp(),
            Elementary::Ln => power(x, 2.0, -1.0),
            Elementary::Pow(p) => power(x, p * (p - 1.0) * (p - 2.0), p - 1.0),
        }
    }

    fn length(&self, x: &R) -> R {
        match self {
            Elementary::Exp => x.constant(x.rows(), x.cols(), 1.0),
            Elementary::Ln | Elementary::Pow(_) => x.clone(),
        }
    }
}

/// `c xᵖ`; 0 where `xᵖ` is not finite.
fn power<R: RealMatrices>(x: &R, c: f64, p: f64) -> R {
    match c == 0.0 {
        true => x.constant(x.rows(), x.cols(), 0.0),
        false => x.powf(p).scale(c),
    }
}

/// Any function on the host, for engine tensors: `f(order, x)` returns the derivative of order 0, 1 or 3.
#[derive(Clone, Copy, Debug)]
pub struct ScalarFunction<F>(pub F);

impl<F: Fn(usize, f64) -> f64, T: LinalgScalar<R = T> + Real> SpectralFunction<Batched<T>>
    for ScalarFunction<F>
{
    fn value(&self, x: &Batched<T>) -> Batched<T> {
        self.each(x, |x| (self.0)(0, x))
    }

    fn slope(&self, x: &Batched<T>) -> Batched<T> {
        self.each(x, |x| (self.0)(1, x))
    }

    fn bend(&self, x: &Batched<T>) -> Batched<T> {
        self.each(x, |x| x * x * (self.0)(3, x))
    }

    fn length(&self, x: &Batched<T>) -> Batched<T> {
        x.clone()
    }
}

impl<F> ScalarFunction<F> {
    fn each<T: LinalgScalar<R = T> + Real>(
        &self,
        x: &Batched<T>,
        f: impl Fn(f64) -> f64,
    ) -> Batched<T> {
        let apply = |x: Tensor<T>| -> crate::Result<Tensor<T>> {
            let values = x.to_vec()?.into_iter();
            let mapped = values.map(|v| <T as Numeric>::from_f64(f(v.to_f64())));
            Ok(Tensor::from_vec(mapped.collect(), x.shape())?)
        };
        match x.clone().into_tensor().and_then(apply) {
            Ok(tensor) => Batched::new(&tensor),
            Err(error) => Batched::failed(error),
        }
    }
}
