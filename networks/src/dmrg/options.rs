//! Options of DMRG.

use t4a_linalg::krylov::KrylovOptions;
use t4a_linalg::svd::Truncation;

use super::OP;
use crate::error::{NetworksError, Result};

/// Sites that are updated together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// Two neighbours: bond dimensions and sectors adapt.
    #[default]
    TwoSites,
    /// One site, whose bond is enriched by what the operator makes of the state: `O(D³ d)` instead of `O(D³ d²)`.
    OneSite,
}

/// Options of [`Dmrg`](super::Dmrg).
///
/// | option | default |
/// |---|---|
/// | `max_dim`, `max_dims` | 64 states per bond; a schedule, whose last number stays |
/// | `cutoff` | 1e-12: part of the squares of singular values that is dropped |
/// | `sweeps` | at most 20, each to the right and back |
/// | `tolerance` | 1e-10: change of the energy at which the search ends |
/// | `update` | two sites |
/// | `expansion` | 1e-3, divided by 10 per sweep; for one site |
/// | `applications` | at most 6 of the effective operator per update |
/// | `eigen_tolerance` | 1e-9: residual of the vector of an update, relative to the operator, at which its iteration ends |
///
/// ```
/// use t4a_networks::{DmrgOptions, Update};
/// let options = DmrgOptions::new().max_dims([16, 32, 64]).update(Update::OneSite).expansion(1e-2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DmrgOptions {
    pub(super) max_dims: Vec<usize>,
    pub(super) cutoff: f64,
    pub(super) sweeps: usize,
    pub(super) tolerance: f64,
    pub(super) update: Update,
    pub(super) expansion: f64,
    pub(super) applications: usize,
    pub(super) eigen_tolerance: f64,
}

impl Default for DmrgOptions {
    fn default() -> Self {
        Self {
            max_dims: vec![64],
            cutoff: 1e-12,
            sweeps: 20,
            tolerance: 1e-10,
            update: Update::TwoSites,
            expansion: 1e-3,
            applications: 6,
            eigen_tolerance: 1e-9,
        }
    }
}

impl DmrgOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest number of states of a bond.
    pub fn max_dim(self, max_dim: usize) -> Self {
        self.max_dims([max_dim])
    }

    /// The largest number of states of a bond by sweep; the last number holds for all later sweeps.
    pub fn max_dims(self, max_dims: impl IntoIterator<Item = usize>) -> Self {
        Self { max_dims: max_dims.into_iter().collect(), ..self }
    }

    /// Part of the sum of the squares of singular values that a bond may drop.
    pub fn cutoff(self, cutoff: f64) -> Self {
        Self { cutoff, ..self }
    }

    /// The largest number of sweeps.
    pub fn sweeps(self, sweeps: usize) -> Self {
        Self { sweeps, ..self }
    }

    /// The change of the energy in a sweep below which the search ends.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Sites that are updated together.
    pub fn update(self, update: Update) -> Self {
        Self { update, ..self }
    }

    /// Weight of the states that enrich a bond in updates of one site.
    pub fn expansion(self, expansion: f64) -> Self {
        Self { expansion, ..self }
    }

    /// The largest number of applications of the effective operator per update.
    pub fn applications(self, applications: usize) -> Self {
        Self { applications, ..self }
    }

    /// The residual of the vector of an update, relative to the operator, below which its iteration ends before the largest
    /// number of applications. With 0 every update makes that number of them, unless the space of its vectors is exhausted.
    pub fn eigen_tolerance(self, eigen_tolerance: f64) -> Self {
        Self { eigen_tolerance, ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        let reject = |name, given: String, required| {
            Err(NetworksError::Argument { op: OP, name, given, required })
        };
        if self.max_dims.is_empty() || self.max_dims.contains(&0) {
            let given = format!("{:?}", self.max_dims);
            return reject("the bond dimension", given, "at least 1 for each sweep");
        }
        let finite = |x: f64| x.is_finite() && x >= 0.0;
        let numbers = [
            ("the cutoff", self.cutoff),
            ("the tolerance", self.tolerance),
            ("the expansion", self.expansion),
            ("the tolerance of an update", self.eigen_tolerance),
        ];
        if let Some((name, x)) = numbers.into_iter().find(|&(_, x)| !finite(x)) {
            return reject(name, x.to_string(), "a finite number of at least 0");
        }
        if self.sweeps == 0 || self.applications == 0 {
            return reject("the number of sweeps or applications", "0".into(), "at least 1");
        }
        Ok(())
    }

    /// Truncation of the bonds in a sweep.
    pub(super) fn truncation(&self, sweep: usize) -> Truncation {
        let last = self.max_dims.len() - 1;
        crate::truncation(self.max_dims[sweep.min(last)], self.cutoff)
    }

    pub(super) fn krylov(&self) -> KrylovOptions {
        KrylovOptions::new().max_applications(self.applications).tolerance(self.eigen_tolerance)
    }
}
