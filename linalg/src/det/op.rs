//! Determinants as operations.

use t4a_tensor::Tensor;

use super::{adjugate, check_pivots, det_ex, nearly_singular, slogdet_ex, slogdet_rule, vjp};
use crate::degeneracy::Degeneracy;
use crate::error::{Result, SINGULAR, check};
use crate::lu::{PackedLu, info_of_values};
use crate::operation::{
    Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature, full, only, real, zeros,
};
use crate::scalar::LinalgScalar;
use crate::solve::apply_inverse;
use crate::svd::{SvdOp, Vectors};
use crate::vocabulary::{Batched, Matrices};

const SINGULAR_VALUES: SvdOp = SvdOp { vectors: Vectors::Thin, degeneracy: Degeneracy::SEPARABLE };

fn eliminated<T: LinalgScalar>(
    results: Vec<Part<Batched<T>>>,
    factors: PackedLu<T>,
) -> Outcome<Batched<T>> {
    let packed = vec![Part::Full(Batched::new(&factors.packed))];
    Outcome::new(results).saving(Factorisation::Lu, packed).permuted([factors.rows])
}

/// `adj(A)` if the forward pass found a singular matrix.
fn singular<M: Matrices>(a: &M, out: &Outcome<M>) -> Result<Option<M>> {
    if !out.factored_by(Factorisation::Svd) {
        return Ok(None);
    }
    let parts = out.factors();
    adjugate(a, parts[0].full(), parts[1].real(), parts[2].full()).map(Some)
}

/// `A` → `det A`, `1 × 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DetOp;

impl MatrixOperation for DetOp {
    const NAME: &'static str = "det";
    const OPERANDS: Signature = Signature::Square;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        operands.iter().map(|_| [1, 1]).collect()
    }
    fn saves(&self, _size: [usize; 2], permuted: bool) -> Option<Factorisation> {
        Some(if permuted { Factorisation::Lu } else { Factorisation::Svd })
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let (value, factors, info) = det_ex(operands[0])?;
        check(Self::NAME, &info, SINGULAR)?;
        let results = vec![Part::Full(Batched::numbers(&value))];
        if tracked && nearly_singular(&factors)? {
            let factors = SINGULAR_VALUES.forward(operands, true)?.results;
            return Ok(Outcome::new(results).saving(Factorisation::Svd, factors));
        }
        Ok(eliminated(results, factors))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        info_of_values(operands[0])
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let a = &operands[0];
        let Some(cotangent) = full(cotangents, 0) else { return Ok(vec![zeros(a)]) };
        if let Some(adjugate) = singular(a, out)? {
            return Ok(vec![adjugate.adjoint().mul(cotangent)]);
        }
        let (packed, rows) = out.packed();
        Ok(vec![vjp(packed, rows, out.results[0].full(), cotangent)?])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let da = only(tangents);
        if let Some(adjugate) = singular(&operands[0], out)? {
            return Ok(vec![Part::Full(adjugate.matmul(da).trace())]);
        }
        let (packed, rows) = out.packed();
        let trace = apply_inverse(packed, rows, da).trace();
        Ok(vec![Part::Full(trace.mul(out.results[0].full()))])
    }
}

/// `A` → `sign`, `ln|det A|`, `1 × 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SlogdetOp;

impl MatrixOperation for SlogdetOp {
    const NAME: &'static str = "slogdet";
    const OPERANDS: Signature = Signature::Square;
    const RESULTS: &'static [PartKind] = &[PartKind::Full, PartKind::Real];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        operands.iter().flat_map(|_| [[1, 1], [1, 1]]).collect()
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Lu)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let ((sign, log), factors, info) = slogdet_ex(operands[0])?;
        check(Self::NAME, &info, SINGULAR)?;
        let (sign, log) = (Batched::numbers(&sign), Batched::numbers(&log));
        Ok(eliminated(vec![Part::Full(sign), Part::Real(log)], factors))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        info_of_values(operands[0])
    }

    fn vjp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let (packed, rows) = out.packed();
        check_pivots("slogdet_vjp", packed)?;
        let sign = out.results[0].full();
        let (of_sign, of_log) = (full(cotangents, 0), real(cotangents, 1));
        Ok(vec![slogdet_rule(packed, rows, sign, of_sign, of_log)?])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (packed, rows) = out.packed();
        check_pivots("slogdet_jvp", packed)?;
        let trace = apply_inverse(packed, rows, only(tangents)).trace();
        let turn = M::from_parts(&trace.re().scale(0.0), &trace.im());
        Ok(vec![Part::Full(turn.mul(out.results[0].full())), Part::Real(trace.re())])
    }
}
