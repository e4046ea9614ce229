//! Linear systems by restarted GMRES: minimal residual in a Krylov space.
//!
//! Reference: Y. Saad, M. H. Schultz, *GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear
//! systems* (1986).

use t4a_algebra::c64;

use super::basis::{combine, orthogonalise};
use super::error::KrylovError;
use super::operator::{Operator, failed};
use super::options::{KrylovOptions, KrylovReport, Solution};
use super::vector::Vector;

const OP: &str = "gmres";

/// Solves `A x = b` for a general operator, from the initial guess `x`, or 0. Converged if `‖b − A x‖ ≤ tolerance ·
/// ‖b‖`.
///
/// Right preconditioning with M: solve `A M y = b`, then `x = M y`.
///
/// # Errors
/// Errors of the operator; [`KrylovError`]: `Option`, `NonFinite`, `Breakdown` for a singular operator.
pub fn gmres<V: Vector, E: From<V::Error>>(
    mut map: impl FnMut(&V) -> Result<V, E>,
    b: &V,
    guess: Option<&V>,
    options: &KrylovOptions,
) -> Result<Solution<V>, E> {
    options.check(OP, 1).map_err(failed::<V, E>)?;
    let mut operator = Operator::new(OP, &mut map, options);
    let norm = operator.finite("the right-hand side", b)?;
    let bound = options.bound(b.epsilon()) * norm;
    let mut x = guess.cloned();
    loop {
        let r = residual(&mut operator, b, x.as_ref())?;
        let size = operator.finite("a residual", &r)?;
        if size <= bound || operator.exhausted() {
            let vector = x.map_or_else(|| b.scale(c64::ZERO), Ok)?;
            let (converged, applications) = (size <= bound, operator.applications);
            let report = KrylovReport { op: OP, converged, residual: size, applications };
            return Ok(Solution { vector, report });
        }
        let step = cycle(&mut operator, r, size, bound, options.subspace)?;
        x = Some(match x {
            Some(x) => x.axpy(c64::new(1.0, 0.0), &step)?,
            None => step,
        });
    }
}

/// Residual `b − A x`.
pub(super) fn residual<V: Vector, E: From<V::Error>>(
    operator: &mut Operator<'_, V, E>,
    b: &V,
    x: Option<&V>,
) -> Result<V, E> {
    let Some(x) = x else { return Ok(b.clone()) };
    let (image, _) = operator.apply(x)?;
    Ok(b.clone().axpy(c64::new(-1.0, 0.0), &image)?)
}

/// Givens rotation `[c s; −s* c]` with real c.
#[derive(Clone, Copy)]
pub(super) struct GivensRotation {
    c: f64,
    s: c64,
}

impl GivensRotation {
    /// Rotation that maps `(a, b)`, b real, to `(r, 0)`; returns it and r.
    pub(super) fn of(a: c64, b: f64) -> (Self, c64) {
        let norm = a.norm().hypot(b);
        if a == c64::ZERO {
            let s = c64::new(if b == 0.0 { 0.0 } else { 1.0 }, 0.0);
            return (Self { c: if b == 0.0 { 1.0 } else { 0.0 }, s }, c64::new(b, 0.0));
        }
        let phase = a / a.norm();
        (Self { c: a.norm() / norm, s: phase * (b / norm) }, phase * norm)
    }

    pub(super) fn apply(self, x: c64, y: c64) -> (c64, c64) {
        (x * self.c + self.s * y, y * self.c - self.s.conj() * x)
    }
}

/// Correction with the minimal residual in the Krylov space of the residual r.
fn cycle<V: Vector, E: From<V::Error>>(
    operator: &mut Operator<'_, V, E>,
    r: V,
    size: f64,
    bound: f64,
    subspace: usize,
) -> Result<V, E> {
    let epsilon = r.epsilon();
    let mut basis = vec![r.scale(c64::new(1.0 / size, 0.0))?];
    let (mut rotations, mut columns): (Vec<GivensRotation>, Vec<Vec<c64>>) =
        (Vec::new(), Vec::new());
    let mut rhs = vec![c64::new(size, 0.0)];
    loop {
        let n = basis.len();
        let (w, norm) = operator.apply(&basis[n - 1])?;
        let w = orthogonalise(w, norm, &basis)?;
        let beta = if w.norm <= 10.0 * epsilon * norm { 0.0 } else { w.norm };
        let mut column = w.components;
        for (i, rotation) in rotations.iter().enumerate() {
            (column[i], column[i + 1]) = rotation.apply(column[i], column[i + 1]);
        }
        let (rotation, diagonal) = GivensRotation::of(column[n - 1], beta);
        column[n - 1] = diagonal;
        let (above, below) = rotation.apply(rhs[n - 1], c64::ZERO);
        rhs[n - 1] = above;
        if diagonal.norm() <= 10.0 * epsilon * norm {
            let applications = operator.applications;
            return Err(operator.failed(KrylovError::Breakdown { op: OP, applications }));
        }
        columns.push(column);
        let done = below.norm() <= bound || beta == 0.0 || n == subspace || operator.exhausted();
        if done {
            return Ok(combine(&basis, &solved(&columns, &rhs))?);
        }
        rotations.push(rotation);
        rhs.push(below);
        basis.push(w.rest.scale(c64::new(1.0 / beta, 0.0))?);
    }
}

/// Back substitution for a triangular system given by columns.
fn solved(columns: &[Vec<c64>], rhs: &[c64]) -> Vec<c64> {
    let mut y = rhs[..columns.len()].to_vec();
    for j in (0..columns.len()).rev() {
        y[j] /= columns[j][j];
        for i in 0..j {
            let product = columns[j][i] * y[j];
            y[i] -= product;
        }
    }
    y
}
