//! Products of Householder reflections, `Q = H₁ H₂ ⋯ Hₖ` with `Hᵢ = I − τᵢ vᵢ vᵢᴴ`.
//!
//! With the vectors as columns of `V` and `D = diag(τ)`, in compact form
//!
//! ```text
//! Q = I − V T Vᴴ,   T = (I + D triu₊(Vᴴ V))⁻¹ D
//! ```
//!
//! where `triu₊` is the strictly upper part: a unit triangular system, so that `τᵢ = 0` is allowed. Generic over
//! [`Matrices`], hence differentiable to any order in `V` and `τ`.
//!
//! Reference: R. Schreiber, C. Van Loan 1989; T. Joffrain et al. 2006.

#[cfg(test)]
mod tests;

use t4a_tensor::{Tensor, TensorError};

use crate::batch::BatchShape;
use crate::error::Result;
use crate::scalar::LinalgScalar;
use crate::triangular::Triangle;
use crate::vocabulary::{Batched, Matrices, Region};

/// First `n` columns of `Q` for any implementor of [`Matrices`], from an `m × n` matrix with the Householder vectors
/// below its diagonal and a row of `k ≤ n ≤ m` coefficients.
pub fn product<M: Matrices>(v: &M, tau: &M) -> M {
    let (m, n, k) = (v.rows(), v.cols(), tau.cols());
    let unit = v.constant(m, n, 1.0).mask(Region::Diagonal);
    let v = v.mask(Region::Lower(-1)).add(&unit).slice(0..m, 0..k);
    let vh = v.adjoint();
    let scaled = tau.transpose();
    let upper = vh.matmul(&v).mask(Region::Upper(1)).mul(&scaled);
    let top = vh.slice(0..k, 0..n).mul(&scaled);
    unit.sub(&v.matmul(&upper.solve_triangular(&top, Triangle::UPPER.unit())))
}

/// Checks for the shapes `[…, m, n]` with `m ≥ n`, and `[…, k]` with `k ≤ n`.
///
/// # Errors
/// `Tensor`.
pub fn check_shapes(v: &[usize], tau: &[usize]) -> Result<()> {
    let fits = match (v, tau) {
        ([batch @ .., m, n], [leading @ .., k]) => batch == leading && k <= n && n <= m,
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => {
            let required = "[…, m, n] and […, k] with k ≤ n ≤ m";
            Err(TensorError::shapes("householder_product", v, tau, required).into())
        }
    }
}

/// First `n` columns of `H₁ H₂ ⋯ Hₖ`, `Hᵢ = I − τᵢ vᵢ vᵢᴴ`: `vᵢ` is zero above entry `i`, 1 there, and below it
/// column `i` of the matrix, whose other entries are not read.
///
/// This is LAPACK's format of the `Q` of a QR factorisation.
///
/// Shapes `[…, m, n]`, `[…, k]` → `[…, m, n]`, `k ≤ n ≤ m`. Cost about 2·m·k·(n + k) flops. `τ` is not checked:
/// 2/‖v‖² gives a reflection, other values are accepted. NaN and ∞ below the diagonal propagate, or are an error.
///
/// # Errors
/// `NotMatrix`, `Tensor` if the shapes do not match; `NonFinite` with the batch index.
pub fn householder_product<T: LinalgScalar>(v: &Tensor<T>, tau: &Tensor<T>) -> Result<Tensor<T>> {
    BatchShape::of("householder_product", v)?;
    check_shapes(v.shape(), tau.shape())?;
    let q = product(&Batched::new(v), &Batched::rows_of(tau));
    q.into_tensor().map_err(|error| error.of("householder_product"))
}
