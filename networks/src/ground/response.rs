//! The linear response of a ground state, by sweeps over pairs of sites.

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_linalg::krylov::{KrylovOptions, Vector, conjugate_gradients};
use t4a_structured::{FluxOn, GradedTensor, Sector, Svd};

use super::GroundState;
use crate::environment::Environments;
use crate::error::{NetworksError, Result};
use crate::mpo::Mpo;
use crate::mps::{Method, Mps};
use crate::overlaps::Overlaps;
use crate::scalar::norm;

const OP: &str = "response";

/// Part of the norm of `O ψ` below which `(O − ⟨O⟩) ψ` is rounding.
const ROUNDING: f64 = 1e-11;

/// Options of the linear system of [`GroundState::expectation`].
///
/// | option | default |
/// |---|---|
/// | `max_dim` | 128 states per bond of the solution |
/// | `cutoff` | 1e-16: part of the squares of singular values that is dropped |
/// | `sweeps` | at most 30, each to the right and back |
/// | `tolerance` | 1e-12: relative change of the solution's product with `O ψ` in a sweep at which the sweeps end |
/// | `applications` | 60 of the effective operator per pair of sites |
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseOptions {
    max_dim: usize,
    cutoff: f64,
    sweeps: usize,
    tolerance: f64,
    applications: usize,
}

impl Default for ResponseOptions {
    fn default() -> Self {
        Self { max_dim: 128, cutoff: 1e-16, sweeps: 30, tolerance: 1e-12, applications: 60 }
    }
}

impl ResponseOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest number of states of a bond of the solution.
    pub fn max_dim(self, max_dim: usize) -> Self {
        Self { max_dim, ..self }
    }

    /// Part of the sum of the squares of singular values that a bond of the solution may drop.
    pub fn cutoff(self, cutoff: f64) -> Self {
        Self { cutoff, ..self }
    }

    /// The largest number of sweeps.
    pub fn sweeps(self, sweeps: usize) -> Self {
        Self { sweeps, ..self }
    }

    /// The relative change in a sweep at which the sweeps end. What changes is quadratic in the error of the solution, of
    /// which derivatives have the first power: about the square root of this number.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Applications of the effective operator per pair of sites.
    pub fn applications(self, applications: usize) -> Self {
        Self { applications, ..self }
    }

    fn check(&self) -> Result<()> {
        let reject = |name, given: String, required| {
            Err(NetworksError::Argument { op: OP, name, given, required })
        };
        for (name, x) in [("the cutoff", self.cutoff), ("the tolerance", self.tolerance)] {
            if !(x.is_finite() && x >= 0.0) {
                return reject(name, x.to_string(), "a finite number of at least 0");
            }
        }
        if self.max_dim.min(self.sweeps).min(self.applications) == 0 {
            let name = "the bond dimension, or the number of sweeps or applications,";
            return reject(name, "0".into(), "at least 1");
        }
        Ok(())
    }
}

impl<S: Sector, A: Array> GroundState<'_, S, A> {
    /// The solution of `(H − E) λ = −(O − ⟨O⟩) ψ` orthogonal to ψ; none if the right-hand side vanishes.
    pub(super) fn response(
        &self,
        operator: &Mpo<S>,
        options: &ResponseOptions,
    ) -> Result<Option<Mps<S>>> {
        options.check()?;
        if self.state.len() < 2 {
            let (what, required, given) = ("sites", 2, self.state.len());
            return Err(NetworksError::Length { op: OP, what, required, given });
        }
        let exact = crate::truncation(usize::MAX, 1e-26);
        let image = self.state.apply(operator, Method::Exact, exact)?;
        let mean = self.state.inner(&image)?;
        let mut b = image.scale(-1.0).add(&self.state.scale(mean.re))?;
        b.truncate(exact)?;
        if b.norm()? <= ROUNDING * image.norm()? {
            return Ok(None);
        }
        let mut lambda = b.clone();
        lambda.truncate(crate::truncation(options.max_dim, options.cutoff))?;
        let mut system = ResponseSystem {
            environments: Environments::new(&self.plain, &lambda)?,
            ground: Overlaps::new(OP, &self.state, &lambda)?,
            right: Overlaps::new(OP, &b, &lambda)?,
            energy: self.energy,
            lambda,
            options,
        };
        system.solve()?;
        Ok(Some(system.lambda))
    }
}

/// The system in the basis of a pair of sites of its solution.
struct ResponseSystem<'a, S> {
    energy: f64,
    lambda: Mps<S>,
    environments: Environments<S>,
    ground: Overlaps<S>,
    right: Overlaps<S>,
    options: &'a ResponseOptions,
}

/// The component of `x` orthogonal to a vector of norm 1, or `x` without one.
fn orthogonal<S: Sector>(
    x: &GradedTensor<S>,
    to: Option<&GradedTensor<S>>,
) -> Result<GradedTensor<S>> {
    match to {
        None => Ok(x.clone()),
        Some(unit) => {
            let along = Vector::inner(unit, x)?;
            Ok(x.clone().axpy(-along, unit)?)
        }
    }
}

impl<S: Sector> ResponseSystem<'_, S> {
    fn solve(&mut self) -> Result<()> {
        let n = self.lambda.len();
        let (mut before, mut change) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..self.options.sweeps {
            let mut value = 0.0;
            let there = (0..n - 1).map(|i| (i, true));
            for (i, to_right) in there.chain((0..n - 1).rev().map(|i| (i, false))) {
                value = self.pair(i, to_right)?;
            }
            change = (value - before).abs() / value.abs().max(f64::MIN_POSITIVE);
            if change <= self.options.tolerance {
                return Ok(());
            }
            before = value;
        }
        let (sweeps, required) = (self.options.sweeps, self.options.tolerance);
        Err(NetworksError::Unconverged { op: OP, change, sweeps, required })
    }

    /// Solves for sites i and i + 1 and moves the centre. Returns `⟨λ|b⟩`, which is stationary at the solution.
    fn pair(&mut self, i: usize, to_right: bool) -> Result<f64> {
        let (x, effective) = (self.lambda.tensors(), self.environments.pair(i)?);
        let guess = x[i].contract(&x[i + 1], &[2], &[0])?.repartition(2)?;
        let ground = self.ground.two_sites(i)?;
        let size = norm(&ground)?;
        // Without a component in the basis there is nothing to be orthogonal to.
        let unit = (size > 1e-12).then(|| ground.scale(1.0 / size));
        let unit = unit.as_ref();
        let b = orthogonal(&self.right.two_sites(i)?, unit)?;
        let guess = orthogonal(&guess, unit)?;
        let map = |x: &GradedTensor<S>| -> Result<GradedTensor<S>> {
            let x = orthogonal(x, unit)?;
            let image = effective.apply(&x)?;
            orthogonal(&image.axpy(c64::new(-self.energy, 0.0), &x)?, unit)
        };
        let options = KrylovOptions::new()
            .max_applications(self.options.applications)
            .tolerance(0.01 * self.options.tolerance.sqrt());
        let solution = conjugate_gradients(map, &b, Some(&guess), &options)?.vector;
        let solution = orthogonal(&solution, unit)?;
        let value = Vector::inner(&solution, &b)?.re;
        let truncation = crate::truncation(self.options.max_dim, self.options.cutoff);
        let Svd { u, s, vh } = solution.svd_truncated(2, FluxOn::Right, truncation)?.kept;
        let new = match to_right {
            true => [u, vh.scale_rows(&s)?.repartition(2)?],
            false => [u.scale_columns(&s)?, vh.repartition(2)?],
        };
        self.lambda.replace(i, new, if to_right { i + 1 } else { i });
        let site = if to_right { i } else { i + 1 };
        let x = &self.lambda.tensors()[site];
        match to_right {
            true => self.environments.pass_right(site, x)?,
            false => self.environments.pass_left(site, x)?,
        }
        self.ground.pass(site, x, to_right)?;
        self.right.pass(site, x, to_right)?;
        Ok(value)
    }
}
