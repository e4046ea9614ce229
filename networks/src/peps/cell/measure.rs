//! Contractions with the environments: partition functions, ratios, density matrices.

use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector, einsum};

use super::moves::turned;
use super::{Cell, CellEnvironment, OP};
use crate::error::{NetworksError, Result};
use crate::peps::layers::{open, traced};
use crate::peps::symmetric::{divided, one};

impl<S: Sector, A: Array> CellEnvironment<S, A> {
    /// The ring of a site around a tensor in its place, an array of one element.
    fn ring(&self, site: usize, bulk: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
        let mut all = Vec::new();
        for d in 0..4 {
            all.extend([self.edge(d, site), self.corner(d, site)]);
        }
        all.push(bulk);
        let open = bulk.spec().legs().len() > 4;
        let subscripts = match open {
            true => "alb,bc,cue,eg,grh,hi,iwj,ja,pqlurw->pq",
            false => "alb,bc,cue,eg,grh,hi,iwj,ja,lurw->",
        };
        Ok(einsum(subscripts, &all)?)
    }

    /// `⟨impurity⟩ / ⟨bulk⟩` at a site, an array of one element.
    ///
    /// # Errors
    /// `SiteOutOfRange`; `Structured` for other legs.
    pub fn ratio(
        &self,
        cell: &Cell<S, A>,
        site: usize,
        impurity: &GradedTensor<S, A>,
    ) -> Result<A> {
        self.check_sites(cell)?;
        check_site(cell, site)?;
        let value = one(&self.ring(site, impurity)?);
        Ok(value.div(&one(&self.ring(site, &cell.bulk[site])?)))
    }

    /// The partition function per cell, an array of one element.
    ///
    /// # Errors
    /// Those of the contraction.
    pub fn partition_per_cell(&self, cell: &Cell<S, A>) -> Result<A> {
        self.check_sites(cell)?;
        let mut total: Option<A> = None;
        for site in 0..cell.len() {
            let ring = one(&self.ring(site, &cell.bulk[site])?);
            let (left, up) = (cell.neighbor(site, 0), cell.neighbor(site, 1));
            let corners = [
                self.corner(0, site),
                self.corner(1, left),
                self.corner(2, cell.neighbor(left, 1)),
                self.corner(3, up),
            ];
            let corners = one(&einsum("ab,bc,cd,da->", &corners)?);
            let pair = |d: usize| -> Result<A> {
                let far = cell.neighbor(site, d + 1);
                let all = [
                    self.corner(d, site),
                    self.edge(d + 1, site),
                    self.corner(d + 1, site),
                    self.corner(d + 2, far),
                    self.edge(d + 3, far),
                    self.corner(d + 3, far),
                ];
                Ok(one(&einsum("ab,bue,ec,cd,duf,fa->", &all)?))
            };
            let own = ring.mul(&corners).div(&pair(0)?.mul(&pair(3)?));
            total = Some(match total {
                Some(total) => total.mul(&own),
                None => own,
            });
        }
        total.ok_or(NetworksError::Norm { op: OP, norm: 0.0 })
    }

    /// The density matrix `[site, conjugate site]` of a site of a state, of trace 1.
    ///
    /// # Errors
    /// `SiteOutOfRange`, `Length`; `Structured` for a state with other bonds.
    pub fn site_density(
        &self,
        cell: &Cell<S, A>,
        state: &[GradedTensor<S, A>],
        site: usize,
    ) -> Result<GradedTensor<S, A>> {
        self.check_sites(cell)?;
        check_state(cell, state, site)?;
        let density = self.ring(site, &open(&state[site])?)?;
        let trace = one(&einsum("pp->", &[&density])?);
        divided(&density, &trace)
    }

    /// The density matrix `[site, conjugate site, neighbour, conjugate neighbour]` of a site and the next one on the right
    /// (`direction` 2) or below (3), of trace 1.
    ///
    /// # Errors
    /// As [`CellEnvironment::site_density`]; `Argument` for another direction.
    pub fn pair_density(
        &self,
        cell: &Cell<S, A>,
        state: &[GradedTensor<S, A>],
        site: usize,
        direction: usize,
    ) -> Result<GradedTensor<S, A>> {
        self.check_sites(cell)?;
        check_state(cell, state, site)?;
        if !(2..4).contains(&direction) {
            let (name, given) = ("the direction", direction.to_string());
            let required = "2 (right) or 3 (down)";
            return Err(NetworksError::Argument { op: OP, name, given, required });
        }
        let d = direction - 2;
        let other = cell.neighbor(site, direction);
        let first = turned(&open(&state[site])?, d)?;
        let second = turned(&open(&state[other])?, d)?;
        let left = [
            self.edge(d, site),
            self.corner(d, site),
            self.edge(d + 1, site),
            self.edge(d + 3, site),
            self.corner(d + 3, site),
            &first,
        ];
        let left = einsum("fle,et,tuv,xwy,yf,pqlurw->vrxpq", &left)?;
        let right = [
            self.edge(d + 1, other),
            self.corner(d + 1, other),
            self.edge(d + 2, other),
            self.corner(d + 2, other),
            self.edge(d + 3, other),
            &second,
        ];
        let right = einsum("vub,bc,crh,hi,iwx,stlurw->vlxst", &right)?;
        let density = einsum("vrxpq,vrxst->pqst", &[&left, &right])?;
        let trace = one(&einsum("ppss->", &[&density])?);
        divided(&density, &trace)
    }

    /// `Tr ρ O` of a density matrix of sites and an operator `[outs, ins]` on the same sites, an array of one element.
    ///
    /// # Errors
    /// `Length` for an operator of another number of sites; `Structured` for other sites.
    pub fn expectation(density: &GradedTensor<S, A>, operator: &GradedTensor<S, A>) -> Result<A> {
        traced(OP, density, operator)
    }
}

fn check_site<S: Sector, A: Array>(cell: &Cell<S, A>, site: usize) -> Result<()> {
    let sites = cell.len();
    match site < sites {
        true => Ok(()),
        false => Err(NetworksError::SiteOutOfRange { op: OP, site, sites }),
    }
}

fn check_state<S: Sector, A: Array>(
    cell: &Cell<S, A>,
    state: &[GradedTensor<S, A>],
    site: usize,
) -> Result<()> {
    check_site(cell, site)?;
    let (required, given) = (cell.len(), state.len());
    match required == given {
        true => Ok(()),
        false => Err(NetworksError::Length { op: OP, what: "tensors of a state", required, given }),
    }
}
