//! Numbers of one-element tensors, and small tensors to start from.

use t4a_algebra::c64;
use t4a_diff::{Array, Eager};
use t4a_structured::{GradedTensor, Leg, Sector, Spec};
use t4a_tensor::{DType, TensorError};

use crate::error::Result;

/// The numbers of an array.
pub(crate) fn numbers<A: Array>(x: &A) -> Result<Vec<f64>> {
    Ok(x.elements()?.cast(DType::F64)?.typed::<f64>()?.to_vec()?)
}

/// The number of an array of one element; 0 for none.
pub(crate) fn number<A: Array>(x: &A) -> Result<f64> {
    Ok(numbers(x)?.first().copied().unwrap_or(0.0))
}

/// Real and imaginary part as a number.
pub(crate) fn complex<A: Array>((re, im): &(A, Option<A>)) -> Result<c64> {
    let im = im.as_ref().map(number).transpose()?;
    Ok(c64::new(number(re)?, im.unwrap_or(0.0)))
}

/// `√Σ |x|²` as a number.
pub(crate) fn norm<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> Result<f64> {
    number(&x.norm()?)
}

/// The tensor of one entry 1 on legs of one state, over arrays like those of `like`.
pub(crate) fn edge<S: Sector, A: Array>(
    like: &GradedTensor<S, A>,
    legs: Vec<Leg<S>>,
) -> Result<GradedTensor<S, A>> {
    let spec = Spec::new(legs, S::TRIVIAL, 1)?;
    let ones = like.re().full(&[spec.len()], 1.0);
    Ok(GradedTensor::new(spec, ones, None)?)
}

/// The entry of a tensor of legs of one state: 0 if the charges forbid it.
pub(crate) fn entry<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> (A, Option<A>) {
    let one = |x: &A| match x.shape()[..] {
        [1] => x.clone(),
        _ => x.full(&[1], 0.0),
    };
    (one(x.re()), x.im().map(one))
}

/// The same tensor on legs that were not fused.
pub(crate) fn unfused<S: Sector, A: Array>(x: GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
    let (spec, re, im) = x.into_parts();
    let legs = spec.legs().iter().map(Leg::unfused).collect();
    Ok(GradedTensor::new(Spec::new(legs, spec.flux(), spec.rows())?, re, im)?)
}

/// The same tensor over arrays of the engine.
pub(crate) fn on_engine<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> Result<GradedTensor<S>> {
    let im = x.im().map(|im| im.elements()).transpose()?;
    Ok(GradedTensor::new(x.spec().clone(), x.re().elements()?.into(), im.map(Into::into))?)
}

/// A tensor of the engine as a constant over arrays like `like`, in its type.
pub(crate) fn constant_like<S: Sector, A: Array>(
    x: &GradedTensor<S>,
    like: &A,
) -> Result<GradedTensor<S, A>> {
    let over = |x: &Eager| Ok::<A, TensorError>(like.constant(x.elements()?.cast(like.dtype())?));
    let (re, im) = (over(x.re())?, x.im().map(over).transpose()?);
    Ok(GradedTensor::new(x.spec().clone(), re, im)?)
}

/// The norm of a tensor as an array of one element without a derivative; 1 for zeros.
pub(crate) fn fixed_norm<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> Result<A> {
    let (re, im) = (x.re().detach(), x.im().map(Array::detach));
    if x.spec().is_empty() {
        return Ok(x.re().full(&[1], 1.0));
    }
    let norm = GradedTensor::new(x.spec().clone(), re, im)?.norm()?.reshape(&[1]);
    Ok(norm.fill(&norm.equals(0.0), 1.0))
}

/// The tensor divided by an array of one element.
pub(crate) fn divided<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    by: &A,
) -> Result<GradedTensor<S, A>> {
    if x.spec().is_empty() {
        return Ok(x.clone());
    }
    let (re, im) = (x.re().div(by), x.im().map(|im| im.div(by)));
    Ok(GradedTensor::new(x.spec().clone(), re, im)?)
}

/// The tensor multiplied by an array of one element.
pub(crate) fn multiplied<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    by: &A,
) -> Result<GradedTensor<S, A>> {
    if x.spec().is_empty() {
        return Ok(x.clone());
    }
    let (re, im) = (x.re().mul(by), x.im().map(|im| im.mul(by)));
    Ok(GradedTensor::new(x.spec().clone(), re, im)?)
}
