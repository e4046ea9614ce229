//! Eigenvalues of Hermitian operators by the Lanczos method with thick restarts.
//!
//! The basis is reorthogonalised explicitly. On a restart it is replaced by the best Ritz vectors and their common
//! residual vector:
//!
//! ```text
//! A V = V T + β v e_nᵀ      T y = θ y      A (V y) = θ (V y) + β yₙ v
//! ```
//!
//! References: C. Lanczos (1950); K. Wu, H. Simon, *Thick-restart Lanczos method for large symmetric eigenvalue
//! problems* (2000).

use t4a_algebra::c64;

use super::basis::{combine, fresh, orthogonalise};
use super::error::KrylovError;
use super::operator::{Operator, failed};
use super::options::{Eigenpairs, KrylovOptions, KrylovReport, Target};
use super::projected::{Projected, RitzPairs};
use super::vector::Vector;

const OP: &str = "lanczos";

/// Lowest (or highest) [`count`](KrylovOptions::count) eigenvalues of a Hermitian operator, and their eigenvectors.
///
/// `start` must have a component along each wanted eigenvector: eigenvectors of other symmetry sectors are not found.
/// One eigenvector of a degenerate eigenvalue is found, unless the search is [`separate`](KrylovOptions::separately).
///
/// Cost: about `4 j` inner products and vector updates per application, with a basis of `j ≤ subspace` vectors.
///
/// # Errors
/// Errors of the operator; [`KrylovError`]: `Option`, `ZeroStart`, `NonFinite`, and `NotHermitian` if the projected
/// matrix shows it.
pub fn lanczos<V: Vector, E: From<V::Error>>(
    map: impl FnMut(&V) -> Result<V, E>,
    start: &V,
    options: &KrylovOptions,
) -> Result<Eigenpairs<V>, E> {
    lanczos_beyond(map, start, &[], options)
}

/// [`lanczos()`] in the orthogonal complement of `excluded`, such as excited states given the lower ones.
///
/// # Errors
/// As [`lanczos()`].
pub fn lanczos_beyond<V: Vector, E: From<V::Error>>(
    mut map: impl FnMut(&V) -> Result<V, E>,
    start: &V,
    excluded: &[V],
    options: &KrylovOptions,
) -> Result<Eigenpairs<V>, E> {
    let count = if options.separately { 1 } else { options.count };
    options.check(OP, count + 1).map_err(failed::<V, E>)?;
    let mut operator = Operator::new(OP, &mut map, options);
    let mut locked: Vec<V> = Vec::new();
    for x in excluded {
        let norm = operator.finite("an excluded vector", x)?;
        let found = orthogonalise(x.clone(), norm, &locked)?;
        if found.norm > 1e3 * x.epsilon() * norm {
            locked.push(found.rest.scale(c64::new(1.0 / found.norm, 0.0))?);
        }
    }
    let norm = operator.finite("the start vector", start)?;
    let found = orthogonalise(start.clone(), norm, &locked)?;
    if norm == 0.0 || found.norm <= 1e3 * start.epsilon() * norm {
        return Err(failed::<V, E>(KrylovError::ZeroStart { op: OP }));
    }
    let start = found.rest.scale(c64::new(1.0 / found.norm, 0.0))?;
    let search = LanczosSearch { options, target: options.target.unwrap_or(Target::Lowest), count };
    if options.separately {
        return search.one_by_one(&mut operator, start, locked);
    }
    Ok(search.run(&mut operator, start, &locked)?.0)
}

struct LanczosSearch<'a> {
    options: &'a KrylovOptions,
    target: Target,
    count: usize,
}

/// Eigenpairs, and the next Ritz vector if there is one.
type LanczosResult<V> = (Eigenpairs<V>, Option<V>);

impl LanczosSearch<'_> {
    /// Computes the eigenpairs one after another.
    fn one_by_one<V: Vector, E: From<V::Error>>(
        &self,
        operator: &mut Operator<'_, V, E>,
        start: V,
        mut locked: Vec<V>,
    ) -> Result<Eigenpairs<V>, E> {
        let mut all: Vec<(f64, V, f64)> = Vec::new();
        let (mut next, mut converged, mut start) = (None, true, Some(start));
        for k in 0..self.options.count {
            if k > 0 {
                // A random component finds vectors that are orthogonal to all previous searches.
                let seed = self.options.seed.wrapping_add(k as u64);
                let random = fresh(&locked[0], seed, [&locked, &[]])?;
                start = match (random, next.take()) {
                    (Some(random), Some(next)) => {
                        Some(random.scale(c64::new(0.1, 0.0))?.axpy(c64::new(1.0, 0.0), &next)?)
                    }
                    (random, _) => random,
                };
            }
            let Some(x) = start.take() else { break };
            let norm = x.norm()?;
            let found = orthogonalise(x, norm, &locked)?;
            let unit = found.rest.scale(c64::new(1.0 / found.norm, 0.0))?;
            let (pairs, rest) = self.run(operator, unit, &locked)?;
            converged &= pairs.report.converged;
            next = rest;
            let vectors = pairs.vectors.into_iter().zip(pairs.residuals);
            for (value, (vector, residual)) in pairs.values.into_iter().zip(vectors) {
                locked.push(vector.clone());
                all.push((value, vector, residual));
            }
            if operator.exhausted() && k + 1 < self.options.count {
                converged = false;
                break;
            }
        }
        let key = |value: f64| self.target.key(c64::new(value, 0.0));
        all.sort_by(|a, b| key(a.0).total_cmp(&key(b.0)));
        let residual = all.iter().fold(0.0, |most: f64, pair| most.max(pair.2));
        let applications = operator.applications;
        Ok(Eigenpairs {
            values: all.iter().map(|pair| pair.0).collect(),
            residuals: all.iter().map(|pair| pair.2).collect(),
            vectors: all.into_iter().map(|pair| pair.1).collect(),
            report: KrylovReport { op: OP, converged, residual, applications },
        })
    }

    /// Iterates from a unit vector in the complement of `locked`.
    fn run<V: Vector, E: From<V::Error>>(
        &self,
        operator: &mut Operator<'_, V, E>,
        start: V,
        locked: &[V],
    ) -> Result<LanczosResult<V>, E> {
        let (count, m) = (self.count, self.options.subspace);
        let epsilon = start.epsilon();
        let mut seed = self.options.seed;
        let mut basis = vec![start];
        let mut t = Projected::new(m + 1);
        let mut scale = 0.0f64;
        loop {
            let n = basis.len();
            let (w, norm) = operator.apply(&basis[n - 1])?;
            let inside = orthogonalise(w, norm, locked)?;
            let w = orthogonalise(inside.rest, inside.norm, &basis)?;
            scale = scale.max(norm);
            let checked = t.check_hermitian(OP, &w.components, scale, epsilon);
            checked.map_err(|error| operator.failed(error))?;
            t.set(n - 1, n - 1, c64::new(w.components[n - 1].re, 0.0));
            let pairs = self.sorted(t.hermitian(n).map_err(|error| operator.failed(error))?);
            let beta = if w.norm <= 10.0 * epsilon * scale { 0.0 } else { w.norm };
            let residual = |y: &[c64]| beta * y[n - 1].norm();
            let largest = pairs.iter().fold(0.0f64, |most, (value, _)| most.max(value.abs()));
            let bound = self.options.bound(epsilon) * largest;
            let converged = n >= count && pairs[..count].iter().all(|(_, y)| residual(y) <= bound);
            if converged || operator.exhausted() {
                return self.finish(operator, &basis, &pairs, residual, converged);
            }
            if beta == 0.0 {
                // The basis spans an invariant subspace: continue in its complement.
                seed = seed.wrapping_add(1);
                let Some(x) = fresh(&basis[0], seed, [locked, &basis])? else {
                    return self.finish(operator, &basis, &pairs, residual, true);
                };
                if n == m {
                    basis = restarted(&mut t, &basis, &pairs, self.keep(m), |_| c64::ZERO)?;
                }
                basis.push(x);
                continue;
            }
            let v = w.rest.scale(c64::new(1.0 / beta, 0.0))?;
            match n < m {
                true => {
                    t.set(n, n - 1, c64::new(beta, 0.0));
                    t.set(n - 1, n, c64::new(beta, 0.0));
                }
                false => {
                    let border = |y: &[c64]| beta * y[n - 1];
                    basis = restarted(&mut t, &basis, &pairs, self.keep(m), border)?;
                }
            }
            basis.push(v);
        }
    }

    /// Number of Ritz vectors kept by a restart.
    fn keep(&self, m: usize) -> usize {
        (self.count + (m - self.count) / 2).min(m - 1)
    }

    fn sorted(&self, mut pairs: RitzPairs<f64>) -> RitzPairs<f64> {
        let key = |value: f64| self.target.key(c64::new(value, 0.0));
        pairs.sort_by(|a, b| key(a.0).total_cmp(&key(b.0)));
        pairs
    }

    fn finish<V: Vector, E: From<V::Error>>(
        &self,
        operator: &Operator<'_, V, E>,
        basis: &[V],
        pairs: &RitzPairs<f64>,
        residual: impl Fn(&[c64]) -> f64,
        converged: bool,
    ) -> Result<LanczosResult<V>, E> {
        let found = &pairs[..self.count.min(pairs.len())];
        let residuals: Vec<f64> = found.iter().map(|(_, y)| residual(y)).collect();
        let vectors = found.iter().map(|(_, y)| combine(basis, y)).collect::<Result<_, _>>()?;
        let next = match self.options.separately {
            true => pairs.get(self.count).map(|(_, y)| combine(basis, y)).transpose()?,
            false => None,
        };
        let report = KrylovReport {
            op: OP,
            converged,
            residual: residuals.iter().copied().fold(0.0, f64::max),
            applications: operator.applications,
        };
        let values = found.iter().map(|&(value, _)| value).collect();
        Ok((Eigenpairs { values, vectors, residuals, report }, next))
    }
}

/// The first `keep` Ritz vectors, and the projected matrix in this basis, bordered by the next vector.
fn restarted<V: Vector>(
    t: &mut Projected,
    basis: &[V],
    pairs: &RitzPairs<f64>,
    keep: usize,
    border: impl Fn(&[c64]) -> c64,
) -> Result<Vec<V>, V::Error> {
    *t = Projected::new(basis.len() + 1);
    let kept = &pairs[..keep];
    for (i, (value, y)) in kept.iter().enumerate() {
        t.set(i, i, c64::new(*value, 0.0));
        t.set(keep, i, border(y));
        t.set(i, keep, border(y).conj());
    }
    kept.iter().map(|(_, y)| combine(basis, y)).collect()
}
