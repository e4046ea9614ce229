//! Gaussian processes by one Cholesky factorisation.

use burn_tensor::Tensor;
use t4a_linalg::{Result, gaussian_process};

use crate::boundary::accept;
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;

/// Gaussian process of observations `y` with zero mean: `K = L Lᵀ`, `z = L⁻¹ y`.
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
    /// Factorises the covariance `[n, n]` of the observations `y` of shape `[n]`; its diagonal includes the
    /// variance of the noise.
    ///
    /// Cost: n³/3 multiply-adds.
    ///
    /// # Errors
    /// As [`cholesky`](t4a_linalg::cholesky::cholesky): `NonPositivePivot` if inputs nearly coincide; add noise, or
    /// a multiple of the identity of about 1e-6 (`f32`) or 1e-12 (`f64`) times the largest entry. As
    /// [`solve_triangular`](t4a_linalg::triangular::solve_triangular) for sizes that disagree.
    pub fn new(covariance: Tensor<B, 2>, y: Tensor<B, 1>) -> Result<Self> {
        let (covariance, y) = (Floats::<B>::from(covariance), Floats::<B>::from(y));
        Ok(Self(gaussian_process::GaussianProcess::new(covariance, y)?))
    }

    /// Log-likelihood `ln p(y) = −½ ‖z‖² − Σ ln Lᵢᵢ − n/2 ln 2π`, shape `[1]`.
    pub fn log_likelihood(&self) -> Tensor<B, 1> {
        accept(accept(self.0.log_likelihood()).tensor())
    }

    /// Posterior mean `[m]` and covariance `[m, m]` at m new inputs, from their covariance with the observations,
    /// `across` of shape `[n, m]`, and their prior covariance, `prior` of shape `[m, m]`.
    ///
    /// # Errors
    /// As [`solve_triangular`](t4a_linalg::triangular::solve_triangular) for sizes that disagree.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use burn_t4a::models::GaussianProcess;
    /// use burn_t4a::{BurnT4a, T4aDevice};
    ///
    /// // One observation y = 2 with variance 4, and a new input with covariance 2 and variance 4:
    /// // mean 2/4 · 2, variance 4 − 2²/4.
    /// let matrix = |x: f32| Tensor::<BurnT4a, 2>::from_floats([[x]], &T4aDevice);
    /// let process = GaussianProcess::new(matrix(4.0), Tensor::<BurnT4a, 1>::from_floats([2.0], &T4aDevice))?;
    /// let (mean, covariance) = process.posterior(matrix(2.0), matrix(4.0))?;
    /// mean.into_data().assert_approx_eq::<f32>(&[1.0f32].into(), Default::default());
    /// covariance.into_data().assert_approx_eq::<f32>(&[[3.0f32]].into(), Default::default());
    /// # Ok::<(), burn_t4a::ext::linalg::LinalgError>(())
    /// ```
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
