//! Dual numbers over any array type: a value with its tangent.
//!
//! A portable definition run on duals is its jvp; a vjp run on duals is a Hessian–vector product.

use t4a_tensor::{AnyTensor, DType, Result};

use super::{Array, Shape};
use crate::operation::{Operation, Outcome, Value};

/// A value and its tangent; `None` is a zero tangent.
#[derive(Clone, Debug)]
pub struct Dual<A> {
    /// The value.
    pub value: A,
    /// The tangent, in the shape of the value.
    pub tangent: Option<A>,
}

impl<A: Array> Dual<A> {
    /// A value with a tangent.
    pub fn new(value: A, tangent: A) -> Self {
        Self { value, tangent: Some(tangent) }
    }

    /// A value with zero tangent.
    pub fn constant(value: A) -> Self {
        Self { value, tangent: None }
    }

    /// The value.
    pub fn into_value(self) -> A {
        self.value
    }

    /// The tangent; zeros if `None`.
    pub fn into_tangent(self) -> A {
        let zeros = || self.value.full(&self.value.shape(), 0.0);
        self.tangent.clone().unwrap_or_else(zeros)
    }

    /// Applies the linear map `f` to both parts.
    fn linear(&self, f: impl Fn(&A) -> A) -> Self {
        Self { value: f(&self.value), tangent: self.tangent.as_ref().map(f) }
    }

    /// `f(x)`, given its value and the linear map from the tangent of x to that of `f(x)`.
    fn chain(&self, value: A, push: impl FnOnce(&A, &A) -> A) -> Self {
        let tangent = self.tangent.as_ref().map(|t| push(t, &value));
        Self { value, tangent }
    }

    /// A result whose tangent is the sum of two, each broadcast if necessary.
    fn joined(value: A, a: Option<A>, b: Option<A>) -> Self {
        let tangent = match (a, b) {
            (Some(a), Some(b)) => Some(a.plus(&b)),
            (Some(t), None) | (None, Some(t)) => {
                let shape = value.shape();
                Some(if t.shape() == shape { t } else { t.expand(&shape) })
            }
            (None, None) => None,
        };
        Self { value, tangent }
    }

    /// A result that is linear in both operands.
    fn bilinear(&self, y: &Self, f: impl Fn(&A, &A) -> A) -> Self {
        let value = f(&self.value, &y.value);
        let left = self.tangent.as_ref().map(|t| f(t, &y.value));
        let right = y.tangent.as_ref().map(|t| f(&self.value, t));
        Self::joined(value, left, right)
    }

    /// A result that is jointly linear in both operands.
    fn together(&self, y: &Self, f: impl Fn(&A, &A) -> A) -> Self {
        let value = f(&self.value, &y.value);
        let tangent = match (&self.tangent, &y.tangent) {
            (None, None) => None,
            _ => Some(f(&self.clone().into_tangent(), &y.clone().into_tangent())),
        };
        Self { value, tangent }
    }
}

impl<A: Array> Array for Dual<A> {
    type Integers = A::Integers;
    type Flags = A::Flags;

    fn shape(&self) -> Shape {
        self.value.shape()
    }
    fn dtype(&self) -> DType {
        self.value.dtype()
    }
    fn full(&self, shape: &[usize], c: f64) -> Self {
        Self::constant(self.value.full(shape, c))
    }
    fn constant(&self, elements: AnyTensor) -> Self {
        Self::constant(self.value.constant(elements))
    }
    fn indices(&self, elements: AnyTensor) -> A::Integers {
        self.value.indices(elements)
    }
    fn counting(&self, n: usize) -> A::Integers {
        self.value.counting(n)
    }
    fn indicator(&self, flags: &A::Flags) -> Self {
        Self::constant(self.value.indicator(flags))
    }
    fn detach(&self) -> Self {
        Self::constant(self.value.detach())
    }
    fn elements(&self) -> Result<AnyTensor> {
        self.value.elements()
    }
    fn apply<O: Operation>(
        op: &O,
        inputs: &[Value<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Self>, O::Error> {
        if inputs.iter().any(Value::moves) {
            return A::jvp(op, inputs, tracked);
        }
        let values: Vec<Value<A>> = inputs.iter().map(|x| x.clone().below()).collect();
        A::apply(op, &values, tracked)?.try_map(|x| Ok(x.dual(None)), |x| Ok(Self::constant(x)))
    }
    fn add(&self, y: &Self) -> Self {
        Self::joined(self.value.add(&y.value), self.tangent.clone(), y.tangent.clone())
    }
    fn sub(&self, y: &Self) -> Self {
        let right = y.tangent.as_ref().map(A::neg);
        Self::joined(self.value.sub(&y.value), self.tangent.clone(), right)
    }
    fn mul(&self, y: &Self) -> Self {
        self.bilinear(y, A::mul)
    }
    fn div(&self, y: &Self) -> Self {
        let value = self.value.div(&y.value);
        let left = self.tangent.as_ref().map(|t| t.div(&y.value));
        let right = y.tangent.as_ref().map(|t| value.mul(t).div(&y.value).neg());
        Self::joined(value, left, right)
    }
    fn shift(&self, c: f64) -> Self {
        Self { value: self.value.shift(c), tangent: self.tangent.clone() }
    }
    fn scale(&self, c: f64) -> Self {
        self.linear(|x| x.scale(c))
    }
    fn recip(&self) -> Self {
        self.chain(self.value.recip(), |t, y| t.mul(&y.mul(y)).neg())
    }
    fn exp(&self) -> Self {
        self.chain(self.value.exp(), A::mul)
    }
    fn ln(&self) -> Self {
        self.chain(self.value.ln(), |t, _| t.div(&self.value))
    }
    fn sqrt(&self) -> Self {
        self.chain(self.value.sqrt(), |t, y| t.div(y).scale(0.5))
    }
    fn pow(&self, p: f64) -> Self {
        self.chain(self.value.pow(p), |t, _| t.mul(&self.value.pow(p - 1.0)).scale(p))
    }
    fn tanh(&self) -> Self {
        self.chain(self.value.tanh(), |t, y| t.mul(&y.mul(y).neg().shift(1.0)))
    }
    fn ln_1p(&self) -> Self {
        self.chain(self.value.ln_1p(), |t, _| t.div(&self.value.shift(1.0)))
    }
    fn sin(&self) -> Self {
        self.chain(self.value.sin(), |t, _| t.mul(&self.value.cos()))
    }
    fn cos(&self) -> Self {
        self.chain(self.value.cos(), |t, _| t.mul(&self.value.sin()).neg())
    }
    fn erf(&self) -> Self {
        let slope = |x: &A| x.mul(x).neg().exp().scale(std::f64::consts::FRAC_2_SQRT_PI);
        self.chain(self.value.erf(), |t, _| t.mul(&slope(&self.value)))
    }
    fn abs(&self) -> Self {
        self.chain(self.value.abs(), |t, _| t.mul(&self.value.sign()))
    }
    fn equal(&self, y: &Self) -> A::Flags {
        self.value.equal(&y.value)
    }
    fn greater(&self, y: &Self) -> A::Flags {
        self.value.greater(&y.value)
    }
    fn equals(&self, c: f64) -> A::Flags {
        self.value.equals(c)
    }
    fn is_nan(&self) -> A::Flags {
        self.value.is_nan()
    }
    fn replace(&self, flags: &A::Flags, y: &Self) -> Self {
        self.together(y, |x, y| x.replace(flags, y))
    }
    fn fill(&self, flags: &A::Flags, c: f64) -> Self {
        self.chain(self.value.fill(flags, c), |t, _| t.fill(flags, 0.0))
    }
    fn reshape(&self, shape: &[usize]) -> Self {
        self.linear(|x| x.reshape(shape))
    }
    fn permute(&self, axes: &[usize]) -> Self {
        self.linear(|x| x.permute(axes))
    }
    fn expand(&self, shape: &[usize]) -> Self {
        self.linear(|x| x.expand(shape))
    }
    fn slice(&self, axis: usize, start: usize, len: usize, step: usize) -> Self {
        self.linear(|x| x.slice(axis, start, len, step))
    }
    fn embed(&self, axis: usize, start: usize, step: usize, size: usize) -> Self {
        self.linear(|x| x.embed(axis, start, step, size))
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        let values: Vec<A> = arrays.iter().map(|x| x.value.clone()).collect();
        let moves = arrays.iter().any(|x| x.tangent.is_some());
        let tangents = || arrays.iter().map(|x| x.clone().into_tangent()).collect::<Vec<A>>();
        Self { value: A::cat(&values, axis), tangent: moves.then(|| A::cat(&tangents(), axis)) }
    }
    fn flip(&self, axes: &[usize]) -> Self {
        self.linear(|x| x.flip(axes))
    }
    fn sum(&self, axis: usize) -> Self {
        self.linear(|x| x.sum(axis))
    }
    fn argmax(&self, axis: usize) -> A::Integers {
        self.value.argmax(axis)
    }
    fn cumsum(&self, axis: usize) -> Self {
        self.linear(|x| x.cumsum(axis))
    }
    fn gather(&self, axis: usize, index: &A::Integers) -> Self {
        self.linear(|x| x.gather(axis, index))
    }
    fn scatter_add(&self, axis: usize, index: &A::Integers, y: &Self) -> Self {
        self.together(y, |x, y| x.scatter_add(axis, index, y))
    }
    fn matmul(&self, y: &Self) -> Self {
        self.bilinear(y, A::matmul)
    }
    fn activity(&self) -> Self {
        let value = self.value.activity();
        Self::constant(match &self.tangent {
            Some(tangent) => value.add(&tangent.activity()),
            None => value,
        })
    }
}
