//! Gaussian process regression by one Cholesky factorisation, on any arrays.
//!
//! `K = L Lᵀ`, `z = L⁻¹ y`; at test points `A = L⁻¹ K_*`, with mean `Aᵀ z` and covariance `K_** − Aᵀ A`. Reference:
//! Rasmussen, Williams 2006, Algorithm 2.1.

use std::f64::consts::TAU;

use t4a_diff::Array;
use t4a_tensor::TensorError;

use crate::call::{Pair, run};
use crate::cholesky::CholeskyOp;
use crate::error::Result;
use crate::table::MatrixOp;
use crate::triangular::{SolveTriangularOp, Triangle};
use crate::vocabulary::{Matrices, RealMatrix};

/// Gaussian process with mean zero, conditioned on observations. Differentiable if the arrays are.
#[derive(Clone, Debug)]
pub struct GaussianProcess<A> {
    /// Cholesky factor of the covariance, `[n, n]`, lower triangular.
    l: A,
    /// `L⁻¹ y`, `[n, 1]`.
    z: A,
}

fn first<A: Array>(op: impl Into<MatrixOp>, operands: &[Pair<A>]) -> Result<A> {
    Ok(run(op, operands)?.results.swap_remove(0).re)
}

fn solve<A: Array>(l: &A, b: A) -> Result<A> {
    let op = SolveTriangularOp { triangle: Triangle::LOWER };
    first(op, &[Pair::real(l.clone()), Pair::real(b)])
}

impl<A: Array> GaussianProcess<A> {
    /// Factorises the covariance `[n, n]` of the observations `y`, `[n]`; the noise variance is part of the diagonal.
    ///
    /// Cost: n³/3 multiply-adds.
    ///
    /// # Errors
    /// As [`cholesky`](crate::cholesky::cholesky), and as [`solve_triangular`](crate::triangular::solve_triangular)
    /// for mismatching sizes.
    pub fn new(covariance: A, y: A) -> Result<Self> {
        let l = first(CholeskyOp, &[Pair::real(covariance)])?;
        let n = y.shape().iter().product();
        let z = solve(&l, y.reshape(&[n, 1]))?;
        Ok(Self { l, z })
    }

    /// Log marginal likelihood `ln p(y) = −½ ‖z‖² − Σ ln Lᵢᵢ − n/2 ln 2π`, `[1]`.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn log_likelihood(&self) -> Result<A> {
        let n = self.z.shape()[0];
        let diagonal = RealMatrix::new(self.l.clone()).diagonal().into_array()?;
        let log_det = diagonal.ln().sum(1).reshape(&[1]);
        let squares = self.z.mul(&self.z).sum(0).reshape(&[1]);
        Ok(squares.scale(-0.5).sub(&log_det).shift(-(n as f64) / 2.0 * TAU.ln()))
    }

    /// Posterior mean `[m]` and covariance `[m, m]` at m test points. `across`, `[n, m]`, is the covariance of
    /// observations and test points, `prior`, `[m, m]`, that of the test points.
    ///
    /// # Errors
    /// `Tensor` for mismatching sizes.
    pub fn posterior(&self, across: A, prior: &A) -> Result<(A, A)> {
        let a = solve(&self.l, across)?;
        let m = a.shape()[1];
        if prior.shape() != [m, m] {
            let (op, required) = ("gaussian_process", "a prior [m, m] for a covariance [n, m]");
            return Err(TensorError::shapes(op, &prior.shape(), &a.shape(), required).into());
        }
        let mean = a.transpose().matmul(&self.z).reshape(&[m]);
        Ok((mean, prior.sub(&a.transpose().matmul(&a))))
    }
}
