//! Matrix factorisations and functions on Burn tensors, differentiable on its tape; in Burn 0.21 to any order.
//!
//! Operands are real tensors or [`Complex`](super::Complex) ones of rank 2 to 8. The functions are those of
//! [`t4a_linalg::user`], which documents their results, errors and behaviour at degeneracies; this module
//! implements its trait [`Matrix`] for Burn tensors.
//!
//! Examples (`cargo run --release --example NAME`): `trg`, `svd_gradient`, `gaussian_process`.
//!
//! All functions accept batches `[…, m, n]` of dtype f32 or f64, real or complex. [`t4a_linalg`] documents
//! conventions and derivative rules, including degenerate spectra.
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::linalg};")]
#![cfg_attr(burn_line = "0.21", doc = "type Tensor<const D: usize> =")]
#![cfg_attr(
    burn_line = "0.21",
    doc = "    burn::tensor::Tensor<burn::backend::Autodiff<BurnT4a>, D>;"
)]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::linalg;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn::tensor::{Device, Tensor};")]
//!
#![cfg_attr(burn_line = "0.21", doc = "let device = T4aDevice;")]
#![cfg_attr(burn_line = "0.22", doc = "let device = Device::flex().autodiff();")]
//! let a = Tensor::<2>::from_floats([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]], &device).require_grad();
//! let linalg::Svd { s, .. } = linalg::svd(a.clone())?;
//! s.clone().into_data().assert_eq(&[4.0f32, 3.0].into(), false);
//! // The gradient of the nuclear norm is U Vᴴ.
//! let gradients = s.sum().backward();
//! let gradient = a.grad(&gradients).unwrap().into_data();
//! gradient.assert_eq(&[[1.0f32, 0.0], [0.0, -1.0], [0.0, 0.0]].into(), false);
//! # Ok::<(), linalg::LinalgError>(())
//! ```
//!
//! Tensors with more axes are factorised as matrices: some axes form the rows, the others the columns.
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::linalg};")]
#![cfg_attr(
    burn_line = "0.21",
    doc = "type Tensor<const D: usize> = burn::tensor::Tensor<BurnT4a, D>;"
)]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::linalg;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn::tensor::{Device, Tensor};")]
//!
#![cfg_attr(burn_line = "0.21", doc = "let device = T4aDevice;")]
#![cfg_attr(burn_line = "0.22", doc = "let device = Device::flex();")]
//! let a = Tensor::<3>::ones([2, 4, 3], &device);
//! // Rows: axes 2 and 0. Columns: axis 1.
//! let (u, s, vh): (Tensor<3>, Tensor<1>, Tensor<2>) = linalg::svd_left_dims(a, &[2, 0], None)?;
//! assert_eq!((u.dims(), s.dims(), vh.dims()), ([3, 2, 4], [4], [4, 4]));
//! # Ok::<(), linalg::LinalgError>(())
//! ```
//!
//! Systems and functions of matrices take and return tensors; a scalar of one matrix has shape `[1]`.
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::linalg};")]
#![cfg_attr(
    burn_line = "0.21",
    doc = "type Tensor<const D: usize> = burn::tensor::Tensor<BurnT4a, D>;"
)]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::linalg;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn::tensor::{Device, Tensor};")]
//!
#![cfg_attr(burn_line = "0.21", doc = "let device = T4aDevice;")]
#![cfg_attr(burn_line = "0.22", doc = "let device = Device::flex();")]
//! let a = Tensor::<2>::from_floats([[4.0, 2.0], [2.0, 10.0]], &device);
//! let near = |x: burn::tensor::TensorData, want: burn::tensor::TensorData| {
//!     x.assert_approx_eq::<f32>(&want, burn::tensor::Tolerance::absolute(1e-5));
//! };
//! // 4 x + 2 y = 6, 2 x + 10 y = 12
//! let b = Tensor::<1>::from_floats([6.0, 12.0], &device);
//! near(linalg::solve(a.clone(), b)?.into_data(), [1.0f32, 1.0].into());
//! near(linalg::cholesky(a.clone())?.into_data(), [[2.0f32, 0.0], [1.0, 3.0]].into());
//! near(linalg::det(a.clone())?.into_data(), [36.0f32].into());
//! // The eigenvalues 7 ± √13 have the sum 14.
//! near(linalg::eigvalsh(a.clone())?.sum().into_data(), [14.0f32].into());
//! near(linalg::norm::<_, _, Tensor<1>>(a)?.into_data(), [124f32.sqrt()].into());
//! let shear = Tensor::<2>::from_floats([[0.0, 1.0], [0.0, 0.0]], &device);
//! near(linalg::expm(shear)?.into_data(), [[1.0f32, 1.0], [0.0, 1.0]].into());
//! # Ok::<(), linalg::LinalgError>(())
//! ```
//!
//! The functions are also values of [`op`]: [`status`] returns the status of each matrix instead of an error, [`jvp`] the
//! derivative along tangents.
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::linalg};")]
#![cfg_attr(
    burn_line = "0.21",
    doc = "type Tensor<const D: usize> = burn::tensor::Tensor<BurnT4a, D>;"
)]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::linalg;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn::tensor::{Device, Tensor};")]
//!
#![cfg_attr(burn_line = "0.21", doc = "let device = T4aDevice;")]
#![cfg_attr(burn_line = "0.22", doc = "let device = Device::flex();")]
//! // The second matrix of the batch is singular.
//! let batch = Tensor::<3>::from_floats([[[2.0]], [[0.0]]], &device);
//! let (inverse, info) = linalg::status(linalg::op::InvOp, batch)?;
//! inverse.slice([0..1, 0..1, 0..1]).into_data().assert_eq(&[[[0.5f32]]].into(), false);
//! let status: Vec<i64> = info.into_data().iter().collect();
//! assert!(status[0] == 0 && status[1] != 0);
//!
//! // d(1/a) = −da/a²
//! let a = Tensor::<2>::from_floats([[2.0]], &device);
//! let (_, tangent) = linalg::jvp(linalg::op::InvOp, a.clone(), a.ones_like())?;
//! tangent.into_data().assert_eq(&[[-0.25f32]].into(), false);
//! # Ok::<(), linalg::LinalgError>(())
//! ```
//!
//! # Other backends
//! `impl Operations for MyBackend {}` suffices. Factorisations then run in the engine through host data, derivative
//! rules in the operations of the backend.

mod matrix;
mod parts;

pub use t4a_linalg::hermitian::Elementary;
pub use t4a_linalg::krylov;
pub use t4a_linalg::norm::Norm;
pub use t4a_linalg::polar::Side;
pub use t4a_linalg::svd::Truncation;
pub use t4a_linalg::triangular::{Triangle, TriangleOp};
pub use t4a_linalg::user::*;
pub use t4a_linalg::{Degeneracy, LinalgError, Result};

/// Tag type for Burn tensors as matrices, for [`Matrix`].
#[derive(Clone, Copy, Debug)]
pub enum Burn {}

/// Singular value decomposition `U diag(S) Vᴴ`.
pub type Svd<M> = t4a_linalg::user::Svd<Burn, M>;
/// Truncated singular value decomposition with its truncation error.
pub type TruncatedSvd<M> = t4a_linalg::user::TruncatedSvd<Burn, M>;
/// Eigenvalue decomposition of the Hermitian part: `(A + Aᴴ)/2 = V diag(E) Vᴴ`.
pub type Eigh<M> = t4a_linalg::user::Eigh<Burn, M>;
/// Eigenvalue decomposition of a general matrix: `A V = V diag(λ)`.
pub type Eig<M> = t4a_linalg::user::Eig<Burn, M>;
/// LU factorisation with row pivoting: `P A = L U`.
pub type Lu<M> = t4a_linalg::user::Lu<Burn, M>;
