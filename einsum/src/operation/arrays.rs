//! Contractions of arrays, which record themselves on whatever tape these are; complex ones are pairs of real
//! ones.

use t4a_diff::Array;
use t4a_diff::array::first_error;
use t4a_tensor::DType;

use super::{Contraction, FloatSemiring};
use crate::einsum::Einsum;
use crate::error::Result;
use crate::plan::Plan;

/// The einsum of arrays over a semiring, by a plan from the cache.
///
/// # Errors
/// Those of [`Einsum::plan`] and of the [`Contraction`]; the first that operands carry.
pub fn contract_arrays<A: Array>(
    semiring: FloatSemiring,
    subscripts: &str,
    operands: &[&A],
) -> Result<A> {
    let shapes: Vec<Vec<usize>> = operands.iter().map(|x| x.shape()).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let element = operands.first().map_or(DType::F64, |x| x.dtype()).size();
    let plan = Einsum::new(subscripts)?.plan(&shapes, element);
    let plan = plan.map_err(|error| first_error(operands, error))?;
    let operands: Vec<A> = operands.iter().map(|&x| x.clone()).collect();
    Contraction { plan, semiring }.one(&operands)
}

/// A plan over complex numbers: four real contractions per pairwise step. Operands fit the plan.
///
/// # Errors
/// `NotSliced`; those of [`Plan::steps`].
pub fn contract_complex<A: Array>(plan: &Plan, operands: Vec<[A; 2]>) -> Result<[A; 2]> {
    plan.check_unsliced()?;
    let mut slots: Vec<Option<[A; 2]>> = operands.into_iter().map(Some).collect();
    for step in plan.steps()? {
        let op = Contraction { plan: step.plan.clone(), semiring: FloatSemiring::Standard };
        let product = |a: &A, b: &A| op.one(&[a.clone(), b.clone()]);
        let taken: Vec<_> = step.slots.iter().filter_map(|&slot| slots[slot].take()).collect();
        let next = match &taken[..] {
            [[a, b], [c, d]] => {
                let re = product(a, c)?.sub(&product(b, d)?);
                [re, product(a, d)?.add(&product(b, c)?)]
            }
            [[a, b]] => [op.one(std::slice::from_ref(a))?, op.one(std::slice::from_ref(b))?],
            _ => unreachable!("a step takes one or two tensors"),
        };
        slots.push(Some(next));
    }
    Ok(slots.pop().flatten().unwrap_or_else(|| unreachable!("a plan has a last step")))
}
