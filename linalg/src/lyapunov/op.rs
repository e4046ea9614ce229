//! The Lyapunov equation of positive definite matrices as an operation.

use t4a_tensor::Tensor;

use super::{jvp, lyapunov_positive, lyapunov_positive_ex, vjp};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, zeros};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `P`, `B` → `X` with `P X + X P = B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LyapunovPositiveOp;

impl MatrixOperation for LyapunovPositiveOp {
    const NAME: &'static str = "lyapunov_positive";
    const OPERANDS: Signature = Signature::Squares;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[1]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let x = lyapunov_positive(operands[0], operands[1])?;
        Ok(Outcome::new(vec![Part::Full(Batched::new(&x))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(lyapunov_positive_ex(operands[0], operands[1])?.1)
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
        let (p, b) = vjp(&operands[0], out.results[0].full(), cotangent);
        Ok(vec![p, b])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (x, dp, db) = (out.results[0].full(), tangents[0].as_ref(), tangents[1].as_ref());
        Ok(vec![Part::Full(jvp(&operands[0], x, dp, db))])
    }
}
