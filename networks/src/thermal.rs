//! Finite temperature by purification.
//!
//! ```text
//!  site 0 ── ancilla 0 ── site 1 ── ancilla 1 ── …
//! ```
//!
//! Each site has an ancilla of the same states with inverse charges. At infinite temperature each pair is in the state
//! `Σ |s⟩|s⟩ / √d`; `exp(−β H / 2)` on the sites alone makes of it a state whose expectation values are those of
//! `exp(−β H) / Z`, in the ensemble of all charges. A chemical potential is a term of H. Ancillas have no fermions, so
//! that strings of signs run over the sites alone.
//!
//! Reference: F. Verstraete, J. García-Ripoll, J. Cirac, *Matrix product density operators* (2004).

use std::sync::Arc;

use t4a_algebra::c64;
use t4a_structured::{Direction, Leg, Sector, Spec, StructuredError};

use crate::error::Result;
use crate::evolve::{EvolveOptions, Tdvp};
use crate::fill::Filler;
use crate::mpo::Mpo;
use crate::mps::Mps;
use crate::report::{self, Flow, Report};
use crate::sites::{Site, Sites};
use crate::sums::Sum;

const OP: &str = "thermal";

/// The sites of a purified chain: each followed by its ancilla.
///
/// # Errors
/// `Structured` for a charge without an inverse in its type.
pub fn purified_sites<S: Sector>(sites: &Sites<S>) -> Result<Sites<S>> {
    // Sites of one kind share one ancilla.
    let (mut kinds, mut ancillas) = (Vec::<*const Site<S>>::new(), Vec::<Arc<Site<S>>>::new());
    let mut all = Vec::with_capacity(2 * sites.len());
    for site in sites.shared() {
        let kind = kinds.iter().position(|&other| other == Arc::as_ptr(site));
        let kind = match kind {
            Some(kind) => kind,
            None => {
                kinds.push(Arc::as_ptr(site));
                ancillas.push(Arc::new(ancilla(site)?));
                kinds.len() - 1
            }
        };
        all.extend([Arc::clone(site), Arc::clone(&ancillas[kind])]);
    }
    Ok(Sites::new(all))
}

fn ancilla<S: Sector>(site: &Site<S>) -> Result<Site<S>> {
    let mut states = Vec::new();
    for (name, charge) in site.states() {
        let overflow = || StructuredError::ChargeOverflow { op: OP, sectors: charge.to_string() };
        states.push((name, charge.dual().ok_or_else(overflow)?));
    }
    Site::new(&format!("ancilla of {}", site.kind()), states)
}

/// A sum on the sites of a purified chain.
///
/// # Errors
/// As [`purified_sites`].
pub fn purified_sum<S: Sector>(sum: &Sum<S>) -> Result<Sum<S>> {
    let mut out = Sum::new(&purified_sites(sum.sites())?);
    out.terms = sum.terms.clone();
    for term in &mut out.terms {
        term.factors.iter_mut().for_each(|(_, site)| *site *= 2);
    }
    Ok(out)
}

/// The state at infinite temperature.
///
/// # Errors
/// As [`purified_sites`].
pub fn infinite_temperature<S: Sector>(sites: &Sites<S>) -> Result<Mps<S>> {
    let purified = purified_sites(sites)?;
    let neutral = |direction| Leg::new([(S::TRIVIAL, 1)], direction);
    let mut tensors = Vec::new();
    for (at, site) in sites.iter().enumerate() {
        let ancilla = purified.at(OP, 2 * at + 1)?;
        let (leg, d) = (site.leg(), site.dim());
        let amplitude = c64::new(1.0 / (d as f64).sqrt(), 0.0);
        let legs = vec![neutral(Direction::Out)?, leg.clone(), leg.dual()];
        let mut first = Filler::new(Spec::new(legs, S::TRIVIAL, 2)?);
        let legs = vec![leg.clone(), ancilla.leg().clone(), neutral(Direction::In)?];
        let mut second = Filler::new(Spec::new(legs, S::TRIVIAL, 2)?);
        for (k, (name, _)) in site.states().enumerate() {
            first.add(&[0, k, k], amplitude);
            let partner = ancilla.state(name).unwrap_or(k);
            second.add(&[k, partner, 0], c64::ONE);
        }
        tensors.extend([first.finish()?, second.finish()?]);
    }
    Mps::new(tensors)
}

/// Cooling from infinite temperature.
///
/// ```
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::{EvolveOptions, Sum, Thermal};
/// // One spin in a field: ⟨Sz⟩ = −tanh(β / 2) / 2.
/// let mut h = Sum::new(&Sites::uniform(spin_half(), 2));
/// h.add(1.0, [("Sz", 0)]).add(1.0, [("Sz", 1)]);
/// let operator = t4a_networks::thermal::purified_sum(&h)?.mpo()?;
/// let mut cooling = Thermal::new(&operator, &h, 0.1, EvolveOptions::new())?;
/// let report = cooling.run(10, |_| Ok(std::ops::ControlFlow::Continue(())))?;
/// assert!((report.energy + (0.5f64).tanh()).abs() < 1e-8);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Thermal<S> {
    evolution: Tdvp<S>,
    step: f64,
    steps: usize,
    /// Logarithm of the dimension of the space.
    states: f64,
}

impl<S: Sector> Thermal<S> {
    /// Steps of `step` in the inverse temperature, from 0 on. `operator` is that of [`purified_sum`] of `sum`.
    ///
    /// # Errors
    /// As [`Tdvp::new`].
    pub fn new(operator: &Mpo<S>, sum: &Sum<S>, step: f64, options: EvolveOptions) -> Result<Self> {
        let start = infinite_temperature(sum.sites())?;
        let states = sum.sites().iter().map(|site| (site.dim() as f64).ln()).sum();
        let evolution = Tdvp::new(operator, start, step / 2.0, options.imaginary(true))?;
        Ok(Self { evolution, step, steps: 0, states })
    }

    /// The purified state.
    pub fn state(&self) -> &Mps<S> {
        self.evolution.state()
    }

    /// The inverse temperature β.
    pub fn inverse_temperature(&self) -> f64 {
        self.step * self.steps as f64
    }

    /// `ln Z` of `Z = Tr exp(−β H)`.
    pub fn log_partition_function(&self) -> f64 {
        2.0 * self.evolution.log_norm() + self.states
    }

    /// A number of steps, after each of which the callback decides whether to go on.
    ///
    /// # Errors
    /// As [`Tdvp::run`].
    pub fn run(&mut self, steps: usize, callback: impl FnMut(&Report) -> Flow) -> Result<Report> {
        report::run(OP, steps, callback, || {
            let report = self.evolution.step()?;
            self.steps += 1;
            Ok(report)
        })
    }
}
