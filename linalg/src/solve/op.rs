//! Linear systems as an operation.

use t4a_tensor::Tensor;

use super::{rule, solve_ex};
use crate::error::{Result, SINGULAR, check};
use crate::operation::{
    Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature, full, zeros,
};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `A`, `B` → `A⁻¹ B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SolveOp;

impl MatrixOperation for SolveOp {
    const NAME: &'static str = "solve";
    const OPERANDS: Signature = Signature::System;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[1]]
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Lu)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let (x, factors, info) = solve_ex(operands[0], operands[1])?;
        check(Self::NAME, &info, SINGULAR)?;
        let packed = vec![Part::Full(Batched::new(&factors.packed))];
        let out = Outcome::new(vec![Part::Full(Batched::new(&x))]);
        Ok(out.saving(Factorisation::Lu, packed).permuted([factors.rows]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(solve_ex(operands[0], operands[1])?.2)
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
        let (packed, rows) = out.packed();
        let (a, b) = rule::vjp(packed, rows, out.results[0].full(), cotangent)?;
        Ok(vec![a, b])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (packed, rows) = out.packed();
        let (x, da, db) = (out.results[0].full(), tangents[0].as_ref(), tangents[1].as_ref());
        Ok(vec![Part::Full(rule::jvp(packed, rows, x, da, db))])
    }
}
