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

use t4a_diff::Array;
use t4a_structured::{BondTruncation, Direction, Eigh, GradedTensor, Sector, einsum};

use super::Mps;
use crate::error::Result;
use crate::mpo::Mpo;
use crate::scalar::{edge, unfused};

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
    // Eigenvalues of a sector are ascending: those of the negative matrix begin with the largest weight.
    let Eigh { w, v } = density.scale(-1.0).eigh()?;
    let root = |w: &f64| (-w).max(0.0).sqrt();
    let roots = w.numbers()?.into_iter().map(|(_, own)| own.iter().map(root).collect());
    let roots: Vec<Vec<f64>> = roots.collect();
    let dims = truncation.dims(&roots.iter().map(|own| &own[..]).collect::<Vec<_>>());
    Ok(v.leading(2, &dims)?.conj()?.permute(&[2, 0, 1], 2)?)
}
