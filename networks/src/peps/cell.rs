//! CTMRG of a unit cell by moves in four directions.
//!
//! Sites are numbered row by row, rows run down, and the cell repeats in both directions. Directions are 0 left, 1 up,
//! 2 right, 3 down; a move to direction d absorbs a column into the environments on that side. Its projectors reduce the
//! bonds that a cut between two rows crosses:
//!
//! ```text
//!   A  upper half of a plaquette        A B = U S Vᴴ,   P = B V S^(−½),   Q = S^(−½) Uᴴ A,   A P Q B ≈ A B
//!   ──────── cut ────────
//!   B  lower half
//! ```
//!
//! Tensors of the environment of a site, clockwise, `d + 1` after d:
//!
//! ```text
//!   edge d    [to corner d − 1, bulk, to corner d]         corner d    [to edge d, to edge d + 1]
//! ```

use std::ops::ControlFlow;
use std::time::Instant;

use t4a_diff::{Array, Eager};
use t4a_structured::{Direction, FluxOn, GradedTensor, Leg, Sector, Spec, Svd, Truncated, einsum};

use super::layers::{closed, double, open, rank, traced};
use super::options::{CtmOptions, CtmReport, change, spectrum};
use super::symmetric::{divided, normalised, one};
use crate::error::{NetworksError, Result};
use crate::report::Flow;
use crate::scalar::{norm, number};

const OP: &str = "CTMRG";

/// A cell of bulk tensors `[left, up, right, down]` on the square lattice, row by row.
#[derive(Clone, Debug)]
pub struct Cell<S, A = Eager> {
    width: usize,
    bulk: Vec<GradedTensor<S, A>>,
}

impl<S: Sector, A: Array> Cell<S, A> {
    /// A cell of rows of `width` tensors, whose legs contract with those of their neighbours.
    ///
    /// # Errors
    /// `Length` for a number of tensors that is no multiple of the width, and other numbers of legs; `Chain` for bonds
    /// that do not fit, with the site; `FermionicSector`.
    pub fn new(width: usize, bulk: Vec<GradedTensor<S, A>>) -> Result<Self> {
        if S::FERMIONIC {
            return Err(NetworksError::FermionicSector { op: OP, what: "a cell".into() });
        }
        if width == 0 || bulk.is_empty() || !bulk.len().is_multiple_of(width) {
            let what = "tensors of a cell";
            let (required, given) =
                (width.max(1) * bulk.len().div_ceil(width.max(1)).max(1), bulk.len());
            return Err(NetworksError::Length { op: OP, what, required, given });
        }
        bulk.iter().try_for_each(|x| rank(OP, x, 4))?;
        let cell = Self { width, bulk };
        for site in 0..cell.bulk.len() {
            for direction in [2, 3] {
                let (own, other) = (cell.leg(site, direction), cell.neighbor(site, direction));
                let other = cell.leg(other, direction + 2);
                if !own.contracts_with(other) {
                    let message =
                        format!("leg {direction} is {own}, that of its neighbour {other}");
                    return Err(NetworksError::Chain { op: OP, site, message });
                }
            }
        }
        Ok(cell)
    }

    /// The cell of a state of tensors `[site, left, up, right, down]`: two layers.
    ///
    /// # Errors
    /// As [`Cell::new`], [`layers::double`](super::layers::double).
    pub fn of_state(width: usize, state: &[GradedTensor<S, A>]) -> Result<Self> {
        Self::new(width, state.iter().map(double).collect::<Result<_>>()?)
    }

    /// The bulk tensors, row by row.
    pub fn bulk(&self) -> &[GradedTensor<S, A>] {
        &self.bulk
    }

    /// Number of sites.
    pub fn len(&self) -> usize {
        self.bulk.len()
    }

    /// Never: a cell has a site.
    pub fn is_empty(&self) -> bool {
        self.bulk.is_empty()
    }

    fn leg(&self, site: usize, direction: usize) -> &Leg<S> {
        &self.bulk[site].spec().legs()[direction % 4]
    }

    /// The next site in a direction.
    pub fn neighbor(&self, site: usize, direction: usize) -> usize {
        let (w, h) = (self.width, self.bulk.len() / self.width);
        let (x, y) = (site % w, site / w);
        let (x, y) = match direction % 4 {
            0 => ((x + w - 1) % w, y),
            1 => (x, (y + h - 1) % h),
            2 => ((x + 1) % w, y),
            _ => (x, (y + 1) % h),
        };
        y * w + x
    }
}

/// A tensor with its last four legs from direction d on: seen from there, they are left, up, right, down.
fn turned<S: Sector, A: Array>(x: &GradedTensor<S, A>, d: usize) -> Result<GradedTensor<S, A>> {
    let first = x.spec().legs().len() - 4;
    let axes: Vec<usize> = (0..first).chain((0..4).map(|k| first + (d + k) % 4)).collect();
    Ok(x.permute(&axes, x.spec().rows())?)
}

/// The environments of all sites of a cell.
#[derive(Clone, Debug)]
pub struct CellEnvironment<S, A = Eager> {
    corners: [Vec<GradedTensor<S, A>>; 4],
    edges: [Vec<GradedTensor<S, A>>; 4],
}

/// Both projectors of the cut above a site: `[χ of the edge, bulk, new]` of the upper half, `[new, χ, bulk]`.
type Projectors<S, A> = [GradedTensor<S, A>; 2];

impl<S: Sector, A: Array> CellEnvironment<S, A> {
    /// The environment of a boundary whose bonds are in the states of vectors on the duals of the legs of each site.
    fn boundary(
        cell: &Cell<S, A>,
        vector: impl Fn(usize, usize) -> Result<GradedTensor<S, A>>,
    ) -> Result<Self> {
        use Direction::{In, Out};
        let single = |direction| Leg::new([(S::TRIVIAL, 1)], direction);
        let corner = |site: usize| -> Result<_> {
            let spec = Spec::new(vec![single(In)?, single(Out)?], S::TRIVIAL, 1)?;
            let ones = cell.bulk[site].re().full(&[spec.len()], 1.0);
            Ok(GradedTensor::new(spec, ones, None)?)
        };
        let edge = |d: usize, site: usize| -> Result<_> {
            let x = vector(d, site)?;
            let legs = vec![single(In)?, x.spec().legs()[0].clone(), single(Out)?];
            let spec = Spec::new(legs, x.spec().flux(), 1)?;
            normalised(&GradedTensor::new(spec, x.re().clone(), x.im().cloned())?)
        };
        let all = |f: &dyn Fn(usize, usize) -> Result<GradedTensor<S, A>>, d: usize| {
            (0..cell.len()).map(|site| f(d, site)).collect::<Result<Vec<_>>>()
        };
        let corners = |_: usize, site: usize| corner(site);
        Ok(Self {
            corners: [all(&corners, 0)?, all(&corners, 1)?, all(&corners, 2)?, all(&corners, 3)?],
            edges: [all(&edge, 0)?, all(&edge, 1)?, all(&edge, 2)?, all(&edge, 3)?],
        })
    }

    /// The corner clockwise behind direction d of a site, `[to edge d, to edge d + 1]`.
    pub fn corner(&self, d: usize, site: usize) -> &GradedTensor<S, A> {
        &self.corners[d % 4][site]
    }

    /// The edge in direction d of a site, `[to corner d − 1, bulk, to corner d]`.
    pub fn edge(&self, d: usize, site: usize) -> &GradedTensor<S, A> {
        &self.edges[d % 4][site]
    }

    /// The grown corner of a site behind direction d, `[χ and bulk behind edge d, χ and bulk before edge d + 1]`.
    fn quarter(&self, cell: &Cell<S, A>, d: usize, site: usize) -> Result<GradedTensor<S, A>> {
        let bulk = turned(&cell.bulk[site], d)?;
        let all = [self.edge(d, site), self.corner(d, site), self.edge(d + 1, site), &bulk];
        Ok(einsum("fls,st,tuv,lurw->fwvr", &all)?)
    }

    /// Projectors of the cut above a site, seen from direction d, and the norm that they drop.
    fn projectors(
        &self,
        cell: &Cell<S, A>,
        d: usize,
        site: usize,
        options: &CtmOptions,
    ) -> Result<(Projectors<S, A>, f64)> {
        let (above, right) = (cell.neighbor(site, d + 1), cell.neighbor(site, d + 2));
        let beside = cell.neighbor(above, d + 2);
        let [ul, ur] = [self.quarter(cell, d, above)?, self.quarter(cell, d + 1, beside)?];
        let [ll, lr] = [self.quarter(cell, d + 3, site)?, self.quarter(cell, d + 2, right)?];
        let upper = normalised(&einsum("fwvr,vrxy->fwxy", &[&ul, &ur])?)?;
        let lower = normalised(&einsum("xyvr,vrfw->xyfw", &[&lr, &ll])?)?;
        let product = einsum("fwxy,abfw->xyab", &[&upper, &lower])?;
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
    /// Those of the factorisations.
    pub fn absorb(&mut self, cell: &Cell<S, A>, d: usize, options: &CtmOptions) -> Result<f64> {
        let mut dropped = 0.0f64;
        let mut cuts = Vec::new();
        for site in 0..cell.len() {
            let (projectors, error) = self.projectors(cell, d, site, options)?;
            cuts.push(projectors);
            dropped = dropped.max(error);
        }
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
        Ok(dropped)
    }

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
        check_site(cell, site)?;
        let value = one(&self.ring(site, impurity)?);
        Ok(value.div(&one(&self.ring(site, &cell.bulk[site])?)))
    }

    /// The partition function per cell, an array of one element.
    ///
    /// # Errors
    /// Those of the contraction.
    pub fn partition_per_cell(&self, cell: &Cell<S, A>) -> Result<A> {
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

    /// Singular values of all corners, each in descending order and of sum 1.
    fn spectra(&self) -> Result<Vec<Vec<f64>>> {
        let of = |x: &GradedTensor<S, A>| -> Result<Vec<f64>> {
            let s = x.svd(1, FluxOn::Right)?.s;
            Ok(spectrum(s.numbers()?.into_iter().flat_map(|(_, own)| own).collect()))
        };
        self.corners.iter().flatten().map(of).collect()
    }

    fn bond_dim(&self) -> usize {
        self.corners.iter().flatten().map(|x| x.spec().legs()[0].dim()).max().unwrap_or(1)
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

/// An iteration of CTMRG for a cell: moves to the left, up, right and down in turn.
#[derive(Clone, Debug)]
pub struct CellSearch<S> {
    cell: Cell<S>,
    environment: CellEnvironment<S>,
    options: CtmOptions,
    spectra: Vec<Vec<f64>>,
    steps: usize,
    last: Option<CtmReport>,
}

impl<S: Sector> CellSearch<S> {
    /// An iteration from a boundary whose bonds are in the sum of all neutral states.
    ///
    /// # Errors
    /// `Argument` for options out of range.
    pub fn new(cell: Cell<S>, options: CtmOptions) -> Result<Self> {
        let vector = |d: usize, site: usize| -> Result<GradedTensor<S>> {
            let spec = Spec::new(vec![cell.leg(site, d).dual()], S::TRIVIAL, 1)?;
            let ones = cell.bulk[site].re().full(&[spec.len()], 1.0);
            Ok(GradedTensor::new(spec, ones, None)?)
        };
        let environment = CellEnvironment::boundary(&cell, vector)?;
        Self::from_environment(cell, environment, options)
    }

    /// An iteration for a state of tensors `[site, left, up, right, down]`, from a boundary that closes both layers.
    ///
    /// # Errors
    /// `Argument` for options out of range; `Length`, `Chain` as [`Cell::of_state`].
    pub fn of_state(width: usize, state: &[GradedTensor<S>], options: CtmOptions) -> Result<Self> {
        let cell = Cell::of_state(width, state)?;
        let vector = |d: usize, site: usize| closed(&state[site].spec().legs()[1 + d].dual());
        let environment = CellEnvironment::boundary(&cell, vector)?;
        Self::from_environment(cell, environment, options)
    }

    /// An iteration that starts from an environment.
    ///
    /// # Errors
    /// `Argument` for options out of range.
    pub fn from_environment(
        cell: Cell<S>,
        environment: CellEnvironment<S>,
        options: CtmOptions,
    ) -> Result<Self> {
        options.check(OP)?;
        let spectra = environment.spectra()?;
        Ok(Self { cell, environment, options, spectra, steps: 0, last: None })
    }

    /// The cell.
    pub fn cell(&self) -> &Cell<S> {
        &self.cell
    }

    /// The environment after the last step.
    pub fn environment(&self) -> &CellEnvironment<S> {
        &self.environment
    }

    /// The report of the last step.
    pub fn last(&self) -> Option<&CtmReport> {
        self.last.as_ref()
    }

    /// Steps until spectra change by less than the tolerance, or the number of steps is reached.
    ///
    /// # Errors
    /// That of the callback; those of the factorisations. The environment is that of the last step.
    pub fn run(&mut self, mut callback: impl FnMut(&CtmReport) -> Flow) -> Result<CtmReport> {
        loop {
            let report = self.step()?;
            let flow = callback(&report)?;
            let done = report.change < self.options.tolerance || self.steps >= self.options.steps;
            if flow == ControlFlow::Break(()) || done {
                return Ok(report);
            }
        }
    }

    /// A move in each of the four directions.
    ///
    /// # Errors
    /// Those of the factorisations; `Norm` for an environment that vanishes or is not finite.
    pub fn step(&mut self) -> Result<CtmReport> {
        let begin = Instant::now();
        let mut next = self.environment.clone();
        let mut truncation = 0.0f64;
        for d in 0..4 {
            truncation = truncation.max(next.absorb(&self.cell, d, &self.options)?);
        }
        let size = norm(next.corner(0, 0))?;
        if !size.is_finite() || size == 0.0 {
            return Err(NetworksError::Norm { op: OP, norm: size });
        }
        let spectra = next.spectra()?;
        let pairs = spectra.iter().zip(&self.spectra);
        self.steps += 1;
        let report = CtmReport {
            step: self.steps,
            change: pairs.map(|(a, b)| change(a, b)).fold(0.0, f64::max),
            truncation,
            bond_dim: next.bond_dim(),
            seconds: begin.elapsed().as_secs_f64(),
        };
        (self.environment, self.spectra, self.last) = (next, spectra, Some(report));
        Ok(report)
    }
}
