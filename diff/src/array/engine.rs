//! Array operations on engine tensors.

use std::fmt;
use std::marker::PhantomData;

use t4a_algebra::{Float, Numeric};
use t4a_tensor::any::Number;
use t4a_tensor::dtype::Element;
use t4a_tensor::index::{Reduction, Span};
use t4a_tensor::kernels::compare::Logic;
use t4a_tensor::map::add_terms;
use t4a_tensor::reduce::dots;
use t4a_tensor::{AnyTensor, DType, Result};

use super::{Array, Dual, Flags, Integers, Shape};
use crate::operation::{Operation, Outcome, Value};

/// `x + Σ c y`, in place if x has one owner.
fn add_scaled<'a, T: Element + Numeric>(
    x: AnyTensor,
    terms: impl Iterator<Item = &'a (f64, &'a Eager)>,
) -> Result<AnyTensor> {
    let terms = terms.map(|&(c, y)| Ok((T::from_f64(c), y.tensor()?.typed()?)));
    Ok(add_terms(x.into_typed::<T>()?, &terms.collect::<Result<Vec<_>>>()?)?.into())
}

/// `Σ x y` for each y.
fn products<T: Element + Float + Into<f64>>(x: &Eager, others: &[&Eager]) -> Result<Vec<f64>> {
    let others = others.iter().map(|y| y.tensor()?.typed::<T>());
    dots(x.tensor()?.typed()?, &others.collect::<Result<Vec<_>>>()?)
}

/// Kind of the elements of an [`Eager`] tensor.
pub trait ElementKind: 'static {}
/// Floats.
pub enum Reals {}
/// Integers of any type, as indices.
pub enum Indices {}
/// `bool`s.
pub enum Truths {}
impl ElementKind for Reals {}
impl ElementKind for Indices {}
impl ElementKind for Truths {}

/// An engine tensor, or the first error of its computation.
///
/// Errors propagate through operations, so rules have no error handling; [`Eager::into_tensor`] returns them.
pub struct Eager<K = Reals>(Result<AnyTensor>, PhantomData<fn() -> K>);

impl<K> Clone for Eager<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<K> fmt::Debug for Eager<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<K: ElementKind> From<AnyTensor> for Eager<K> {
    fn from(tensor: AnyTensor) -> Self {
        Self(Ok(tensor), PhantomData)
    }
}

impl<K: ElementKind> From<&AnyTensor> for Eager<K> {
    fn from(tensor: &AnyTensor) -> Self {
        Self(Ok(tensor.clone()), PhantomData)
    }
}

impl<K: ElementKind> From<Result<AnyTensor>> for Eager<K> {
    fn from(tensor: Result<AnyTensor>) -> Self {
        Self(tensor, PhantomData)
    }
}

impl<K: ElementKind> Eager<K> {
    /// The tensor.
    ///
    /// # Errors
    /// The first error of the operations that computed it.
    pub fn into_tensor(self) -> Result<AnyTensor> {
        self.0
    }

    /// The tensor.
    ///
    /// # Errors
    /// As [`Eager::into_tensor`].
    pub fn tensor(&self) -> Result<&AnyTensor> {
        self.0.as_ref().map_err(Clone::clone)
    }

    fn then<J: ElementKind>(&self, f: impl FnOnce(AnyTensor) -> Result<AnyTensor>) -> Eager<J> {
        self.0.clone().and_then(f).into()
    }

    fn with<I: ElementKind, J: ElementKind>(
        &self,
        y: &Eager<I>,
        f: impl FnOnce(AnyTensor, AnyTensor) -> Result<AnyTensor>,
    ) -> Eager<J> {
        self.then(|x| f(x, y.0.clone()?))
    }

    /// The shape; empty if there is an error, which the next operation propagates.
    fn sizes(&self) -> Shape {
        self.0.as_ref().map_or_else(|_| Shape::new(), |x| x.shape().to_vec())
    }
}

fn joined<K: ElementKind>(arrays: &[Eager<K>], axis: usize) -> Eager<K> {
    let all: Result<Vec<AnyTensor>> = arrays.iter().map(|x| x.0.clone()).collect();
    all.and_then(|all| AnyTensor::cat(&all, axis)).into()
}

impl Array for Eager {
    type Integers = Eager<Indices>;
    type Flags = Eager<Truths>;

    fn shape(&self) -> Shape {
        self.sizes()
    }
    fn dtype(&self) -> DType {
        self.0.as_ref().map_or(DType::F32, AnyTensor::dtype)
    }
    fn full(&self, shape: &[usize], c: f64) -> Self {
        self.then(|x| AnyTensor::full(shape, Number::Float(c), x.dtype()))
    }
    fn constant(&self, elements: AnyTensor) -> Self {
        elements.into()
    }
    fn indices(&self, elements: AnyTensor) -> Eager<Indices> {
        elements.into()
    }
    fn counting(&self, n: usize) -> Eager<Indices> {
        let end = Number::UInt(n as u64);
        self.then(|_| AnyTensor::arange(Number::Int(0), end, Number::Int(1), DType::I64))
    }
    fn indicator(&self, flags: &Eager<Truths>) -> Self {
        self.with(flags, |x, flags| flags.cast(x.dtype()))
    }
    fn detach(&self) -> Self {
        self.clone()
    }
    fn elements(&self) -> Result<AnyTensor> {
        self.0.clone()
    }
    fn apply<O: Operation>(
        op: &O,
        inputs: &[Value<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Self>, O::Error> {
        op.forward(inputs, tracked)
    }
    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Self>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Self>>, O::Error> {
        op.fused_jvp(inputs, tracked)
    }
    fn add(&self, y: &Self) -> Self {
        self.with(y, AnyTensor::add)
    }
    fn sub(&self, y: &Self) -> Self {
        self.with(y, AnyTensor::sub)
    }
    fn plus(self, y: &Self) -> Self {
        self.0.and_then(|x| x.add(y.0.clone()?)).into()
    }
    fn plus_terms(self, terms: &[(f64, &Self)]) -> Self {
        let mut terms = terms.iter().filter(|&&(c, _)| c != 0.0);
        let sum = |x: AnyTensor| match x.dtype() {
            DType::F64 => add_scaled::<f64>(x, terms),
            DType::F32 => add_scaled::<f32>(x, terms),
            _ => terms
                .try_fold(x, |x, &(c, y)| x.add(y.tensor()?.clone().mul_scalar(Number::Float(c))?)),
        };
        self.0.and_then(sum).into()
    }
    fn dots(&self, others: &[&Self]) -> Result<Vec<f64>> {
        match self.tensor()?.dtype() {
            DType::F64 => products::<f64>(self, others),
            DType::F32 => products::<f32>(self, others),
            _ => {
                let single = |x: &Self| x.then(|x| x.cast(DType::F32));
                let others: Vec<Self> = others.iter().map(|y| single(y)).collect();
                products::<f32>(&single(self), &others.iter().collect::<Vec<_>>())
            }
        }
    }
    fn minus(self, y: &Self) -> Self {
        self.0.and_then(|x| x.sub(y.0.clone()?)).into()
    }
    fn mul(&self, y: &Self) -> Self {
        self.with(y, AnyTensor::mul)
    }
    fn div(&self, y: &Self) -> Self {
        self.with(y, AnyTensor::div)
    }
    fn shift(&self, c: f64) -> Self {
        self.then(|x| x.add_scalar(Number::Float(c)))
    }
    fn scale(&self, c: f64) -> Self {
        self.then(|x| x.mul_scalar(Number::Float(c)))
    }
    fn recip(&self) -> Self {
        self.then(AnyTensor::recip)
    }
    fn exp(&self) -> Self {
        self.then(AnyTensor::exp)
    }
    fn ln(&self) -> Self {
        self.then(AnyTensor::log)
    }
    fn sqrt(&self) -> Self {
        self.then(AnyTensor::sqrt)
    }
    fn pow(&self, p: f64) -> Self {
        self.then(|x| x.powf_scalar(Number::Float(p)))
    }
    fn tanh(&self) -> Self {
        self.then(AnyTensor::tanh)
    }
    fn ln_1p(&self) -> Self {
        self.then(AnyTensor::log1p)
    }
    fn sin(&self) -> Self {
        self.then(AnyTensor::sin)
    }
    fn cos(&self) -> Self {
        self.then(AnyTensor::cos)
    }
    fn erf(&self) -> Self {
        self.then(AnyTensor::erf)
    }
    fn abs(&self) -> Self {
        self.then(AnyTensor::abs)
    }
    fn equal(&self, y: &Self) -> Eager<Truths> {
        self.with(y, AnyTensor::equal)
    }
    fn greater(&self, y: &Self) -> Eager<Truths> {
        self.with(y, AnyTensor::greater)
    }
    fn equals(&self, c: f64) -> Eager<Truths> {
        self.then(|x| x.equal_scalar(Number::Float(c)))
    }
    fn is_nan(&self) -> Eager<Truths> {
        self.then(AnyTensor::is_nan)
    }
    fn replace(&self, flags: &Eager<Truths>, y: &Self) -> Self {
        self.with(y, |x, y| x.mask_where(flags.0.clone()?, y))
    }
    fn fill(&self, flags: &Eager<Truths>, c: f64) -> Self {
        self.with(flags, |x, flags| x.mask_fill(flags, Number::Float(c)))
    }
    fn reshape(&self, shape: &[usize]) -> Self {
        self.then(|x| x.reshape(shape))
    }
    fn permute(&self, axes: &[usize]) -> Self {
        self.then(|x| x.permute(axes))
    }
    fn expand(&self, shape: &[usize]) -> Self {
        self.then(|x| x.expand(shape))
    }
    fn slice(&self, axis: usize, start: usize, len: usize, step: usize) -> Self {
        self.then(|x| x.slice_axis(axis, start, len, step as isize))
    }
    fn embed(&self, axis: usize, start: usize, step: usize, size: usize) -> Self {
        self.then(|x| {
            let mut shape = x.shape().to_vec();
            let len = std::mem::replace(&mut shape[axis], size);
            let zeros = AnyTensor::zeros(&shape, x.dtype())?;
            let whole = |&len: &usize| Span { start: 0, len, step: 1 };
            let mut spans: Vec<Span> = shape[..axis].iter().map(whole).collect();
            spans.push(Span { start, len, step: step as isize });
            zeros.slice_assign(&spans, &x)
        })
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        joined(arrays, axis)
    }
    fn flip(&self, axes: &[usize]) -> Self {
        self.then(|x| x.flip(axes))
    }
    fn sum(&self, axis: usize) -> Self {
        self.then(|x| x.sum(&[axis]))
    }
    fn argmax(&self, axis: usize) -> Eager<Indices> {
        self.then(|x| Ok(x.max_with_index(axis)?.1))
    }
    fn cumsum(&self, axis: usize) -> Self {
        self.then(|x| x.cumsum(axis))
    }
    fn gather(&self, axis: usize, index: &Eager<Indices>) -> Self {
        self.with(index, |x, index| x.gather(axis, &index))
    }
    fn scatter_add(&self, axis: usize, index: &Eager<Indices>, y: &Self) -> Self {
        self.with(y, |x, y| x.scatter(axis, index.tensor()?, &y, Reduction::Add))
    }
    fn matmul(&self, y: &Self) -> Self {
        self.with(y, |x, y| x.matmul(&y))
    }
    fn max(&self, axis: usize) -> Self {
        self.then(|x| x.max(&[axis]))
    }
}

impl Integers for Eager<Indices> {
    type Flags = Eager<Truths>;

    fn shape(&self) -> Shape {
        self.sizes()
    }
    fn dtype(&self) -> DType {
        self.0.as_ref().map_or(DType::I64, AnyTensor::dtype)
    }
    fn elements(&self) -> Result<AnyTensor> {
        self.0.clone()
    }
    fn full(&self, shape: &[usize], c: i64) -> Self {
        self.then(|i| AnyTensor::full(shape, Number::Int(c), i.dtype()))
    }
    fn reshape(&self, shape: &[usize]) -> Self {
        self.then(|i| i.reshape(shape))
    }
    fn expand(&self, shape: &[usize]) -> Self {
        self.then(|i| i.expand(shape))
    }
    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        self.then(|i| i.slice_axis(axis, start, len, 1))
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        joined(arrays, axis)
    }
    fn shift(&self, c: i64) -> Self {
        self.then(|i| i.add_scalar(Number::Int(c)))
    }
    fn equal(&self, j: &Self) -> Eager<Truths> {
        self.with(j, AnyTensor::equal)
    }
    fn greater(&self, j: &Self) -> Eager<Truths> {
        self.with(j, AnyTensor::greater)
    }
    fn at_least(&self, c: i64) -> Eager<Truths> {
        self.then(|i| i.greater_equal_scalar(Number::Int(c)))
    }
    fn fill(&self, flags: &Eager<Truths>, c: i64) -> Self {
        self.with(flags, |i, flags| i.mask_fill(flags, Number::Int(c)))
    }
}

impl Flags for Eager<Truths> {
    fn shape(&self) -> Shape {
        self.sizes()
    }
    fn elements(&self) -> Result<AnyTensor> {
        self.0.clone()
    }
    fn full(&self, shape: &[usize], holds: bool) -> Self {
        self.then(|_| AnyTensor::full(shape, Number::Int(i64::from(holds)), DType::Bool))
    }
    fn reshape(&self, shape: &[usize]) -> Self {
        self.then(|b| b.reshape(shape))
    }
    fn expand(&self, shape: &[usize]) -> Self {
        self.then(|b| b.expand(shape))
    }
    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        self.then(|b| b.slice_axis(axis, start, len, 1))
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        joined(arrays, axis)
    }
    fn and(&self, rhs: &Self) -> Self {
        self.with(rhs, |a, b| a.logical(Logic::AND, b))
    }
    fn or(&self, rhs: &Self) -> Self {
        self.with(rhs, |a, b| a.logical(Logic::OR, b))
    }
    fn not(&self) -> Self {
        self.then(AnyTensor::logical_not)
    }
    fn any(&self, axis: usize) -> Self {
        self.then(|b| b.any(&[axis]))
    }
}
