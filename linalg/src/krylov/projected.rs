//! Projection of the operator onto the span of a basis, as a small matrix.

use t4a_algebra::c64;
use t4a_tensor::Tensor;

use super::error::KrylovError;
use crate::error::{LinalgError, Result};

/// Square matrix with room for all basis vectors.
pub(super) struct Projected {
    size: usize,
    entries: Vec<c64>,
}

/// Ritz values and, for each, the coefficients of its vector.
pub(super) type RitzPairs<C> = Vec<(C, Vec<c64>)>;

impl Projected {
    /// Zeros.
    pub(super) fn new(size: usize) -> Self {
        Self { size, entries: vec![c64::ZERO; size * size] }
    }

    pub(super) fn get(&self, i: usize, j: usize) -> c64 {
        self.entries[i * self.size + j]
    }

    pub(super) fn set(&mut self, i: usize, j: usize, value: c64) {
        self.entries[i * self.size + j] = value;
    }

    /// Leading n × n block.
    fn leading(&self, n: usize) -> Result<Tensor<c64>> {
        Ok(Tensor::from_fn(&[n, n], |k| self.get(k / n, k % n))?)
    }

    /// Leading n × n block if all of its entries are real.
    fn leading_real(&self, n: usize) -> Result<Option<Tensor<f64>>> {
        let real = (0..n * n).all(|k| self.get(k / n, k % n).im == 0.0);
        let part = || Tensor::from_fn(&[n, n], |k| self.get(k / n, k % n).re);
        Ok(real.then(part).transpose()?)
    }

    /// True if the leading n × n block is real.
    pub(super) fn is_real(&self, n: usize) -> bool {
        (0..n * n).all(|k| self.get(k / n, k % n).im == 0.0)
    }

    /// Checks the entries of a new column `j` against the conjugates of its row, and that the diagonal entry is real.
    /// `scale` is the largest norm of an image of a unit vector.
    pub(super) fn check_hermitian(
        &self,
        op: &'static str,
        column: &[c64],
        scale: f64,
        epsilon: f64,
    ) -> Result<(), KrylovError> {
        let j = column.len() - 1;
        let known = (0..j).map(|i| (column[i] - self.get(j, i).conj()).norm());
        let difference = known.fold(2.0 * column[j].im.abs(), f64::max);
        if difference > epsilon.sqrt() * scale {
            return Err(KrylovError::NotHermitian { op, difference, scale });
        }
        Ok(())
    }

    /// Eigenpairs of the leading n × n block, which is Hermitian.
    pub(super) fn hermitian(&self, n: usize) -> Result<RitzPairs<f64>> {
        if let Some(a) = self.leading_real(n)? {
            let eigh = crate::eigh::eigh(&a)?;
            let vectors = eigh.vectors.to_vec()?;
            return Ok(pairs(&eigh.values.to_vec()?, |k| c64::new(vectors[k], 0.0)));
        }
        let eigh = crate::eigh::eigh(&self.leading(n)?)?;
        let vectors = eigh.vectors.to_vec()?;
        Ok(pairs(&eigh.values.to_vec()?, |k| vectors[k]))
    }

    /// Eigenpairs of the leading n × n block.
    pub(super) fn general(&self, n: usize) -> Result<RitzPairs<c64>> {
        let eig = match self.leading_real(n)? {
            Some(a) => {
                let eig = crate::eig::eig(&a)?;
                (eig.values.to_vec()?, eig.vectors.to_vec()?)
            }
            None => {
                let eig = crate::eig::eig(&self.leading(n)?)?;
                (eig.values.to_vec()?, eig.vectors.to_vec()?)
            }
        };
        Ok(pairs(&eig.0, |k| eig.1[k]))
    }

    /// `exp(t H) e₀` and `φ(t H) e₀` with `φ(z) = (eᶻ − 1)/z`, where H is the leading n × n block.
    pub(super) fn exponential(&self, n: usize, t: c64, hermitian: bool) -> Result<[Vec<c64>; 2]> {
        if hermitian {
            return self.exponential_hermitian(n, t);
        }
        // The exponential of [[t H, e₀], [0, 0]] is [[exp(t H), φ(t H) e₀], [0, 1]].
        let entry = |k: usize| match (k / (n + 1), k % (n + 1)) {
            (i, j) if i < n && j < n => t * self.get(i, j),
            (0, j) if j == n => c64::new(1.0, 0.0),
            _ => c64::ZERO,
        };
        let shape = [n + 1, n + 1];
        let exp: Vec<c64> = if t.im == 0.0 && self.is_real(n) {
            let exp = crate::expm::expm(&Tensor::from_fn(&shape, |k| entry(k).re)?)?;
            exp.to_vec()?.into_iter().map(|x| c64::new(x, 0.0)).collect()
        } else {
            crate::expm::expm(&Tensor::from_fn(&shape, entry)?)?.to_vec()?
        };
        let column = |j: usize| (0..n).map(|i| exp[i * (n + 1) + j]).collect();
        Ok([column(0), column(n)])
    }

    fn exponential_hermitian(&self, n: usize, t: c64) -> Result<[Vec<c64>; 2]> {
        let pairs = self.hermitian(n)?;
        let sum = |f: fn(c64) -> c64| {
            let mut sum = vec![c64::ZERO; n];
            for (value, y) in &pairs {
                let factor = f(t * *value) * y[0].conj();
                sum.iter_mut().zip(y).for_each(|(sum, y)| *sum += factor * y);
            }
            sum
        };
        let results = [sum(|z| z.exp()), sum(phi)];
        if results[0].iter().any(|x| !x.is_finite()) {
            return Err(LinalgError::Overflow { op: "exponential", batch: 0 });
        }
        Ok(results)
    }
}

/// Eigenpairs in the order of the values; the vectors are columns of a row-major matrix.
fn pairs<C: Copy>(values: &[C], entry: impl Fn(usize) -> c64) -> RitzPairs<C> {
    let n = values.len();
    let one = |(j, &value): (usize, &C)| (value, (0..n).map(|i| entry(i * n + j)).collect());
    values.iter().enumerate().map(one).collect()
}

/// `(eᶻ − 1)/z`.
fn phi(z: c64) -> c64 {
    if z.norm() > 0.5 {
        return (z.exp() - 1.0) / z;
    }
    // Series Σ zᵏ / (k + 1)! where the difference would cancel.
    let (mut sum, mut term) = (c64::ZERO, c64::new(1.0, 0.0));
    for k in 1..20 {
        sum += term;
        term = term * z / f64::from(k + 1);
    }
    sum
}
