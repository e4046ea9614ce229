//! Kernels of a semiring known at compile time, dispatched from its tag.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard};
use t4a_diff::Array;
use t4a_diff::array::Semiring;
use t4a_tensor::AnyTensor;

use super::engine;
use super::semiring::{self, ArraySemiring};
use super::tag::{FloatSemiring, Tag, over};
use crate::error::Result;
use crate::plan::Plan;
use crate::rules::{Differentiable, Share};

/// A user-defined semiring as a value; its kernels are compiled in the crate that uses it.
pub struct Custom<S>(PhantomData<fn() -> S>);

impl<S> Custom<S> {
    /// The only value of the type.
    pub const NEW: Self = Self(PhantomData);
}

impl<S> Clone for Custom<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Custom<S> {}
impl<S> fmt::Debug for Custom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<S>())
    }
}
impl<S> PartialEq for Custom<S> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl<S> Eq for Custom<S> {}
impl<S> Hash for Custom<S> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<S: ArraySemiring> Tag for Custom<S> {
    fn name(&self) -> &'static str {
        std::any::type_name::<S>()
    }
    fn share(&self) -> Share {
        <S as Differentiable<f64>>::SHARE
    }
    fn zero(&self) -> f64 {
        <S as t4a_algebra::Semiring<f64>>::ZERO
    }
    fn one(&self) -> f64 {
        <S as t4a_algebra::Semiring<f64>>::ONE
    }
    fn product<A: Array>(&self, a: &A, b: &A) -> A {
        S::product(a, b)
    }
    fn sum<A: Array>(&self, terms: &A, axis: usize) -> A {
        S::sum(terms, axis)
    }
    fn weights<A: Array>(&self, terms: &A, axis: usize) -> A {
        S::weights(terms, axis)
    }
    fn factors<A: Array>(&self, a: &A, b: &A, g: &A) -> [A; 2] {
        S::factors(a, b, g)
    }
    fn argmax<A: Array>(&self, terms: &A, axis: usize) -> (A::Integers, A::Flags) {
        semiring::argmax::<S, A>(terms, axis)
    }
    fn contract(&self, plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        engine::contract::<S>(plan, operands)
    }
    fn contract_argmax(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
    ) -> Result<(AnyTensor, Option<AnyTensor>)> {
        engine::contract_argmax::<S>(plan, operands)
    }
    fn vjp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        argmax: Option<&AnyTensor>,
        cotangent: &AnyTensor,
    ) -> Result<Vec<AnyTensor>> {
        engine::vjp::<S>(plan, operands, argmax, cotangent)
    }
    fn jvp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        tangents: &[&AnyTensor],
    ) -> Result<(AnyTensor, AnyTensor)> {
        engine::jvp::<S>(plan, operands, tangents)
    }
}

impl Tag for FloatSemiring {
    fn name(&self) -> &'static str {
        self.label()
    }
    fn share(&self) -> Share {
        over!(self, s => s.share())
    }
    fn zero(&self) -> f64 {
        over!(self, s => s.zero())
    }
    fn one(&self) -> f64 {
        over!(self, s => s.one())
    }
    fn kernel(&self) -> Option<Semiring> {
        match self {
            Self::MaxPlus => Some(Semiring::MaxPlus),
            Self::MinPlus => Some(Semiring::MinPlus),
            Self::MaxMul => Some(Semiring::MaxMul),
            Self::MinMul => Some(Semiring::MinMul),
            Self::MaxMin => Some(Semiring::MaxMin),
            Self::LogSumExp => Some(Semiring::LogSumExp),
            Self::Standard => None,
        }
    }
    fn product<A: Array>(&self, a: &A, b: &A) -> A {
        over!(self, s => s.product(a, b))
    }
    fn sum<A: Array>(&self, terms: &A, axis: usize) -> A {
        over!(self, s => s.sum(terms, axis))
    }
    fn weights<A: Array>(&self, terms: &A, axis: usize) -> A {
        over!(self, s => s.weights(terms, axis))
    }
    fn factors<A: Array>(&self, a: &A, b: &A, g: &A) -> [A; 2] {
        over!(self, s => s.factors(a, b, g))
    }
    fn argmax<A: Array>(&self, terms: &A, axis: usize) -> (A::Integers, A::Flags) {
        over!(self, s => s.argmax(terms, axis))
    }
    fn contract(&self, plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        over!(self, s => s.contract(plan, operands))
    }
    fn contract_argmax(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
    ) -> Result<(AnyTensor, Option<AnyTensor>)> {
        over!(self, s => s.contract_argmax(plan, operands))
    }
    fn vjp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        argmax: Option<&AnyTensor>,
        cotangent: &AnyTensor,
    ) -> Result<Vec<AnyTensor>> {
        over!(self, s => s.vjp(plan, operands, argmax, cotangent))
    }
    fn jvp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        tangents: &[&AnyTensor],
    ) -> Result<(AnyTensor, AnyTensor)> {
        over!(self, s => s.jvp(plan, operands, tangents))
    }
}
