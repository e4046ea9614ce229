//! Matrix factorisations on Burn tensors, differentiable on its tape; in Burn 0.21 to any order.
//!
//! They take real tensors or [`Complex`](super::Complex) ones of rank 2 to 8, and are written once, in
//! [`t4a_linalg::user`], which lists them and says what they report and what happens at ties: here is what
//! their matrices are on Burn.
//!
//! All functions work on batches `[…, m, n]` in f32 and f64, real or complex. Conventions,
//! derivative rules and what they do at degenerate spectra: [`t4a_linalg`].
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::linalg};")]
#![cfg_attr(burn_line = "0.21", doc = "type Tensor<const D: usize> =")]
#![cfg_attr(
    burn_line = "0.21",
    doc = "    burn::tensor::Tensor<burn::backend::Autodiff<BurnT4a>, D>;"
)]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::linalg;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn_tensor::{Device, Tensor};")]
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
//! Of tensors with more axes, some form the rows and the others the columns:
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::linalg};")]
#![cfg_attr(
    burn_line = "0.21",
    doc = "type Tensor<const D: usize> = burn::tensor::Tensor<BurnT4a, D>;"
)]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::linalg;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn_tensor::{Device, Tensor};")]
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
//! # Other backends
//! `impl Operations for MyBackend {}` is enough: factorisations then run in the engine through host
//! data, derivative rules in the backend's own operations.

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

/// The tensors of Burn, for [`Matrix`].
#[derive(Clone, Copy, Debug)]
pub enum Burn {}

/// `U diag(S) Vᴴ`.
pub type Svd<M> = t4a_linalg::user::Svd<Burn, M>;
/// A truncated decomposition and what it leaves out.
pub type TruncatedSvd<M> = t4a_linalg::user::TruncatedSvd<Burn, M>;
/// `(A + Aᴴ)/2 = V diag(E) Vᴴ`.
pub type Eigh<M> = t4a_linalg::user::Eigh<Burn, M>;
/// `A V = V diag(λ)`.
pub type Eig<M> = t4a_linalg::user::Eig<Burn, M>;
/// `P A = L U`.
pub type Lu<M> = t4a_linalg::user::Lu<Burn, M>;
