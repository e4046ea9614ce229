//! The product of an operator and a state, truncated by density matrices.
//!
//! ```text
//!   ρ = ψ ψᴴ of the sites from i on, with ψ = O|x⟩: its eigenvectors of largest eigenvalue are the kept states of a bond
//!
//!   x ── x ── x ── ┐          overlap of the sites before i: [ket, operator, conjugate operator, conjugate ket]
//!   O ── O ── O ── rest       rest: sites behind i, on the kept states
//!   O*── O*── O*── rest*
//!   x*── x*── x*── ┘
//! ```
//!
//! Reference: S. White, *Density matrix formulation for quantum renormalization groups* (1992); for products of operators
//! and states I. McCulloch, *From density-matrix renormalization group to matrix product states* (2007).

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_structured::{
    Bond, BondTruncation, Direction, Eigh, GradedTensor, Leg, Sector, Spec, einsum,
};

use super::Mps;
use crate::error::Result;
use crate::fill::Filler;
use crate::mpo::Mpo;
use crate::scalar::{constant_like, edge, unfused};

impl<S: Sector, A: Array> Mps<S, A> {
    /// The product with bonds of the leading eigenvectors of density matrices; the centre is site 0.
    pub(super) fn by_densities(
        &self,
        operator: &Mpo<S, A>,
        truncation: BondTruncation,
    ) -> Result<Self> {
        let (x, w, n) = (&self.tensors, operator.tensors(), self.len());
        let (ket, own) = (x[0].spec().legs()[0].dual(), w[0].spec().legs()[0].dual());
        let legs = vec![ket.clone(), own.clone(), own.dual(), ket.dual()];
        let mut overlaps = vec![edge(&x[0], legs)?];
        for i in 0..n - 1 {
            let all = [&overlaps[i], &x[i], &w[i], &x[i].conj()?, &w[i].conj()?];
            let next = einsum("kwvb,kpm,wqpu,bst,vqsr->murt", &all)?;
            overlaps.push(next);
        }
        let mut tensors = Vec::with_capacity(n);
        let product = einsum("kpm,wqpu->kwqmu", &[&x[n - 1], &w[n - 1]])?;
        let mut rest = unfused(product.repartition(3)?.fuse(3..5, Direction::In)?)?;
        for i in (1..n).rev() {
            let conj = rest.conj()?;
            let density = einsum("kwvb,kwqc,bvsd->sdqc", &[&overlaps[i], &rest, &conj])?;
            let kept = leading(&density.repartition(2)?, truncation)?;
            let next = einsum("kwqc,aqc->kwa", &[&rest, &kept.conj()?])?;
            rest = einsum("kpm,wqpu,mua->kwqa", &[&x[i - 1], &w[i - 1], &next])?;
            tensors.push(kept);
        }
        let first = edge(&x[0], vec![ket.dual(), own, ket])?;
        tensors.push(einsum("bwk,kwqa->bqa", &[&first, &rest])?.repartition(2)?);
        tensors.reverse();
        Ok(Self { tensors, center: Some(0) })
    }
}

/// The leading eigenvectors `[new, site, right]` of the transpose of a density matrix; singular values of the state are the
/// roots of its eigenvalues.
fn leading<S: Sector, A: Array>(
    density: &GradedTensor<S, A>,
    truncation: BondTruncation,
) -> Result<GradedTensor<S, A>> {
    let Eigh { w, v } = density.eigh()?;
    let all = v.conj()?.permute(&[2, 0, 1], 2)?;
    let select = last(&w, &all.spec().legs()[0], truncation)?;
    Ok(einsum("ka,aqc->kqc", &[&constant_like(&select, all.re())?, &all])?.repartition(2)?)
}

/// The matrix `[kept, all]` that selects eigenvectors; eigenvalues of a sector are ascending.
fn last<S: Sector, A: Array>(
    values: &Bond<S, A>,
    leg: &Leg<S>,
    truncation: BondTruncation,
) -> Result<GradedTensor<S>> {
    let numbers = values.numbers()?;
    let roots: Vec<Vec<f64>> = numbers
        .iter()
        .map(|(_, own)| own.iter().rev().map(|p| p.max(0.0).sqrt()).collect())
        .collect();
    let dims = truncation.dims(&roots.iter().map(|own| &own[..]).collect::<Vec<_>>());
    let sectors = numbers.iter().zip(&dims).filter(|&(_, &dim)| dim > 0);
    let kept = Leg::new(sectors.map(|((sector, _), &dim)| (*sector, dim)), leg.direction())?;
    let mut select = Filler::new(Spec::new(vec![kept, leg.dual()], S::TRIVIAL, 1)?);
    let (mut row, mut first) = (0, 0);
    for ((_, own), dim) in numbers.iter().zip(dims) {
        for k in 0..dim {
            select.add(&[row, first + own.len() - 1 - k], c64::ONE);
            row += 1;
        }
        first += own.len();
    }
    select.finish()
}
