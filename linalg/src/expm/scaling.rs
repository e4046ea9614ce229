//! Number of squarings from norms of powers.
//!
//! With `dₖ = ‖Aᵏ‖^(1/k)` the approximant of degree `m` is exact up to rounding if `max(d₂ₚ, d₂ₚ₊₂) ≤ θₘ` for a `p`
//! with `p(p − 1) ≤ m`. For matrices far from normal this is much less than the norm. Rounding errors of the
//! approximant itself are bounded by a power of `|A|`.
//!
//! Reference: A. Al-Mohy, N. Higham 2009, *A new scaling and squaring algorithm*, algorithm 5.1.

use std::f64::consts::LN_2;

use super::{DOUBLE, SINGLE, times_powers};
use crate::error::Result;
use crate::vocabulary::{DualMatrix, Matrices, RealMatrices};

/// Scaled matrices near 1, and `ln c` for each: the represented matrix is `c` times the stored one.
struct Scaled<M>(M, Vec<f64>);

impl<M: Matrices> Scaled<M> {
    /// Also returns the logarithms of the norms.
    fn new(
        x: &M,
        logs: Vec<f64>,
        sizes: &impl Fn(&M) -> Result<Vec<f64>>,
    ) -> Result<(Self, Vec<f64>)> {
        let sizes = sizes(x)?;
        let exponent = |size: f64| if size.is_normal() { size.log2().floor() } else { 0.0 };
        let near = times_powers(x, sizes.iter().map(|&size| -exponent(size) as i32));
        let norms = sizes.iter().zip(&logs).map(|(size, log)| size.ln() + log).collect();
        let logs = sizes.iter().zip(&logs).map(|(&size, log)| exponent(size) * LN_2 + log);
        Ok((Self(near, logs.collect()), norms))
    }

    fn times(
        &self,
        rhs: &Self,
        sizes: &impl Fn(&M) -> Result<Vec<f64>>,
    ) -> Result<(Self, Vec<f64>)> {
        let logs = self.1.iter().zip(&rhs.1).map(|(a, b)| a + b).collect();
        Self::new(&self.0.matmul(&rhs.0), logs, sizes)
    }
}

/// Norm of the block matrix `[[A, E], [0, A]]`.
pub(super) fn of_block<M: Matrices>(x: &DualMatrix<M>) -> Result<Vec<f64>> {
    let tangents = x.clone().into_tangent().norms()?;
    let pairs = x.value.norms()?.into_iter().zip(tangents);
    Ok(pairs.map(|(value, tangent)| (value * 2f64.sqrt()).hypot(tangent)).collect())
}

/// `ln ‖|A|ᵏ‖` in the 1-norm.
fn power_of_modulus<M: Matrices>(modulus: &M::Real, k: usize) -> Result<Vec<f64>> {
    let mut row = modulus.constant(1, modulus.rows(), 1.0);
    let mut logs: Vec<f64> = Vec::new();
    for _ in 0..k {
        row = row.matmul(modulus);
        let largest = row.largest();
        let sizes = largest.norms()?;
        logs.resize(sizes.len(), 0.0);
        logs.iter_mut().zip(&sizes).for_each(|(log, size)| *log += size.ln());
        row = row.mul_real(&row.magnitude().recip());
    }
    Ok(logs)
}

/// Number of squarings of each matrix for the highest degree, from norms of powers.
pub(super) fn squarings<M: Matrices>(
    a: &M,
    factor: f64,
    sizes: impl Fn(&M) -> Result<Vec<f64>>,
) -> Result<Vec<i32>> {
    let double = a.epsilon() < 1e-10;
    // 1/|c₂ₘ₊₁| = (2m choose m) (2m + 1)!
    let (degree, limit, coefficient) = match double {
        true => (13, DOUBLE[4], 8.83e-36f64),
        false => (7, SINGLE[2], 2.228e-16),
    };
    let count = sizes(a)?.len();
    let (first, _) = Scaled::new(a, vec![0.0; count], &sizes)?;
    let (second, _) = first.times(&first, &sizes)?;
    let (fourth, log_4) = second.times(&second, &sizes)?;
    let (sixth, log_6) = second.times(&fourth, &sizes)?;
    let (_, log_8) = fourth.times(&fourth, &sizes)?;
    let log_10 = match double {
        true => fourth.times(&sixth, &sizes)?.1,
        false => vec![f64::INFINITY; count],
    };
    let (near, shift) = (first.0.modulus(), &first.1);
    let odd = 2 * degree + 1;
    let of_modulus = power_of_modulus::<M>(&near, odd)?;
    let of_first = power_of_modulus::<M>(&near, 1)?;
    let squarings = (0..count).map(|i| {
        let d = [log_4[i] / 4.0, log_6[i] / 6.0, log_8[i] / 8.0, log_10[i] / 10.0];
        let size = d.windows(2).map(|d| d[0].max(d[1])).fold(f64::INFINITY, f64::min);
        let halvings = ((size + (factor / limit).ln()) / LN_2).ceil().max(0.0);
        // |c| ‖|A/2ˢ|^(2m+1)‖ / ‖A/2ˢ‖ in units of the rounding error.
        let growth = of_modulus[i] - of_first[i] + (odd - 1) as f64 * (shift[i] - halvings * LN_2);
        let excess = coefficient.ln() + growth - (a.epsilon() / 2.0).ln();
        let more = (excess / (LN_2 * (odd - 1) as f64)).ceil().max(0.0);
        // NaN (of a matrix that is not finite) and −∞ become zero.
        (halvings + more).min(f64::from(i32::MAX)) as i32
    });
    Ok(squarings.collect())
}
