//! `exp(t A) v` in Krylov spaces, with adaptive steps from an error estimate.
//!
//! ```text
//! A V = V H + β v₊ e_nᵀ      exp(t A) v ≈ ‖v‖ V exp(t H) e₁      error ≈ ‖v‖ β |t| |e_nᵀ φ(t H) e₁|
//! ```
//!
//! with `φ(z) = (eᶻ − 1)/z`. The basis grows until the estimate for the remaining time is within the tolerance; at
//! the maximum subspace size the step is shortened instead.
//!
//! References: Y. Saad, *Analysis of some Krylov subspace approximations to the matrix exponential operator* (1992);
//! M. Hochbruck, C. Lubich (1997).

use t4a_algebra::c64;

use super::basis::{combine, orthogonalise};
use super::error::KrylovError;
use super::operator::{Operator, failed};
use super::options::{KrylovOptions, KrylovReport};
use super::projected::Projected;
use super::vector::Vector;

const OP: &str = "exponential";

/// `exp(t A) v`, or the result for a fraction of the time if the maximum number of applications was reached.
#[derive(Clone, Debug)]
pub struct Evolved<V> {
    /// `exp(f t A) v` with the reached fraction f.
    pub vector: V,
    /// Fraction of the time that was reached: 1 if converged.
    pub fraction: f64,
    /// Number of time steps.
    pub steps: usize,
    /// Convergence report; the residual is the sum of the error estimates of the steps.
    pub report: KrylovReport,
}

/// `exp(t A) v` for real, imaginary and complex t: `exp(−i H t) v` is `exponential(h, c64::new(0.0, -t), …)`.
///
/// The estimated error is at most the [tolerance](KrylovOptions::tolerance) times the norm of the result. With
/// [`hermitian`](KrylovOptions::hermitian) the projected matrix is Hermitian too.
///
/// A real vector becomes complex for a complex t, which is an error for types that are always real.
///
/// # Errors
/// Errors of the operator; [`KrylovError`]: `Option` (also for a time that is not finite), `NonFinite`,
/// `NotHermitian` if the options declare the operator Hermitian, `ComplexNumber`;
/// [`Overflow`](crate::LinalgError::Overflow).
pub fn exponential<V: Vector, E: From<V::Error>>(
    mut map: impl FnMut(&V) -> Result<V, E>,
    t: impl Into<c64>,
    v: &V,
    options: &KrylovOptions,
) -> Result<Evolved<V>, E> {
    let t = t.into();
    options.check(OP, 1).map_err(failed::<V, E>)?;
    if !t.is_finite() {
        let (option, given, required) = ("t", t.to_string(), "a finite number");
        return Err(failed::<V, E>(KrylovError::Option { op: OP, option, given, required }));
    }
    let mut operator = Operator::new(OP, &mut map, options);
    let bound = options.bound(v.epsilon());
    let (mut vector, mut rest, mut steps, mut residual) = (v.clone(), 1.0f64, 0, 0.0);
    let nothing = t == c64::ZERO || operator.finite("the start vector", v)? == 0.0;
    while rest > 0.0 && !nothing {
        let step = KrylovStep { t, rest, bound, options }.run(&mut operator, &vector)?;
        (vector, rest) = (step.vector, rest - step.length);
        steps += 1;
        residual += step.error;
        if rest > 0.0 && operator.exhausted() {
            break;
        }
    }
    let fraction = if nothing { 1.0 } else { 1.0 - rest };
    let (converged, applications) = (rest <= 0.0 || nothing, operator.applications);
    let report = KrylovReport { op: OP, converged, residual, applications };
    Ok(Evolved { vector, fraction, steps, report })
}

struct KrylovStep<'a> {
    t: c64,
    /// Remaining fraction of the time.
    rest: f64,
    bound: f64,
    options: &'a KrylovOptions,
}

struct AcceptedStep<V> {
    vector: V,
    length: f64,
    error: f64,
}

/// Coefficients of a step of this length, and the estimate of their error relative to their norm.
struct TrialStep {
    length: f64,
    c: Vec<c64>,
    error: f64,
    norm: f64,
}

impl KrylovStep<'_> {
    fn run<V: Vector, E: From<V::Error>>(
        &self,
        operator: &mut Operator<'_, V, E>,
        start: &V,
    ) -> Result<AcceptedStep<V>, E> {
        let (epsilon, m) = (start.epsilon(), self.options.subspace);
        let size = operator.finite("the evolved vector", start)?;
        if size == 0.0 {
            return Ok(AcceptedStep { vector: start.clone(), length: self.rest, error: 0.0 });
        }
        let mut basis = vec![start.scale(c64::new(1.0 / size, 0.0))?];
        let mut h = Projected::new(m + 1);
        let mut scale = 0.0f64;
        loop {
            let n = basis.len();
            let (w, norm) = operator.apply(&basis[n - 1])?;
            let w = orthogonalise(w, norm, &basis)?;
            scale = scale.max(norm);
            self.enter(&mut h, &w.components, scale, epsilon)
                .map_err(|error| operator.failed(error))?;
            let beta = if w.norm <= 10.0 * epsilon * scale { 0.0 } else { w.norm };
            let trial = |length: f64| {
                self.trial(&h, n, beta, length).map_err(|error| failed::<V, E>(error))
            };
            let whole = trial(self.rest)?;
            let full = n == m || operator.exhausted();
            if self.accepts(&whole) || full {
                let taken =
                    if self.accepts(&whole) { whole } else { self.shorter(whole, n, trial)? };
                let c: Vec<c64> = taken.c.iter().map(|c| c * size).collect();
                let vector = combine(&basis, &c)?;
                return Ok(AcceptedStep {
                    vector,
                    length: taken.length,
                    error: taken.error * size,
                });
            }
            h.set(n, n - 1, c64::new(beta, 0.0));
            if self.options.hermitian {
                h.set(n - 1, n, c64::new(beta, 0.0));
            }
            basis.push(w.rest.scale(c64::new(1.0 / beta, 0.0))?);
        }
    }

    /// Writes a column of the projected matrix.
    fn enter(
        &self,
        h: &mut Projected,
        column: &[c64],
        scale: f64,
        epsilon: f64,
    ) -> Result<(), KrylovError> {
        let n = column.len();
        if self.options.hermitian {
            h.check_hermitian(OP, column, scale, epsilon)?;
            h.set(n - 1, n - 1, c64::new(column[n - 1].re, 0.0));
        } else {
            column.iter().enumerate().for_each(|(i, &c)| h.set(i, n - 1, c));
        }
        Ok(())
    }

    fn trial(&self, h: &Projected, n: usize, beta: f64, length: f64) -> crate::Result<TrialStep> {
        let t = self.t * length;
        let [c, phi] = h.exponential(n, t, self.options.hermitian)?;
        let error = beta * t.norm() * phi[n - 1].norm();
        let norm = c.iter().map(|c| c.norm_sqr()).sum::<f64>().sqrt();
        Ok(TrialStep { length, c, error, norm })
    }

    /// True if the error is within the share of the tolerance of this step, in proportion to its length.
    fn accepts(&self, trial: &TrialStep) -> bool {
        trial.error <= self.bound * trial.length * trial.norm
    }

    /// Longest trial step within the tolerance, starting from a step that is too long. The error of a step is
    /// proportional to the n-th power of its length.
    fn shorter<E>(
        &self,
        mut trial: TrialStep,
        n: usize,
        compute: impl Fn(f64) -> Result<TrialStep, E>,
    ) -> Result<TrialStep, E> {
        while !self.accepts(&trial) {
            let allowed = self.bound * trial.length * trial.norm / trial.error;
            let factor = 0.9 * allowed.powf(1.0 / n as f64);
            trial = compute(trial.length * factor.clamp(0.1, 0.9))?;
        }
        Ok(trial)
    }
}
