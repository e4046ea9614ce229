//! Gaussian processes by one Cholesky factorisation.

use burn_tensor::Tensor;
use t4a_linalg::{Result, gaussian_process};

use crate::boundary::accept;
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;

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
pub struct GaussianProcess<B: Operations>(gaussian_process::GaussianProcess<Floats<B>>);

impl<B: Operations> GaussianProcess<B> {
    /// Factorises the covariance `[n, n]` of the observations `y`, `[n]`, their noise on its diagonal.
    ///
    /// Cost: n³/3 multiply-adds.
    ///
    /// # Errors
    /// Those of [`cholesky`](t4a_linalg::cholesky::cholesky): `NonPositivePivot` where inputs nearly coincide;
    /// more noise, or a multiple of the unit matrix of about 1e-6 (`f32`) or 1e-12 (`f64`) of the largest entry,
    /// helps. Those of [`solve_triangular`](t4a_linalg::triangular::solve_triangular) for sizes that disagree.
    pub fn new(covariance: Tensor<B, 2>, y: Tensor<B, 1>) -> Result<Self> {
        let (covariance, y) = (Floats::<B>::from(covariance), Floats::<B>::from(y));
        Ok(Self(gaussian_process::GaussianProcess::new(covariance, y)?))
    }

    /// `ln p(y) = −½ ‖z‖² − Σ ln Lᵢᵢ − n/2 ln 2π`, `[1]`.
    pub fn log_likelihood(&self) -> Tensor<B, 1> {
        accept(accept(self.0.log_likelihood()).tensor())
    }

    /// Mean `[m]` and covariance `[m, m]` of the process at m other places, from its covariance `across`, `[n, m]`,
    /// of the observed with the others, and `prior`, `[m, m]`, of the others.
    ///
    /// # Errors
    /// Those of [`solve_triangular`](t4a_linalg::triangular::solve_triangular) for sizes that disagree.
    pub fn posterior(
        &self,
        across: Tensor<B, 2>,
        prior: Tensor<B, 2>,
    ) -> Result<(Tensor<B, 1>, Tensor<B, 2>)> {
        let (across, prior) = (Floats::<B>::from(across), Floats::<B>::from(prior));
        let (mean, covariance) = self.0.posterior(across, &prior)?;
        Ok((mean.tensor()?, covariance.tensor()?))
    }
}
