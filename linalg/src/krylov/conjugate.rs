//! Linear systems with positive definite operators by conjugate gradients.
//!
//! Reference: M. R. Hestenes, E. Stiefel, *Methods of conjugate gradients for solving linear systems* (1952).

use t4a_algebra::c64;

use super::error::KrylovError;
use super::gmres::residual;
use super::operator::{Operator, failed};
use super::options::{KrylovOptions, KrylovReport, Solution};
use super::vector::Vector;

const OP: &str = "conjugate_gradients";

/// Solves `A x = b` for a positive definite operator, from the initial guess `x`, or 0. Converged if `‖b − A x‖ ≤
/// tolerance · ‖b‖`.
///
/// Cost: two inner products and three vector updates per application, memory of four vectors.
///
/// # Errors
/// Errors of the operator; [`KrylovError`]: `Option`, `NonFinite`, `NotPositive`, `NotHermitian`.
pub fn conjugate_gradients<V: Vector, E: From<V::Error>>(
    map: impl FnMut(&V) -> Result<V, E>,
    b: &V,
    guess: Option<&V>,
    options: &KrylovOptions,
) -> Result<Solution<V>, E> {
    conjugate_gradients_with(map, |r: &V| Ok(r.clone()), b, guess, options)
}

/// [`conjugate_gradients`] with a preconditioner: `precondition(r)` is an approximate solution x of `A x = r`, a
/// positive definite map of r.
///
/// # Errors
/// As [`conjugate_gradients`]; errors of the preconditioner.
pub fn conjugate_gradients_with<V: Vector, E: From<V::Error>>(
    mut map: impl FnMut(&V) -> Result<V, E>,
    mut precondition: impl FnMut(&V) -> Result<V, E>,
    b: &V,
    guess: Option<&V>,
    options: &KrylovOptions,
) -> Result<Solution<V>, E> {
    options.check(OP, 1).map_err(failed::<V, E>)?;
    let mut operator = Operator::new(OP, &mut map, options);
    let bound = options.bound(b.epsilon()) * operator.finite("the right-hand side", b)?;
    let mut r = residual(&mut operator, b, guess)?;
    let mut x = guess.map_or_else(|| b.scale(c64::ZERO), |x| Ok(x.clone()))?;
    let mut size = operator.finite("a residual", &r)?;
    let mut direction: Option<(V, f64)> = None;
    while size > bound && !operator.exhausted() {
        let z = precondition(&r)?;
        let rho = positive(&operator, r.inner(&z)?, 0.0)?;
        let p = match direction {
            None => z,
            Some((p, before)) => z.axpy(c64::new(rho / before, 0.0), &p)?,
        };
        let (image, norm) = operator.apply(&p)?;
        let scale = norm * p.norm()? * b.epsilon().sqrt();
        let alpha = rho / positive(&operator, p.inner(&image)?, scale)?;
        x = x.axpy(c64::new(alpha, 0.0), &p)?;
        r = r.axpy(c64::new(-alpha, 0.0), &image)?;
        size = operator.finite("a residual", &r)?;
        direction = Some((p, rho));
    }
    let (converged, applications) = (size <= bound, operator.applications);
    let report = KrylovReport { op: OP, converged, residual: size, applications };
    Ok(Solution { vector: x, report })
}

/// Checks that `⟨x, A x⟩` is positive, and real up to the given difference.
fn positive<V: Vector, E: From<V::Error>>(
    operator: &Operator<'_, V, E>,
    product: c64,
    difference: f64,
) -> Result<f64, E> {
    if difference > 0.0 && product.im.abs() > difference {
        let (difference, scale) = (2.0 * product.im.abs(), product.norm());
        return Err(operator.failed(KrylovError::NotHermitian { op: OP, difference, scale }));
    }
    match product.re > 0.0 {
        true => Ok(product.re),
        false => Err(operator.failed(KrylovError::NotPositive { op: OP, value: product.re })),
    }
}
