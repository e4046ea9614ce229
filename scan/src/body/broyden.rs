//! Broyden's method for F(x) = 0: the inverse of the Jacobian as the identity and corrections of rank one.
//!
//! ```text
//! x⁺ = x − H F,   s = x⁺ − x,   y = F⁺ − F,   τ = sᵀ H y / sᵀ s
//! H⁺ = H + θ (s − H y) sᵀ H / ((1 − θ) sᵀ s + θ sᵀ H y)
//! ```
//!
//! θ = 1 where |τ| ≥ 0.1, and otherwise the number that keeps H⁺ invertible: Moré and Trangenstein, "On the global convergence
//! of Broyden's method", Mathematics of Computation 30 (1976). After as many corrections as are kept H is the identity again.

use t4a_diff::Array;
use t4a_tensor::{DType, Result};

use super::tape::count;

/// Σ x y over all arrays, read on the host.
fn dot<A: Array>(x: &[A], y: &[A]) -> Result<f64> {
    let mut all = 0.0;
    for (x, y) in x.iter().zip(y) {
        let n = count(&x.shape());
        if n > 0 {
            let sum = x.mul(y).reshape(&[n]).sum(0).elements()?.cast(DType::F64)?;
            all += sum.typed::<f64>()?.to_vec()?[0];
        }
    }
    Ok(all)
}

/// `x + c y`.
fn plus_scaled<A: Array>(x: &[A], c: f64, y: &[A]) -> Vec<A> {
    x.iter().zip(y).map(|(x, y)| x.add(&y.scale(c))).collect()
}

/// The inverse of a Jacobian, as far as steps have shown it.
pub(super) struct Inverse<A> {
    memory: usize,
    /// u and v of corrections `u vᵀ`.
    corrections: Vec<[Vec<A>; 2]>,
    /// The last step, and F before it.
    last: Option<[Vec<A>; 2]>,
}

impl<A: Array> Inverse<A> {
    /// The identity, with room for so many corrections.
    pub(super) fn new(memory: usize) -> Self {
        Self { memory, corrections: Vec::new(), last: None }
    }

    /// `H x`, or `Hᵀ x`.
    fn apply(&self, x: &[A], transposed: bool) -> Result<Vec<A>> {
        let mut result = x.to_vec();
        for [u, v] in &self.corrections {
            let (to, from) = if transposed { (v, u) } else { (u, v) };
            result = plus_scaled(&result, dot(from, x)?, to);
        }
        Ok(result)
    }

    /// The next step, by F where the last one has led.
    ///
    /// Cost: inner products and sums of vectors, two of each for a correction.
    pub(super) fn step(&mut self, f: &[A]) -> Result<Vec<A>> {
        if let Some([s, before]) = self.last.take() {
            let y = plus_scaled(f, -1.0, &before);
            let hy = self.apply(&y, false)?;
            let (ss, shy) = (dot(&s, &s)?, dot(&s, &hy)?);
            let tau = shy / ss;
            let theta =
                if tau.abs() >= 0.1 { 1.0 } else { (1.0 - 0.1f64.copysign(tau)) / (1.0 - tau) };
            let size = (1.0 - theta) * ss + theta * shy;
            if self.corrections.len() == self.memory {
                self.corrections.clear();
            } else if size.is_finite() && size != 0.0 {
                let v = self.apply(&s, true)?;
                let u: Vec<A> =
                    plus_scaled(&s, -1.0, &hy).iter().map(|x| x.scale(theta / size)).collect();
                self.corrections.push([u, v]);
            }
        }
        let step: Vec<A> = self.apply(f, false)?.iter().map(|x| x.scale(-1.0)).collect();
        self.last = Some([step.clone(), f.to_vec()]);
        Ok(step)
    }
}
