//! Scalar functions of flat arrays: inner product and norm.

use serde::{Deserialize, Serialize};
use t4a_diff::array::Kernel;
use t4a_diff::{Array, Cotangents, Keep, Meta, Operation, Outcome, Reverse, Value};

use super::check;
use crate::error::{Result, StructuredError};

/// Checks that the operands have equal lengths.
fn equal(op: &'static str, count: usize, inputs: &[Meta]) -> Result<()> {
    let len = inputs.first().map_or(0, |x| x.shape.iter().product());
    check(op, &vec![len; count], inputs)
}

/// `Σ x* y` over entries, one element. Complex operands are pairs of arrays; the result is a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InnerProduct {
    /// True if operands are pairs of arrays.
    pub complex: bool,
}

impl Operation for InnerProduct {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "inner"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        let n = 1 + usize::from(self.complex);
        Some([2 * n, n])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let n = 1 + usize::from(self.complex);
        equal(self.name(), 2 * n, inputs)?;
        Ok(vec![Meta { shape: vec![1], dtype: inputs[0].dtype }; n])
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    /// Elementwise products and their sums.
    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        vec![Kernel::Reduction]
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let dot = |i: usize, j: usize| inputs[i].float().mul(inputs[j].float()).sum(0);
        Ok(match self.complex {
            false => dot(0, 1).into(),
            true => Outcome::new(vec![dot(0, 2).add(&dot(1, 3)), dot(0, 3).sub(&dot(1, 2))]),
        })
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let term =
            |k: usize, i: usize| Some(reverse.cotangents[k].as_ref()?.mul(reverse.kept.float(i)));
        if !self.complex {
            return Ok(vec![term(0, 1), term(0, 0)]);
        }
        let sum = |a: Option<A>, b: Option<A>| match (a, b) {
            (Some(a), Some(b)) => Some(a.plus(&b)),
            (a, b) => a.or(b),
        };
        let minus = |x: Option<A>| x.map(|x| x.neg());
        Ok(vec![
            sum(term(0, 2), term(1, 3)),
            sum(term(0, 3), minus(term(1, 2))),
            sum(term(0, 0), minus(term(1, 1))),
            sum(term(0, 1), term(1, 0)),
        ])
    }
}

/// `√Σ |x|²`, one element. The derivative at 0 is 0. Complex operands are pairs of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrobeniusNorm {
    /// True if the operand is a pair of arrays.
    pub complex: bool,
}

impl Operation for FrobeniusNorm {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "norm"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([1 + usize::from(self.complex), 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        equal(self.name(), 1 + usize::from(self.complex), inputs)?;
        Ok(vec![Meta { shape: vec![1], dtype: inputs[0].dtype }])
    }

    /// Elementwise products and their sums.
    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        vec![Kernel::Reduction]
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let square = |x: &Value<A>| x.float().mul(x.float()).sum(0);
        let sum = inputs[1..].iter().fold(square(&inputs[0]), |sum, x| sum.add(&square(x)));
        let zero = sum.equals(0.0);
        Ok(sum.fill(&zero, 1.0).sqrt().fill(&zero, 0.0).into())
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let norm = reverse.kept.result(0);
        let zero = norm.equals(0.0);
        let share = reverse.cotangent().div(&norm.fill(&zero, 1.0)).fill(&zero, 0.0);
        let own = |i: usize| Some(reverse.kept.float(i).mul(&share));
        Ok((0..reverse.wanted.len()).map(own).collect())
    }
}
