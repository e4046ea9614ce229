//! Options and results of all methods.

use t4a_algebra::c64;

use super::error::KrylovError;
use crate::error::LinalgError;

/// Eigenvalues to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Smallest real part.
    Lowest,
    /// Largest real part.
    Highest,
    /// Largest modulus.
    LargestModulus,
}

impl Target {
    /// Sort key: ascending in the order of preference.
    pub(super) fn key(self, value: c64) -> f64 {
        match self {
            Target::Lowest => value.re,
            Target::Highest => -value.re,
            Target::LargestModulus => -value.norm(),
        }
    }
}

/// Options of Krylov methods; each method uses those in its row.
///
/// | option | default | read by |
/// |---|---|---|
/// | `tolerance` | 1e-10 | all |
/// | `max_applications` | 1000 | all |
/// | `subspace` | 30 | all but `conjugate_gradients`, `minres`, `bicgstab` |
/// | `count` | 1 | `lanczos`, `arnoldi`, `davidson` |
/// | `target` | lowest; greatest modulus for `arnoldi` | the same |
/// | `separately` | false | `lanczos` |
/// | `hermitian` | false | `exponential` |
/// | `seed` | 0 | `lanczos`, `arnoldi`, `davidson` |
///
/// ```
/// use t4a_linalg::krylov::{KrylovOptions, Target};
/// let options = KrylovOptions::new().count(3).tolerance(1e-8).target(Target::Highest);
/// assert_eq!(options, KrylovOptions::default().tolerance(1e-8).target(Target::Highest).count(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KrylovOptions {
    pub(super) tolerance: f64,
    pub(super) max_applications: usize,
    pub(super) subspace: usize,
    pub(super) count: usize,
    pub(super) target: Option<Target>,
    pub(super) separately: bool,
    pub(super) hermitian: bool,
    pub(super) seed: u64,
}

impl Default for KrylovOptions {
    fn default() -> Self {
        Self {
            tolerance: 1e-10,
            max_applications: 1000,
            subspace: 30,
            count: 1,
            target: None,
            separately: false,
            hermitian: false,
            seed: 0,
        }
    }
}

impl KrylovOptions {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Relative residual for convergence: relative to the largest modulus of a Ritz value, to the norm of the
    /// right-hand side, or to that of the evolved vector. The minimum is 8 machine epsilons of the elements.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Maximum number of applications of the operator.
    pub fn max_applications(self, max_applications: usize) -> Self {
        Self { max_applications, ..self }
    }

    /// Maximum number of basis vectors in memory before a restart.
    pub fn subspace(self, subspace: usize) -> Self {
        Self { subspace, ..self }
    }

    /// Number of eigenvalues.
    pub fn count(self, count: usize) -> Self {
        Self { count, ..self }
    }

    /// Eigenvalues to compute.
    pub fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Computes eigenvalues one after another, each in the complement of the vectors found before. A single Krylov
    /// space contains one vector of each eigenvalue; this option finds all vectors of degenerate eigenvalues, with
    /// more applications.
    pub fn separately(self, separately: bool) -> Self {
        Self { separately, ..self }
    }

    /// Declares that the operator of an exponential is Hermitian, which is checked. Norms are then conserved up to
    /// rounding for imaginary times.
    pub fn hermitian(self, hermitian: bool) -> Self {
        Self { hermitian, ..self }
    }

    /// Seed of the random vectors that extend the basis of an invariant subspace.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Checks the ranges of all options; a subspace has at least `least` vectors.
    pub(super) fn check(&self, op: &'static str, least: usize) -> Result<(), KrylovError> {
        let reject = |option, given: String, required| {
            Err(KrylovError::Option { op, option, given, required })
        };
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            let required = "a finite number of at least 0";
            return reject("tolerance", self.tolerance.to_string(), required);
        }
        if self.max_applications == 0 {
            return reject("max_applications", "0".into(), "at least 1");
        }
        if self.count == 0 {
            return reject("count", "0".into(), "at least 1");
        }
        if self.subspace < least {
            let given = format!("{} for {} eigenvalues", self.subspace, self.count);
            let required = "a dimension of at least 2, and more than the number of eigenvalues";
            return reject("subspace", given, required);
        }
        Ok(())
    }

    /// Relative tolerance for elements of this precision.
    pub(super) fn bound(&self, epsilon: f64) -> f64 {
        self.tolerance.max(8.0 * epsilon)
    }
}

/// Convergence report of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KrylovReport {
    /// Name of the method.
    pub op: &'static str,
    /// True if every residual is within the tolerance.
    pub converged: bool,
    /// Largest residual, or error estimate, in the units of the result.
    pub residual: f64,
    /// Number of applications of the operator.
    pub applications: usize,
}

impl KrylovReport {
    /// Returns an error unless the iteration converged.
    ///
    /// # Errors
    /// [`KrylovError::NotConverged`].
    pub fn require(&self) -> Result<(), LinalgError> {
        let Self { op, converged, residual, applications } = *self;
        match converged {
            true => Ok(()),
            false => Err(KrylovError::NotConverged { op, residual, applications }.into()),
        }
    }
}

/// Eigenvalues and eigenvectors of norm 1, in the order of the [`Target`]. There are fewer than
/// [`count`](KrylovOptions::count) if the space has a smaller dimension or the maximum number of applications was
/// reached.
#[derive(Clone, Debug)]
pub struct Eigenpairs<V, C = f64> {
    /// Eigenvalues.
    pub values: Vec<C>,
    /// Eigenvectors.
    pub vectors: Vec<V>,
    /// `‖A x − λ x‖` of each pair.
    pub residuals: Vec<f64>,
    /// Convergence report.
    pub report: KrylovReport,
}

/// Solution of a linear system.
#[derive(Clone, Debug)]
pub struct Solution<V> {
    /// Solution `x`.
    pub vector: V,
    /// Convergence report; the residual is `‖b − A x‖`.
    pub report: KrylovReport,
}
