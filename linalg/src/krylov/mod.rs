//! Krylov methods: eigenvalues, exponentials and linear systems of linear operators given as functions. They work
//! with any type that has inner products and linear combinations ([`Vector`]): dense tensors
//! ([`Tensor`](t4a_tensor::Tensor)), arrays ([`ArrayVector`]), graded tensors (`t4a-structured`), user-defined vectors.
//!
//! ```
//! use t4a_linalg::LinalgError;
//! use t4a_linalg::krylov::{KrylovOptions, lanczos};
//! use t4a_tensor::Tensor;
//!
//! // Second difference on 40 points: eigenvalues 2 − 2 cos(k π / 41).
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
//! | task | operator | function |
//! |---|---|---|
//! | lowest or highest eigenvalues | Hermitian | [`lanczos()`], [`lanczos_beyond`] |
//! | the same, with a preconditioner | Hermitian | [`davidson()`], [`davidson_diagonal`] |
//! | eigenvalues of largest modulus, or others | general | [`arnoldi()`] |
//! | `exp(t A) v` | general | [`exponential()`] |
//! | `A x = b` | positive definite | [`conjugate_gradients`] |
//! | `A x = b` | Hermitian | [`minres()`] |
//! | `A x = b` | general | [`gmres()`], [`bicgstab()`] |
//!
//! ```
//! use t4a_linalg::LinalgError;
//! use t4a_linalg::krylov::{KrylovOptions, bicgstab, conjugate_gradients, gmres, minres};
//! use t4a_tensor::Tensor;
//!
//! // diag(1, 2, …, 8) x = (1, …, 1). Each method has its own requirements on the operator; this one satisfies all.
//! let diagonal = |x: &Tensor<f64>| -> Result<Tensor<f64>, LinalgError> {
//!     Ok(Tensor::from_fn(&[8], |i| (i + 1) as f64 * x.get(&[i]).unwrap_or(0.0))?)
//! };
//! let (b, options) = (Tensor::from_fn(&[8], |_| 1.0)?, KrylovOptions::new());
//! for found in [
//!     conjugate_gradients(diagonal, &b, None, &options)?,
//!     minres(diagonal, &b, None, &options)?,
//!     gmres(diagonal, &b, None, &options)?,
//!     bicgstab(diagonal, &b, None, &options)?,
//! ] {
//!     assert!((0..8).all(|i| (found.vector.get(&[i]).unwrap() - 1.0 / (i + 1) as f64).abs() < 1e-8));
//! }
//! # Ok::<(), LinalgError>(())
//! ```
//!
//! # Operators and errors
//! An operator is a function `FnMut(&V) -> Result<V, E>`. Its first error ends the iteration and is returned
//! unchanged. `E` is any type that the error of the vectors converts into, such as that error itself. Rejected calls
//! are [`KrylovError`], wrapped in the error of the vectors. Reaching
//! [`max_applications`](KrylovOptions::max_applications) is not an error: [`KrylovReport::converged`] is false then, and
//! [`KrylovReport::require`] converts it to an error.
//!
//! # Derivatives
//! Krylov coefficients are plain numbers: no tape records a derivative through an iteration. The derivative of an
//! eigenvalue `λ = ⟨x, A x⟩` at its converged vector is that of this expression with x held constant
//! (Hellmann–Feynman).

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
pub use options::{Eigenpairs, KrylovOptions, KrylovReport, Solution, Target};
pub use vector::{ArrayVector, Diagonal, Vector};
