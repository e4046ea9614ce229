//! Variational optimisation of iPEPS by L-BFGS.
//!
//! Reference: J. Nocedal, S. Wright, *Numerical Optimization* (2006), chapters 3 and 7.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Instant;

use t4a_structured::{GradedTensor, Sector};

use super::variational::PepsEnergy;
use crate::error::{NetworksError, Result};
use crate::report::{Flow, Report};
use crate::scalar::number;

const OP: &str = "iPEPS optimisation";

/// Options of [`PepsSearch`].
///
/// | option | default |
/// |---|---|
/// | `steps` | at most 100 |
/// | `tolerance` | 1e-5: norm of the gradient at which the search ends |
/// | `memory` | 30 pairs of steps and changes of the gradient |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PepsOptions {
    steps: usize,
    tolerance: f64,
    memory: usize,
}

impl Default for PepsOptions {
    fn default() -> Self {
        Self { steps: 100, tolerance: 1e-5, memory: 30 }
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

/// A search for the state of lowest energy, of one tensor with the symmetries of the square
/// ([`SymmetricEnergy`](super::SymmetricEnergy)) or of a unit cell ([`CellEnergy`](super::CellEnergy)).
///
/// The state is that of the last complete step: a search that is stopped continues with [`PepsSearch::run`], or later
/// from a stored state.
///
/// More states per bond start from the state of fewer ([`layers::enlarged`](super::layers::enlarged)), large environments
/// from the state found with small ones. The Heisenberg model, −0.6680 per site with three states per bond:
///
/// ```no_run
/// use std::ops::ControlFlow;
/// use t4a_networks::peps::{CtmOptions, PepsOptions, PepsSearch, SymmetricEnergy, layers, random_state};
/// use t4a_networks::sites::spin_half;
/// use t4a_structured::{Direction, Leg, Trivial};
/// // S·S on each bond, one sublattice rotated: S± → −S∓, Sz → −Sz.
/// let site = spin_half().conserve(|_| Trivial)?;
/// let terms = [(-0.5, "S+", "S+"), (-0.5, "S-", "S-"), (-1.0, "Sz", "Sz")];
/// let mut state = random_state(site.leg(), &Leg::new([(Trivial, 2)], Direction::Out)?, 3)?;
/// for (bond_dim, max_dim, steps) in [(2, 10, 25), (3, 16, 100), (3, 32, 45)] {
///     if state.spec().legs()[1].dim() < bond_dim {
///         state = layers::symmetrised(&layers::enlarged(&state, [(Trivial, 1)], 0.5, 3)?)?;
///     }
///     let options = CtmOptions::new().max_dim(max_dim).tolerance(1e-8);
///     let h = SymmetricEnergy::new(layers::pair_operator(&site, terms)?, options)?;
///     let mut search = PepsSearch::new(&h, state, PepsOptions::new().steps(steps))?;
///     search.run(|step| {
///         println!("{} {:.6}", step.step, step.energy);
///         Ok(ControlFlow::Continue(()))
///     })?;
///     state = search.state().clone();
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A cell:
///
/// ```
/// use std::ops::ControlFlow;
/// use t4a_networks::peps::{CellEnergy, CtmOptions, PepsOptions, PepsSearch, layers};
/// use t4a_networks::sites::spin_half;
/// use t4a_structured::{Direction, GradedTensor, Leg, Spec, U1};
/// use t4a_tensor::{DType, random::Generator};
/// // The Heisenberg model on a checkerboard of two products: up and down in turns.
/// let (site, none) = (spin_half(), Leg::new([(U1(0), 1)], Direction::Out)?);
/// let terms = [(0.5, "S+", "S-"), (0.5, "S-", "S+"), (1.0, "Sz", "Sz")];
/// let options = CtmOptions::new().max_dim(2);
/// let h = CellEnergy::new(2, layers::bond_operator(&site, terms)?, options)?;
/// let product = |out: i32, step: i32| -> Result<GradedTensor<U1>, t4a_structured::StructuredError> {
///     let leg = |direction| Leg::new([(U1(out), 1)], direction);
///     let other = |direction| Leg::new([(U1(out + step), 1)], direction);
///     let (a, b) = (leg(Direction::Out)?, other(Direction::In)?);
///     let spec = Spec::new(vec![site.leg().clone(), a, none.clone(), b, none.dual()], U1(0), 1)?;
///     GradedTensor::random(spec, DType::F64, false, &Generator::new(1))
/// };
/// let start = vec![product(0, 1)?, product(1, -1)?, product(1, -1)?, product(0, 1)?];
/// let mut search = PepsSearch::new(&h, start, PepsOptions::new().steps(2))?;
/// let last = search.run(|_| Ok(ControlFlow::Continue(())))?;
/// assert!((last.energy + 0.5).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PepsSearch<E: PepsEnergy> {
    energy: E,
    options: PepsOptions,
    state: E::State,
    evaluated: E::Evaluated,
    /// Steps and changes of the gradient, the latest last.
    pairs: VecDeque<[Tensors<E::Sector>; 2]>,
    steps: usize,
}

/// Tensors of a state, a step or a gradient.
type Tensors<S> = Vec<GradedTensor<S>>;

fn dot<S: Sector>(x: &[GradedTensor<S>], y: &[GradedTensor<S>]) -> Result<f64> {
    x.iter().zip(y).try_fold(0.0, |sum, (x, y)| Ok(sum + number(&x.inner(y)?.0)?))
}

fn norm<S: Sector>(x: &[GradedTensor<S>]) -> Result<f64> {
    x.iter().try_fold(0.0, |sum: f64, x| Ok(sum.hypot(crate::scalar::norm(x)?)))
}

fn scaled<S: Sector>(x: &[GradedTensor<S>], by: f64) -> Tensors<S> {
    x.iter().map(|x| x.scale(by)).collect()
}

/// `x + y · by`.
fn sum<S: Sector>(x: &[GradedTensor<S>], y: &[GradedTensor<S>], by: f64) -> Result<Tensors<S>> {
    x.iter().zip(y).map(|(x, y)| Ok(x.add(&y.scale(by))?)).collect()
}

impl<E: PepsEnergy> PepsSearch<E> {
    /// A search from a state: a tensor `[site, left, up, right, down]`, or those of a cell row by row.
    ///
    /// # Errors
    /// `Argument` for options out of range; those of [`PepsEnergy::evaluate`].
    pub fn new(energy: &E, start: E::State, options: PepsOptions) -> Result<Self> {
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
        let evaluated = energy.evaluate(&start, None)?;
        let (energy, pairs) = (energy.clone(), VecDeque::new());
        Ok(Self { energy, options, state: start, evaluated, pairs, steps: 0 })
    }

    /// The state.
    pub fn state(&self) -> &E::State {
        &self.state
    }

    /// Energy, gradient and environment of the state.
    pub fn evaluated(&self) -> &E::Evaluated {
        &self.evaluated
    }

    fn gradient(&self) -> &[GradedTensor<E::Sector>] {
        E::parts(&self.evaluated).1
    }

    /// Steps until the gradient is below the tolerance, no step lowers the energy, or the number of steps is reached.
    ///
    /// # Errors
    /// That of the callback; those of [`PepsEnergy::evaluate`].
    pub fn run(&mut self, mut callback: impl FnMut(&Report) -> Flow) -> Result<Report> {
        loop {
            let before = E::parts(&self.evaluated).0;
            let report = self.step()?;
            let flow = callback(&report)?;
            let small = norm(self.gradient())? < self.options.tolerance;
            let stuck = report.energy >= before;
            let last = self.steps >= self.options.steps;
            if flow == ControlFlow::Break(()) || small || stuck || last {
                return Ok(report);
            }
        }
    }

    fn preconditioned(&self, x: Tensors<E::Sector>) -> Result<Tensors<E::Sector>> {
        self.energy.preconditioned(&self.state, &self.evaluated, x)
    }

    /// The negative gradient times the approximate inverse Hessian (two loops), from that of the metric of the states.
    fn direction(&self) -> Result<Tensors<E::Sector>> {
        let mut q = scaled(self.gradient(), -1.0);
        let mut factors = Vec::new();
        for [s, y] in self.pairs.iter().rev() {
            let a = dot(s, &q)? / dot(s, y)?;
            q = sum(&q, y, -a)?;
            factors.push(a);
        }
        q = self.preconditioned(q)?;
        if let Some([s, y]) = self.pairs.back() {
            q = scaled(&q, dot(s, y)? / dot(y, &self.preconditioned(y.clone())?)?);
        }
        for ([s, y], a) in self.pairs.iter().zip(factors.into_iter().rev()) {
            let b = dot(y, &q)? / dot(s, y)?;
            q = sum(&q, s, a - b)?;
        }
        Ok(q)
    }

    /// One step: along the direction of L-BFGS, shortened until the energy falls by a part of what the gradient predicts, and
    /// lengthened while the slope is nearly that of the start (weak Wolfe conditions). The state stays if the energy does
    /// not fall, and after an error.
    ///
    /// # Errors
    /// That of [`PepsEnergy::evaluate`] for the shortest step, if it fails for all lengths.
    pub fn step(&mut self) -> Result<Report> {
        let begin = Instant::now();
        let mut direction = self.direction()?;
        let mut slope = dot(self.gradient(), &direction)?;
        if slope.is_nan() || slope >= 0.0 {
            self.pairs.clear();
            direction = self.direction()?;
            slope = dot(self.gradient(), &direction)?;
        }
        // The first step has no scale of its own; the energy does not change with the norm of the state.
        let (size, most) = (norm(&direction)?, 0.3 * norm(E::tensors(&self.state))?);
        let mut length = if self.pairs.is_empty() { (0.1 * most / size).min(1.0) } else { 1.0 };
        length = length.min(most / size);
        let before = E::parts(&self.evaluated).0;
        let (mut failed, mut computed) = (None, false);
        // Lengths that are too short, and too long if one is.
        let (mut short, mut long) = (0.0, None);
        let mut best: Option<(E::State, E::Evaluated)> = None;
        for _ in 0..12 {
            let moved = E::state(sum(E::tensors(&self.state), &direction, length)?)?;
            let similar = best.as_ref().map_or(&self.evaluated, |(_, found)| found);
            let mut fraction = 0.4;
            match self.energy.evaluate(&moved, Some(similar)) {
                Ok(found) => {
                    computed = true;
                    let (energy, gradient, _) = E::parts(&found);
                    if energy <= before + 1e-4 * length * slope {
                        let is_flat = dot(gradient, &direction)? >= 0.9 * slope;
                        best = Some((moved, found));
                        if is_flat || length >= most / size {
                            break;
                        }
                        short = length;
                        length = match long {
                            Some(long) => 0.5 * (short + long),
                            None => (2.0 * length).min(most / size),
                        };
                        continue;
                    }
                    // The minimum of the parabola of both energies and the slope.
                    if short == 0.0 {
                        let own = -0.5 * slope * length / (energy - before - slope * length);
                        fraction = if own.is_nan() { fraction } else { own.clamp(0.1, 0.5) };
                    }
                }
                // A step too far may leave the states whose environments converge.
                Err(error) => failed = Some(error),
            }
            long = Some(length);
            length = short + fraction * (length - short);
        }
        if let Some((state, evaluated)) = best {
            self.accept(state, evaluated)?;
        }
        if let (Some(error), false) = (failed, computed) {
            return Err(error);
        }
        self.steps += 1;
        let (energy, _, report) = E::parts(&self.evaluated);
        Ok(Report {
            step: self.steps,
            energy,
            truncation: report.truncation,
            bond_dim: report.bond_dim,
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    fn accept(&mut self, state: E::State, evaluated: E::Evaluated) -> Result<()> {
        let s = sum(E::tensors(&state), E::tensors(&self.state), -1.0)?;
        let y = sum(E::parts(&evaluated).1, self.gradient(), -1.0)?;
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
