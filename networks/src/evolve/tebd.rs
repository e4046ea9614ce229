//! Products of gates of neighbours (TEBD).
//!
//! References: G. Vidal, *Efficient simulation of one-dimensional quantum many-body systems* (2004); M. Suzuki, *Fractal
//! decomposition of exponential operators* (1990), for order 4.

use std::time::Instant;

use t4a_structured::{FluxOn, GradedTensor, Sector, Svd, Truncated};

use super::EvolveOptions;
use super::gates::{bond_terms, exponentials};
use crate::error::Result;
use crate::mps::Mps;
use crate::report::{self, Flow, Report};
use crate::scalar::complex;
use crate::sites::Site;
use crate::sums::Sum;

const OP: &str = "tebd";

/// The evolution of a state under a sum of terms of one site and of neighbours.
///
/// The state is that of the last complete step, also after an error: an evolution that is stopped, by a callback or an
/// error, continues with [`Tebd::run`], or later from a stored state.
///
/// ```
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::{EvolveOptions, Mps, Sum, Tebd};
/// let sites = Sites::uniform(spin_half(), 4);
/// let mut h = Sum::new(&sites);
/// for i in 0..3 {
///     h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
///     h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
/// }
/// let neel = Mps::product(&sites, ["Up", "Dn", "Up", "Dn"])?;
/// let mut evolution = Tebd::new(&h, neel, 0.1, EvolveOptions::new())?;
/// let report = evolution.run(10, |_| Ok(std::ops::ControlFlow::Continue(())))?;
/// assert!((report.energy + 0.75).abs() < 1e-4);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tebd<S> {
    terms: Vec<GradedTensor<S>>,
    /// Layers of one step: parity of the bonds, number of the gates.
    layers: Vec<(usize, usize)>,
    /// Gates of all bonds by duration.
    gates: Vec<Vec<GradedTensor<S>>>,
    state: Mps<S>,
    options: EvolveOptions,
    steps: usize,
}

/// Durations of the layers of one step, even bonds first and then in turn.
fn durations(order: usize) -> Vec<f64> {
    match order {
        2 => vec![0.5, 1.0, 0.5],
        _ => {
            let p = 1.0 / (4.0 - 4f64.cbrt());
            let parts = [p, p, 1.0 - 4.0 * p, p, p];
            let mut layers = vec![parts[0] / 2.0];
            for (k, &part) in parts.iter().enumerate() {
                layers.push(part);
                layers.push((part + parts.get(k + 1).unwrap_or(&0.0)) / 2.0);
            }
            layers
        }
    }
}

impl<S: Sector> Tebd<S> {
    /// Steps of `step` from a state. Real time makes the state complex.
    ///
    /// # Errors
    /// `Argument` for a step of 0 or NaN, options out of range and terms beyond neighbours; those of
    /// [`Sum::mpo`]; `Length`, `Chain` for other sites; `Norm`.
    pub fn new(sum: &Sum<S>, start: Mps<S>, step: f64, options: EvolveOptions) -> Result<Self> {
        options.check(OP, step)?;
        start.check_legs(OP, sum.sites().iter().map(Site::leg))?;
        let terms = bond_terms(sum)?;
        let mut found: Vec<f64> = Vec::new();
        let mut layers = Vec::new();
        for (k, duration) in durations(options.order).into_iter().enumerate() {
            let number = found.iter().position(|&other| (other - duration).abs() < 1e-14);
            let number = number.unwrap_or_else(|| {
                found.push(duration);
                found.len() - 1
            });
            layers.push((k % 2, number));
        }
        let exponent = |&part: &f64| exponentials(&terms, options.exponent(part * step));
        let gates = found.iter().map(exponent).collect::<Result<_>>()?;
        let mut state = start;
        state.orthogonalise(0)?;
        state.normalise()?;
        Ok(Self { terms, layers, gates, state, options, steps: 0 })
    }

    /// The state after the last complete step, of norm 1.
    pub fn state(&self) -> &Mps<S> {
        &self.state
    }

    /// The state after the last complete step, of norm 1.
    pub fn into_state(self) -> Mps<S> {
        self.state
    }

    /// A number of steps, after each of which the callback decides whether to go on.
    ///
    /// # Errors
    /// That of the callback; those of the factorisations. The state is that of the last complete step.
    pub fn run(&mut self, steps: usize, callback: impl FnMut(&Report) -> Flow) -> Result<Report> {
        report::run(OP, steps, callback, || self.step())
    }

    /// One step. After an error the state is that before the step.
    ///
    /// # Errors
    /// Those of the factorisations.
    pub fn step(&mut self) -> Result<Report> {
        let (begin, before) = (Instant::now(), self.state.clone());
        let moved = self.layers().and_then(|truncation| Ok((truncation, self.energy()?)));
        let (truncation, energy) = moved.inspect_err(|_| self.state = before)?;
        self.steps += 1;
        Ok(Report {
            step: self.steps,
            energy,
            truncation,
            bond_dim: self.state.max_bond_dim(),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    /// All layers of one step; the largest sum of squares of singular values that a gate dropped.
    fn layers(&mut self) -> Result<f64> {
        (0..self.layers.len()).try_fold(0.0f64, |dropped, k| Ok(dropped.max(self.layer(k)?)))
    }

    /// The gates of a layer from the end of the chain on where the centre is.
    fn layer(&mut self, k: usize) -> Result<f64> {
        let (parity, gates) = self.layers[k];
        let mut bonds: Vec<usize> = (parity..self.terms.len()).step_by(2).collect();
        let to_right = self.state.center().unwrap_or(0) * 2 < self.state.len();
        if !to_right {
            bonds.reverse();
        }
        let mut dropped = 0.0f64;
        for bond in bonds {
            let gate = self.gates[gates][bond].clone();
            dropped = dropped.max(self.gate(bond, &gate, to_right)?);
        }
        Ok(dropped)
    }

    fn gate(&mut self, i: usize, gate: &GradedTensor<S>, to_right: bool) -> Result<f64> {
        self.state.orthogonalise(if to_right { i } else { i + 1 })?;
        let x = self.state.tensors();
        let pair = x[i].contract(&x[i + 1], &[2], &[0])?;
        let moved = gate.contract(&pair, &[2, 3], &[1, 2])?.permute(&[2, 0, 1, 3], 2)?;
        let Truncated { kept: Svd { u, s, vh }, error } =
            moved.svd_truncated(2, FluxOn::Right, self.options.truncation())?;
        let s = s.normalised()?;
        let new = match to_right {
            true => [u, vh.scale_rows(&s)?.repartition(2)?],
            false => [u.scale_columns(&s)?, vh.repartition(2)?],
        };
        self.state.replace(i, new, if to_right { i + 1 } else { i });
        Ok(error * error)
    }

    /// `⟨H⟩` as the sum over bonds.
    fn energy(&mut self) -> Result<f64> {
        let (mut state, mut sum) = (self.state.clone(), 0.0);
        state.orthogonalise(0)?;
        for (i, term) in self.terms.iter().enumerate() {
            state.orthogonalise(i)?;
            let x = state.tensors();
            let pair = x[i].contract(&x[i + 1], &[2], &[0])?.permute(&[1, 2, 0, 3], 2)?;
            let moved = term.contract(&pair, &[2, 3], &[0, 1])?.repartition(2)?;
            sum += complex(&pair.inner(&moved)?)?.re;
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broken::{heisenberg_sum, not_a_number};

    /// A step that fails at its last gate leaves the state before it, from which the evolution goes on.
    #[test]
    fn failed_steps() {
        let (h, start) = heisenberg_sum(6, false);
        for (order, imaginary) in [(2, false), (4, true)] {
            let options = EvolveOptions::new().order(order).imaginary(imaginary);
            let mut whole = Tebd::new(&h, start.clone(), 0.1, options).unwrap();
            let mut evolution = whole.clone();
            for _ in 0..2 {
                whole.step().unwrap();
                evolution.step().unwrap();
            }
            let before = evolution.state.to_vector().unwrap();
            let (_, last) = *whole.layers.last().unwrap();
            let gate = &mut evolution.gates[last][4];
            *gate = not_a_number(gate);
            assert!(evolution.run(3, |_| unreachable!("no step is complete")).is_err());
            assert_eq!(evolution.state().to_vector().unwrap(), before);
            evolution.gates = whole.gates.clone();
            let (one, other) = (whole.step().unwrap(), evolution.step().unwrap());
            assert_eq!((one.step, one.energy), (other.step, other.energy));
            assert_eq!(evolution.state.to_vector().unwrap(), whole.state.to_vector().unwrap());
        }
    }
}
