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

/// `1 / a`, and 0 if `|a| ≤ b`.
#[derive(Clone, Copy)]
pub(crate) struct MaskedRecip;

impl<T: Float> Binary<T> for MaskedRecip {
    type Out = T;
    const NAME: &'static str = "masked_recip";
    #[inline(always)]
    fn apply(self, a: T, b: T) -> T {
        if Real::abs(a) <= b { T::ZERO } else { Real::div(T::ONE, a) }
    }
}

/// `a/2`.
#[inline(always)]
fn half<T: LinalgScalar>(a: T) -> T {
    MulReal(PhantomData).apply(a, <T::R as Numeric>::from_f64(0.5))
}

/// `(a + b*)/2`.
#[derive(Clone, Copy)]
pub(crate) struct HalfSum;

impl<T: LinalgScalar> Binary<T> for HalfSum {
    type Out = T;
    const NAME: &'static str = "herm";
    #[inline(always)]
    fn apply(self, a: T, b: T) -> T {
        half(Numeric::add(a, Field::conj(b)))
    }
}

/// `(a − b*)/2`.
#[derive(Clone, Copy)]
pub(crate) struct HalfDifference;

impl<T: LinalgScalar> Binary<T> for HalfDifference {
    type Out = T;
    const NAME: &'static str = "skew";
    #[inline(always)]
    fn apply(self, a: T, b: T) -> T {
        half(Numeric::sub(a, Field::conj(b)))
    }
}

/// `r + 0i`.
#[derive(Clone, Copy)]
pub(crate) struct FromReal<T>(pub(crate) PhantomData<T>);

impl<T: LinalgScalar> Unary<T::R> for FromReal<T> {
    type Out = T;
    const NAME: &'static str = "from_re";
    #[inline(always)]
    fn apply(self, r: T::R) -> T {
        T::from_parts(r, <T::R as Numeric>::ZERO)
    }
}
