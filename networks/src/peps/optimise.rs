//! Variational optimisation of a symmetric iPEPS by L-BFGS.
//!
//! Reference: J. Nocedal, S. Wright, *Numerical Optimization* (2006), chapters 3 and 7.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Instant;

use t4a_structured::{GradedTensor, Sector};

use super::energy::{Evaluated, SymmetricEnergy};
use crate::error::{NetworksError, Result};
use crate::report::{Flow, Report};
use crate::scalar::{norm, number};

const OP: &str = "iPEPS optimisation";

/// Options of [`PepsSearch`].
///
/// | option | default |
/// |---|---|
/// | `steps` | at most 100 |
/// | `tolerance` | 1e-5: norm of the gradient at which the search ends |
/// | `memory` | 10 pairs of steps and changes of the gradient |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PepsOptions {
    steps: usize,
    tolerance: f64,
    memory: usize,
}

impl Default for PepsOptions {
    fn default() -> Self {
        Self { steps: 100, tolerance: 1e-5, memory: 10 }
    }
}

impl PepsOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest number of steps.
    pub fn steps(self, steps: usize) -> Self {
        Self { steps, ..self }
    }

    /// The norm of the gradient below which the search ends.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Number of pairs of steps and changes of the gradient that the approximate Hessian consists of.
    pub fn memory(self, memory: usize) -> Self {
        Self { memory, ..self }
    }
}

/// A search for the state of lowest energy.
///
/// The state is that of the last complete step: a search that is stopped continues with [`PepsSearch::run`], or later
/// from a stored state.
#[derive(Clone, Debug)]
pub struct PepsSearch<S> {
    energy: SymmetricEnergy<S>,
    options: PepsOptions,
    state: GradedTensor<S>,
    evaluated: Evaluated<S>,
    /// Steps and changes of the gradient, the latest last.
    pairs: VecDeque<[GradedTensor<S>; 2]>,
    steps: usize,
}

fn dot<S: Sector>(x: &GradedTensor<S>, y: &GradedTensor<S>) -> Result<f64> {
    number(&x.inner(y)?.0)
}

impl<S: Sector> PepsSearch<S> {
    /// A search from a state `[site, left, up, right, down]`.
    ///
    /// # Errors
    /// `Argument` for options out of range; those of [`SymmetricEnergy::gradient`].
    pub fn new(
        energy: &SymmetricEnergy<S>,
        start: GradedTensor<S>,
        options: PepsOptions,
    ) -> Result<Self> {
        let reject = |name, given: String, required| {
            Err(NetworksError::Argument { op: OP, name, given, required })
        };
        if options.steps == 0 || options.memory == 0 {
            return reject("the number of steps or pairs", "0".into(), "at least 1");
        }
        if !(options.tolerance.is_finite() && options.tolerance >= 0.0) {
            let given = options.tolerance.to_string();
            return reject("the tolerance", given, "a finite number of at least 0");
        }
        let evaluated = energy.gradient(&start, None)?;
        let (energy, pairs) = (energy.clone(), VecDeque::new());
        Ok(Self { energy, options, state: start, evaluated, pairs, steps: 0 })
    }

    /// The state.
    pub fn state(&self) -> &GradedTensor<S> {
        &self.state
    }

    /// Energy, gradient and environment of the state.
    pub fn evaluated(&self) -> &Evaluated<S> {
        &self.evaluated
    }

    /// Steps until the gradient is below the tolerance, no step lowers the energy, or the number of steps is reached.
    ///
    /// # Errors
    /// That of the callback; those of [`SymmetricEnergy::gradient`].
    pub fn run(&mut self, mut callback: impl FnMut(&Report) -> Flow) -> Result<Report> {
        loop {
            let before = self.evaluated.energy;
            let report = self.step()?;
            let flow = callback(&report)?;
            let small = norm(&self.evaluated.gradient)? < self.options.tolerance;
            let stuck = report.energy >= before;
            let last = self.steps >= self.options.steps;
            if flow == ControlFlow::Break(()) || small || stuck || last {
                return Ok(report);
            }
        }
    }

    /// The negative gradient times the approximate inverse Hessian (two loops).
    fn direction(&self) -> Result<GradedTensor<S>> {
        let mut q = self.evaluated.gradient.scale(-1.0);
        let mut factors = Vec::new();
        for [s, y] in self.pairs.iter().rev() {
            let a = dot(s, &q)? / dot(s, y)?;
            q = q.sub(&y.scale(a))?;
            factors.push(a);
        }
        if let Some([s, y]) = self.pairs.back() {
            q = q.scale(dot(s, y)? / dot(y, y)?);
        }
        for ([s, y], a) in self.pairs.iter().zip(factors.into_iter().rev()) {
            let b = dot(y, &q)? / dot(s, y)?;
            q = q.add(&s.scale(a - b))?;
        }
        Ok(q)
    }

    /// One step: along the direction of L-BFGS, shortened until the energy falls by a part of what the gradient predicts.
    /// The state stays if it does not.
    ///
    /// # Errors
    /// Those of [`SymmetricEnergy::gradient`].
    pub fn step(&mut self) -> Result<Report> {
        let begin = Instant::now();
        let mut direction = self.direction()?;
        let mut slope = dot(&self.evaluated.gradient, &direction)?;
        if slope.is_nan() || slope >= 0.0 {
            self.pairs.clear();
            direction = self.direction()?;
            slope = dot(&self.evaluated.gradient, &direction)?;
        }
        // The first step has no scale of its own; the energy does not change with the norm of the state.
        let (size, most) = (norm(&direction)?, 0.3 * norm(&self.state)?);
        let mut length = if self.pairs.is_empty() { (0.1 * most / size).min(1.0) } else { 1.0 };
        length = length.min(most / size);
        for _ in 0..12 {
            let moved = self.state.add(&direction.scale(length))?;
            let found = self.energy.gradient(&moved, Some(&self.evaluated.environment));
            // A step too far may leave the states whose environments converge.
            if let Ok(found) = found
                && found.energy <= self.evaluated.energy + 1e-4 * length * slope
            {
                self.accept(moved, found)?;
                break;
            }
            length *= 0.4;
        }
        self.steps += 1;
        Ok(Report {
            step: self.steps,
            energy: self.evaluated.energy,
            truncation: self.evaluated.report.truncation,
            bond_dim: self.evaluated.report.bond_dim,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    fn accept(&mut self, state: GradedTensor<S>, evaluated: Evaluated<S>) -> Result<()> {
        let s = state.sub(&self.state)?;
        let y = evaluated.gradient.sub(&self.evaluated.gradient)?;
        // Pairs of negative curvature would make the Hessian indefinite.
        if dot(&s, &y)? > 1e-12 * norm(&s)? * norm(&y)? {
            self.pairs.push_back([s, y]);
            if self.pairs.len() > self.options.memory {
                self.pairs.pop_front();
            }
        }
        (self.state, self.evaluated) = (state, evaluated);
        Ok(())
    }
}
