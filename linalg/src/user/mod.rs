//! The functions that users call, over what a face calls matrices.
//!
//! ```text
//! svd qr lu eigen solve function      the functions
//! norm diagonal systems               compositions: powers, norms; vectors, broadcasting, X A = B
//! left_dims                           of tensors some of whose axes form the rows
//! matrix                              what they take, which a face implements for its tensors
//! call                                plain, with status (_ex), with a tangent (_jvp)
//! ```
//!
//! A face re-exports them with its own `F`, which nobody has to name: it is the only one that its tensors
//! have. All are differentiable as often as the arrays are.
//!
//! # Errors
//! A function returns the error of the first matrix that fails, with its place in the batch. The
//! `_ex` functions return the status of each matrix instead: one bad matrix does not spoil the
//! others, nor their gradients. Errors of derivatives, as of a loss that depends on arbitrary
//! phases, are panics of `backward`, which has no other way to report them. A matrix whose
//! cotangents are all zero cannot cause one.
//!
//! # Ties
//! Losses of vectors and values at equal singular values or eigenvalues: [`svd`](svd()) and
//! [`eigh`](eigh()) say what they may depend on; [`svd_function`] and [`hermitian_function`] are
//! smooth there. Symmetric functions of [`svdvals`] and [`eigvalsh`] have second derivatives at ties;
//! through all other functions a second derivative along a direction that splits a tie is an error.
//!
//! # What there is
//! `[…]_ex` gives the status of each matrix, `[…]_jvp` a tangent. Everything has a gradient, and
//! where the arrays can be differentiated twice the gradient has one.
//!
//! | function | `_ex` | `_jvp` |
//! |---|---|---|
//! | `svd` | ✓ | ✓ |
//! | `svd_full` | ✓ | ✓ |
//! | `svd_truncated` | ✓ | ✓ |
//! | `svdvals` | ✓ | ✓ |
//! | `svd_left_dims` | ✓ | ✓ |
//! | `qr` | ✓ | ✓ |
//! | `qr_complete` | ✓ | ✓ |
//! | `qr_pivoted` | ✓ | ✓ |
//! | `qr_left_dims` | ✓ | ✓ |
//! | `lq` | ✓ | ✓ |
//! | `ql` | ✓ | ✓ |
//! | `rq` | ✓ | ✓ |
//! | `lu` | ✓ | ✓ |
//! | `lu_full` | ✓ | ✓ |
//! | `lu_factor` | ✓ | ✓ |
//! | `lu_solve` | ✓ | ✓ |
//! | `cholesky` | ✓ | ✓ |
//! | `eigh` | ✓ | ✓ |
//! | `eigh_left_dims` | ✓ | ✓ |
//! | `eigvalsh` | ✓ | ✓ |
//! | `eig` | ✓ | ✓ |
//! | `eigvals` | ✓ | ✓ |
//! | `polar` | ✓ | ✓ |
//! | `polar_left_dims` | ✓ | ✓ |
//! | `expm` | ✓ | ✓ |
//! | `sqrtm` | ✓ | ✓ |
//! | `logm` | ✓ | ✓ |
//! | `hermitian_function` | ✓ | ✓ |
//! | `svd_function` | ✓ | ✓ |
//! | `solve` | ✓ | ✓ |
//! | `solve_triangular` | ✓ | ✓ |
//! | `lyapunov` | ✓ | ✓ |
//! | `lstsq` | ✓ | ✓ |
//! | `lstsq_min_norm` | ✓ | ✓ |
//! | `inv` | ✓ | ✓ |
//! | `pinv` | ✓ | ✓ |
//! | `det` | ✓ | ✓ |
//! | `slogdet` | ✓ | ✓ |
//! | `solve_right` | ✓ | ✓ |
//! | `solve_triangular_right` | ✓ | ✓ |
//! | `tensorsolve` | – | ✓ |
//! | `tensorinv` | – | ✓ |
//! | `matrix_power` | – | ✓ |
//! | `matrix_norm` | – | ✓ |
//! | `cond` | – | ✓ |
//! | `norm` | – | ✓ |
//! | `trace`, `diag`, `diag_embed`: linear | – | – |
//! | `householder_product` | – | ✓ |
//! | `cholesky_upper` | ✓ | ✓ |
//! | `lstsq_residuals` | – | ✓ |

mod call;
mod diagonal;
mod eigen;
mod function;
mod left_dims;
mod lu;
mod matrix;
mod norm;
mod qr;
mod solve;
mod svd;
mod systems;

pub use diagonal::{diag, diag_embed, trace};
pub use eigen::{
    Eig, Eigh, eig, eig_ex, eig_jvp, eigh, eigh_ex, eigh_jvp, eigh_with, eigvals, eigvals_ex,
    eigvals_jvp, eigvalsh, eigvalsh_ex, eigvalsh_jvp,
};
pub use function::{
    Polar, cholesky, cholesky_ex, cholesky_jvp, cholesky_upper, cholesky_upper_ex,
    cholesky_upper_jvp, expm, expm_ex, expm_jvp, hermitian_function, hermitian_function_ex,
    hermitian_function_jvp, logm, logm_ex, logm_jvp, polar, polar_ex, polar_jvp, sqrtm, sqrtm_ex,
    sqrtm_jvp, svd_function, svd_function_ex, svd_function_jvp,
};
pub use left_dims::{
    eigh_left_dims, eigh_left_dims_ex, eigh_left_dims_jvp, polar_left_dims, polar_left_dims_ex,
    polar_left_dims_jvp, qr_left_dims, qr_left_dims_ex, qr_left_dims_jvp, svd_left_dims,
    svd_left_dims_ex, svd_left_dims_jvp,
};
pub use lu::{
    Lu, LuFactors, lu, lu_ex, lu_factor, lu_factor_ex, lu_factor_jvp, lu_full, lu_full_ex,
    lu_full_jvp, lu_jvp, lu_solve, lu_solve_ex, lu_solve_jvp,
};
pub use matrix::{Matrix, Ranked, RightHandSide};
pub use norm::{
    Norm, cond, cond_jvp, householder_product, householder_product_jvp, matrix_norm,
    matrix_norm_jvp, matrix_power, matrix_power_jvp, norm, norm_jvp,
};
pub use qr::{
    Qr, lq, lq_ex, lq_jvp, ql, ql_ex, ql_jvp, qr, qr_complete, qr_complete_ex, qr_complete_jvp,
    qr_ex, qr_jvp, qr_pivoted, qr_pivoted_ex, qr_pivoted_jvp, rq, rq_ex, rq_jvp,
};
pub use solve::{
    det, det_ex, det_jvp, inv, inv_ex, inv_jvp, lstsq, lstsq_ex, lstsq_jvp, lstsq_min_norm,
    lstsq_min_norm_ex, lstsq_min_norm_jvp, lstsq_residuals, lstsq_residuals_jvp, lyapunov,
    lyapunov_ex, lyapunov_jvp, pinv, pinv_ex, pinv_jvp, slogdet, slogdet_ex, slogdet_jvp, solve,
    solve_ex, solve_jvp, solve_triangular, solve_triangular_ex, solve_triangular_jvp,
};
pub use svd::{
    Svd, TruncatedSvd, svd, svd_ex, svd_full, svd_full_ex, svd_full_jvp, svd_jvp, svd_truncated,
    svd_truncated_ex, svd_truncated_jvp, svd_truncated_with, svd_with, svdvals, svdvals_ex,
    svdvals_jvp,
};
pub use systems::{
    solve_right, solve_right_ex, solve_right_jvp, solve_triangular_right,
    solve_triangular_right_ex, solve_triangular_right_jvp, tensorinv, tensorinv_jvp, tensorsolve,
    tensorsolve_jvp,
};
