//! Linear maps that move blocks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use t4a_diff::array::Kernel;
use t4a_diff::{Array, Cotangents, Dual, Eager, Keep, Meta, Operation, Outcome, Reverse, Value};
use t4a_tensor::{AnyTensor, Tensor};

use super::{check, one, shared};
use crate::error::{Result, StructuredError};
use crate::kernels;
use crate::plan::Rearrangement;

/// `y = R x` on flat arrays. The vjp `x̄ = Rᵀ ȳ` is a rearrangement too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rearrange {
    /// `R`.
    #[serde(with = "shared")]
    pub plan: Arc<Rearrangement>,
}

impl Rearrange {
    /// `Rᵀ`.
    pub fn adjoint(&self) -> Self {
        Self { plan: self.plan.adjoint() }
    }
}

impl Operation for Rearrange {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "rearrange"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([1, 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        check(self.name(), &[self.plan.from_len()], inputs)?;
        Ok(vec![Meta { shape: vec![self.plan.to_len()], dtype: inputs[0].dtype }])
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default()
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        kernels(&self.plan)
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        Ok(portable(&self.plan, inputs[0].float())?.into())
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let x = inputs[0].float().tensor()?;
        Ok(Eager::from(kernels::rearrange(self.name(), &self.plan, x)?).into())
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        Ok(vec![Some(one(&self.adjoint(), &[reverse.cotangent()])?)])
    }

    fn jvp<A: Array>(&self, inputs: &[Value<Dual<A>>], _: &[bool]) -> Result<Outcome<Dual<A>>> {
        let x = inputs[0].float();
        let tangent = x.tangent.as_ref().map(|t| one(self, &[t])).transpose()?;
        Ok(Dual { value: one(self, &[&x.value])?, tangent }.into())
    }
}

/// Kernels of [`portable`].
pub(super) fn kernels(plan: &Rearrangement) -> Vec<Kernel> {
    plan.is_disjoint().then_some(Kernel::Blocks).into_iter().collect()
}

/// `R x` by operations of [`Array`]: gather, signs, scatter; one launch on devices with kernels for blocks.
pub(super) fn portable<A: Array>(plan: &Rearrangement, x: &A) -> Result<A> {
    let (n, m) = (plan.from_len(), plan.to_len());
    let zeros = |len| x.full(&[len], 0.0);
    if plan.elements() == 0 {
        return Ok(zeros(m));
    }
    if let Some(y) = plan.copies().and_then(|copies| x.block_copies(copies)) {
        return Ok(y);
    }
    if !plan.is_disjoint() {
        let (mut from, mut to, mut signs) = (Vec::new(), Vec::new(), Vec::new());
        for (i, j, negative) in plan.pairs() {
            from.push(i as i64);
            to.push(j as i64);
            signs.push(negative);
        }
        let moved = signed(x.gather(0, &indices(x, from)?), &signs)?;
        return Ok(zeros(m).scatter_add(0, &indices(x, to)?, &moved));
    }
    // Elements that are not written read a zero appended to x.
    let (mut from, mut signs) = (vec![n as i64; m], vec![false; m]);
    for (i, j, negative) in plan.pairs() {
        (from[j], signs[j]) = (i as i64, negative);
    }
    let x = if plan.is_full() { x.clone() } else { A::cat(&[x.clone(), zeros(1)], 0) };
    signed(x.gather(0, &indices(&x, from)?), &signs)
}

fn indices<A: Array>(x: &A, places: Vec<i64>) -> Result<A::Integers> {
    let len = places.len();
    Ok(x.indices(AnyTensor::from(Tensor::from_vec(places, &[len])?)))
}

fn signed<A: Array>(x: A, signs: &[bool]) -> Result<A> {
    if !signs.contains(&true) {
        return Ok(x);
    }
    let sign = |&negative: &bool| if negative { -1.0f64 } else { 1.0 };
    let signs = Tensor::from_vec(signs.iter().map(sign).collect(), &[signs.len()])?;
    Ok(x.mul(&x.constant(AnyTensor::from(signs).cast(x.dtype())?)))
}
