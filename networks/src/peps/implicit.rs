//! Gradients through fixed points.

use t4a_diff::{Array, Eager};
use t4a_linalg::krylov::{ArrayVector, KrylovOptions, Vector, gmres};

use crate::error::{NetworksError, Result};

/// The gradient `∂E/∂s + λ ∂f/∂s` of an energy with `x = f(s, x)`, where `λ = ∂E/∂x + λ ∂f/∂x` is solved by GMRES.
///
/// `direct` has the derivatives of E with respect to the parts of s, `parameters` of them, and then to those of x;
/// `through` maps cotangents of the parts of f to those of s and x.
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
    let options = KrylovOptions::new().tolerance(1e-10).subspace(60).max_applications(300);
    let solution = gmres(map, &b, None, &options)?;
    let bound = 1e-6 * Vector::norm(&b).map_err(NetworksError::from)?;
    if solution.report.residual.is_nan() || solution.report.residual > bound {
        solution.report.require()?;
    }
    let moved = through(&parts(&solution.vector.re))?;
    Ok(own.iter().zip(&moved).map(|(a, b)| a.add(b)).collect())
}
