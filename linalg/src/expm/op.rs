//! The matrix exponential as an operation.

use t4a_tensor::Tensor;

use super::{expm, expm_ex, jvp, vjp};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, only, zeros};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `A` → `e^A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExpmOp;

impl MatrixOperation for ExpmOp {
    fn name(&self) -> &'static str {
        "expm"
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
        Ok(Outcome::new(vec![Part::Full(Batched::new(&expm(operands[0])?))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(expm_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        _out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let a = &operands[0];
        Ok(vec![match full(cotangents, 0) {
            Some(cotangent) => vjp(a, cotangent)?,
            None => zeros(a),
        }])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        _out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        Ok(vec![Part::Full(jvp(&operands[0], only(tangents))?)])
    }
}
