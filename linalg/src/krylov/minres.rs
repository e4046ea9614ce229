//! Linear systems with Hermitian operators by MINRES: minimal residual by a three-term recurrence.
//!
//! Reference: C. C. Paige, M. A. Saunders, *Solution of sparse indefinite systems of linear equations* (1975).

use t4a_algebra::c64;

use super::error::KrylovError;
use super::gmres::{GivensRotation, residual};
use super::operator::{Operator, failed};
use super::options::{KrylovOptions, KrylovReport, Solution};
use super::vector::Vector;

const OP: &str = "minres";

/// Solves `A x = b` for a Hermitian operator, definite or not, from the initial guess `x`, or 0. Converged if `‖b − A
/// x‖ ≤ tolerance · ‖b‖`, with the residual of the recurrence.
///
/// Cost: two inner products and six vector updates per application, memory of seven vectors.
///
/// # Errors
/// Errors of the operator; [`KrylovError`]: `Option`, `NonFinite`, `NotHermitian`, `Breakdown` for a singular
/// operator.
pub fn minres<V: Vector, E: From<V::Error>>(
    mut map: impl FnMut(&V) -> Result<V, E>,
    b: &V,
    guess: Option<&V>,
    options: &KrylovOptions,
) -> Result<Solution<V>, E> {
    options.check(OP, 1).map_err(failed::<V, E>)?;
    let mut operator = Operator::new(OP, &mut map, options);
    let (epsilon, real) = (b.epsilon(), |x: f64| c64::new(x, 0.0));
    let bound = options.bound(epsilon) * operator.finite("the right-hand side", b)?;
    let r = residual(&mut operator, b, guess)?;
    let mut x = guess.map_or_else(|| b.scale(c64::ZERO), |x| Ok(x.clone()))?;
    let mut size = operator.finite("a residual", &r)?;
    // Lanczos vectors, the last two directions, the last two rotations.
    let (mut v, mut before): (Option<V>, Option<(V, f64)>) = (None, None);
    let mut directions: [Option<V>; 2] = [None, None];
    let mut rotations: [Option<GivensRotation>; 2] = [None, None];
    let (mut rhs, mut scale) = (real(size), 0.0f64);
    if size > bound {
        v = Some(r.scale(real(1.0 / size))?);
    }
    while let Some(q) = v.take() {
        if size <= bound || operator.exhausted() {
            break;
        }
        let (w, norm) = operator.apply(&q)?;
        scale = scale.max(norm);
        let product = q.inner(&w)?;
        let mut w = w.axpy(-product, &q)?;
        let mut upper = [c64::ZERO, c64::ZERO, real(product.re)];
        let mut difference = 2.0 * product.im.abs();
        if let Some((last, beta)) = &before {
            let c = last.inner(&w)?;
            difference = difference.max((c - beta).norm());
            w = w.axpy(-c, last)?;
            upper[1] = real(*beta);
        }
        if difference > epsilon.sqrt() * scale {
            let error = KrylovError::NotHermitian { op: OP, difference, scale };
            return Err(operator.failed(error));
        }
        let beta = w.norm()?;
        let beta = if beta <= 10.0 * epsilon * scale { 0.0 } else { beta };
        if let Some(rotation) = rotations[0] {
            (upper[0], upper[1]) = rotation.apply(upper[0], upper[1]);
        }
        if let Some(rotation) = rotations[1] {
            (upper[1], upper[2]) = rotation.apply(upper[1], upper[2]);
        }
        let (rotation, diagonal) = GivensRotation::of(upper[2], beta);
        if diagonal.norm() <= 10.0 * epsilon * scale {
            let applications = operator.applications;
            return Err(operator.failed(KrylovError::Breakdown { op: OP, applications }));
        }
        let mut p = q.clone();
        for (c, direction) in upper.into_iter().zip(&directions) {
            if let Some(direction) = direction {
                p = p.axpy(-c, direction)?;
            }
        }
        let p = p.scale(diagonal.inv())?;
        let (above, below) = rotation.apply(rhs, c64::ZERO);
        x = x.axpy(above, &p)?;
        (rhs, size) = (below, below.norm());
        let [_, second] = directions;
        directions = [second, Some(p)];
        rotations = [rotations[1], Some(rotation)];
        if beta > 0.0 {
            v = Some(w.scale(real(1.0 / beta))?);
        }
        before = Some((q, beta));
    }
    let (converged, applications) = (size <= bound, operator.applications);
    let report = KrylovReport { op: OP, converged, residual: size, applications };
    Ok(Solution { vector: x, report })
}
