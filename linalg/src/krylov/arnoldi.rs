//! Eigenvalues of general operators by the Arnoldi method with thick restarts.
//!
//! On a restart the basis is replaced by an orthonormal basis of the wanted Ritz vectors and the common residual
//! vector. This is equivalent to the Krylov–Schur method, whose Schur vectors span the same space.
//!
//! References: W. E. Arnoldi (1951); G. W. Stewart, *A Krylov–Schur algorithm for large eigenproblems* (2001).

use t4a_algebra::c64;

use super::basis::{combine, fresh, orthogonalise};
use super::error::KrylovError;
use super::operator::{Operator, failed};
use super::options::{Eigenpairs, KrylovOptions, KrylovReport, Target};
use super::projected::{Projected, RitzPairs};
use super::vector::Vector;

const OP: &str = "arnoldi";

/// Eigenvalues of largest modulus, or of another [`target`](KrylovOptions::target), and their right eigenvectors.
///
/// For a real operator complex eigenvalues are found too, if the vectors have a complex form. Only one vector of a
/// degenerate eigenvalue is found.
///
/// # Errors
/// Errors of the operator; [`KrylovError`]: `Option` (a subspace of at least `count + 2` is required), `ZeroStart`,
/// `NonFinite`, `ComplexNumber`.
///
/// ```
/// use t4a_linalg::LinalgError;
/// use t4a_linalg::krylov::{KrylovOptions, arnoldi};
/// use t4a_tensor::Tensor;
///
/// // (1 2; 0 3) has the eigenvalues 3 and 1. Complex ones require vectors of a complex type.
/// let map = |x: &Tensor<f64>| -> Result<Tensor<f64>, LinalgError> {
///     let [a, b] = [0, 1].map(|i| x.get(&[i]).unwrap_or(0.0));
///     Ok(Tensor::from_slice(&[a + 2.0 * b, 3.0 * b], &[2])?)
/// };
/// let found = arnoldi(map, &Tensor::from_slice(&[1.0, 0.5], &[2])?, &KrylovOptions::new())?;
/// assert!((found.values[0].re - 3.0).abs() < 1e-12 && found.values[0].im == 0.0);
/// # Ok::<(), LinalgError>(())
/// ```
pub fn arnoldi<V: Vector, E: From<V::Error>>(
    mut map: impl FnMut(&V) -> Result<V, E>,
    start: &V,
    options: &KrylovOptions,
) -> Result<Eigenpairs<V, c64>, E> {
    options.check(OP, options.count + 2).map_err(failed::<V, E>)?;
    let mut operator = Operator::new(OP, &mut map, options);
    let norm = operator.finite("the start vector", start)?;
    if norm == 0.0 {
        return Err(failed::<V, E>(KrylovError::ZeroStart { op: OP }));
    }
    let start = start.scale(c64::new(1.0 / norm, 0.0))?;
    let target = options.target.unwrap_or(Target::LargestModulus);
    ArnoldiSearch { options, target }.run(&mut operator, start)
}

struct ArnoldiSearch<'a> {
    options: &'a KrylovOptions,
    target: Target,
}

impl ArnoldiSearch<'_> {
    fn run<V: Vector, E: From<V::Error>>(
        &self,
        operator: &mut Operator<'_, V, E>,
        start: V,
    ) -> Result<Eigenpairs<V, c64>, E> {
        let (count, m) = (self.options.count, self.options.subspace);
        let epsilon = start.epsilon();
        let mut seed = self.options.seed;
        let mut basis = vec![start];
        let mut h = Projected::new(m + 1);
        let mut scale = 0.0f64;
        loop {
            let n = basis.len();
            let (w, norm) = operator.apply(&basis[n - 1])?;
            let w = orthogonalise(w, norm, &basis)?;
            scale = scale.max(norm);
            w.components.iter().enumerate().for_each(|(i, &c)| h.set(i, n - 1, c));
            let mut pairs = h.general(n).map_err(|error| operator.failed(error))?;
            pairs.sort_by(|a, b| self.target.key(a.0).total_cmp(&self.target.key(b.0)));
            let beta = if w.norm <= 10.0 * epsilon * scale { 0.0 } else { w.norm };
            let residual = |y: &[c64]| beta * y[n - 1].norm();
            let largest = pairs.iter().fold(0.0f64, |most, (value, _)| most.max(value.norm()));
            let bound = self.options.bound(epsilon) * largest;
            let converged = n >= count && pairs[..count].iter().all(|(_, y)| residual(y) <= bound);
            if converged || operator.exhausted() {
                return self.finish(operator, &basis, &pairs, residual, converged);
            }
            let next = match beta > 0.0 {
                true => w.rest.scale(c64::new(1.0 / beta, 0.0))?,
                false => {
                    seed = seed.wrapping_add(1);
                    match fresh(&basis[0], seed, [&basis, &[]])? {
                        Some(next) => next,
                        None => return self.finish(operator, &basis, &pairs, residual, true),
                    }
                }
            };
            if n < m {
                h.set(n, n - 1, c64::new(beta, 0.0));
            } else {
                basis = self.restarted(&mut h, &basis, &pairs, beta)?;
            }
            basis.push(next);
        }
    }

    /// Orthonormal basis of the wanted Ritz vectors. For a real projected matrix it is real: real and imaginary parts
    /// span the same space as pairs of conjugate vectors.
    fn restarted<V: Vector>(
        &self,
        h: &mut Projected,
        basis: &[V],
        pairs: &RitzPairs<c64>,
        beta: f64,
    ) -> Result<Vec<V>, V::Error> {
        let (n, count) = (basis.len(), self.options.count);
        let keep = (count + (n - count) / 2).min(n - 2);
        let real = h.is_real(n);
        let mut columns: Vec<Vec<c64>> = Vec::new();
        for (_, y) in pairs {
            if columns.len() >= keep {
                break;
            }
            let part = |f: fn(&c64) -> f64| y.iter().map(|c| c64::new(f(c), 0.0)).collect();
            let parts: Vec<Vec<c64>> =
                if real { vec![part(|c| c.re), part(|c| c.im)] } else { vec![y.clone()] };
            for column in parts {
                columns.extend(independent(column, &columns));
            }
        }
        let keep = columns.len();
        let mut small = Projected::new(n + 1);
        for (k, q) in columns.iter().enumerate() {
            let image: Vec<c64> =
                (0..n).map(|i| (0..n).map(|j| h.get(i, j) * q[j]).sum()).collect();
            for (l, p) in columns.iter().enumerate() {
                small.set(l, k, p.iter().zip(&image).map(|(p, x)| p.conj() * x).sum());
            }
            small.set(keep, k, q[n - 1] * beta);
        }
        *h = small;
        columns.iter().map(|q| combine(basis, q)).collect()
    }

    fn finish<V: Vector, E: From<V::Error>>(
        &self,
        operator: &Operator<'_, V, E>,
        basis: &[V],
        pairs: &RitzPairs<c64>,
        residual: impl Fn(&[c64]) -> f64,
        converged: bool,
    ) -> Result<Eigenpairs<V, c64>, E> {
        let found = &pairs[..self.options.count.min(pairs.len())];
        let residuals: Vec<f64> = found.iter().map(|(_, y)| residual(y)).collect();
        let vectors = found.iter().map(|(_, y)| combine(basis, y)).collect::<Result<_, _>>()?;
        let report = KrylovReport {
            op: OP,
            converged,
            residual: residuals.iter().copied().fold(0.0, f64::max),
            applications: operator.applications,
        };
        Ok(Eigenpairs {
            values: found.iter().map(|&(value, _)| value).collect(),
            vectors,
            residuals,
            report,
        })
    }
}

/// Orthonormalises a column against others; `None` if it is linearly dependent.
fn independent(mut column: Vec<c64>, others: &[Vec<c64>]) -> Option<Vec<c64>> {
    let norm = |x: &[c64]| x.iter().map(|c| c.norm_sqr()).sum::<f64>().sqrt();
    for _ in 0..2 {
        for q in others {
            let c: c64 = q.iter().zip(&column).map(|(q, x)| q.conj() * x).sum();
            column.iter_mut().zip(q).for_each(|(x, q)| *x -= c * q);
        }
    }
    let size = norm(&column);
    (size > 1e-8).then(|| column.iter().map(|c| c / size).collect())
}
