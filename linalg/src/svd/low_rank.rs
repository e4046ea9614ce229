//! Best approximation of a given rank, `Aₚ = Uₚ Sₚ Vₚᴴ`, as one operation; smooth where kept values are tied among
//! themselves, or dropped ones.
//!
//! The derivative is that of a function of singular values ([`svd_function`](super::svd_function)) with other tables.
//! The ratios are 1 for kept values, else 0. The differences and sums are 1 for pairs of kept values, 0 for pairs of
//! dropped ones, and `σᵢ/(σᵢ − σᵣ)`, `σᵢ/(σᵢ + σᵣ)` for a kept and a dropped one. The tables are real and symmetric,
//! so the VJP is the same linear map. A truncation that splits a tie has no derivative.
//!
//! At a relative gap `g` between the kept and the dropped values the relative error of first and second derivatives
//! is about `ε/g`. Gaps within the two groups, including ties and zeros, add at most `√ε` to second derivatives and
//! nothing to first ones. A third derivative at gaps below `ε^(1/4)` is an error (`SecondOrderAtTie`).
//!
//! Reference: C. Eckart, G. Young 1936; F. Feppon, P. Lermusiaux 2018 (derivative).

use t4a_tensor::Tensor;

use super::function::{kept, through_tables};
use super::op::{factors, parts, triplets};
use super::{Vectors, svd, svdvals_ex};
use crate::degeneracy::Degeneracy;
use crate::error::{LinalgError, Result};
use crate::operation::{
    Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature, full, only, zeros,
};
use crate::scalar::LinalgScalar;
use crate::spectrum::MatrixFunction;
use crate::vocabulary::{Batched, Factors, Matrices, RealMatrices};

/// `A` → `Aₚ`, the matrix of rank `p` that is closest to `A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LowRankOp {
    /// Rank `p`. With `p ≥ min(m, n)` the result is `A`.
    pub rank: usize,
}

/// Derivative along `x`, which is also the gradient for the cotangent `x`.
fn derivative<M: Matrices>(
    op: &'static str,
    [u, x, vh]: [&M; 3],
    s: &M::Real,
    p: usize,
) -> Result<M> {
    let (m, n, k) = (u.rows(), vh.cols(), s.cols());
    if p >= k {
        return Ok(x.clone());
    }
    if p == 0 {
        return Ok(x.constant(m, n, 0.0));
    }
    let limit = Degeneracy::DEFAULT.limit(s, m.max(n));
    let cut = s.slice(0..1, p - 1..p).sub(&s.slice(0..1, p..p + 1));
    if let Some(batch) = cut.within(&limit).norms()?.iter().position(|&tied| tied > 0.0) {
        return Err(LinalgError::SplitTie { op, batch });
    }
    let keep = kept(s, p);
    let drop = keep.constant(1, 1, 1.0).sub(&keep);
    let both = keep.transpose().mul(&keep);
    let (f, nothing) = (s.mul(&keep), limit.scale(0.0));
    // Quotients of a kept and a dropped value.
    let mixed = keep.transpose().mul(&drop).add(&drop.transpose().mul(&keep));
    let quotient = |f: M::Real, s: M::Real| {
        let divisor = s.mul(&mixed).masked_recip(&nothing);
        f.mul(&mixed).mul(&divisor).add(&both)
    };
    let differences = quotient(f.sub(&f.transpose()), s.sub(&s.transpose()));
    let sums = quotient(f.add(&f.transpose()), s.add(&s.transpose()));
    Ok(through_tables([u, x, vh], [&differences, &sums, &keep]))
}

/// `D Aₚ[C]`.
pub(crate) fn low_rank_slope<M: Matrices>(factors: &Factors<M>, c: &M, p: usize) -> Result<M> {
    let Factors { u, s, v, .. } = factors;
    derivative("low_rank", [u, c, &v.adjoint()], s, p)
}

/// First derivative, itself differentiable.
fn slope<M: Matrices>(op: &'static str, c: &M, a: &M, out: &Outcome<M>, p: usize) -> Result<M> {
    let factors = factors(out.factors());
    if p == 0 || p >= factors.s.cols() {
        return low_rank_slope(&factors, c, p);
    }
    M::function_slope(c, a, factors, MatrixFunction::LowRank(p)).map_err(|error| match error {
        LinalgError::SplitTie { .. } => error.of(op),
        other => other,
    })
}

impl MatrixOperation for LowRankOp {
    const NAME: &'static str = "low_rank";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[0]]
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Svd)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let a = Batched::new(operands[0]);
        let parts = parts(&svd(operands[0], Vectors::Thin).map_err(|e| e.of(Self::NAME))?);
        let (u, s, vh) = triplets(&parts);
        let out = match self.rank >= s.cols() {
            true => a,
            false => u.mul_real(&s.mul(&kept(s, self.rank))).matmul(vh),
        };
        Ok(Outcome::new(vec![Part::Full(out)]).saving(Factorisation::Svd, parts))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(svdvals_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let Some(cotangent) = full(cotangents, 0) else { return Ok(vec![zeros(&operands[0])]) };
        Ok(vec![slope("low_rank_vjp", cotangent, &operands[0], out, self.rank)?])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let tangent = slope("low_rank_jvp", only(tangents), &operands[0], out, self.rank)?;
        Ok(vec![Part::Full(tangent)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    /// Against finite differences, with ties on both sides of the truncation.
    fn derivatives<T: LinalgScalar>() {
        let cases = [[2.0, 2.0, 1.0, 1.0], [2.0, 2.0, 1.0, 0.0], [2.0, 2.0, 0.0, 0.0]];
        for (seed, values) in cases.into_iter().enumerate() {
            for (m, n) in [(4, 4), (6, 4), (4, 5)] {
                let a = [with_singular_values::<T>(seed as u64, &[2], m, n, &values)];
                for rank in [0, 2, 4] {
                    check_operation(LowRankOp { rank }, &a);
                }
            }
        }
    }

    /// Sum of all entries of `diag(2, 2, 1)` truncated to two values.
    fn numbers<T: LinalgScalar>() {
        let square = |entries: [f64; 9]| {
            let entries = entries.map(<T as t4a_algebra::Numeric>::from_f64);
            Tensor::from_vec(entries.to_vec(), &[3, 3]).unwrap()
        };
        let a = square([2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]);
        let ones = || [Some(Part::Full(Batched::new(&square([1.0; 9]))))];
        let got = gradient(LowRankOp { rank: 2 }, &[&a], &ones()).unwrap();
        let want = square([1.0, 1.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0, 0.0]);
        assert_close(&got[0], &want, tight::<T>(3));
        let error = gradient(LowRankOp { rank: 1 }, &[&a], &ones()).unwrap_err();
        assert_eq!(error, LinalgError::SplitTie { op: "low_rank_vjp", batch: 0 });
    }

    for_all_dtypes! {
        derivatives_are_smooth_beside_the_cut => derivatives;
        a_tie_of_kept_values => numbers;
    }
}
