//! Ground states and excited states by sweeps (DMRG).
//!
//! ```text
//! mod      the search: sweeps, reports, stop and go on
//! options  options as a builder
//! local    the update of one or two sites
//! ```
//!
//! Signs of fermions are in the operator (see [`sites`](crate::sites)), so the effective operator of a site is the same
//! for spins and fermions.
//!
//! References: S. White, *Density matrix formulation for quantum renormalization groups* (1992); C. Hubig, I. McCulloch,
//! U. Schollwöck, F. Wolf, *Strictly single-site DMRG algorithm with subspace expansion* (2015).

mod local;
mod options;

use std::ops::ControlFlow;
use std::time::Instant;

use t4a_structured::Sector;

pub use options::{DmrgOptions, Update};

use crate::environment::Environments;
use crate::error::Result;
use crate::mpo::Mpo;
use crate::mps::Mps;
use crate::overlaps::Overlaps;
use crate::report::{Flow, Report};

const OP: &str = "dmrg";

/// A search for the lowest state of an operator.
///
/// The state of the search is complete after every update of sites: a search that is stopped, by a callback or an
/// error, continues with [`Dmrg::sweep`] or [`Dmrg::run`], or later from a stored state.
///
/// ```
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::{Dmrg, DmrgOptions, Mps, Sum};
/// let sites = Sites::uniform(spin_half(), 8);
/// let mut h = Sum::new(&sites);
/// for i in 0..7 {
///     h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
///     h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
/// }
/// let h = h.mpo()?;
/// let start = Mps::product(&sites, ["Up", "Dn", "Up", "Dn", "Up", "Dn", "Up", "Dn"])?;
/// let mut search = Dmrg::new(&h, start, DmrgOptions::new().max_dim(32))?;
/// let last = search.run_to_end()?;
/// assert!((last.energy + 3.374932598688).abs() < 1e-9);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dmrg<S> {
    state: Mps<S>,
    options: DmrgOptions,
    environments: Environments<S>,
    overlaps: Vec<Overlaps<S>>,
    /// The last sweep ended with an error: the centre may be at any site, and environments may be of other tensors.
    is_interrupted: bool,
    sweeps: usize,
    last: Option<Report>,
}

impl<S: Sector> Dmrg<S> {
    /// A search that starts from a state, whose charge it keeps.
    ///
    /// # Errors
    /// `Argument` for options out of range; `Charge` and `NotHermitian` of the operator; `Length`, `Chain` for other
    /// sites; `Norm` for a start of norm 0.
    pub fn new(operator: &Mpo<S>, start: Mps<S>, options: DmrgOptions) -> Result<Self> {
        Self::excited(operator, start, &[], options)
    }

    /// The lowest state that is orthogonal to `lower`: the first excited state, given the ground state, and so on.
    ///
    /// # Errors
    /// As [`Dmrg::new`]; `Length`, `Chain` and `Charge` for lower states of other sites or of another charge.
    pub fn excited(
        operator: &Mpo<S>,
        start: Mps<S>,
        lower: &[Mps<S>],
        options: DmrgOptions,
    ) -> Result<Self> {
        options.check()?;
        start.check_legs(OP, (0..operator.len()).map(|i| operator.physical(i)))?;
        operator.check_hermitian(OP)?;
        let mut state = start;
        state.orthogonalise(0)?;
        state.normalise()?;
        let overlaps = lower.iter().map(|x| Overlaps::new(OP, x, &state)).collect::<Result<_>>()?;
        let environments = Environments::new(operator, &state)?;
        let (is_interrupted, sweeps, last) = (false, 0, None);
        Ok(Self { state, options, environments, overlaps, is_interrupted, sweeps, last })
    }

    /// The state of the search, of norm 1.
    pub fn state(&self) -> &Mps<S> {
        &self.state
    }

    /// The state of the search, of norm 1.
    pub fn into_state(self) -> Mps<S> {
        self.state
    }

    /// The report of the last complete sweep.
    pub fn last(&self) -> Option<&Report> {
        self.last.as_ref()
    }

    /// Sweeps until the energy changes by less than the tolerance, or the number of sweeps is reached. After each sweep
    /// the callback decides whether to go on.
    ///
    /// # Errors
    /// That of the callback; those of the factorisations. The state is that of the last complete update.
    pub fn run(&mut self, mut callback: impl FnMut(&Report) -> Flow) -> Result<Report> {
        loop {
            let before = self.last.map(|report| report.energy);
            let report = self.sweep()?;
            let flow = callback(&report)?;
            let change = before.map_or(f64::INFINITY, |before| (before - report.energy).abs());
            let scheduled = self.sweeps < self.options.max_dims.len();
            let small = change < self.options.tolerance && !scheduled;
            if flow == ControlFlow::Break(()) || small || self.sweeps >= self.options.sweeps {
                return Ok(report);
            }
        }
    }

    /// [`Dmrg::run`] without a callback.
    ///
    /// # Errors
    /// As there.
    pub fn run_to_end(&mut self) -> Result<Report> {
        self.run(|_| Ok(ControlFlow::Continue(())))
    }

    /// One sweep to the right and back.
    ///
    /// # Errors
    /// Those of the factorisations. The state is that of the last complete update, from which the next sweep starts.
    pub fn sweep(&mut self) -> Result<Report> {
        let (begin, n) = (Instant::now(), self.state.len());
        if self.is_interrupted {
            self.begin_anew()?;
        }
        self.is_interrupted = true;
        let two = self.options.update == Update::TwoSites && n > 1;
        let updates = if two { n - 1 } else { n };
        let mut total = (0.0, 0.0f64);
        let there = (0..updates).map(|i| (i, true));
        let back = (0..updates).rev().map(|i| (i, false));
        for (i, to_right) in there.chain(back) {
            let (energy, dropped) =
                if two { self.two_sites(i, to_right)? } else { self.one_site(i, to_right)? };
            total = (energy, total.1.max(dropped));
        }
        self.is_interrupted = false;
        self.sweeps += 1;
        let report = Report {
            step: self.sweeps,
            energy: total.0,
            truncation: total.1,
            bond_dim: self.state.max_bond_dim(),
            seconds: begin.elapsed().as_secs_f64(),
        };
        self.last = Some(report);
        Ok(report)
    }

    /// Moves the centre to the first site and computes the environments of the state as it is.
    fn begin_anew(&mut self) -> Result<()> {
        self.state.orthogonalise(0)?;
        self.environments.begin_anew(&self.state)?;
        let state = &self.state;
        self.overlaps.iter_mut().try_for_each(|overlaps| overlaps.begin_anew(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broken::{heisenberg, with_nan};
    use crate::effective::Channels;

    /// A sweep that an error ends leaves a state from which the search goes on, also below an excited state.
    #[test]
    fn interrupted() {
        let (h, start) = heisenberg(8);
        let options = || DmrgOptions::new().max_dim(32).sweeps(40).tolerance(1e-12);
        let mut search = Dmrg::new(&h, start.clone(), options()).unwrap();
        for site in 0..4 {
            search.two_sites(site, true).unwrap();
        }
        search.is_interrupted = true;
        let ground = search.run_to_end().unwrap().energy;
        assert!((ground + 3.374_932_598_688).abs() < 1e-10, "{ground}");

        let lower = [search.into_state()];
        let mut search = Dmrg::excited(&h, start.clone(), &lower, options()).unwrap();
        let first = search.run_to_end().unwrap().energy;
        let mut search = Dmrg::excited(&h, start, &lower, options()).unwrap();
        search.sweep().unwrap();
        for site in 0..4 {
            search.two_sites(site, true).unwrap();
        }
        search.is_interrupted = true;
        let again = search.run_to_end().unwrap().energy;
        assert!((first - again).abs() < 1e-9 && first > ground + 0.1, "{first} {again}");
    }

    /// A sweep of an operator with NaN leaves the state of the last complete update, from which the search goes on.
    #[test]
    fn failed_sweeps() {
        let (h, start) = heisenberg(8);
        let broken = with_nan(&h, 6);
        for update in [Update::TwoSites, Update::OneSite] {
            let options = DmrgOptions::new().max_dim(32).sweeps(60).tolerance(1e-13).update(update);
            let mut search = Dmrg::new(&h, start.clone(), options.expansion(0.1)).unwrap();
            let before = search.sweep().unwrap();
            search.environments.channels = Channels::of_chain(&broken).unwrap();
            let e = search.run(|_| unreachable!("no sweep is complete")).unwrap_err().to_string();
            assert!(e.contains("NaN"), "{e}");
            assert_eq!(search.last(), Some(&before));
            let state = search.state();
            assert!((state.norm().unwrap() - 1.0).abs() < 1e-12 && state.center() > Some(2));
            let energy = state.expectation(&h).unwrap().re;
            assert!(energy < before.energy + 1e-9, "{energy}, {before:?}");
            // Also where bonds are truncated.
            let options = DmrgOptions::new().max_dim(3).update(update).expansion(0.1);
            let mut narrow = Dmrg::new(&h, start.clone(), options).unwrap();
            narrow.sweep().unwrap();
            narrow.environments.channels = Channels::of_chain(&broken).unwrap();
            narrow.sweep().unwrap_err();
            assert!((narrow.state().norm().unwrap() - 1.0).abs() < 1e-12);
            search.environments.channels = Channels::of_chain(&h).unwrap();
            let energy = search.run_to_end().unwrap().energy;
            assert!((energy + 3.374_932_598_688).abs() < 1e-9, "{update:?}: {energy}");
        }
    }
}
