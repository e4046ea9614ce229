//! Gaussian processes by one Cholesky factorisation.

use std::f64::consts::TAU;

use burn_tensor::Tensor;
use t4a_linalg::Result;

use crate::ext::linalg::{Triangle, cholesky, solve_triangular};
use crate::ext::operation::Operations;

/// Observations `y` with mean zero and a covariance: `K = L Lᵀ`, `z = L⁻¹ y`.
///
/// ```
/// use burn_t4a::models::GaussianProcess;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::Tensor;
///
/// let k = Tensor::<BurnT4a, 2>::from_floats([[4.0, 0.0], [0.0, 1.0]], &T4aDevice);
/// let y = Tensor::<BurnT4a, 1>::from_floats([2.0, 1.0], &T4aDevice);
/// // −½ (1 + 1) − ln 2 − ln 2π
/// let log_likelihood = GaussianProcess::new(k, y)?.log_likelihood().into_scalar();
/// assert!((log_likelihood + 3.531_024_2).abs() < 1e-6);
/// # Ok::<(), burn_t4a::ext::linalg::LinalgError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GaussianProcess<B: Operations> {
    l: Tensor<B, 2>,
    z: Tensor<B, 1>,
}

impl<B: Operations> GaussianProcess<B> {
    /// Factorises the covariance `[n, n]` of the observations `y`, `[n]`, their noise on its diagonal.
    ///
    /// Cost: n³/3 multiply-adds.
    ///
    /// # Errors
    /// Those of [`cholesky`]: `NonPositivePivot` where inputs nearly coincide; more noise, or a multiple of the
    /// unit matrix of about 1e-6 (`f32`) or 1e-12 (`f64`) of the largest entry, helps. Those of
    /// [`solve_triangular`] for sizes that disagree.
    pub fn new(covariance: Tensor<B, 2>, y: Tensor<B, 1>) -> Result<Self> {
        let l = cholesky(covariance)?;
        let z = solve_triangular(l.clone(), y, Triangle::LOWER)?;
        Ok(Self { l, z })
    }

    /// `ln p(y) = −½ ‖z‖² − Σ ln Lᵢᵢ − n/2 ln 2π`, `[1]`.
    pub fn log_likelihood(&self) -> Tensor<B, 1> {
        let [n] = self.z.dims();
        let log_det: Tensor<B, 1> =
            burn_tensor::linalg::diag::<B, 2, 1, _>(self.l.clone()).log().sum();
        let squares = (self.z.clone() * self.z.clone()).sum();
        squares * -0.5 - log_det - n as f64 / 2.0 * TAU.ln()
    }

    /// Mean `[m]` and covariance `[m, m]` of the process at m other places, from its covariance `across`, `[n, m]`,
    /// of the observed with the others, and `prior`, `[m, m]`, of the others.
    ///
    /// # Errors
    /// Those of [`solve_triangular`] for sizes that disagree.
    pub fn posterior(
        &self,
        across: Tensor<B, 2>,
        prior: Tensor<B, 2>,
    ) -> Result<(Tensor<B, 1>, Tensor<B, 2>)> {
        let a: Tensor<B, 2> = solve_triangular(self.l.clone(), across, Triangle::LOWER)?;
        let [_, m] = a.dims();
        if prior.dims() != [m, m] {
            let (given, other) = (prior.dims(), a.dims());
            let error = t4a_tensor::TensorError::shapes(
                "gaussian_process",
                &given,
                &other,
                "a prior [m, m] for a covariance [n, m]",
            );
            return Err(error.into());
        }
        let mean = a.clone().transpose().matmul(self.z.clone().unsqueeze_dim(1)).squeeze_dim(1);
        Ok((mean, prior - a.clone().transpose().matmul(a)))
    }
}
