//! The time-dependent variational principle (TDVP).
//!
//! Reference: J. Haegeman, C. Lubich, I. Oseledets, B. Vandereycken, F. Verstraete, *Unifying time evolution and
//! optimization with matrix product states* (2016).

use std::time::Instant;

use t4a_algebra::c64;
use t4a_linalg::LinalgError;
use t4a_linalg::krylov::{KrylovError, KrylovOptions, exponential};
use t4a_structured::{FluxOn, GradedTensor, Qr, Sector, StructuredError, Svd, Truncated};

use super::EvolveOptions;
use crate::environment::Environments;
use crate::error::{NetworksError, Result};
use crate::mpo::Mpo;
use crate::mps::{Mps, lq};
use crate::report::{self, Flow, Report};
use crate::scalar::{complex, number};

const OP: &str = "tdvp";

/// Changes of a state of norm 1 below this number are rounding errors.
const ROUNDING: f64 = 1e-14;

/// The evolution of a state under an operator. One step is a sweep to the right and one to the left, of order 2.
/// Norm and energy are conserved in real time, but for truncations with two sites.
///
/// The state is that of the last complete step, also after an error: an evolution that is stopped, by a callback or an
/// error, continues with [`Tdvp::run`], or later from a stored state.
///
/// ```
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::{EvolveOptions, Mps, Sum, Tdvp};
/// let sites = Sites::uniform(spin_half(), 4);
/// let mut h = Sum::new(&sites);
/// for i in 0..3 {
///     h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
///     h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
/// }
/// let h = h.mpo()?;
/// let neel = Mps::product(&sites, ["Up", "Dn", "Up", "Dn"])?;
/// let mut evolution = Tdvp::new(&h, neel, 0.1, EvolveOptions::new())?;
/// let report = evolution.run(5, |_| Ok(std::ops::ControlFlow::Continue(())))?;
/// assert!((report.energy + 0.75).abs() < 1e-9);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tdvp<S> {
    state: Mps<S>,
    step: f64,
    options: EvolveOptions,
    environments: Environments<S>,
    steps: usize,
    /// Logarithm of the norm that was scaled away.
    log_norm: f64,
}

impl<S: Sector> Tdvp<S> {
    /// Steps of `step` from a state. Real time makes the state complex.
    ///
    /// # Errors
    /// `Argument` for a step of 0 or NaN and options out of range; `Charge` and `NotHermitian` of the operator;
    /// `Length`, `Chain` for other sites; `Norm`.
    pub fn new(
        operator: &Mpo<S>,
        start: Mps<S>,
        step: f64,
        options: EvolveOptions,
    ) -> Result<Self> {
        options.check(OP, step)?;
        start.check_legs(OP, (0..operator.len()).map(|i| operator.physical(i)))?;
        operator.check_hermitian(OP)?;
        let mut state = start;
        state.orthogonalise(0)?;
        state.normalise()?;
        let environments = Environments::new(operator, &state)?;
        Ok(Self { state, step, options, environments, steps: 0, log_norm: 0.0 })
    }

    /// The state after the last complete step, of norm 1 up to rounding.
    pub fn state(&self) -> &Mps<S> {
        &self.state
    }

    /// The state after the last complete step, of norm 1 up to rounding.
    pub fn into_state(self) -> Mps<S> {
        self.state
    }

    /// The logarithm of the norm of `exp(−H τ)` of the start, which imaginary time scales to 1.
    pub fn log_norm(&self) -> f64 {
        self.log_norm
    }

    /// A number of steps, after each of which the callback decides whether to go on.
    ///
    /// # Errors
    /// That of the callback; those of the factorisations and exponentials. The state is that of the last complete step.
    pub fn run(&mut self, steps: usize, callback: impl FnMut(&Report) -> Flow) -> Result<Report> {
        report::run(OP, steps, callback, || self.step())
    }

    /// One step. After an error the state is that before the step.
    ///
    /// # Errors
    /// Those of the factorisations and exponentials.
    pub fn step(&mut self) -> Result<Report> {
        let begin = Instant::now();
        let before = (self.state.clone(), self.environments.clone(), self.log_norm);
        let moved = self.sweeps().and_then(|truncation| Ok((truncation, self.energy()?)));
        let (truncation, energy) = moved.inspect_err(|_| {
            (self.state, self.environments, self.log_norm) = before;
        })?;
        self.steps += 1;
        Ok(Report {
            step: self.steps,
            energy,
            truncation,
            bond_dim: self.state.max_bond_dim(),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    fn sweeps(&mut self) -> Result<f64> {
        let n = self.state.len();
        let two = self.options.sites == 2 && n > 1;
        let updates = if two { n - 1 } else { n };
        let mut dropped = 0.0f64;
        let there = (0..updates).map(|i| (i, true));
        for (i, to_right) in there.chain((0..updates).rev().map(|i| (i, false))) {
            if two {
                dropped = dropped.max(self.two_sites(i, to_right)?);
            } else {
                self.one_site(i, to_right)?;
            }
        }
        if self.options.imaginary {
            self.log_norm += self.state.normalise()?.ln();
        }
        Ok(dropped)
    }

    /// The exponential of an effective operator for half a step, forward or back.
    fn evolve(
        &self,
        map: impl FnMut(&GradedTensor<S>) -> Result<GradedTensor<S>>,
        x: &GradedTensor<S>,
        sign: f64,
    ) -> Result<GradedTensor<S>> {
        let exponent: c64 = self.options.exponent(sign * self.step / 2.0);
        let options = KrylovOptions::new().tolerance(self.options.tolerance).hermitian(true);
        let start = if self.options.imaginary { x.clone() } else { x.complexified() };
        let evolved = match exponential(map, exponent, &start, &options) {
            // An operator that vanishes up to rounding, as far from a domain wall, is not Hermitian to its own scale.
            Err(NetworksError::Structured(StructuredError::Linalg(LinalgError::Krylov(
                KrylovError::NotHermitian { scale, .. },
            )))) if scale * exponent.norm() < ROUNDING => return Ok(start),
            evolved => evolved?,
        };
        evolved.report.require()?;
        Ok(evolved.vector)
    }

    fn evolve_site(&self, i: usize, x: &GradedTensor<S>, sign: f64) -> Result<GradedTensor<S>> {
        let effective = self.environments.site(i)?;
        self.evolve(|x| effective.apply(x), x, sign)
    }

    fn two_sites(&mut self, i: usize, to_right: bool) -> Result<f64> {
        let (x, effective) = (self.state.tensors(), self.environments.pair(i)?);
        let pair = x[i].contract(&x[i + 1], &[2], &[0])?.repartition(2)?;
        let pair = self.evolve(|x| effective.apply(x), &pair, 1.0)?;
        let Truncated { kept: Svd { u, s, vh }, error } =
            pair.svd_truncated(2, FluxOn::Right, self.options.truncation())?;
        let s = if self.options.imaginary {
            self.log_norm += number(&s.norm()?)?.ln();
            s.normalised()?
        } else {
            s
        };
        let last = if to_right { i + 2 == self.state.len() } else { i == 0 };
        let (passed, center) = if to_right { (i, i + 1) } else { (i + 1, i) };
        let new = match to_right {
            true => [u, vh.scale_rows(&s)?.repartition(2)?],
            false => [u.scale_columns(&s)?, vh.repartition(2)?],
        };
        self.state.replace(i, new, center);
        if last && to_right {
            // The sweep back begins with the same pair.
            self.state.orthogonalise(i)?;
            return Ok(error * error);
        }
        self.pass(passed, to_right)?;
        if !last {
            let back = self.evolve_site(center, &self.state.tensors()[center], -1.0)?;
            self.state.replace(center, [back], center);
        }
        Ok(error * error)
    }

    fn one_site(&mut self, i: usize, to_right: bool) -> Result<()> {
        let x = self.evolve_site(i, &self.state.tensors()[i], 1.0)?;
        let last = if to_right { i + 1 == self.state.len() } else { i == 0 };
        if last {
            self.state.replace(i, [x], i);
            return Ok(());
        }
        let (site, rest) = match to_right {
            true => {
                let Qr { q, r } = x.qr(2, FluxOn::Right)?;
                (q, r)
            }
            false => {
                let [l, q] = lq(&x, 1)?;
                (q.repartition(2)?, l)
            }
        };
        let next = if to_right { i + 1 } else { i - 1 };
        self.state.replace(i, [site], next);
        self.pass(i, to_right)?;
        let between = self.environments.bond(if to_right { i + 1 } else { i })?;
        let rest = self.evolve(|x| between.apply(x), &rest, -1.0)?;
        let other = &self.state.tensors()[next];
        let joined = match to_right {
            true => rest.contract(other, &[1], &[0])?,
            false => other.contract(&rest, &[2], &[0])?,
        };
        self.state.replace(next, [joined.repartition(2)?], next);
        Ok(())
    }

    fn pass(&mut self, i: usize, to_right: bool) -> Result<()> {
        let x = &self.state.tensors()[i];
        match to_right {
            true => self.environments.pass_right(i, x),
            false => self.environments.pass_left(i, x),
        }
    }

    /// `⟨H⟩` at the centre.
    fn energy(&self) -> Result<f64> {
        let center = self.state.center().unwrap_or(0);
        let x = &self.state.tensors()[center];
        let y = self.environments.site(center)?.apply(x)?;
        Ok(complex(&x.inner(&y)?)?.re / complex(&x.inner(x)?)?.re)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broken::{heisenberg, with_nan};
    use crate::effective::Channels;

    /// A step that fails in its last updates leaves the state before it, from which the evolution goes on.
    #[test]
    fn failed_steps() {
        let (h, start) = heisenberg(6);
        let broken = with_nan(&h, 4);
        for sites in [1, 2] {
            for imaginary in [false, true] {
                let options = EvolveOptions::new().sites(sites).imaginary(imaginary);
                let mut whole = Tdvp::new(&h, start.clone(), 0.1, options).unwrap();
                let mut evolution = whole.clone();
                for _ in 0..2 {
                    whole.step().unwrap();
                    evolution.step().unwrap();
                }
                let (before, scaled) = (evolution.state.to_vector().unwrap(), evolution.log_norm);
                evolution.environments.channels = Channels::of_chain(&broken).unwrap();
                let e = evolution.step().unwrap_err();
                let e = e.to_string();
                assert!(e.contains("NaN"), "{e}");
                assert!(evolution.run(3, |_| unreachable!("no step is complete")).is_err());
                assert_eq!(evolution.state().to_vector().unwrap(), before, "{sites}, {imaginary}");
                assert_eq!(evolution.log_norm(), scaled);
                evolution.environments.channels = Channels::of_chain(&h).unwrap();
                let (one, other) = (whole.step().unwrap(), evolution.step().unwrap());
                assert_eq!((one.step, one.energy), (other.step, other.energy));
                let one = whole.state.to_vector().unwrap();
                assert_eq!(evolution.state.to_vector().unwrap(), one);
            }
        }
    }
}
