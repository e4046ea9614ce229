//! The Sylvester equation as an operation.

use t4a_tensor::Tensor;

use super::{jvp, sylvester, sylvester_ex, vjp};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, zeros};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `A`, `B`, `C` → `X` with `A X + X B = C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SylvesterOp;

impl MatrixOperation for SylvesterOp {
    const NAME: &'static str = "sylvester";
    const OPERANDS: Signature = Signature::Sylvester;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[2]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let x = sylvester(operands[0], operands[1], operands[2])?;
        Ok(Outcome::new(vec![Part::Full(Batched::new(&x))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(sylvester_ex(operands[0], operands[1], operands[2])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let Some(cotangent) = full(cotangents, 0) else {
            return Ok(operands.iter().map(zeros).collect());
        };
        Ok(vjp(&operands[0], &operands[1], out.results[0].full(), cotangent).to_vec())
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let along = [0, 1, 2].map(|i| tangents[i].as_ref());
        let dx = jvp(&operands[0], &operands[1], out.results[0].full(), along);
        Ok(vec![Part::Full(dx)])
    }
}
