//! Moves: projectors of all cuts, then the absorption of a column.

use t4a_diff::Array;
use t4a_structured::{FluxOn, GradedTensor, Sector, Svd, Truncated, einsum};

use super::{Cell, CellEnvironment, CtmOptions, OP};
use crate::error::Result;
use crate::peps::symmetric::normalised;
use crate::scalar::number;

/// A tensor with its last four legs from direction d on: seen from there, they are left, up, right, down.
pub(super) fn turned<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    d: usize,
) -> Result<GradedTensor<S, A>> {
    let first = x.spec().legs().len() - 4;
    let axes: Vec<usize> = (0..first).chain((0..4).map(|k| first + (d + k) % 4)).collect();
    Ok(x.permute(&axes, x.spec().rows())?)
}

/// Both projectors of the cut above a site: `[χ of the edge, bulk, new]` of the upper half, `[new, χ, bulk]`.
pub(super) type Projectors<S, A> = [GradedTensor<S, A>; 2];

impl<S: Sector, A: Array> CellEnvironment<S, A> {
    /// The grown corner of a site behind direction d, `[χ and bulk behind edge d, χ and bulk before edge d + 1]`.
    fn quarter(&self, cell: &Cell<S, A>, d: usize, site: usize) -> Result<GradedTensor<S, A>> {
        let bulk = turned(&cell.bulk[site], d)?;
        let all = [self.edge(d, site), self.corner(d, site), self.edge(d + 1, site), &bulk];
        Ok(einsum("fls,st,tuv,lurw->fwvr", &all)?)
    }

    /// The upper and the lower half `[f, w, x, y]` and `[x, y, f, w]` of the plaquette around the cut above a site, seen
    /// from direction d. The first pair of legs of the upper half is that of the cut on the side of d.
    pub(super) fn halves(
        &self,
        cell: &Cell<S, A>,
        d: usize,
        site: usize,
    ) -> Result<[GradedTensor<S, A>; 2]> {
        let (above, right) = (cell.neighbor(site, d + 1), cell.neighbor(site, d + 2));
        let beside = cell.neighbor(above, d + 2);
        let [ul, ur] = [self.quarter(cell, d, above)?, self.quarter(cell, d + 1, beside)?];
        let [ll, lr] = [self.quarter(cell, d + 3, site)?, self.quarter(cell, d + 2, right)?];
        let upper = normalised(&einsum("fwvr,vrxy->fwxy", &[&ul, &ur])?)?;
        let lower = normalised(&einsum("xyvr,vrfw->xyfw", &[&lr, &ll])?)?;
        Ok([upper, lower])
    }

    /// Projectors of the cut above a site, seen from direction d, and the norm that they drop.
    fn projectors(
        &self,
        cell: &Cell<S, A>,
        d: usize,
        site: usize,
        options: &CtmOptions,
    ) -> Result<(Projectors<S, A>, f64)> {
        let [upper, lower] = self.halves(cell, d, site)?;
        let product = product(&upper, &lower)?;
        let Truncated { kept: Svd { u, s, vh }, error } =
            product.svd_truncated(2, FluxOn::Right, options.truncation())?;
        let root = s.map(|x| x.pow(-0.5))?;
        let p = einsum("kab,abfw->fwk", &[&vh.conj()?, &lower])?.scale_bond(2, &root)?;
        let q = einsum("xyk,fwxy->kfw", &[&u.conj()?, &upper])?.scale_bond(0, &root)?;
        let size = number(&s.norm()?)?.hypot(error);
        Ok(([p, q], if size > 0.0 { error / size } else { 0.0 }))
    }

    /// Absorbs a column on the side of direction d everywhere, and returns the largest relative norm that was dropped.
    /// Differentiable where singular values differ.
    ///
    /// # Errors
    /// `Argument` for options out of range; `Length` for another number of sites; those of the factorisations.
    pub fn absorb(&mut self, cell: &Cell<S, A>, d: usize, options: &CtmOptions) -> Result<f64> {
        options.check(OP)?;
        self.check_sites(cell)?;
        let mut dropped = 0.0f64;
        let mut cuts = Vec::new();
        for site in 0..cell.len() {
            let (projectors, error) = self.projectors(cell, d, site, options)?;
            cuts.push(projectors);
            dropped = dropped.max(error);
        }
        self.absorb_with(cell, d, &cuts)?;
        Ok(dropped)
    }

    /// Absorbs a column with the projectors of the cuts above all sites.
    pub(super) fn absorb_with(
        &mut self,
        cell: &Cell<S, A>,
        d: usize,
        cuts: &[Projectors<S, A>],
    ) -> Result<()> {
        let mut new: [Vec<Option<GradedTensor<S, A>>>; 3] =
            std::array::from_fn(|_| vec![None; cell.len()]);
        for site in 0..cell.len() {
            let (next, below) = (cell.neighbor(site, d + 2), cell.neighbor(site, d + 3));
            let ([p, q], [p_below, q_below]) = (&cuts[site], &cuts[below]);
            let upper = [self.corner(d, site), self.edge(d + 1, site), p];
            let upper = einsum("ct,tuv,cuk->kv", &upper)?;
            let bulk = turned(&cell.bulk[site], d)?;
            let middle = einsum("fls,lurw,fwk,qsu->krq", &[self.edge(d, site), &bulk, p_below, q])?;
            let lower = [self.edge(d + 3, site), self.corner(d + 3, site), q_below];
            let lower = einsum("vub,bc,kcu->vk", &lower)?;
            for (new, x) in new.iter_mut().zip([upper, middle, lower]) {
                new[next] = Some(normalised(&x.repartition(1)?)?);
            }
        }
        let [upper, middle, lower] = new.map(|all| all.into_iter().flatten().collect());
        (self.corners[d % 4], self.edges[d % 4], self.corners[(d + 3) % 4]) =
            (upper, middle, lower);
        Ok(())
    }
}

/// Both halves contracted over the bonds away from the cut: `[x, y, a, b]`.
pub(super) fn product<S: Sector, A: Array>(
    upper: &GradedTensor<S, A>,
    lower: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    Ok(einsum("fwxy,abfw->xyab", &[upper, lower])?.repartition(2)?)
}
