//! Ground states of infinite chains by variational uniform matrix product states (VUMPS).
//!
//! Each step solves the effective operators of all sites and bonds at once and joins their lowest vectors by polar
//! decompositions. Bonds grow along what the operator makes of two sites outside of the tangent space.
//!
//! Reference: V. Zauner-Stauber, L. Vanderstraeten, M. Fishman, F. Verstraete, J. Haegeman, *Variational optimization
//! algorithms for uniform matrix product states* (2018).

use std::ops::ControlFlow;
use std::time::Instant;

use t4a_linalg::krylov::{KrylovOptions, lanczos};
use t4a_linalg::polar::Side;
use t4a_structured::{GradedTensor, Sector};

use super::geometric::Sides;
use super::operator::InfiniteMpo;
use super::uniform::UniformMps;
use crate::effective::EffectiveMap;
use crate::error::{NetworksError, Result};
use crate::report::Flow;
use crate::scalar::norm;

pub(super) const OP: &str = "vumps";

/// Options of [`Vumps`].
///
/// | option | default |
/// |---|---|
/// | `max_dim` | 64 states per bond |
/// | `cutoff` | 1e-10: singular values of new directions below it are not added |
/// | `steps` | at most 500 |
/// | `tolerance` | 1e-8: norm of the gradient at which the search ends |
/// | `growth` | 2: factor by which bonds grow |
/// | `grow_below` | 1e-2: norm of the gradient below which bonds grow |
/// | `applications` | 30 of an effective operator per step |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VumpsOptions {
    pub(super) max_dim: usize,
    pub(super) cutoff: f64,
    steps: usize,
    tolerance: f64,
    pub(super) growth: f64,
    grow_below: f64,
    applications: usize,
}

impl Default for VumpsOptions {
    fn default() -> Self {
        Self {
            max_dim: 64,
            cutoff: 1e-10,
            steps: 500,
            tolerance: 1e-8,
            growth: 2.0,
            grow_below: 1e-2,
            applications: 30,
        }
    }
}

impl VumpsOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest number of states of a bond.
    pub fn max_dim(self, max_dim: usize) -> Self {
        Self { max_dim, ..self }
    }

    /// Singular values of new directions below this number are not added.
    pub fn cutoff(self, cutoff: f64) -> Self {
        Self { cutoff, ..self }
    }

    /// The largest number of steps.
    pub fn steps(self, steps: usize) -> Self {
        Self { steps, ..self }
    }

    /// The norm of the gradient below which the search ends.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Factor by which bonds grow at once.
    pub fn growth(self, growth: f64) -> Self {
        Self { growth, ..self }
    }

    /// The norm of the gradient below which bonds grow.
    pub fn grow_below(self, grow_below: f64) -> Self {
        Self { grow_below, ..self }
    }

    /// Applications of an effective operator per step.
    pub fn applications(self, applications: usize) -> Self {
        Self { applications, ..self }
    }

    fn check(&self) -> Result<()> {
        let reject = |name, given: String, required| {
            Err(NetworksError::Argument { op: OP, name, given, required })
        };
        if self.max_dim == 0 || self.steps == 0 || self.applications == 0 {
            return reject("the bond dimension, steps or applications", "0".into(), "at least 1");
        }
        let numbers = [
            ("the cutoff", self.cutoff),
            ("the tolerance", self.tolerance),
            ("the gradient of growth", self.grow_below),
        ];
        if let Some((name, x)) = numbers.into_iter().find(|&(_, x)| !(x.is_finite() && x >= 0.0)) {
            return reject(name, x.to_string(), "a finite number of at least 0");
        }
        if !(self.growth.is_finite() && self.growth > 1.0) {
            return reject("the factor of growth", self.growth.to_string(), "a number above 1");
        }
        Ok(())
    }
}

/// A step of VUMPS.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct VumpsReport {
    /// Number of steps so far, this one included.
    pub step: usize,
    /// The energy per site.
    pub energy: f64,
    /// The largest norm `‖(1 − A_L A_Lᴴ) H A_C‖` of a site: the gradient in the tangent space.
    pub gradient: f64,
    /// The largest number of states of a bond.
    pub bond_dim: usize,
    /// Wall-clock time of it.
    pub seconds: f64,
}

/// A search for the ground state of an infinite chain among uniform states.
///
/// The state is complete after every step: a search that is stopped, by a callback or an error, continues with
/// [`Vumps::run`], or later from a stored state.
///
/// ```
/// use std::ops::ControlFlow;
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::{Sum, UniformMps, Vumps, VumpsOptions};
/// let sites = Sites::uniform(spin_half(), 2);
/// let mut h = Sum::new(&sites);
/// for i in 0..2 {
///     h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
///     h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
/// }
/// let start = UniformMps::product(&sites, ["Up", "Dn"])?;
/// let options = VumpsOptions::new().max_dim(12).tolerance(1e-4);
/// let mut search = Vumps::new(&h.infinite_mpo()?, start, options)?;
/// let report = search.run(|_| Ok(ControlFlow::Continue(())))?;
/// assert!((report.energy - (0.25 - 2f64.ln())).abs() < 1e-3);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Vumps<S> {
    pub(super) operator: InfiniteMpo<S>,
    pub(super) state: UniformMps<S>,
    pub(super) options: VumpsOptions,
    pub(super) sides: Sides<S>,
    gradient: f64,
    steps: usize,
    last: Option<VumpsReport>,
}

impl<S: Sector> Vumps<S> {
    /// A search from a state, such as a product or a stored one.
    ///
    /// # Errors
    /// `Argument` for options out of range; `Length`, `Chain` for a state of other sites than those of the operator.
    pub fn new(
        operator: &InfiniteMpo<S>,
        start: UniformMps<S>,
        options: VumpsOptions,
    ) -> Result<Self> {
        options.check()?;
        let (required, given) = (operator.tensors().len(), start.len());
        if required != given {
            let what = "sites of a cell";
            return Err(NetworksError::Length { op: OP, what, required, given });
        }
        for (site, (x, w)) in start.left.iter().zip(operator.tensors()).enumerate() {
            let (own, other) = (&x.spec().legs()[1], &w.spec().legs()[1]);
            if own != other {
                let message = format!("the site is {own} of the state, {other} of the operator");
                return Err(NetworksError::Chain { op: OP, site, message });
            }
        }
        let sides = Sides::new(&start, operator, None, 1e-10)?;
        let (gradient, operator) = (measure(&start, &sides, operator)?, operator.clone());
        Ok(Self { operator, state: start, options, sides, gradient, steps: 0, last: None })
    }

    /// The state after the last step.
    pub fn state(&self) -> &UniformMps<S> {
        &self.state
    }

    /// The state after the last step.
    pub fn into_state(self) -> UniformMps<S> {
        self.state
    }

    /// The report of the last step.
    pub fn last(&self) -> Option<&VumpsReport> {
        self.last.as_ref()
    }

    /// The energy per site of the state.
    pub fn energy(&self) -> f64 {
        self.sides.energy / self.state.len() as f64
    }

    /// Steps until bonds have their size and the gradient is below the tolerance, or the number of steps is reached. Bonds
    /// grow before a step whose gradient is small enough.
    ///
    /// # Errors
    /// That of the callback; those of the iterations. The state is that of the last step.
    pub fn run(&mut self, mut callback: impl FnMut(&VumpsReport) -> Flow) -> Result<VumpsReport> {
        let mut grows = true;
        loop {
            let small = self.gradient <= self.options.grow_below.max(self.options.tolerance);
            if grows && small {
                grows = self.grow()?;
            }
            let report = self.step()?;
            let flow = callback(&report)?;
            let full = !grows || report.bond_dim >= self.options.max_dim;
            let done = full && report.gradient < self.options.tolerance;
            if flow == ControlFlow::Break(()) || done || self.steps >= self.options.steps {
                return Ok(report);
            }
        }
    }

    /// One step on all sites and bonds. After an error the state is that before the step.
    ///
    /// # Errors
    /// Those of the iterations and factorisations; `Norm` for a gradient that is not finite.
    pub fn step(&mut self) -> Result<VumpsReport> {
        let (begin, n) = (Instant::now(), self.state.len());
        let accuracy = (self.gradient * 1e-3).clamp(1e-14, 1e-4);
        let options =
            KrylovOptions::new().max_applications(self.options.applications).tolerance(accuracy);
        let (mut centers, mut bonds) = (Vec::new(), Vec::new());
        for i in 0..n {
            let effective = EffectiveMap::site(self.around(i), &self.operator.tensors()[i]);
            let map = |x: &GradedTensor<S>| effective.apply(x);
            centers.push(lowest(lanczos(map, &self.state.center(i)?, &options)?)?);
            let effective = EffectiveMap::bond(self.around_bond(i));
            let map = |x: &GradedTensor<S>| effective.apply(x);
            bonds.push(lowest(lanczos(map, &self.state.bonds[i], &options)?)?);
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for i in 0..n {
            let before = &bonds[(i + n - 1) % n];
            let (u, v) = (centers[i].polar(2, Side::Right)?.u, bonds[i].polar(1, Side::Right)?.u);
            left.push(u.contract(&v.dagger()?, &[2], &[0])?.repartition(2)?);
            let (u, v) = (centers[i].polar(1, Side::Left)?.u, before.polar(1, Side::Left)?.u);
            right.push(v.dagger()?.contract(&u, &[1], &[0])?.repartition(2)?);
        }
        let state = UniformMps { left, right, bonds };
        let accuracy = (self.gradient * 1e-4).clamp(1e-14, 1e-8);
        let sides = Sides::new(&state, &self.operator, Some(&self.sides), accuracy)?;
        self.gradient = measure(&state, &sides, &self.operator)?;
        (self.state, self.sides) = (state, sides);
        self.steps += 1;
        let report = VumpsReport {
            step: self.steps,
            energy: self.energy(),
            gradient: self.gradient,
            bond_dim: self.state.max_bond_dim(),
            seconds: begin.elapsed().as_secs_f64(),
        };
        self.last = Some(report);
        Ok(report)
    }

    /// The environments of a site.
    fn around(&self, site: usize) -> [&GradedTensor<S>; 2] {
        [&self.sides.left[site], &self.sides.right[site]]
    }

    /// The environments of the bond behind a site.
    fn around_bond(&self, site: usize) -> [&GradedTensor<S>; 2] {
        let next = (site + 1) % self.state.len();
        [&self.sides.left[next], &self.sides.right[site]]
    }
}

/// The largest gradient of a site.
fn measure<S: Sector>(
    state: &UniformMps<S>,
    sides: &Sides<S>,
    operator: &InfiniteMpo<S>,
) -> Result<f64> {
    let mut most = 0.0f64;
    for i in 0..state.len() {
        let around = [&sides.left[i], &sides.right[i]];
        let image = EffectiveMap::site(around, &operator.tensors()[i]).apply(&state.center(i)?)?;
        let left = &state.left[i];
        let inside = left.conj()?.contract(&image, &[0, 1], &[0, 1])?;
        let joined = left.contract(&inside, &[2], &[0])?.repartition(2)?;
        let gradient = norm(&image.sub(&joined)?)?;
        if !gradient.is_finite() {
            return Err(NetworksError::Norm { op: OP, norm: gradient });
        }
        most = most.max(gradient);
    }
    Ok(most)
}

/// The lowest vector that was found.
fn lowest<S>(
    mut found: t4a_linalg::krylov::Eigenpairs<GradedTensor<S>>,
) -> Result<GradedTensor<S>> {
    found.vectors.drain(..).next().ok_or(NetworksError::Norm { op: OP, norm: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broken::heisenberg_sum;

    /// A step that fails leaves the state before it, from which the search goes on.
    #[test]
    fn failed_steps() {
        let (h, _) = heisenberg_sum(2, true);
        let start = UniformMps::product(h.sites(), ["Up", "Dn"]).unwrap();
        let options = VumpsOptions::new().max_dim(8).grow_below(1.0);
        let mut search = Vumps::new(&h.infinite_mpo().unwrap(), start, options).unwrap();
        search.grow().unwrap();
        let before = search.step().unwrap();
        let whole = search.clone();
        search.operator = search.operator.with_nan(1);
        search.step().unwrap_err();
        search.run(|_| unreachable!("no step is complete")).unwrap_err();
        assert_eq!((search.last(), search.energy()), (Some(&before), before.energy));
        search.operator = whole.operator.clone();
        let (one, other) = (whole.clone().step().unwrap(), search.step().unwrap());
        assert_eq!((one.step, one.energy), (other.step, other.energy));
    }
}
