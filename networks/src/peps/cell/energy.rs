//! Energy of an iPEPS of a cell and its gradient through the fixed point.
//!
//! As for one symmetric tensor: with the environment `x = f(s, x)` of the state s the gradient is `∂E/∂s + λ ∂f/∂s` where
//! `λ = ∂E/∂x + λ ∂f/∂x`, solved by GMRES. One step of four moves is recorded, not the iteration.

use std::ops::ControlFlow;

use t4a_diff::{Array, Eager};
use t4a_structured::{GradedTensor, Sector};

use super::step::CellStep;
use super::{Cell, CellEnvironment, CellSearch, check_bonds, check_number};
use crate::error::{NetworksError, Result};
use crate::peps::implicit::implicit;
use crate::peps::layers::{rank, real};
use crate::peps::options::{CtmOptions, CtmReport};
use crate::peps::subspace::lifted;
use crate::peps::symmetric::normalised;
use crate::tape::{Recorded, pullback};

const OP: &str = "energy of a cell";

/// The energy per site of a state of a cell, tensors `[site, left, up, right, down]` row by row: an operator on pairs of
/// neighbours, and how the environment is computed.
#[derive(Clone, Debug)]
pub struct CellEnergy<S> {
    width: usize,
    pair: GradedTensor<S>,
    options: CtmOptions,
}

/// The energy of a state of a cell, its gradient, and the environment.
#[derive(Clone, Debug)]
pub struct CellEvaluated<S> {
    /// The energy per site.
    pub energy: f64,
    /// The gradient, of the structures of the tensors of the state.
    pub gradient: Vec<GradedTensor<S>>,
    /// The environment, which the evaluation of a similar state starts from.
    pub environment: CellEnvironment<S>,
    /// The last step of CTMRG.
    pub report: CtmReport,
}

/// Rejects tensors of another form than those of a state.
fn check_tensor<S: Sector, A: Array>(x: &GradedTensor<S, A>) -> Result<()> {
    rank(OP, x, 5)?;
    real(OP, "the state", x)
}

/// All tensors of an environment.
fn tensors<S: Sector, A: Array>(
    x: &CellEnvironment<S, A>,
) -> impl Iterator<Item = &GradedTensor<S, A>> {
    x.corners().iter().chain(x.edges()).flatten()
}

impl<S: Sector> CellEnergy<S> {
    /// The energy of an operator `[out, out of the neighbour, in, in of the neighbour]` on each pair of a site and its
    /// neighbour on the right or below, such as [`layers::bond_operator`](crate::peps::layers::bond_operator), for cells
    /// of rows of `width` tensors.
    ///
    /// # Errors
    /// `Length`, `Argument` for another operator and options out of range.
    pub fn new(width: usize, pair: GradedTensor<S>, options: CtmOptions) -> Result<Self> {
        rank(OP, &pair, 4)?;
        options.check(OP)?;
        real(OP, "the operator", &pair)?;
        Ok(Self { width, pair, options })
    }

    /// Rejects tensors of another form than those of a state, another number of them, and bonds that do not fit.
    pub(in crate::peps) fn check<A: Array>(&self, state: &[GradedTensor<S, A>]) -> Result<()> {
        check_number(self.width, state.len())?;
        state.iter().try_for_each(check_tensor)?;
        check_bonds(OP, self.width, state, 1)
    }

    /// The tensors as they are used: of norm 1.
    fn prepared<A: Array>(&self, state: &[GradedTensor<S, A>]) -> Result<Vec<GradedTensor<S, A>>> {
        self.check(state)?;
        state.iter().map(normalised).collect()
    }

    /// The energy per site in a given environment, an array of one element. Differentiable in both.
    ///
    /// # Errors
    /// `Length`, `Argument`; `Chain` for bonds that do not fit; `Structured` for other legs.
    pub fn in_environment<A: Array>(
        &self,
        state: &[GradedTensor<S, A>],
        environment: &CellEnvironment<S, A>,
    ) -> Result<A> {
        let state = self.prepared(state)?;
        let cell = Cell::of_state(self.width, &state)?;
        let like = state[0].re();
        let pair = lifted(&self.pair, like)?;
        let mut sum = like.full(&[1], 0.0);
        for site in 0..cell.len() {
            for direction in [2, 3] {
                let density = environment.pair_density(&cell, &state, site, direction)?;
                let bond = CellEnvironment::expectation(&density, &pair)?;
                sum = sum.add(&bond.reshape(&[1]));
            }
        }
        Ok(sum.scale(1.0 / cell.len() as f64))
    }

    /// The environment of a state, from the one of a similar state or from a closed boundary. An environment of other bonds
    /// is not used.
    ///
    /// # Errors
    /// `Length`, `Argument` for tensors of another form; `Chain` for bonds that do not fit; those of CTMRG.
    pub fn environment(
        &self,
        state: &[GradedTensor<S>],
        start: Option<&CellEnvironment<S>>,
    ) -> Result<(CellEnvironment<S>, CtmReport)> {
        let state = self.prepared(state)?;
        let cell = Cell::of_state(self.width, &state)?;
        start.map_or(Ok(()), |start| start.check_sites(&cell))?;
        let mut search = match start {
            Some(start) if start.misfit(&cell).is_none() => {
                CellSearch::from_environment(cell, start.clone(), self.options)?
            }
            _ => CellSearch::closed(cell, &state, self.options)?,
        };
        let report = search.run(|_| Ok(ControlFlow::Continue(())))?;
        Ok((search.environment().clone(), report))
    }

    /// The energy per site.
    ///
    /// # Errors
    /// Those of CTMRG.
    pub fn value(&self, state: &[GradedTensor<S>]) -> Result<f64> {
        let (environment, _) = self.environment(state, None)?;
        crate::scalar::number(&self.in_environment(state, &environment)?)
    }

    /// The energy per site with its gradient by the fixed point, from the environment of a similar state if there is one.
    /// The gradient is as exact as the fixed point: see the change in the report.
    ///
    /// Cost: CTMRG, and per application of GMRES about four steps of it.
    ///
    /// # Errors
    /// Those of [`CellEnergy::environment`]; `Gradient` if CTMRG ended far from a fixed point; `Linalg` if the system for the cotangent does
    /// not converge to 1e-6.
    pub fn gradient(
        &self,
        state: &[GradedTensor<S>],
        start: Option<&CellEnvironment<S>>,
    ) -> Result<CellEvaluated<S>> {
        let (environment, report) = self.environment(state, start)?;
        let step = CellStep::new(
            &Cell::of_state(self.width, &self.prepared(state)?)?,
            &environment,
            &self.options,
        )?;
        if step.deviation() > 1e-2 {
            let message = format!("a step changes the environment by {:e}", step.deviation());
            return Err(NetworksError::Gradient { op: OP, message });
        }
        let variable = |x: &GradedTensor<S>| -> Result<GradedTensor<S, Recorded>> {
            Ok(GradedTensor::new(x.spec().clone(), Recorded::variable(x.re().clone()), None)?)
        };
        let all = |x: &[GradedTensor<S>]| x.iter().map(variable).collect::<Result<Vec<_>>>();
        let [c0, c1, c2, c3] = environment.corners();
        let [e0, e1, e2, e3] = environment.edges();
        let around = CellEnvironment::new(
            [all(c0)?, all(c1)?, all(c2)?, all(c3)?],
            [all(e0)?, all(e1)?, all(e2)?, all(e3)?],
        )?;
        let s = all(state)?;
        let energy = self.in_environment(&s, &around)?;
        let next = step.apply(&Cell::of_state(self.width, &self.prepared(&s)?)?, &around)?;
        let variables: Vec<&Recorded> =
            s.iter().chain(tensors(&around)).map(GradedTensor::re).collect();
        let ones = energy.value().full(&energy.shape(), 1.0);
        let direct = pullback(&[(&energy, ones)], &variables)?;
        let through = |cotangents: &[Eager]| -> Result<Vec<Eager>> {
            let next = tensors(&next).map(GradedTensor::re).zip(cotangents.iter().cloned());
            pullback(&next.collect::<Vec<_>>(), &variables)
        };
        let gradient = implicit(&direct, state.len(), through)?;
        let pairs = state.iter().zip(gradient);
        let gradient = pairs.map(|(x, g)| Ok(GradedTensor::new(x.spec().clone(), g, None)?));
        let gradient = gradient.collect::<Result<_>>()?;
        let energy = crate::scalar::number(energy.value())?;
        Ok(CellEvaluated { energy, gradient, environment, report })
    }
}
