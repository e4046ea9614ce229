//! Gradients through fixed points.

use t4a_diff::{Array, Eager};
use t4a_linalg::krylov::{ArrayVector, KrylovOptions, Vector, gmres};

use crate::error::{NetworksError, Result};

/// Memory of the vectors of GMRES.
const BYTES: usize = 1 << 30;

/// Vectors of GMRES before a restart: 60, for large environments as many as fit into [`BYTES`], at least 10.
fn subspace(len: usize) -> usize {
    (BYTES / len.saturating_mul(size_of::<f64>()).max(1)).clamp(10, 60)
}

/// The gradient `∂E/∂s + λ ∂f/∂s` of an energy with `x = f(s, x)`, where `λ = ∂E/∂x + λ ∂f/∂x` is solved by GMRES.
///
/// `direct` has the derivatives of E with respect to the parts of s, `parameters` of them, and then to those of x;
/// `through` maps cotangents of the parts of f to those of s and x.
///
/// Memory: 60 times that of x, restarted more often above 1 GiB.
///
/// # Errors
/// Those of `through`; `Linalg` if the system does not converge to 1e-6.
pub(super) fn implicit(
    direct: &[Eager],
    parameters: usize,
    through: impl Fn(&[Eager]) -> Result<Vec<Eager>>,
) -> Result<Vec<Eager>> {
    let (own, around) = direct.split_at(parameters);
    let sizes: Vec<usize> = around.iter().map(|x| x.shape().iter().product()).collect();
    let parts = |x: &Eager| -> Vec<Eager> {
        let mut first = 0;
        let part = |&size: &usize| {
            first += size;
            x.narrow(0, first - size, size)
        };
        sizes.iter().map(part).collect()
    };
    let map = |x: &ArrayVector<Eager>| -> Result<ArrayVector<Eager>> {
        let moved = through(&parts(&x.re))?;
        Ok(ArrayVector { re: x.re.sub(&<Eager as Array>::cat(&moved[parameters..], 0)), im: None })
    };
    let b = ArrayVector { re: <Eager as Array>::cat(around, 0), im: None };
    let subspace = subspace(sizes.iter().sum());
    let options = KrylovOptions::new().tolerance(1e-10).subspace(subspace).max_applications(300);
    let solution = gmres(map, &b, None, &options)?;
    let bound = 1e-6 * Vector::norm(&b).map_err(NetworksError::from)?;
    if solution.report.residual.is_nan() || solution.report.residual > bound {
        solution.report.require()?;
    }
    let moved = through(&parts(&solution.vector.re))?;
    Ok(own.iter().zip(&moved).map(|(a, b)| a.add(b)).collect())
}

#[cfg(test)]
mod tests {
    use t4a_diff::check::{array, elements};

    use super::*;

    /// The gradient for `f(s, x) = s + M x` with one parameter per part of x: `∂E/∂s + λ`, λ (1 − M) = ∂E/∂x.
    fn found(n: usize, m: impl Fn(&[f64]) -> Vec<f64>) -> Result<Vec<f64>> {
        let own = array(&[n], |i| i as f64);
        let around = array(&[n], |i| if i == 0 { 1.0 } else { 0.0 });
        let through = |x: &[Eager]| {
            let moved = m(&elements(&x[0]));
            Ok(vec![x[0].clone(), array(&[n], |i| moved[i])])
        };
        Ok(elements(&implicit(&[own, around], 1, through)?[0]))
    }

    #[test]
    fn systems_that_converge_to_the_bound() {
        // Without a residual: λ = (1, ½, ¼, …).
        let shift =
            |x: &[f64]| (0..x.len()).map(|i| if i > 0 { x[i - 1] / 2.0 } else { 0.0 }).collect();
        let g = found(6, shift).unwrap();
        assert!(
            g.iter().enumerate().all(|(i, g)| (g - i as f64 - 0.5f64.powi(i as i32)).abs() < 1e-9)
        );
        // Noise of 1e-8 in each application: the system converges to 1e-6, not to 1e-10.
        let count = std::cell::Cell::new(0u32);
        let noisy = |x: &[f64]| -> Vec<f64> {
            count.set(count.get() + 1);
            let noise = |i: usize| 1e-8 * ((i as f64 + 1.0) * f64::from(count.get())).sin();
            x.iter().enumerate().map(|(i, x)| x * i as f64 / 10.0 + noise(i)).collect()
        };
        let g = found(6, noisy).unwrap();
        assert!((g[0] - 1.0).abs() < 1e-5 && count.get() > 60, "{g:?}, {}", count.get());
    }

    #[test]
    fn systems_that_do_not_converge() {
        // 1 − M is a cyclic shift: the residual stays until the space has all 400 dimensions.
        let cyclic = |x: &[f64]| -> Vec<f64> {
            let n = x.len();
            (0..n).map(|i| x[i] - x[(i + n - 1) % n]).collect()
        };
        let e = found(400, cyclic).unwrap_err().to_string();
        assert!(e.contains("not converged"), "{e}");
        let e = found(4, |x| vec![f64::NAN; x.len()]).unwrap_err().to_string();
        assert!(e.contains("NaN"), "{e}");
    }

    #[test]
    fn restarts_bound_the_memory() {
        assert_eq!([1, 2_000_000, 5_000_000, usize::MAX].map(subspace), [60, 60, 26, 10]);
    }
}
