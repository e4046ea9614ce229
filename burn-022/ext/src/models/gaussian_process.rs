//! Gaussian processes by one Cholesky factorisation.

use burn_dispatch::Dispatch;
use burn_tensor::Tensor;
use t4a_linalg::{Result, gaussian_process};

use crate::boundary::accept;
use crate::primitive::Floats;
use crate::user::tensor;

/// Observations `y` with mean zero and a covariance: `K = L Lᵀ`, `z = L⁻¹ y`.
///
/// ```
/// use burn_t4a_022_ext::models::GaussianProcess;
/// use burn_tensor::{Device, Tensor};
///
/// let device = Device::flex();
/// let k = Tensor::<2>::from_floats([[4.0, 0.0], [0.0, 1.0]], &device);
/// let y = Tensor::<1>::from_floats([2.0, 1.0], &device);
/// // −½ (1 + 1) − ln 2 − ln 2π
/// let log_likelihood = GaussianProcess::new(k, y)?.log_likelihood().into_scalar::<f32>();
/// assert!((log_likelihood + 3.531_024_2).abs() < 1e-6);
/// # Ok::<(), burn_t4a_022_ext::linalg::LinalgError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GaussianProcess(gaussian_process::GaussianProcess<Floats<Dispatch>>);

impl GaussianProcess {
    /// Factorises the covariance `[n, n]` of the observations `y`, `[n]`, their noise on its diagonal.
    ///
    /// Cost: n³/3 multiply-adds.
    ///
    /// # Errors
    /// Those of [`cholesky`](t4a_linalg::cholesky::cholesky): `NonPositivePivot` where inputs nearly coincide;
    /// more noise, or a multiple of the unit matrix of about 1e-6 (`f32`) or 1e-12 (`f64`) of the largest entry,
    /// helps. Those of [`solve_triangular`](t4a_linalg::triangular::solve_triangular) for sizes that disagree.
    pub fn new(covariance: Tensor<2>, y: Tensor<1>) -> Result<Self> {
        let (covariance, y) = (Floats::<Dispatch>::from(covariance), Floats::<Dispatch>::from(y));
        Ok(Self(gaussian_process::GaussianProcess::new(covariance, y)?))
    }

    /// `ln p(y) = −½ ‖z‖² − Σ ln Lᵢᵢ − n/2 ln 2π`, `[1]`.
    pub fn log_likelihood(&self) -> Tensor<1> {
        tensor(accept(self.0.log_likelihood()))
    }

    /// Mean `[m]` and covariance `[m, m]` of the process at m other places, from its covariance `across`, `[n, m]`,
    /// of the observed with the others, and `prior`, `[m, m]`, of the others.
    ///
    /// # Errors
    /// Those of [`solve_triangular`](t4a_linalg::triangular::solve_triangular) for sizes that disagree.
    pub fn posterior(&self, across: Tensor<2>, prior: Tensor<2>) -> Result<(Tensor<1>, Tensor<2>)> {
        let (across, prior) = (Floats::<Dispatch>::from(across), Floats::<Dispatch>::from(prior));
        let (mean, covariance) = self.0.posterior(across, &prior)?;
        Ok((tensor(mean), tensor(covariance)))
    }
}
