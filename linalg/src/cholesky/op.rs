//! The Cholesky factorisation as an operation.

use t4a_tensor::Tensor;

use super::{cholesky, cholesky_ex, rule};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, only, zeros};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `A` → `L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CholeskyOp;

impl MatrixOperation for CholeskyOp {
    fn name(&self) -> &'static str {
        "cholesky"
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
        Ok(Outcome::new(vec![Part::Full(Batched::new(&cholesky(operands[0])?))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(cholesky_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let l = out.results[0].full();
        Ok(vec![full(cotangents, 0).map_or_else(|| zeros(l), |given| rule::vjp(l, given))])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        Ok(vec![Part::Full(rule::jvp(out.results[0].full(), only(tangents)))])
    }
}
