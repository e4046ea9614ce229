//! Matrix factorisations on Burn tensors, differentiable on its tape to any order.
//!
//! ```text
//! svd qr lu eigen solve function      the functions
//! matrix                              what they take: Tensor<B, D> or Complex<B, D>, rank 2 to 8
//! call                                plain, with status (_ex), with a tangent (_jvp)
//! ops                                 LinalgOps: the backends; native on BurnT4a
//! autodiff                            nodes of the tape
//! matrices rules                      the derivative rules of t4a_linalg on a backend's primitives
//! ```
//!
//! All functions work on batches `[…, m, n]` in f32 and f64, real or complex. Conventions,
//! derivative rules and what they do at degenerate spectra: [`t4a_linalg`].
//!
//! # Errors
//! A function returns the error of the first matrix that fails, with its place in the batch. The
//! `_ex` functions return the status of each matrix instead: one bad matrix does not spoil the
//! others, nor their gradients. Errors of derivatives, as of a loss that depends on arbitrary
//! phases, are panics of `backward`, which has no other way to report them.
//!
//! # Other backends
//! `impl LinalgOps for MyBackend {}` is enough: factorisations then run in the engine through host
//! data, derivative rules in the backend's own operations.

mod autodiff;
mod call;
mod eigen;
mod function;
mod lu;
mod matrices;
mod matrix;
mod ops;
mod qr;
mod rules;
mod solve;
mod svd;
mod value;

pub use t4a_linalg::hermitian::Elementary;
pub use t4a_linalg::polar::Side;
pub use t4a_linalg::svd::Truncation;
pub use t4a_linalg::triangular::{Op as TriangleOp, Triangle};
pub use t4a_linalg::{Degeneracy, LinalgError, Op, Result};

pub use eigen::{
    Eig, Eigh, eig, eig_ex, eig_jvp, eigh, eigh_ex, eigh_jvp, eigh_with, eigvalsh, eigvalsh_ex,
    eigvalsh_jvp,
};
pub use function::{
    Polar, cholesky, cholesky_ex, cholesky_jvp, expm, expm_jvp, hermitian_function,
    hermitian_function_ex, hermitian_function_jvp, polar, polar_jvp, sqrtm, sqrtm_jvp,
};
pub use lu::{Lu, lu};
pub use matrix::Matrix;
pub use ops::LinalgOps;
pub use qr::{Qr, lq, ql, qr, qr_ex, qr_jvp, rq};
pub use solve::{
    det, det_jvp, inv, inv_ex, inv_jvp, lstsq, lstsq_min_norm, lyapunov, pinv, pinv_jvp, slogdet,
    slogdet_jvp, solve, solve_ex, solve_jvp, solve_triangular, solve_triangular_ex,
};
pub use svd::{
    Svd, TruncatedSvd, svd, svd_ex, svd_jvp, svd_truncated, svd_with, svdvals, svdvals_ex,
    svdvals_jvp,
};
pub use value::{Results, Value};
