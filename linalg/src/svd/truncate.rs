//! Truncation of the singular value decomposition.

use t4a_algebra::{Numeric, Real};
use t4a_tensor::{Tensor, TensorError};

use super::{Svd, Vectors, svd_ex};
use crate::error::{Result, SINGULAR, check};
use crate::scalar::LinalgScalar;

/// Truncation policy: the number of kept singular triplets is the smallest that any of the given criteria allows.
///
/// Cutoffs drop the smallest values; then `min_dim` raises and `max_dim` limits the number.
///
/// ```
/// use t4a_linalg::svd::Truncation;
/// let t = Truncation::new().max_dim(2).relative_cutoff(0.1);
/// assert_eq!(t.rank(&[1.0, 1.0, 1.0, 0.01]), 2);
/// assert_eq!(t.rank(&[1.0, 0.05]), 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truncation {
    max_dim: Option<usize>,
    min_dim: usize,
    cutoff: f64,
    relative_cutoff: f64,
    discarded_weight: f64,
    relative_discarded_weight: f64,
}

impl Truncation {
    /// Policy that keeps all values.
    pub fn new() -> Self {
        Self::default()
    }
    /// Keeps at most this many values (at least 1); ties are split.
    pub fn max_dim(self, max_dim: usize) -> Self {
        Self { max_dim: Some(max_dim), ..self }
    }
    /// Keeps at least this many values, or all if there are fewer.
    pub fn min_dim(self, min_dim: usize) -> Self {
        Self { min_dim, ..self }
    }
    /// Drops `sᵢ ≤ cutoff`.
    pub fn cutoff(self, cutoff: f64) -> Self {
        Self { cutoff, ..self }
    }
    /// Drops `sᵢ ≤ cutoff · s₀`.
    pub fn relative_cutoff(self, cutoff: f64) -> Self {
        Self { relative_cutoff: cutoff, ..self }
    }
    /// Drops the smallest values as long as the sum of their squares is `≤ weight`.
    pub fn discarded_weight(self, weight: f64) -> Self {
        Self { discarded_weight: weight, ..self }
    }
    /// Drops the smallest values as long as the sum of their squares is `≤ weight · Σ sᵢ²`.
    pub fn relative_discarded_weight(self, weight: f64) -> Self {
        Self { relative_discarded_weight: weight, ..self }
    }

    /// Checks that the options are consistent.
    ///
    /// # Errors
    /// `Tensor` for a cutoff that is negative or NaN, for `max_dim` 0 and for `min_dim > max_dim`.
    pub fn validate(&self) -> Result<()> {
        let numbers = [
            self.cutoff,
            self.relative_cutoff,
            self.discarded_weight,
            self.relative_discarded_weight,
        ];
        if numbers.iter().any(|x| x.is_nan() || *x < 0.0) {
            let message = format!("cutoffs must be ≥ 0, given {numbers:?}");
            return Err(TensorError::value("svd_truncated", message).into());
        }
        match self.max_dim {
            Some(0) => {
                let message = "max_dim 0 keeps nothing: give at least 1, or no limit";
                Err(TensorError::value("svd_truncated", message).into())
            }
            Some(max) if max < self.min_dim => {
                let message = format!("min_dim {} exceeds max_dim {max}", self.min_dim);
                Err(TensorError::value("svd_truncated", message).into())
            }
            _ => Ok(()),
        }
    }

    /// Maximum number of kept values out of `k`.
    pub fn limit(&self, k: usize) -> usize {
        self.max_dim.map_or(k, |max| max.min(k))
    }

    /// Number of kept values out of these nonincreasing ones.
    pub fn rank(&self, s: &[f64]) -> usize {
        let largest = s.first().copied().unwrap_or(0.0);
        let limit = self.cutoff.max(self.relative_cutoff * largest);
        // A cutoff of 0 is inactive: zeros are kept.
        let mut rank =
            if limit > 0.0 { s.iter().take_while(|&&x| x > limit).count() } else { s.len() };
        let unit = power_near(self.discarded_weight.sqrt());
        rank = rank.min(kept(s, unit, self.discarded_weight / unit / unit));
        let unit = power_near(largest);
        let total: f64 = s.iter().map(|x| (x / unit).powi(2)).sum();
        rank = rank.min(kept(s, unit, self.relative_discarded_weight * total));
        rank.max(self.min_dim.min(s.len())).min(self.max_dim.unwrap_or(usize::MAX))
    }
}

/// Power of two near `x ≥ 0`: quotients by it are exact and their squares do not overflow.
fn power_near(x: f64) -> f64 {
    let exponent = (x.to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.clamp(-1000, 1000))
}

/// Number of values that remain if the smallest are dropped as long as `Σ (s/unit)² ≤ weight`.
fn kept(s: &[f64], unit: f64, weight: f64) -> usize {
    let mut dropped = 0.0;
    let fits = |x: &&f64| {
        dropped += (*x / unit).powi(2);
        dropped <= weight
    };
    // A weight of 0 is inactive: zeros are kept.
    if weight > 0.0 { s.len() - s.iter().rev().take_while(fits).count() } else { s.len() }
}

/// Leading singular triplets, and all of them, which the derivative needs.
#[derive(Clone, Debug)]
pub struct TruncatedSvd<T: LinalgScalar> {
    /// Kept triplets.
    pub kept: Svd<T>,
    /// All `k` triplets.
    pub all: Svd<T>,
    /// `‖A − U S Vᴴ‖_F = √(Σ sᵢ²)` over the dropped values, `[…]`.
    pub error: Tensor<T::R>,
}

/// Leading `p` singular triplets; `p` is the largest number over the matrices of the batch.
///
/// Shapes `[…, m, n]` → `[…, m, p]`, `[…, p]`, `[…, p, n]`. Cost that of the thin decomposition. The derivative is
/// that of [`SvdOp`](super::SvdOp) for `all` with cotangents of `kept`: it contains the coupling of kept and
/// discarded vectors.
///
/// # Errors
/// As [`svd`](super::svd); those of [`Truncation::validate`].
pub fn svd_truncated<T: LinalgScalar>(
    a: &Tensor<T>,
    truncation: &Truncation,
) -> Result<TruncatedSvd<T>> {
    let (out, info) = svd_truncated_ex(a, truncation)?;
    check("svd_truncated", &info, SINGULAR)?;
    Ok(out)
}

/// [`svd_truncated`] with an info tensor as in [`svd_ex`]. Failed matrices do not influence the rank.
///
/// # Errors
/// `NotMatrix`, `Tensor`.
pub fn svd_truncated_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    truncation: &Truncation,
) -> Result<(TruncatedSvd<T>, Tensor<i32>)> {
    truncation.validate()?;
    let (all, info) = svd_ex(a, Vectors::Thin)?;
    let rank = all.s.rank();
    let k = all.s.shape()[rank - 1];
    let values: Vec<f64> = all.s.to_vec()?.iter().map(|s| s.to_f64()).collect();
    let batch = &all.s.shape()[..rank - 1];
    let rows = |b: usize| &values[b * k..(b + 1) * k];
    let codes = info.to_vec()?;
    let ranks = codes.iter().enumerate().filter(|&(_, &code)| code == 0);
    let p = ranks.map(|(b, _)| truncation.rank(rows(b))).max();
    let p = p.unwrap_or_else(|| truncation.limit(k));
    // `hypot` avoids overflow of the squares.
    let norm = |tail: &[f64]| tail.iter().copied().fold(0.0, f64::hypot);
    let error = (0..codes.len()).map(|b| <T::R as Numeric>::from_f64(norm(&rows(b)[p..])));
    let error = Tensor::from_vec(error.collect(), batch)?;
    let kept = Svd {
        u: all.u.slice_axis(rank, 0, p, 1)?,
        s: all.s.slice_axis(rank - 1, 0, p, 1)?,
        vh: all.vh.slice_axis(rank - 1, 0, p, 1)?,
    };
    Ok((TruncatedSvd { kept, all, error }, info))
}
