//! Arithmetic operators on float tensors, so that rules can be written as formulas.

use std::ops::{Add, Div, Mul, Neg, Sub};

use burn_backend::tensor::{BoolTensor, FloatTensor};
use burn_backend::{Backend, BoolDType, Scalar, TensorMetadata, get_device_settings};

/// A float tensor of the inner backend.
#[derive(Clone, Debug)]
pub(crate) struct InnerFloat<B: Backend>(pub(crate) FloatTensor<B>);

macro_rules! operators {
    ($($trait:ident $method:ident: $tensors:ident, $scalar:ident;)*) => {$(
        impl<B: Backend> $trait for InnerFloat<B> {
            type Output = Self;

            fn $method(self, y: Self) -> Self {
                Self(B::$tensors(self.0, y.0))
            }
        }

        impl<B: Backend> $trait<f64> for InnerFloat<B> {
            type Output = Self;

            fn $method(self, c: f64) -> Self {
                Self(B::$scalar(self.0, Scalar::Float(c)))
            }
        }
    )*};
}

operators! {
    Add add: float_add, float_add_scalar;
    Sub sub: float_sub, float_sub_scalar;
    Mul mul: float_mul, float_mul_scalar;
    Div div: float_div, float_div_scalar;
}

impl<B: Backend> Neg for InnerFloat<B> {
    type Output = Self;

    fn neg(self) -> Self {
        self.map(B::float_neg)
    }
}

impl<B: Backend> InnerFloat<B> {
    /// `f(x)`.
    pub(crate) fn map(self, f: impl FnOnce(FloatTensor<B>) -> FloatTensor<B>) -> Self {
        Self(f(self.0))
    }

    /// x².
    pub(crate) fn square(self) -> Self {
        self.clone() * self
    }

    /// x, with zeros where `flags` is true.
    pub(crate) fn without(self, flags: BoolTensor<B>) -> Self {
        self.map(|x| B::float_mask_fill(x, flags, Scalar::Float(0.0)))
    }

    /// Mask `x < c`.
    pub(crate) fn below(&self, c: Scalar) -> BoolTensor<B> {
        B::float_lower_elem(self.0.clone(), c, self.bools())
    }

    /// Mask `x > c`.
    pub(crate) fn above(&self, c: Scalar) -> BoolTensor<B> {
        B::float_greater_elem(self.0.clone(), c, self.bools())
    }

    /// Mask `x = 0`.
    pub(crate) fn is_zero(&self) -> BoolTensor<B> {
        B::float_equal_elem(self.0.clone(), Scalar::Float(0.0), self.bools())
    }

    /// Dtype of boolean tensors.
    pub(crate) fn bools(&self) -> BoolDType {
        get_device_settings::<B>(&B::float_device(&self.0)).bool_dtype
    }

    /// Broadcast to the shape of `y`.
    pub(crate) fn like(self, y: &FloatTensor<B>) -> Self {
        self.map(|x| crate::primitive::expanded::<B>(x, y.shape()))
    }
}
