//! Linear systems with general operators by BiCGSTAB: constant memory, two applications per step.
//!
//! Reference: H. A. van der Vorst, *Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of
//! nonsymmetric linear systems* (1992).

use t4a_algebra::c64;

use super::error::KrylovError;
use super::gmres::residual;
use super::operator::{Operator, failed};
use super::options::{KrylovOptions, KrylovReport, Solution};
use super::vector::Vector;

const OP: &str = "bicgstab";

/// Solves `A x = b` for a general operator, from the initial guess `x`, or 0. Converged if `‖b − A x‖ ≤ tolerance ·
/// ‖b‖`, with the residual of the recurrence. The residual does not decrease monotonically; that of
/// [`gmres()`](super::gmres()) does, at the cost of more memory.
///
/// # Errors
/// Errors of the operator; [`KrylovError`]: `Option`, `NonFinite`, `Breakdown` if an inner product of the recurrence
/// vanishes, also after a restart.
pub fn bicgstab<V: Vector, E: From<V::Error>>(
    mut map: impl FnMut(&V) -> Result<V, E>,
    b: &V,
    guess: Option<&V>,
    options: &KrylovOptions,
) -> Result<Solution<V>, E> {
    options.check(OP, 1).map_err(failed::<V, E>)?;
    let mut operator = Operator::new(OP, &mut map, options);
    let epsilon = b.epsilon();
    let bound = options.bound(epsilon) * operator.finite("the right-hand side", b)?;
    let mut r = residual(&mut operator, b, guess)?;
    let mut x = guess.map_or_else(|| b.scale(c64::ZERO), |x| Ok(x.clone()))?;
    let mut size = operator.finite("a residual", &r)?;
    let (mut shadow, mut p) = (r.clone(), r.clone());
    let mut rho = shadow.inner(&r)?;
    let mut first = true;
    while size > bound && !operator.exhausted() {
        let (image, norm) = operator.apply(&p)?;
        let product = shadow.inner(&image)?;
        let floor = epsilon * norm * shadow.norm()?;
        if product.norm() <= floor || rho.norm() <= epsilon * size * shadow.norm()? {
            if first {
                let applications = operator.applications;
                return Err(operator.failed(KrylovError::Breakdown { op: OP, applications }));
            }
            (shadow, p, rho, first) = (r.clone(), r.clone(), c64::new(size * size, 0.0), true);
            continue;
        }
        let alpha = rho / product;
        let s = r.clone().axpy(-alpha, &image)?;
        x = x.axpy(alpha, &p)?;
        size = operator.finite("a residual", &s)?;
        if size <= bound {
            break;
        }
        let (t, norm) = operator.apply(&s)?;
        if norm == 0.0 {
            let applications = operator.applications;
            return Err(operator.failed(KrylovError::Breakdown { op: OP, applications }));
        }
        let omega = t.inner(&s)? / (norm * norm);
        x = x.axpy(omega, &s)?;
        r = s.axpy(-omega, &t)?;
        size = operator.finite("a residual", &r)?;
        let next = shadow.inner(&r)?;
        let beta = next / rho * (alpha / omega);
        if beta.is_finite() {
            p = p.axpy(-omega, &image)?.scale(beta)?.axpy(c64::new(1.0, 0.0), &r)?;
            (rho, first) = (next, false);
        } else {
            (shadow, p, rho, first) = (r.clone(), r.clone(), c64::new(size * size, 0.0), false);
        }
    }
    let (converged, applications) = (size <= bound, operator.applications);
    let report = KrylovReport { op: OP, converged, residual: size, applications };
    Ok(Solution { vector: x, report })
}
