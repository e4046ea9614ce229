//! Krylov methods: eigenvalues, exponentials and systems of equations of linear maps that are given as functions.
//! They work on any type with inner products and sums ([`Vector`]): dense tensors ([`Tensor`](t4a_tensor::Tensor)),
//! arrays ([`Parts`]), graded tensors (`t4a-structured`), vectors of a caller.
//!
//! ```
//! use t4a_linalg::LinalgError;
//! use t4a_linalg::krylov::{KrylovOptions, lanczos};
//! use t4a_tensor::Tensor;
//!
//! // The second difference on 40 points: eigenvalues 2 − 2 cos(k π / 41).
//! let laplace = |x: &Tensor<f64>| -> Result<Tensor<f64>, LinalgError> {
//!     let at = |i: usize| x.get(&[i]).unwrap_or(0.0);
//!     let value = |i: usize| 2.0 * at(i) - at(i + 1) - i.checked_sub(1).map_or(0.0, at);
//!     Ok(Tensor::from_fn(&[40], value)?)
//! };
//! let start = Tensor::from_fn(&[40], |i| 1.0 + i as f64)?;
//! let found = lanczos(laplace, &start, &KrylovOptions::new().count(2))?;
//! assert!(found.report.converged);
//! for (k, value) in found.values.iter().enumerate() {
//!     let angle = (k + 1) as f64 * std::f64::consts::PI / 41.0;
//!     assert!((value - (2.0 - 2.0 * angle.cos())).abs() < 1e-9);
//! }
//! # Ok::<(), LinalgError>(())
//! ```
//!
//! | task | map | function |
//! |---|---|---|
//! | lowest or greatest eigenvalues | Hermitian | [`lanczos()`], [`lanczos_beyond`] |
//! | the same, with a preconditioner | Hermitian | [`davidson()`], [`davidson_diagonal`] |
//! | eigenvalues of greatest modulus, or others | any | [`arnoldi()`] |
//! | `exp(t A) v` | any | [`exponential()`] |
//! | `A x = b` | positive definite | [`conjugate_gradients`] |
//! | `A x = b` | Hermitian | [`minres()`] |
//! | `A x = b` | any | [`gmres()`], [`bicgstab()`] |
//!
//! # Maps and errors
//! A map is a function `FnMut(&V) -> Result<V, E>`. Its first error ends the iteration and is returned as it is. `E` is
//! any type that the error of the vectors converts into, such as that error itself. Rejected calls are
//! [`KrylovError`], within the error of the vectors. An iteration that ends at
//! [`max_applications`](KrylovOptions::max_applications) is no error: [`Report::converged`] is false, and
//! [`Report::require`] makes an error of it.
//!
//! # Derivatives
//! Coefficients are numbers: no tape records a derivative through an iteration. That of an eigenvalue `λ = ⟨x, A x⟩` at
//! its converged vector is the derivative of this expression with x held constant (Hellmann and Feynman).

mod arnoldi;
mod basis;
mod bicgstab;
mod conjugate;
mod davidson;
mod error;
mod exponential;
mod gmres;
mod lanczos;
mod minres;
mod operator;
mod options;
mod projected;
#[cfg(test)]
mod tests;
mod vector;

pub use arnoldi::arnoldi;
pub use bicgstab::bicgstab;
pub use conjugate::{conjugate_gradients, conjugate_gradients_with};
pub use davidson::{davidson, davidson_diagonal};
pub use error::KrylovError;
pub use exponential::{Evolved, exponential};
pub use gmres::gmres;
pub use lanczos::{lanczos, lanczos_beyond};
pub use minres::minres;
pub use options::{Eigenpairs, KrylovOptions, Report, Solution, Target};
pub use vector::{Diagonal, Parts, Vector};
