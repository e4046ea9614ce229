//! Clock variables.

use t4a_algebra::c64;
use t4a_structured::Zn;

use super::{LocalMatrix, Site};
use crate::error::{NetworksError, Result};

/// A Zₙ clock variable in the basis of its charge: states `0`, …, `N − 1`; operators `Sigma`, which adds a
/// charge, `Tau = exp(2πi k / N)` on charge k, and their adjoints `SigmaDag`, `TauDag`.
///
/// The Potts and clock models are `−J Σ (σᵢ σ†ⱼ + h.c.) − h Σ (τᵢ + τ†ᵢ)`.
///
/// # Errors
/// `Argument` beyond N = 1000 and below 2.
pub fn clock<const N: u32>() -> Result<Site<Zn<N>>> {
    if !(2..=1000).contains(&N) {
        let (op, name, given) = ("clock", "the number of states", N.to_string());
        return Err(NetworksError::Argument { op, name, given, required: "2 to 1000" });
    }
    let n = N as usize;
    let names: Vec<String> = (0..n).map(|k| k.to_string()).collect();
    let states = names.iter().enumerate().map(|(k, name)| (&name[..], Zn::new(k as i64)));
    let mut sigma = LocalMatrix::zeros(n);
    (0..n).for_each(|k| sigma.entries[((k + 1) % n) * n + k] = c64::ONE);
    let angle = |k: usize| 2.0 * std::f64::consts::PI * k as f64 / n as f64;
    let tau: Vec<c64> = (0..n).map(|k| c64::from_polar(1.0, angle(k))).collect();
    let tau = LocalMatrix::diagonal(&tau);
    Site::new("clock", states)?
        .with_matrix("SigmaDag", sigma.adjoint())?
        .with_matrix("Sigma", sigma)?
        .with_matrix("TauDag", tau.adjoint())?
        .with_matrix("Tau", tau)
}
