//! Energies as functions of the tensors of a state: the interface of the optimisation and of the operation on tapes.

use std::fmt::Debug;

use t4a_structured::{GradedTensor, Sector};

use super::cell::{CellEnergy, CellEvaluated};
use super::energy::{Evaluated, SymmetricEnergy};
use super::metric::StateMetric;
use super::options::CtmReport;
use crate::error::{NetworksError, Result};

/// An energy of iPEPS states with its gradient: [`SymmetricEnergy`] of one tensor, [`CellEnergy`] of the tensors of a
/// cell, or a user's own. [`PepsSearch`](super::PepsSearch) lowers it.
pub trait PepsEnergy: Clone + Debug + Send + Sync + 'static {
    /// The symmetry of the tensors.
    type Sector: Sector;
    /// A state: one tensor, or a list of them.
    type State: Clone + Debug;
    /// The energy of a state, its gradient and environment.
    type Evaluated: Clone + Debug;

    /// The energy and its gradient. The evaluation of a similar state, if there is one, has the environment to start from.
    ///
    /// # Errors
    /// Those of CTMRG and of the gradient.
    fn evaluate(
        &self,
        state: &Self::State,
        similar: Option<&Self::Evaluated>,
    ) -> Result<Self::Evaluated>;

    /// The energy alone.
    ///
    /// # Errors
    /// Those of CTMRG.
    fn energy(&self, state: &Self::State) -> Result<f64>;

    /// A gradient times the inverse of a positive definite metric of the states, such as the overlaps of their changes: the
    /// direction that [`PepsSearch`](super::PepsSearch) starts from. The default is the gradient itself.
    ///
    /// # Errors
    /// Those of the contractions.
    fn preconditioned(
        &self,
        _state: &Self::State,
        _evaluated: &Self::Evaluated,
        gradient: Vec<GradedTensor<Self::Sector>>,
    ) -> Result<Vec<GradedTensor<Self::Sector>>> {
        Ok(gradient)
    }

    /// The tensors of a state.
    fn tensors(state: &Self::State) -> &[GradedTensor<Self::Sector>];

    /// The state of some tensors, the inverse of [`PepsEnergy::tensors`].
    ///
    /// # Errors
    /// `Length` for another number of tensors.
    fn state(tensors: Vec<GradedTensor<Self::Sector>>) -> Result<Self::State>;

    /// The energy, the gradient of the structures of the tensors of the state, and the last step of CTMRG.
    fn parts(evaluated: &Self::Evaluated) -> (f64, &[GradedTensor<Self::Sector>], &CtmReport);
}

impl<S: Sector> PepsEnergy for SymmetricEnergy<S> {
    type Sector = S;
    type State = GradedTensor<S>;
    type Evaluated = Evaluated<S>;

    fn evaluate(
        &self,
        state: &GradedTensor<S>,
        similar: Option<&Evaluated<S>>,
    ) -> Result<Evaluated<S>> {
        self.gradient(state, similar.map(|similar| &similar.environment))
    }

    fn energy(&self, state: &GradedTensor<S>) -> Result<f64> {
        self.value(state)
    }

    fn preconditioned(
        &self,
        state: &GradedTensor<S>,
        evaluated: &Evaluated<S>,
        gradient: Vec<GradedTensor<S>>,
    ) -> Result<Vec<GradedTensor<S>>> {
        let metric = StateMetric::new(self, state, &evaluated.environment)?;
        gradient.iter().map(|g| metric.solve(g)).collect()
    }

    fn tensors(state: &GradedTensor<S>) -> &[GradedTensor<S>] {
        std::slice::from_ref(state)
    }

    fn state(tensors: Vec<GradedTensor<S>>) -> Result<GradedTensor<S>> {
        let (op, what, given) = ("iPEPS energy", "tensors of the state", tensors.len());
        let [state] = <[_; 1]>::try_from(tensors).map_err(|_| NetworksError::Length {
            op,
            what,
            required: 1,
            given,
        })?;
        Ok(state)
    }

    fn parts(evaluated: &Evaluated<S>) -> (f64, &[GradedTensor<S>], &CtmReport) {
        let Evaluated { energy, gradient, report, .. } = evaluated;
        (*energy, std::slice::from_ref(gradient), report)
    }
}

impl<S: Sector> PepsEnergy for CellEnergy<S> {
    type Sector = S;
    type State = Vec<GradedTensor<S>>;
    type Evaluated = CellEvaluated<S>;

    fn evaluate(
        &self,
        state: &Vec<GradedTensor<S>>,
        similar: Option<&CellEvaluated<S>>,
    ) -> Result<CellEvaluated<S>> {
        self.gradient(state, similar.map(|similar| &similar.environment))
    }

    fn energy(&self, state: &Vec<GradedTensor<S>>) -> Result<f64> {
        self.value(state)
    }

    fn tensors(state: &Vec<GradedTensor<S>>) -> &[GradedTensor<S>] {
        state
    }

    fn state(tensors: Vec<GradedTensor<S>>) -> Result<Vec<GradedTensor<S>>> {
        Ok(tensors)
    }

    fn parts(evaluated: &CellEvaluated<S>) -> (f64, &[GradedTensor<S>], &CtmReport) {
        (evaluated.energy, &evaluated.gradient, &evaluated.report)
    }
}
