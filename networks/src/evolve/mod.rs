//! Time evolution.
//!
//! ```text
//! mod      options, and what steps report
//! gates    a sum of neighbour terms as gates
//! tebd     products of gates of orders 2 and 4
//! tdvp     the time-dependent variational principle with one and two sites
//! ```
//!
//! Real time is `exp(−i H t)`, imaginary time `exp(−H τ)`, after which the state is scaled to norm 1.

mod gates;
mod tdvp;
mod tebd;

use t4a_algebra::c64;
use t4a_linalg::svd::Truncation;

pub use tdvp::Tdvp;
pub use tebd::Tebd;

use crate::error::{NetworksError, Result};

/// Options of [`Tebd`] and [`Tdvp`].
///
/// | option | default |
/// |---|---|
/// | `imaginary` | false |
/// | `max_dim` | 64 states per bond |
/// | `cutoff` | 1e-12: part of the squares of singular values that is dropped |
/// | `order` | 4, or 2; of TEBD |
/// | `sites` | 2, or 1; of TDVP |
/// | `tolerance` | 1e-12 of the exponentials of TDVP |
///
/// ```
/// use t4a_networks::EvolveOptions;
/// let options = EvolveOptions::new().max_dim(100).cutoff(1e-10).order(2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvolveOptions {
    imaginary: bool,
    max_dim: usize,
    cutoff: f64,
    order: usize,
    sites: usize,
    tolerance: f64,
}

impl Default for EvolveOptions {
    fn default() -> Self {
        Self { imaginary: false, max_dim: 64, cutoff: 1e-12, order: 4, sites: 2, tolerance: 1e-12 }
    }
}

impl EvolveOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Imaginary time, for ground states and finite temperature.
    pub fn imaginary(self, imaginary: bool) -> Self {
        Self { imaginary, ..self }
    }

    /// The largest number of states of a bond.
    pub fn max_dim(self, max_dim: usize) -> Self {
        Self { max_dim, ..self }
    }

    /// Part of the sum of the squares of singular values that a bond may drop in one update.
    pub fn cutoff(self, cutoff: f64) -> Self {
        Self { cutoff, ..self }
    }

    /// Order of the product formula of TEBD: errors are proportional to this power of the time step.
    pub fn order(self, order: usize) -> Self {
        Self { order, ..self }
    }

    /// Number of sites that TDVP updates together. With one the bond dimensions stay.
    pub fn sites(self, sites: usize) -> Self {
        Self { sites, ..self }
    }

    /// Relative error of an exponential in TDVP.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    fn check(&self, op: &'static str, step: f64) -> Result<()> {
        let reject = |name, given: String, required| {
            Err(NetworksError::Argument { op, name, given, required })
        };
        if !step.is_finite() || step == 0.0 {
            return reject("the time step", step.to_string(), "a finite number other than 0");
        }
        if self.max_dim == 0 {
            return reject("the bond dimension", "0".into(), "at least 1");
        }
        for (name, x) in [("the cutoff", self.cutoff), ("the tolerance", self.tolerance)] {
            if !(x.is_finite() && x >= 0.0) {
                return reject(name, x.to_string(), "a finite number of at least 0");
            }
        }
        if ![2, 4].contains(&self.order) {
            return reject("the order", self.order.to_string(), "2 or 4");
        }
        match [1, 2].contains(&self.sites) {
            true => Ok(()),
            false => reject("the number of sites", self.sites.to_string(), "1 or 2"),
        }
    }

    fn truncation(&self) -> Truncation {
        crate::truncation(self.max_dim, self.cutoff)
    }

    /// The factor of H in the exponent for a time: −i t, or −τ.
    fn exponent(&self, time: f64) -> c64 {
        match self.imaginary {
            true => c64::new(-time, 0.0),
            false => c64::new(0.0, -time),
        }
    }
}
