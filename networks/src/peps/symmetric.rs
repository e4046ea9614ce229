//! CTMRG of one real tensor with the symmetries of the square.
//!
//! All four legs of the bulk tensor point in one direction, and neighbours are conjugates of each other, which dualises
//! legs: for a state this is a rotation of one sublattice. Corner and edge have legs of that direction too.
//!
//! ```text
//!  corner C [χ, χ]     edge T [χ, bulk, χ]     quarter        C ── T* ── v
//!                                                             │    │
//!                                                             T* ─ a ─── r     grown corner [f, d, v, r]
//!                                                             │    │
//!                                                             f    d
//! ```

use std::ops::ControlFlow;
use std::time::Instant;

use t4a_diff::{Array, Eager};
use t4a_structured::{Bond, FluxOn, GradedTensor, Leg, Sector, Spec, einsum};

use super::fixed::FixedStep;
use super::layers::{one_direction, open, rank, real};
use super::options::{CtmOptions, CtmReport, change, spectrum};
use crate::error::{NetworksError, Result};
use crate::report::Flow;
use crate::scalar::on_engine;

pub(super) const OP: &str = "symmetric CTMRG";

/// The environment of a tensor with the symmetries of the square: `corner [χ, χ]` and `edge [χ, bulk, χ]`, both
/// symmetric in χ and of norm 1.
#[derive(Clone, Debug)]
pub struct Symmetric<S, A = Eager> {
    corner: GradedTensor<S, A>,
    edge: GradedTensor<S, A>,
}

/// The tensor of norm 1, differentiable.
pub(super) fn normalised<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    divided(x, &x.norm()?)
}

/// The tensor by an array of one element.
pub(super) fn divided<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    by: &A,
) -> Result<GradedTensor<S, A>> {
    let by = by.reshape(&[1]);
    let part = |x: &A| x.div(&by.expand(&x.shape()));
    Ok(GradedTensor::new(x.spec().clone(), part(x.re()), x.im().map(part))?)
}

/// Rejects bulk tensors without the form that the symmetric variant requires.
fn check<S: Sector, A: Array>(bulk: &GradedTensor<S, A>) -> Result<()> {
    rank(OP, bulk, 4)?;
    real(OP, "the bulk tensor", bulk)?;
    let reject = |given: String, required| {
        Err(NetworksError::Argument { op: OP, name: "the bulk tensor", given, required })
    };
    let legs = bulk.spec().legs();
    if !one_direction(bulk, 0) || legs.iter().any(|leg| *leg != legs[0]) {
        let given = legs.iter().map(|leg| leg.to_string()).collect::<Vec<_>>().join(", ");
        return reject(given, "four equal legs");
    }
    let turned = bulk.permute(&[1, 2, 3, 0], bulk.spec().rows())?;
    let mirrored = bulk.permute(&[0, 3, 2, 1], bulk.spec().rows())?;
    let size = crate::scalar::norm(bulk)?;
    for image in [turned, mirrored] {
        let deviation = crate::scalar::norm(&image.sub(bulk)?)?;
        if deviation.is_nan() || deviation > 1e-8 * size {
            let given = format!("{:e} off the symmetries of the square", deviation / size);
            return reject(
                given,
                "a tensor with the symmetries of the square (layers::symmetrised)",
            );
        }
    }
    Ok(())
}

impl<S: Sector, A: Array> Symmetric<S, A> {
    /// An environment of its tensors.
    ///
    /// # Errors
    /// `Length`, `Argument` for tensors that do not fit.
    pub fn new(corner: GradedTensor<S, A>, edge: GradedTensor<S, A>) -> Result<Self> {
        rank(OP, &corner, 2)?;
        rank(OP, &edge, 3)?;
        let (c, e) = (corner.spec().legs(), edge.spec().legs());
        if [&c[1], &e[0], &e[2]].iter().any(|leg| **leg != c[0]) {
            let given = format!("{}, {}", corner.spec(), edge.spec());
            let (name, required) = ("the environment", "equal bonds of corner and edge");
            return Err(NetworksError::Argument { op: OP, name, given, required });
        }
        Ok(Self { corner, edge })
    }

    /// The environment of a boundary whose bonds are all in the state of a vector `[bulk]` of charge 0.
    ///
    /// # Errors
    /// `Length` for another number of legs; `Structured` for a charge.
    pub fn boundary(vector: &GradedTensor<S, A>) -> Result<Self> {
        rank(OP, vector, 1)?;
        let leg = &vector.spec().legs()[0];
        let one = Leg::new([(S::TRIVIAL, 1)], leg.direction())?;
        let spec = Spec::new(vec![one.clone(), leg.clone(), one.clone()], vector.spec().flux(), 1)?;
        let edge =
            normalised(&GradedTensor::new(spec, vector.re().clone(), vector.im().cloned())?)?;
        let spec = Spec::new(vec![one.clone(), one], S::TRIVIAL, 1)?;
        let ones = vector.re().full(&[spec.len()], 1.0);
        Ok(Self { corner: GradedTensor::new(spec, ones, None)?, edge })
    }

    /// The corner `[χ, χ]`.
    pub fn corner(&self) -> &GradedTensor<S, A> {
        &self.corner
    }

    /// The edge `[χ, bulk, χ]`.
    pub fn edge(&self) -> &GradedTensor<S, A> {
        &self.edge
    }

    /// The bond χ of the environment.
    pub fn bond(&self) -> &Leg<S> {
        &self.corner.spec().legs()[0]
    }

    /// The same on the engine, without derivatives.
    ///
    /// # Errors
    /// Those of a transfer.
    pub fn on_engine(&self) -> Result<Symmetric<S>> {
        Ok(Symmetric { corner: on_engine(&self.corner)?, edge: on_engine(&self.edge)? })
    }

    /// The grown corner `[f, d, v, r]`.
    pub(super) fn quarter(&self, bulk: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
        let edge = self.edge.conj()?;
        Ok(einsum("fls,st,tuv,lurd->fdvr", &[&edge, &self.corner, &edge, bulk])?)
    }

    /// One step with projectors of this environment, as constants with the derivative of the kept subspace: the steps of
    /// unrolled differentiation.
    ///
    /// # Errors
    /// `Argument` for a bulk tensor without the symmetries of the square; those of the factorisation.
    pub fn step(&self, bulk: &GradedTensor<S, A>, options: &CtmOptions) -> Result<Self> {
        let engine = on_engine(bulk)?;
        check(&engine)?;
        FixedStep::new(&engine, &self.on_engine()?, options)?.apply(bulk, self)
    }

    /// The ring of one site with open bonds `[left, up, right, down]`.
    pub(super) fn open_ring(&self) -> Result<GradedTensor<S, A>> {
        let (c, edge) = (&self.corner, self.edge.conj()?);
        let all = [&edge, c, &edge, c, &edge, c, &edge, c];
        Ok(einsum("fle,et,tuv,vx,xry,yz,zdw,wf->lurd", &all)?)
    }

    /// The partition function of the ring of one site, an array of one element.
    fn ring(&self, bulk: &GradedTensor<S, A>) -> Result<A> {
        let (m, c, edge) = (self.quarter(bulk)?, &self.corner, self.edge.conj()?);
        let all = [&m, c, &edge, c, &edge, c];
        Ok(one(&einsum("fdvr,vx,xry,yz,zdw,wf->", &all)?))
    }

    /// `⟨impurity⟩ / ⟨bulk⟩` at one site, an array of one element: expectation values of classical models, where the
    /// impurity is a bulk tensor with an observable.
    ///
    /// # Errors
    /// `Structured` for other legs.
    pub fn ratio(&self, impurity: &GradedTensor<S, A>, bulk: &GradedTensor<S, A>) -> Result<A> {
        Ok(self.ring(impurity)?.div(&self.ring(bulk)?))
    }

    /// The partition function per site κ, an array of one element: `ln κ` is the negative free energy in units of the
    /// temperature.
    ///
    /// # Errors
    /// `Structured` for other legs.
    pub fn partition_per_site(&self, bulk: &GradedTensor<S, A>) -> Result<A> {
        let (c, e) = (&self.corner, &self.edge);
        let (dual, edge) = (c.conj()?, e.conj()?);
        let corners = one(&einsum("ab,bc,cd,da->", &[c, &dual, c, &dual])?);
        let pair = [c, &edge, c, &dual, e, &dual];
        let pair = one(&einsum("ab,buc,cd,de,euf,fa->", &pair)?);
        Ok(self.ring(bulk)?.mul(&corners).div(&pair.mul(&pair)))
    }

    /// The density matrix `[site, conjugate site]` of one site of a state `[site, left, up, right, down]`, of trace 1.
    ///
    /// # Errors
    /// `Length`; `Structured` for a state with other bonds.
    pub fn site_density(&self, state: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
        let (o, c, edge) = (open(state)?, &self.corner, self.edge.conj()?);
        let all = [&edge, c, &edge, c, &edge, c, &edge, c, &o];
        let density = einsum("fle,et,tuv,vx,xry,yz,zdw,wf,pqlurd->pq", &all)?;
        let trace = one(&einsum("pp->", &[&density])?);
        divided(&density, &trace)
    }

    /// The density matrix `[site, conjugate site, neighbour, conjugate neighbour]` of two neighbours, of trace 1. The
    /// neighbour is a conjugate: its legs are dual to those of the site.
    ///
    /// # Errors
    /// `Length`; `Structured` for a state with other bonds.
    pub fn pair_density(&self, state: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
        let (o, c, edge) = (open(state)?, &self.corner, self.edge.conj()?);
        let half = einsum("fle,et,tuv,xdw,wf,pqlurd->vrxpq", &[&edge, c, &edge, &edge, c, &o])?;
        let density = einsum("vrxpq,vrxst->pqst", &[&half, &half.conj()?])?;
        let trace = one(&einsum("ppss->", &[&density])?);
        divided(&density, &trace)
    }

    /// `Tr ρ O` of a density matrix of sites and an operator `[outs, ins]` on the same sites, an array of one element.
    ///
    /// # Errors
    /// `Length` for an operator of another number of sites; `Structured` for other sites.
    pub fn expectation(density: &GradedTensor<S, A>, operator: &GradedTensor<S, A>) -> Result<A> {
        super::layers::traced(OP, density, operator)
    }

    /// Singular values of the corner in descending order, of sum 1.
    ///
    /// # Errors
    /// Those of the factorisation.
    pub fn spectrum(&self) -> Result<Vec<f64>> {
        let s: Bond<S, A> = self.corner.svd(1, FluxOn::Right)?.s;
        Ok(spectrum(s.numbers()?.into_iter().flat_map(|(_, own)| own).collect()))
    }

    pub(super) fn of(corner: GradedTensor<S, A>, edge: GradedTensor<S, A>) -> Self {
        Self { corner, edge }
    }
}

/// The entry of a tensor without legs.
pub(super) fn one<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> A {
    crate::scalar::entry(x).0
}

/// An iteration of CTMRG steps for a tensor with the symmetries of the square.
///
/// ```
/// use std::ops::ControlFlow;
/// use t4a_networks::peps::{CtmOptions, SymmetricSearch};
/// use t4a_structured::{Direction, GradedTensor, Leg, Spec, Z2};
/// use t4a_tensor::DType;
/// // The Ising model at K = 0.3 in the basis of even and odd bonds: ½ Π √λ, λ = 2 cosh K and 2 sinh K.
/// let k = 0.3f64;
/// let root = [(2.0 * k.cosh()).sqrt(), (2.0 * k.sinh()).sqrt()];
/// let leg = Leg::new([(Z2::new(0), 1), (Z2::new(1), 1)], Direction::Out)?;
/// let spec = Spec::new(vec![leg; 4], Z2::new(0), 2)?;
/// let even = (0..16usize).filter(|bits| bits.count_ones() % 2 == 0);
/// let entries = even.map(|bits| {
///     let odd = |axis: usize| bits >> axis & 1;
///     let states = (0..4).map(|axis| (Z2::new(odd(axis) as i64), 0)).collect::<Vec<_>>();
///     (states, 0.5 * (0..4).map(|axis| root[odd(axis)]).product::<f64>())
/// });
/// let bulk = GradedTensor::from_elements(&spec, entries, DType::F64, false)?;
/// let mut search = SymmetricSearch::new(bulk, CtmOptions::new().max_dim(8))?;
/// let report = search.run(|_| Ok(ControlFlow::Continue(())))?;
/// assert!(report.change < 1e-9);
/// assert!((search.partition_per_site()?.ln() - 0.790559).abs() < 1e-4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SymmetricSearch<S> {
    bulk: GradedTensor<S>,
    environment: Symmetric<S>,
    options: CtmOptions,
    spectrum: Vec<f64>,
    steps: usize,
    last: Option<CtmReport>,
}

impl<S: Sector> SymmetricSearch<S> {
    /// An iteration from a boundary whose bonds are in the sum of all neutral states.
    ///
    /// # Errors
    /// `Argument` for options out of range and a bulk tensor without the symmetries of the square.
    pub fn new(bulk: GradedTensor<S>, options: CtmOptions) -> Result<Self> {
        check(&bulk)?;
        let spec = Spec::new(vec![bulk.spec().legs()[0].clone()], S::TRIVIAL, 1)?;
        let ones = bulk.re().full(&[spec.len()], 1.0);
        let environment = Symmetric::boundary(&GradedTensor::new(spec, ones, None)?)?;
        Self::from_environment(bulk, environment, options)
    }

    /// An iteration that starts from an environment, such as a stored one or that of a similar tensor.
    ///
    /// # Errors
    /// As [`SymmetricSearch::new`]; `Argument` for an environment of other bonds.
    pub fn from_environment(
        bulk: GradedTensor<S>,
        environment: Symmetric<S>,
        options: CtmOptions,
    ) -> Result<Self> {
        options.check(OP)?;
        check(&bulk)?;
        if environment.edge.spec().legs()[1] != bulk.spec().legs()[0] {
            let given = environment.edge.spec().legs()[1].to_string();
            let (name, required) = ("the bond of the edge", "that of the bulk tensor");
            return Err(NetworksError::Argument { op: OP, name, given, required });
        }
        let spectrum = environment.spectrum()?;
        Ok(Self { bulk, environment, options, spectrum, steps: 0, last: None })
    }

    /// The environment after the last step.
    pub fn environment(&self) -> &Symmetric<S> {
        &self.environment
    }

    /// The bulk tensor.
    pub fn bulk(&self) -> &GradedTensor<S> {
        &self.bulk
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

    /// One step.
    ///
    /// # Errors
    /// Those of the factorisations; `Norm` for an environment that vanishes or is not finite.
    pub fn step(&mut self) -> Result<CtmReport> {
        let begin = Instant::now();
        let step = FixedStep::projectors(&self.bulk, &self.environment, &self.options)?;
        let next = step.apply(&self.bulk, &self.environment)?;
        let norm = crate::scalar::norm(&next.edge)?;
        if !norm.is_finite() || norm == 0.0 {
            return Err(NetworksError::Norm { op: OP, norm });
        }
        let spectrum = next.spectrum()?;
        self.steps += 1;
        let report = CtmReport {
            step: self.steps,
            change: change(&spectrum, &self.spectrum),
            truncation: step.truncation(),
            bond_dim: next.bond().dim(),
            seconds: begin.elapsed().as_secs_f64(),
        };
        (self.environment, self.spectrum, self.last) = (next, spectrum, Some(report));
        Ok(report)
    }

    /// The partition function per site.
    ///
    /// # Errors
    /// Those of the contraction.
    pub fn partition_per_site(&self) -> Result<f64> {
        crate::scalar::number(&self.environment.partition_per_site(&self.bulk)?)
    }
}
