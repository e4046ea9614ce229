//! Triangular systems as an operation.

use t4a_tensor::Tensor;

use super::{Triangle, rule, solve_triangular, solve_triangular_ex};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, zeros};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `T`, `B` → `op(T)⁻¹ B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SolveTriangularOp {
    /// Selected triangle and its transformation.
    pub triangle: Triangle,
}

impl MatrixOperation for SolveTriangularOp {
    const NAME: &'static str = "solve_triangular";
    const OPERANDS: Signature = Signature::System;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[1]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let x = solve_triangular(operands[0], operands[1], self.triangle)?;
        Ok(Outcome::new(vec![Part::Full(Batched::new(&x))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(solve_triangular_ex(operands[0], operands[1], self.triangle)?.1)
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
        let (t, b) = rule::vjp(&operands[0], out.results[0].full(), cotangent, self.triangle);
        Ok(vec![t, b])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (x, dt, db) = (out.results[0].full(), tangents[0].as_ref(), tangents[1].as_ref());
        Ok(vec![Part::Full(rule::jvp(&operands[0], x, dt, db, self.triangle))])
    }
}
