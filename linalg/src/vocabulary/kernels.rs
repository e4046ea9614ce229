//! Elementwise kernels that are used by matrices but not by arrays of one dtype.

use std::marker::PhantomData;

use t4a_algebra::{Field, Float, Numeric, Real};
use t4a_tensor::loops::kernel::{Binary, Unary};

use crate::scalar::LinalgScalar;

/// `x + 0i`.
#[derive(Clone, Copy)]
pub(crate) struct IntoComplex;

impl<T: LinalgScalar> Unary<T> for IntoComplex {
    type Out = T::Complex;
    const NAME: &'static str = "complex";
    #[inline(always)]
    fn apply(self, x: T) -> T::Complex {
        Field::from_parts(Field::re(x), Field::im(x))
    }
}

/// The part of a complex number that `T` represents.
#[derive(Clone, Copy)]
pub(crate) struct FromComplex<T>(pub(crate) PhantomData<T>);

impl<T: LinalgScalar> Unary<T::Complex> for FromComplex<T> {
    type Out = T;
    const NAME: &'static str = "from_complex";
    #[inline(always)]
    fn apply(self, z: T::Complex) -> T {
        T::from_parts(Field::re(z), Field::im(z))
    }
}

/// `a r` with real `r`.
#[derive(Clone, Copy)]
pub(crate) struct MulReal<T>(pub(crate) PhantomData<T>);

impl<T: LinalgScalar> Binary<T, T::R> for MulReal<T> {
    type Out = T;
    const NAME: &'static str = "mul_real";
    #[inline(always)]
    fn apply(self, a: T, r: T::R) -> T {
        T::from_parts(Numeric::mul(Field::re(a), r), Numeric::mul(Field::im(a), r))
    }
}

/// 1 if `|a| ≤ b`, else 0.
#[derive(Clone, Copy)]
pub(crate) struct Within;

impl<T: Float> Binary<T> for Within {
    type Out = T;
    const NAME: &'static str = "within";
    #[inline(always)]
    fn apply(self, a: T, b: T) -> T {
        if Real::abs(a) <= b { T::ONE } else { T::ZERO }
    }
}
