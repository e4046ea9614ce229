//! Eigenvalues of Hermitian operators by the Davidson method, which extends the basis by preconditioned residuals.
//!
//! References: E. R. Davidson, *The iterative calculation of a few of the lowest eigenvalues and corresponding
//! eigenvectors of large real-symmetric matrices* (1975); M. Crouzeix, B. Philippe, M. Sadkane (1994).

use t4a_algebra::c64;

use super::basis::{combine, fresh, orthogonalise};
use super::error::KrylovError;
use super::operator::{Operator, failed};
use super::options::{Eigenpairs, KrylovOptions, KrylovReport, Target};
use super::projected::{Projected, RitzPairs};
use super::vector::{Diagonal, Vector};

const OP: &str = "davidson";

/// Lowest (or highest) eigenvalues of a Hermitian operator. `precondition(r, θ)` is an approximate solution x of `(A
/// − θ) x = r` for the residual r of the Ritz value θ.
///
/// All eigenvectors of a degenerate eigenvalue are found if `starts` contains components of each.
///
/// # Errors
/// Errors of the functions; [`KrylovError`]: `Option`, `ZeroStart` if all start vectors vanish, `NonFinite`,
/// `NotHermitian`.
pub fn davidson<V: Vector, E: From<V::Error>>(
    mut map: impl FnMut(&V) -> Result<V, E>,
    mut precondition: impl FnMut(&V, f64) -> Result<V, E>,
    starts: &[V],
    options: &KrylovOptions,
) -> Result<Eigenpairs<V>, E> {
    options.check(OP, options.count + 1).map_err(failed::<V, E>)?;
    let mut operator = Operator::new(OP, &mut map, options);
    let mut space = Space::new(options);
    for start in starts.iter().take(options.subspace) {
        operator.finite("a start vector", start)?;
        space.grow(&mut operator, start.clone())?;
    }
    if space.basis.is_empty() {
        return Err(failed::<V, E>(KrylovError::ZeroStart { op: OP }));
    }
    space.run(&mut operator, &mut precondition)
}

/// [`davidson()`] with the diagonal d of the operator as preconditioner: `xᵢ = rᵢ / (dᵢ − θ)`.
///
/// # Errors
/// As [`davidson()`].
///
/// ```
/// use t4a_linalg::LinalgError;
/// use t4a_linalg::krylov::{KrylovOptions, davidson_diagonal, lanczos};
/// use t4a_tensor::Tensor;
///
/// // diag(1, 2, …, 20) with 1 beside the diagonal, preconditioned by its diagonal.
/// let diagonal = Tensor::from_fn(&[20], |i| (i + 1) as f64)?;
/// let map = |x: &Tensor<f64>| -> Result<Tensor<f64>, LinalgError> {
///     let at = |i: usize| x.get(&[i]).unwrap_or(0.0);
///     let value = |i: usize| {
///         (i + 1) as f64 * at(i) + at(i + 1) + i.checked_sub(1).map_or(0.0, at)
///     };
///     Ok(Tensor::from_fn(&[20], value)?)
/// };
/// let start = Tensor::from_fn(&[20], |i| if i == 0 { 1.0 } else { 0.1 })?;
/// let found = davidson_diagonal(map, &diagonal, &[start.clone()], &KrylovOptions::new())?;
/// // The same value without a preconditioner.
/// let want = lanczos(map, &start, &KrylovOptions::new())?;
/// assert!((found.values[0] - want.values[0]).abs() < 1e-9);
/// # Ok::<(), LinalgError>(())
/// ```
pub fn davidson_diagonal<V: Diagonal, E: From<V::Error>>(
    map: impl FnMut(&V) -> Result<V, E>,
    diagonal: &V,
    starts: &[V],
    options: &KrylovOptions,
) -> Result<Eigenpairs<V>, E> {
    // For dᵢ close to θ the quotient would dominate all other entries.
    let least = 1e-3;
    davidson(map, |r, value| Ok(r.divided(diagonal, value, least)?), starts, options)
}

/// Preconditioner: maps a residual and its Ritz value to a new direction.
type Correction<'a, V, E> = &'a mut dyn FnMut(&V, f64) -> Result<V, E>;

struct Space<'a, V> {
    options: &'a KrylovOptions,
    target: Target,
    basis: Vec<V>,
    images: Vec<V>,
    h: Projected,
    scale: f64,
}

impl<'a, V: Vector> Space<'a, V> {
    fn new(options: &'a KrylovOptions) -> Self {
        let target = options.target.unwrap_or(Target::Lowest);
        let h = Projected::new(options.subspace + 1);
        Self { options, target, basis: Vec::new(), images: Vec::new(), h, scale: 0.0 }
    }

    /// Extends the basis by the orthogonal component of a vector, if it does not vanish.
    fn grow<E: From<V::Error>>(
        &mut self,
        operator: &mut Operator<'_, V, E>,
        x: V,
    ) -> Result<bool, E> {
        let norm = operator.finite("a direction", &x)?;
        let found = orthogonalise(x, norm, &self.basis)?;
        if found.norm <= 1e3 * found.rest.epsilon() * norm || norm == 0.0 {
            return Ok(false);
        }
        let mut unit = found.rest.scale(c64::new(1.0 / found.norm, 0.0))?;
        if found.norm < 1e-3 * norm {
            // The orthogonal component of a vector close to the span has few correct digits.
            let again = orthogonalise(unit, 1.0, &self.basis)?;
            unit = again.rest.scale(c64::new(1.0 / again.norm, 0.0))?;
        }
        let (image, norm) = operator.apply(&unit)?;
        self.scale = self.scale.max(norm);
        let n = self.basis.len();
        let (epsilon, mut column) = (unit.epsilon(), Vec::with_capacity(n + 1));
        for (i, v) in self.basis.iter().enumerate() {
            column.push(v.inner(&image)?);
            self.h.set(n, i, unit.inner(&self.images[i])?);
        }
        column.push(unit.inner(&image)?);
        let checked = self.h.check_hermitian(OP, &column, self.scale, epsilon);
        checked.map_err(|error| operator.failed(error))?;
        for (i, &c) in column[..n].iter().enumerate() {
            self.h.set(i, n, c);
            self.h.set(n, i, c.conj());
        }
        self.h.set(n, n, c64::new(column[n].re, 0.0));
        self.basis.push(unit);
        self.images.push(image);
        Ok(true)
    }

    fn run<E: From<V::Error>>(
        mut self,
        operator: &mut Operator<'_, V, E>,
        precondition: Correction<'_, V, E>,
    ) -> Result<Eigenpairs<V>, E> {
        let (count, m) = (self.options.count, self.options.subspace);
        let mut seed = self.options.seed;
        loop {
            let mut pairs =
                self.h.hermitian(self.basis.len()).map_err(|error| operator.failed(error))?;
            let key = |value: f64| self.target.key(c64::new(value, 0.0));
            pairs.sort_by(|a, b| key(a.0).total_cmp(&key(b.0)));
            let found = &pairs[..count.min(pairs.len())];
            let largest = pairs.iter().fold(0.0f64, |most, (value, _)| most.max(value.abs()));
            let bound = self.options.bound(self.basis[0].epsilon()) * largest;
            let (mut residuals, mut open) = (Vec::new(), Vec::new());
            for (value, y) in found {
                let x = combine(&self.basis, y)?;
                let r = combine(&self.images, y)?.axpy(c64::new(-value, 0.0), &x)?;
                let norm = r.norm()?;
                residuals.push(norm);
                if norm > bound {
                    open.push((r, *value));
                }
            }
            let converged = open.is_empty() && found.len() == count;
            if converged || operator.exhausted() {
                return self.finish(operator, found, residuals, converged);
            }
            if self.basis.len() + open.len().max(1) > m {
                self.collapse(&pairs)?;
            }
            let mut grown = false;
            for (r, value) in open {
                if self.basis.len() < m && !operator.exhausted() {
                    let x = precondition(&r, value)?;
                    grown |= self.grow(operator, x)? || self.grow(operator, r)?;
                }
            }
            if grown || operator.exhausted() {
                continue;
            }
            seed = seed.wrapping_add(1);
            match fresh(&self.basis[0], seed, [&self.basis, &[]])? {
                Some(x) => self.grow(operator, x)?,
                None => {
                    return self.finish(
                        operator,
                        &pairs[..count.min(pairs.len())],
                        residuals,
                        true,
                    );
                }
            };
        }
    }

    /// Restarts from the best Ritz vectors.
    fn collapse(&mut self, pairs: &RitzPairs<f64>) -> Result<(), V::Error> {
        let (n, count) = (self.basis.len(), self.options.count);
        // At least one new direction fits, and half of the subspace is free if possible.
        let keep = (2 * count).min(self.options.subspace / 2).max(count);
        let kept = &pairs[..keep.min(n).min(self.options.subspace - 1)];
        let all = |vectors: &[V]| -> Result<Vec<V>, V::Error> {
            kept.iter().map(|(_, y)| combine(vectors, y)).collect()
        };
        (self.basis, self.images) = (all(&self.basis)?, all(&self.images)?);
        self.h = Projected::new(self.options.subspace + 1);
        for (i, (value, _)) in kept.iter().enumerate() {
            self.h.set(i, i, c64::new(*value, 0.0));
        }
        Ok(())
    }

    fn finish<E: From<V::Error>>(
        &self,
        operator: &Operator<'_, V, E>,
        found: &[(f64, Vec<c64>)],
        residuals: Vec<f64>,
        converged: bool,
    ) -> Result<Eigenpairs<V>, E> {
        let vectors =
            found.iter().map(|(_, y)| combine(&self.basis, y)).collect::<Result<_, _>>()?;
        let report = KrylovReport {
            op: OP,
            converged,
            residual: residuals.iter().copied().fold(0.0, f64::max),
            applications: operator.applications,
        };
        let values = found.iter().map(|&(value, _)| value).collect();
        Ok(Eigenpairs { values, vectors, residuals, report })
    }
}
