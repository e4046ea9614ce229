//! Energy of a symmetric iPEPS and its gradient.
//!
//! With the environment `x = f(s, x)` of the state s the gradient is `∂E/∂s + λ ∂f/∂s` where `λ = ∂E/∂x + λ ∂f/∂x`, a
//! system of equations that is solved by GMRES. One step is recorded, not the iteration.

use std::ops::ControlFlow;

use t4a_diff::{Array, Eager};
use t4a_structured::{GradedTensor, Leg, Sector, Spec};

use super::fixed::FixedStep;
use super::implicit::implicit;
use super::layers::{closed, double, rank, real, symmetrised};
use super::options::{CtmOptions, CtmReport};
use super::subspace::lifted;
use super::symmetric::{Symmetric, SymmetricSearch, normalised};
use crate::error::{NetworksError, Result};
use crate::tape::{Recorded, pullback};

const OP: &str = "iPEPS energy";

/// The energy per site of a state `[site, left, up, right, down]` with one tensor, whose neighbours are conjugates: an
/// operator on pairs of neighbours, and how the environment is computed.
#[derive(Clone, Debug)]
pub struct SymmetricEnergy<S> {
    pair: GradedTensor<S>,
    options: CtmOptions,
}

/// The energy of a state, its gradient, and the environment.
#[derive(Clone, Debug)]
pub struct Evaluated<S> {
    /// The energy per site.
    pub energy: f64,
    /// The gradient, of the structure of the state; in the subspace of tensors with the symmetries of the square.
    pub gradient: GradedTensor<S>,
    /// The environment, which the evaluation of a similar state starts from.
    pub environment: Symmetric<S>,
    /// The last step of CTMRG.
    pub report: CtmReport,
}

impl<S: Sector> SymmetricEnergy<S> {
    /// The energy of an operator `[out, out of the neighbour, in, in of the neighbour]` on each of the two bonds of a
    /// site, such as [`layers::pair_operator`](super::layers::pair_operator).
    ///
    /// # Errors
    /// `Length`, `Argument` for another operator and options out of range.
    pub fn new(pair: GradedTensor<S>, options: CtmOptions) -> Result<Self> {
        rank(OP, &pair, 4)?;
        options.check(OP)?;
        real(OP, "the operator", &pair)?;
        Ok(Self { pair, options })
    }

    /// Options of CTMRG.
    pub fn options(&self) -> &CtmOptions {
        &self.options
    }

    /// Rejects tensors of another form than that of a state.
    pub(super) fn check<A: Array>(state: &GradedTensor<S, A>) -> Result<()> {
        rank(OP, state, 5)?;
        real(OP, "the state", state)
    }

    /// The state as it is used: with the symmetries of the square, of norm 1.
    pub(super) fn prepared<A: Array>(
        &self,
        state: &GradedTensor<S, A>,
    ) -> Result<GradedTensor<S, A>> {
        Self::check(state)?;
        normalised(&symmetrised(state)?)
    }

    /// The energy per site in a given environment, an array of one element. Differentiable in both.
    ///
    /// # Errors
    /// `Length`, `Argument`; `Structured` for other legs.
    pub fn in_environment<A: Array>(
        &self,
        state: &GradedTensor<S, A>,
        environment: &Symmetric<S, A>,
    ) -> Result<A> {
        let density = environment.pair_density(&self.prepared(state)?)?;
        let pair = lifted(&self.pair, state.re())?;
        // Two bonds per site.
        Ok(Symmetric::expectation(&density, &pair)?.scale(2.0))
    }

    /// The environment of a state, from the one of a similar state or from a closed boundary.
    ///
    /// # Errors
    /// Those of CTMRG.
    pub fn environment(
        &self,
        state: &GradedTensor<S>,
        start: Option<&Symmetric<S>>,
    ) -> Result<(Symmetric<S>, CtmReport)> {
        let state = self.prepared(state)?;
        let bulk = double(&state)?;
        let start = match start {
            Some(start) if start.edge().spec().legs()[1] == bulk.spec().legs()[0] => start.clone(),
            _ => Symmetric::boundary(&closed(&state.spec().legs()[1])?)?,
        };
        let mut search = SymmetricSearch::from_environment(bulk, start, self.options)?;
        let report = search.run(|_| Ok(ControlFlow::Continue(())))?;
        Ok((search.environment().clone(), report))
    }

    /// The energy per site.
    ///
    /// # Errors
    /// Those of CTMRG.
    pub fn value(&self, state: &GradedTensor<S>) -> Result<f64> {
        let (environment, _) = self.environment(state, None)?;
        crate::scalar::number(&self.in_environment(state, &environment)?)
    }

    /// The energy per site with its gradient by the fixed point, from the environment of a similar state if there is one.
    /// The gradient is as exact as the fixed point: see the change in the report.
    ///
    /// Cost: CTMRG, and per application of GMRES about four steps of it.
    ///
    /// # Errors
    /// Those of CTMRG; `Gradient` if the bond of the environment changes from step to step; `Linalg` if the system for the
    /// cotangent does not converge to 1e-6.
    pub fn gradient(
        &self,
        state: &GradedTensor<S>,
        start: Option<&Symmetric<S>>,
    ) -> Result<Evaluated<S>> {
        let (environment, report) = self.environment(state, start)?;
        let variable = |x: &GradedTensor<S>| -> Result<GradedTensor<S, Recorded>> {
            Ok(GradedTensor::new(x.spec().clone(), Recorded::variable(x.re().clone()), None)?)
        };
        let (s, c, e) =
            (variable(state)?, variable(environment.corner())?, variable(environment.edge())?);
        let around = Symmetric::of(c.clone(), e.clone());
        let energy = self.in_environment(&s, &around)?;
        let bulk = double(&self.prepared(state)?)?;
        let step = FixedStep::with_derivatives(&bulk, &environment, &self.options, false)?;
        let next = step.apply(&double(&self.prepared(&s)?)?, &around)?;
        let [before, after] = [environment.bond(), next.bond()];
        if before != after {
            let message = format!(
                "the environment has not converged: a step changes its bond from {before} to {after}"
            );
            return Err(NetworksError::Gradient { op: OP, message });
        }
        let variables = [s.re(), c.re(), e.re()];
        let ones = energy.value().full(&energy.shape(), 1.0);
        let direct = pullback(&[(&energy, ones)], &variables)?;
        let through = |x: &[Eager]| -> Result<Vec<Eager>> {
            let next = [next.corner().re(), next.edge().re()];
            pullback(&next.into_iter().zip(x.iter().cloned()).collect::<Vec<_>>(), &variables)
        };
        let gradient = implicit(&direct, 1, through)?.swap_remove(0);
        let gradient = GradedTensor::new(state.spec().clone(), gradient, None)?;
        let energy = crate::scalar::number(energy.value())?;
        Ok(Evaluated { energy, gradient, environment, report })
    }

    /// The energy per site after a number of steps from a closed boundary, or from an environment; differentiable step
    /// by step, over any arrays.
    ///
    /// # Errors
    /// Those of CTMRG.
    pub fn unrolled<A: Array>(
        &self,
        state: &GradedTensor<S, A>,
        start: Option<&Symmetric<S, A>>,
        steps: usize,
    ) -> Result<A> {
        let bulk = double(&self.prepared(state)?)?;
        let mut environment = match start {
            Some(start) => start.clone(),
            None => {
                let vector = closed(&state.spec().legs()[1])?;
                Symmetric::boundary(&lifted(&vector, state.re())?)?
            }
        };
        for _ in 0..steps {
            environment = environment.step(&bulk, &self.options)?;
        }
        self.in_environment(state, &environment)
    }
}

/// A state `[site, left, up, right, down]` of random entries with the symmetries of the square, of norm 1. All four bonds
/// have the sectors of `bond` and the direction of the site.
///
/// # Errors
/// As [`Spec::new`]; those of the memory.
pub fn random_state<S: Sector>(site: &Leg<S>, bond: &Leg<S>, seed: u64) -> Result<GradedTensor<S>> {
    let bond = if bond.direction() == site.direction() { bond.clone() } else { bond.dual() };
    let legs = std::iter::once(site.clone()).chain(std::iter::repeat_n(bond, 4)).collect();
    let spec = Spec::new(legs, S::TRIVIAL, 1)?;
    let generator = t4a_tensor::random::Generator::new(seed);
    let x = GradedTensor::random(spec, t4a_tensor::DType::F64, false, &generator)?;
    normalised(&symmetrised(&x)?)
}
