//! The inverse as an operation.

use t4a_tensor::Tensor;

use super::{inv, inv_ex, jvp, vjp};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, only, zeros};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `A` → `A⁻¹`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InvOp;

impl MatrixOperation for InvOp {
    fn name(&self) -> &'static str {
        "inv"
    }
    fn operands(&self) -> Signature {
        Signature::Square
    }
    fn results(&self) -> &'static [PartKind] {
        &[PartKind::Full]
    }
    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[0]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        Ok(Outcome::new(vec![Part::Full(Batched::new(&inv(operands[0])?))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(inv_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let inverse = out.results[0].full();
        let given = full(cotangents, 0);
        Ok(vec![given.map_or_else(|| zeros(inverse), |given| vjp(inverse, given))])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        Ok(vec![Part::Full(jvp(out.results[0].full(), only(tangents)))])
    }
}
