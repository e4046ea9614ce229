//! Least squares as operations.

use t4a_tensor::Tensor;

use super::{jvp, lstsq, lstsq_ex, lstsq_min_norm_ex, min_norm, vjp};
use crate::degeneracy::by_bits;
use crate::error::Result;
use crate::operation::{
    Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature, full, zeros,
};
use crate::pinv;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// The saved factors: `A = Q R`, or `Aᴴ = Q R` for a wide matrix.
fn factors<M: Matrices>(out: &Outcome<M>) -> (M, M) {
    let (first, second) = (out.factors()[0].full(), out.factors()[1].full());
    match out.factored_by(Factorisation::Lq) {
        true => (second.adjoint(), first.adjoint()),
        false => (first.clone(), second.clone()),
    }
}

/// `A`, `B` → `X` with minimal `‖A X − B‖`, for full rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LstsqOp;

impl MatrixOperation for LstsqOp {
    const NAME: &'static str = "lstsq";
    const OPERANDS: Signature = Signature::Columns;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![[operands[0][1], operands[1][1]]]
    }
    fn saves(&self, [m, n]: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(if m >= n { Factorisation::Qr } else { Factorisation::Lq })
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let a = operands[0];
        let out = lstsq(a, operands[1])?;
        let (q, r) = (Batched::new(&out.qr.q), Batched::new(&out.qr.r));
        let results = Outcome::new(vec![Part::Full(Batched::new(&out.x))]);
        Ok(match q.rows() == a.shape()[a.rank() - 2] {
            true => results.saving(Factorisation::Qr, vec![Part::Full(q), Part::Full(r)]),
            false => {
                let (l, q) = (r.adjoint(), q.adjoint());
                results.saving(Factorisation::Lq, vec![Part::Full(l), Part::Full(q)])
            }
        })
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(lstsq_ex(operands[0], operands[1])?.1)
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
        let (x, (q, r)) = (out.results[0].full(), factors(out));
        let (a, b) = vjp(&operands[0], &operands[1], x, &q, &r, cotangent);
        Ok(vec![a, b])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (x, (q, r)) = (out.results[0].full(), factors(out));
        let (da, db) = (tangents[0].as_ref(), tangents[1].as_ref());
        Ok(vec![Part::Full(jvp(&operands[0], &operands[1], x, &q, &r, da, db))])
    }
}

/// `A`, `B` → the pseudoinverse times `B`.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LstsqMinNormOp {
    /// Relative cutoff of singular values; `None` drops those that are zero up to rounding.
    pub rtol: Option<f64>,
}

by_bits!(LstsqMinNormOp, |op| op.rtol.map(f64::to_bits));

impl MatrixOperation for LstsqMinNormOp {
    const NAME: &'static str = "lstsq_min_norm";
    const OPERANDS: Signature = Signature::Columns;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![[operands[0][1], operands[1][1]]]
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Pinv { rtol: self.rtol })
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let (x, p) = min_norm(operands[0], operands[1], self.rtol)?;
        let (x, p) = (Part::Full(Batched::new(&x)), Part::Full(Batched::new(&p)));
        Ok(Outcome::new(vec![x]).saving(Factorisation::Pinv { rtol: self.rtol }, vec![p]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(lstsq_min_norm_ex(operands[0], operands[1], self.rtol)?.1)
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
        let (b, p) = (&operands[1], out.factors()[0].full());
        let of_p = cotangent.matmul(&b.adjoint());
        Ok(vec![pinv::vjp(&operands[0], p, &of_p), p.adjoint().matmul(cotangent)])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (b, p) = (&operands[1], out.factors()[0].full());
        let through = tangents[0].as_ref().map(|da| pinv::jvp(&operands[0], p, da).matmul(b));
        let direct = tangents[1].as_ref().map(|db| p.matmul(db));
        Ok(vec![Part::Full(match (through, direct) {
            (Some(through), Some(direct)) => through.add(&direct),
            (Some(dx), None) | (None, Some(dx)) => dx,
            (None, None) => zeros(out.results[0].full()),
        })])
    }
}
