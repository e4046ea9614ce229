//! Options and reports of corner transfer matrices.

use t4a_linalg::svd::Truncation;

use crate::error::{NetworksError, Result};

/// Options of [`SymmetricSearch`](super::SymmetricSearch) and [`CellSearch`](super::CellSearch).
///
/// | option | default |
/// |---|---|
/// | `max_dim` | 16 states per bond of the environment |
/// | `cutoff` | 1e-12: singular values below this part of the largest are dropped |
/// | `steps` | at most 500 |
/// | `tolerance` | 1e-9: change of the spectra of corners, of sum 1, at which the search ends |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CtmOptions {
    pub(super) max_dim: usize,
    pub(super) cutoff: f64,
    pub(super) steps: usize,
    pub(super) tolerance: f64,
}

impl Default for CtmOptions {
    fn default() -> Self {
        Self { max_dim: 16, cutoff: 1e-12, steps: 500, tolerance: 1e-9 }
    }
}

impl CtmOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest number of states of a bond of the environment.
    pub fn max_dim(self, max_dim: usize) -> Self {
        Self { max_dim, ..self }
    }

    /// Singular values below this part of the largest are dropped.
    pub fn cutoff(self, cutoff: f64) -> Self {
        Self { cutoff, ..self }
    }

    /// The largest number of steps.
    pub fn steps(self, steps: usize) -> Self {
        Self { steps, ..self }
    }

    /// The change of the spectra of corners below which the search ends.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        let reject = |name, given: String, required| {
            Err(NetworksError::Argument { op, name, given, required })
        };
        if self.max_dim == 0 || self.steps == 0 {
            return reject("the bond dimension or the number of steps", "0".into(), "at least 1");
        }
        for (name, x) in [("the cutoff", self.cutoff), ("the tolerance", self.tolerance)] {
            if !(x.is_finite() && x >= 0.0) {
                return reject(name, x.to_string(), "a finite number of at least 0");
            }
        }
        Ok(())
    }

    pub(super) fn truncation(&self) -> t4a_structured::BondTruncation {
        // Multiplets stay together: a cut through one breaks the symmetry of the environment.
        let policy = Truncation::new().max_dim(self.max_dim).relative_cutoff(self.cutoff);
        t4a_structured::BondTruncation::from(policy).degeneracy(1e-6)
    }
}

/// A step of CTMRG.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CtmReport {
    /// Number of steps so far, this one included.
    pub step: usize,
    /// The largest change of a singular value of a corner; the values of a corner have the sum 1.
    pub change: f64,
    /// The largest norm of dropped singular values, relative to that of all.
    pub truncation: f64,
    /// The largest number of states of a bond of the environment.
    pub bond_dim: usize,
    /// Wall-clock time of it.
    pub seconds: f64,
}

/// Singular values of a corner in descending order, of sum 1.
pub(super) fn spectrum(mut values: Vec<f64>) -> Vec<f64> {
    let sum: f64 = values.iter().sum();
    values.iter_mut().for_each(|x| *x /= sum);
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

/// The largest difference of two spectra, the shorter one continued by zeros.
pub(super) fn change(a: &[f64], b: &[f64]) -> f64 {
    let at = |x: &[f64], i: usize| x.get(i).copied().unwrap_or(0.0);
    (0..a.len().max(b.len())).map(|i| (at(a, i) - at(b, i)).abs()).fold(0.0, f64::max)
}
