//! One step of CTMRG of a cell, four moves, about an environment.
//!
//! The projectors of a cut are functions of both halves A, B of the plaquette through the kept subspaces of `M = A B`,
//! whose changes X and Y have derivatives at degenerate singular values too (see [`Subspace`]):
//!
//! ```text
//!   U' = U_k + U_d X,   V' = V_k + V_d Y,   Z = U'ᴴ M V',   P = B V' Z⁻¹ (Z Zᴴ)^¼,   Q = (Z Zᴴ)^(−¼) U'ᴴ A.
//! ```
//!
//! They are `B V S^(−½)` and `S^(−½) Uᴴ A` but for a rotation. With the constant S of the environment
//! `S^(−½) Z S^(−½) = 1 + ζ`, and `(Z Zᴴ)^¼ = S^½ (1 + Θ)` where, with a = √s_i and b = √s_j, in first order
//!
//! ```text
//!   Θ_ij = b (b² ζ_ij + a² ζ_ji) / ((a + b)(a² + b²)).
//! ```
//!
//! At a fixed point the bonds are rotated such that the environment itself returns, not an equivalent one. The rotations
//! along a chain of edges are the polar factors of the dominant right eigenvector of its transfer matrix between new and
//! old edges; what is left are signs of tensors.
//!
//! Reference: A. Francuz, N. Schuch, B. Vanhecke (2023).

use t4a_algebra::c64;
use t4a_diff::{Array, Eager};
use t4a_linalg::krylov::{KrylovOptions, arnoldi};
use t4a_linalg::polar::Side;
use t4a_structured::{Bond, FluxOn, GradedTensor, Leg, Sector, Spec, Truncated, einsum};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

use super::moves::{Projectors, product};
use super::{Cell, CellEnvironment, OP};
use crate::error::{NetworksError, Result};
use crate::fill::Filler;
use crate::peps::options::CtmOptions;
use crate::peps::subspace::{Subspace, lifted, weighted};
use crate::scalar::{norm, number};

/// Four moves with the projectors of one environment.
///
/// [`CellStep::apply`] is a function of the cell and of the environment over any arrays. At the tensors that the step was
/// made of its value is the step, and its first derivative is that of the step up to gauges of the bonds; second ones are
/// not. At a fixed point it returns the environment that it was given.
#[derive(Clone, Debug)]
pub struct CellStep<S> {
    /// Cuts above all sites by direction.
    moves: [Vec<Cut<S>>; 4],
    /// Signs of corners and edges by direction and site.
    signs: [[Vec<f64>; 4]; 2],
    deviation: f64,
}

/// Constants of the projectors of a cut.
#[derive(Clone, Debug)]
struct Cut<S> {
    subspace: Subspace<S>,
    /// Inverse roots of the kept singular values.
    root: Bond<S, Eager>,
    /// The identity, and the factors of `ζ_ij` and `ζ_ji`.
    constants: [GradedTensor<S>; 3],
    /// Rotation of the kept states.
    gauge: Option<GradedTensor<S>>,
}

impl<S: Sector> Cut<S> {
    fn new(
        cell: &Cell<S>,
        environment: &CellEnvironment<S>,
        (d, site): (usize, usize),
        options: &CtmOptions,
    ) -> Result<Self> {
        let [upper, lower] = environment.halves(cell, d, site)?;
        let matrix = product(&upper, &lower)?;
        let Truncated { kept, .. } =
            matrix.svd_truncated(2, FluxOn::Right, options.truncation())?;
        let root = kept.s.map(|x| x.pow(-0.5))?;
        let constants = constants(&kept.s, &kept.u.spec().legs()[2])?;
        let subspace = Subspace::new(matrix, kept, false)?;
        Ok(Self { subspace, root, constants, gauge: None })
    }

    fn projectors<A: Array>(
        &self,
        [upper, lower]: [&GradedTensor<S, A>; 2],
    ) -> Result<Projectors<S, A>> {
        let matrix = product(upper, lower)?;
        let [columns, rows] = self.subspace.bases(&matrix)?;
        let root = upper.re().constant(self.root.values().tensor()?.clone());
        let root = Bond::new(self.root.leg().clone(), root)?;
        let (columns, rows) = (columns.conj()?.scale_bond(2, &root)?, rows.scale_bond(0, &root)?);
        let inner = einsum("xyk,xyab,lab->kl", &[&columns, &matrix, &rows])?.repartition(1)?;
        let [one, own, other] = &self.constants;
        let one = lifted(one, upper.re())?;
        let zeta = inner.sub(&one)?;
        let adjoint = zeta.permute(&[1, 0], 1)?.conj()?;
        let lift = |x: &GradedTensor<S>| lifted(x, upper.re());
        let theta = weighted(&zeta, &lift(own)?)?.add(&weighted(&adjoint, &lift(other)?)?)?;
        let root = one.add(&theta)?;
        let p = einsum("kab,abfw,kl,lm->fwm", &[&rows, lower, &inner.inverse(1)?, &root])?;
        let q = einsum("kl,xyl,fwxy->kfw", &[&root.inverse(1)?, &columns, upper])?;
        let Some(gauge) = &self.gauge else { return Ok([p, q]) };
        let gauge = lifted(gauge, upper.re())?;
        let p = einsum("fwk,ka->fwa", &[&p, &gauge.conj()?])?;
        Ok([p, einsum("kfw,ka->afw", &[&q, &gauge])?])
    }
}

/// The identity `[kept, kept]`, and the factors of `ζ_ij` and `ζ_ji` in Θ.
fn constants<S: Sector>(kept: &Bond<S, Eager>, leg: &Leg<S>) -> Result<[GradedTensor<S>; 3]> {
    let spec = Spec::new(vec![leg.dual(), leg.clone()], S::TRIVIAL, 1)?;
    let mut fillers = [0; 3].map(|_| Filler::new(spec.clone()));
    let mut first = 0;
    for (_, values) in kept.numbers()? {
        for (i, a) in values.iter().map(|s| s.sqrt()).enumerate() {
            fillers[0].add(&[first + i, first + i], c64::ONE);
            for (j, b) in values.iter().map(|s| s.sqrt()).enumerate() {
                let own = b / ((a + b) * (a * a + b * b));
                fillers[1].add(&[first + i, first + j], c64::new(own * b * b, 0.0));
                fillers[2].add(&[first + i, first + j], c64::new(own * a * a, 0.0));
            }
        }
        first += values.len();
    }
    let [one, own, other] = fillers;
    Ok([one.finish()?, own.finish()?, other.finish()?])
}

impl<S: Sector> CellStep<S> {
    /// The step of an environment, with its derivative.
    ///
    /// # Errors
    /// `Argument` for options out of range; `Length` for another number of sites; those of the factorisations.
    pub fn new(
        cell: &Cell<S>,
        environment: &CellEnvironment<S>,
        options: &CtmOptions,
    ) -> Result<Self> {
        options.check(OP)?;
        environment.check_sites(cell)?;
        let mut now = environment.clone();
        let mut moves: [Vec<Cut<S>>; 4] = Default::default();
        for (d, cuts) in moves.iter_mut().enumerate() {
            let cut = |site| Cut::new(cell, &now, (d, site), options);
            *cuts = (0..cell.len()).map(cut).collect::<Result<_>>()?;
            let mut next = now.clone();
            next.absorb_with(cell, d, &projectors(cell, &now, d, cuts)?)?;
            fix_gauges(cell, d, cuts, [&next, environment])?;
            let projectors = projectors(cell, &now, d, cuts)?;
            now.absorb_with(cell, d, &projectors)?;
        }
        let signs = [[0; 4].map(|_| vec![1.0; cell.len()]), [0; 4].map(|_| vec![1.0; cell.len()])];
        let mut step = Self { moves, signs, deviation: 0.0 };
        step.compare([&now, environment])?;
        Ok(step)
    }

    /// The largest change of a tensor of the environment, whose norms are 1: 0 at a fixed point.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Signs of the tensors, and the largest change; that of tensors of other legs is 1.
    fn compare(&mut self, [new, old]: [&CellEnvironment<S>; 2]) -> Result<()> {
        let parts = [(&new.corners, &old.corners), (&new.edges, &old.edges)];
        for ((new, old), signs) in parts.into_iter().zip(&mut self.signs) {
            for (d, signs) in signs.iter_mut().enumerate() {
                for (site, sign) in signs.iter_mut().enumerate() {
                    let (x, y) = (&new[d][site], &old[d][site]);
                    if x.spec() != y.spec() {
                        self.deviation = 1.0;
                        continue;
                    }
                    *sign = if number(&x.inner(y)?.0)? < 0.0 { -1.0 } else { 1.0 };
                    self.deviation = self.deviation.max(norm(&x.scale(*sign).sub(y)?)?);
                }
            }
        }
        Ok(())
    }

    /// The next environment.
    ///
    /// # Errors
    /// `Length` for another number of sites; `Structured` for tensors of other legs than those of the step.
    pub fn apply<A: Array>(
        &self,
        cell: &Cell<S, A>,
        environment: &CellEnvironment<S, A>,
    ) -> Result<CellEnvironment<S, A>> {
        environment.check_sites(cell)?;
        let (required, given) = (self.moves[0].len(), cell.len());
        if required != given {
            let what = "sites of a cell";
            return Err(NetworksError::Length { op: OP, what, required, given });
        }
        let mut now = environment.clone();
        for (d, cuts) in self.moves.iter().enumerate() {
            let projectors = projectors(cell, &now, d, cuts)?;
            now.absorb_with(cell, d, &projectors)?;
        }
        for (all, signs) in [&mut now.corners, &mut now.edges].into_iter().zip(&self.signs) {
            for (x, &sign) in all.iter_mut().flatten().zip(signs.iter().flatten()) {
                if sign < 0.0 {
                    *x = x.scale(sign);
                }
            }
        }
        Ok(now)
    }
}

fn projectors<S: Sector, A: Array>(
    cell: &Cell<S, A>,
    environment: &CellEnvironment<S, A>,
    d: usize,
    cuts: &[Cut<S>],
) -> Result<Vec<Projectors<S, A>>> {
    let of = |(site, cut): (usize, &Cut<S>)| -> Result<Projectors<S, A>> {
        let [upper, lower] = environment.halves(cell, d, site)?;
        cut.projectors([&upper, &lower])
    };
    cuts.iter().enumerate().map(of).collect()
}

/// Rotates the bonds of the new edges of direction d such that they are the old ones, if their legs are.
fn fix_gauges<S: Sector>(
    cell: &Cell<S>,
    d: usize,
    cuts: &mut [Cut<S>],
    [new, old]: [&CellEnvironment<S>; 2],
) -> Result<()> {
    if new.edges[d].iter().zip(&old.edges[d]).any(|(x, y)| x.spec() != y.spec()) {
        return Ok(());
    }
    // A matrix `[new, old]` on the bond above a site, to the one below.
    let pass = |x: &GradedTensor<S>, site: usize| -> Result<GradedTensor<S>> {
        let next = cell.neighbor(site, d + 2);
        let all = [new.edge(d, next), x, &old.edge(d, next).conj()?];
        Ok(einsum("kul,lb,aub->ka", &all)?.repartition(1)?)
    };
    let mut done = vec![false; cell.len()];
    for first in 0..cell.len() {
        if done[first] {
            continue;
        }
        let mut chain = vec![first];
        while let Some(&last) = chain.last()
            && cell.neighbor(last, d + 3) != first
        {
            chain.push(cell.neighbor(last, d + 3));
        }
        chain.iter().for_each(|&site| done[site] = true);
        let leg = &new.edge(d, cell.neighbor(first, d + 2)).spec().legs()[2];
        let spec = Spec::new(vec![leg.dual(), leg.clone()], S::TRIVIAL, 1)?;
        let map = |x: &GradedTensor<S>| -> Result<GradedTensor<S>> {
            chain.iter().try_fold(x.clone(), |x, &site| pass(&x, site))
        };
        // The identity has no part of the solution where signs differ.
        let start = GradedTensor::random(spec, DType::F64, false, &Generator::new(5))?;
        let options = KrylovOptions::new().tolerance(1e-13).subspace(30).max_applications(600);
        let found = arnoldi(map, &start, &options)?;
        let Some(x) = found.vectors.first() else { continue };
        let mut x = GradedTensor::new(x.spec().clone(), x.re().clone(), None)?;
        for &site in &chain {
            cuts[site].gauge = Some(x.polar(1, Side::Right)?.u);
            x = pass(&x, site)?;
            x = x.scale(1.0 / norm(&x)?);
        }
    }
    Ok(())
}
