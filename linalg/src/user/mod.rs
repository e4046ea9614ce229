//! User-level functions, generic over the tensor types of an interface crate.
//!
//! ```text
//! svd qr lu eigen function            factorisations and matrix functions
//! solve equations                     linear systems; Sylvester and Lyapunov equations
//! norm diagonal systems               compositions: powers, norms; vectors, broadcasting, X A = B
//! left_dims                           tensors as matrices: some axes form the rows
//! matrix                              traits of argument and result types, implemented by an interface
//! call                                plain, with status (_ex), with a tangent (_jvp)
//! ```
//!
//! An interface crate re-exports the functions with its own `F`, which is inferred from the tensor types. All are
//! differentiable to the same order as the arrays.
//!
//! # Errors
//! A function returns the error of the first failed matrix, with its index in the batch. The `_ex` functions return
//! the status of each matrix instead: a failed matrix affects neither the results nor the gradients of the others.
//! Errors of derivatives, such as of a loss that depends on arbitrary phases, are panics of `backward`, which cannot
//! return an error. A matrix with zero cotangents does not cause one, except for ties of [`eig`](eig()) if the
//! cotangents of the whole batch are zero.
//!
//! # Ties
//! The derivative of a loss of the vectors of equal singular values or eigenvalues is an error, unless [`svd_with`],
//! [`eigh_with`] or [`eig_with`] mask it; [`svd_function`] and [`hermitian_function`] are smooth there
//! ([`degeneracy`](crate::degeneracy)). Symmetric functions of [`svdvals`] and [`eigvalsh`] have second derivatives
//! at ties; for all other functions a second derivative along a direction that splits a tie is an error.
//!
//! # Conventions
//! A batch of matrices is a tensor `[…, m, n]`; all other axes are batch axes, which the shapes below omit. For a
//! real loss `L` the cotangent is `∂L/∂Re A + i ∂L/∂Im A`, the convention of PyTorch. Functions of Hermitian matrices
//! use `(A + Aᴴ)/2`, so a matrix stored as one triangle must be completed first, and have Hermitian cotangents.
//! Vectors of `svd`, `eigh` and `eig` are unique up to phases, at ties up to a basis: a loss that depends on these
//! has no derivative, which is an error.
//!
//! # Functions
//! The `_ex` form returns the status of each matrix, the `_jvp` form a tangent. All functions have gradients, and
//! second derivatives if the arrays can be differentiated twice.
//!
//! | function | shapes | | `_ex` | `_jvp` |
//! |---|---|---|---|---|
//! | [`svd`](svd()) | `[m, n]` → U `[m, k]`, S `[k]`, Vᴴ `[k, n]` | singular values and vectors, k = min(m, n) | ✓ | ✓ |
//! | [`svd_full`](svd_full()) | U `[m, m]`, Vᴴ `[n, n]` | with bases of the null spaces | ✓ | ✓ |
//! | [`svd_truncated`](svd_truncated()) | k chosen by a [`Truncation`](crate::svd::Truncation) | the part that is kept, and what it leaves out | ✓ | ✓ |
//! | [`low_rank`](low_rank()) | → `[m, n]` | the closest matrix of a rank, smooth at ties | ✓ | ✓ |
//! | [`svdvals`](svdvals()) | → `[k]` | singular values alone | ✓ | ✓ |
//! | [`svd_left_dims`](svd_left_dims()) | tensors | svd with some axes as rows | ✓ | ✓ |
//! | [`qr`](qr()) | → Q `[m, k]`, R `[k, n]` | orthonormal columns, R's diagonal ≥ 0 | ✓ | ✓ |
//! | [`qr_complete`](qr_complete()) | → Q `[m, m]`, R `[m, n]` | with a basis of the complement | ✓ | ✓ |
//! | [`qr_pivoted`](qr_pivoted()) | and column indices `[n]` | A P = Q R, R's diagonal falling | ✓ | ✓ |
//! | [`qr_left_dims`](qr_left_dims()) | tensors | qr with some axes as rows | ✓ | ✓ |
//! | [`lq`](lq()) | → L `[m, k]`, Q `[k, n]` | A = L Q | ✓ | ✓ |
//! | [`ql`](ql()) | → Q `[m, k]`, L `[k, n]` | A = Q L | ✓ | ✓ |
//! | [`rq`](rq()) | → R `[m, k]`, Q `[k, n]` | A = R Q | ✓ | ✓ |
//! | [`lu`](lu()) | → P, L `[m, k]`, U `[k, n]` | P A = L U, row pivots | ✓ | ✓ |
//! | [`lu_full`](lu_full()) | and column indices | rows and columns exchanged: reveals the rank | ✓ | ✓ |
//! | [`lu_factor`](lu_factor()) | → packed `[n, n]`, rows `[n]` | factors to solve with more than once | ✓ | ✓ |
//! | [`lu_solve`](lu_solve()) | `b` `[n, r]` or `[n]` | systems with these factors | ✓ | ✓ |
//! | [`cholesky`](cholesky()) | `[n, n]` → L | A = L Lᴴ | ✓ | ✓ |
//! | [`cholesky_upper`](cholesky_upper()) | `[n, n]` → U | A = Uᴴ U | ✓ | ✓ |
//! | [`eigh`](eigh()) | `[n, n]` → values `[n]` rising, V `[n, n]` | Hermitian eigenvalues and vectors | ✓ | ✓ |
//! | [`eigh_left_dims`](eigh_left_dims()) | tensors | eigh with some axes as rows | ✓ | ✓ |
//! | [`eigvalsh`](eigvalsh()) | → `[n]` rising | Hermitian eigenvalues | ✓ | ✓ |
//! | [`eig`](eig()) | → complex `[n]`, V `[n, n]` | eigenvalues and vectors | ✓ | ✓ |
//! | [`eigvals`](eigvals()) | → complex `[n]` | eigenvalues | ✓ | ✓ |
//! | [`polar`](polar()) | → U `[m, n]`, P | A = U P or P U, P positive | ✓ | ✓ |
//! | [`polar_left_dims`](polar_left_dims()) | tensors | polar with some axes as rows | ✓ | ✓ |
//! | [`expm`](expm()) | `[n, n]` | eᴬ | ✓ | ✓ |
//! | [`sqrtm`](sqrtm()) | `[n, n]` | the principal root | ✓ | ✓ |
//! | [`logm`](logm()) | `[n, n]` | the principal logarithm | ✓ | ✓ |
//! | [`hermitian_function`](hermitian_function()) | `[n, n]` | V f(Λ) Vᴴ, smooth at ties | ✓ | ✓ |
//! | [`svd_function`](svd_function()) | `[m, n]` | U f(S) Vᴴ, smooth at ties | ✓ | ✓ |
//! | [`matrix_power`](matrix_power()) | `[n, n]` | Aᵏ for any integer k | – | ✓ |
//! | [`solve`](solve()) | `A` `[n, n]`, `b` `[n, r]` or `[n]` | A x = b | ✓ | ✓ |
//! | [`solve_right`](solve_right()) | `b` `[r, n]` or `[n]` | x A = b | ✓ | ✓ |
//! | [`solve_triangular`](solve_triangular()) | as `solve` | with one triangle of A | ✓ | ✓ |
//! | [`solve_triangular_right`](solve_triangular_right()) | as `solve_right` | with one triangle of A | ✓ | ✓ |
//! | [`sylvester`](sylvester()) | `[m, m]`, `[n, n]`, `[m, n]` | A X + X B = C | ✓ | ✓ |
//! | [`lyapunov`](lyapunov()) | `[n, n]`, `[n, n]` | A X + X Aᴴ = C | ✓ | ✓ |
//! | [`lyapunov_positive`](lyapunov_positive()) | `[n, n]`, `[n, n]` | P X + X P = B, P positive definite | ✓ | ✓ |
//! | [`lstsq`](lstsq()) | `A` `[m, n]`, m ≥ n | least squares by qr | ✓ | ✓ |
//! | [`lstsq_min_norm`](lstsq_min_norm()) | `A` `[m, n]` | the least solution of any rank, by svd | ✓ | ✓ |
//! | [`lstsq_residuals`](lstsq_residuals()) | `A`, `b`, `x` | ‖A x − b‖² per column | – | ✓ |
//! | [`tensorsolve`](tensorsolve()) | tensors | `solve` with several axes as rows | – | ✓ |
//! | [`tensorinv`](tensorinv()) | tensors | `inv` with several axes as rows | – | ✓ |
//! | [`inv`](inv()) | `[n, n]` | A⁻¹ | ✓ | ✓ |
//! | [`pinv`](pinv()) | `[m, n]` → `[n, m]` | the pseudo-inverse | ✓ | ✓ |
//! | [`det`](det()) | `[n, n]` → number | determinant | ✓ | ✓ |
//! | [`slogdet`](slogdet()) | → sign, number | and its logarithm, without overflow | ✓ | ✓ |
//! | [`norm`](norm()) | any → `[1]` | √Σ∣xᵢ∣² over everything | – | ✓ |
//! | [`matrix_norm`](matrix_norm()) | `[m, n]` → number | 1, 2, ∞, Frobenius, nuclear, and least ones | – | ✓ |
//! | [`cond`](cond()) | `[n, n]` → number | ‖A‖ ‖A⁻¹‖ | – | ✓ |
//! | [`rcond`](rcond()) | `[n, n]` → number | 1/(‖A‖ ‖A⁻¹‖), 0 if singular | – | – |
//! | [`trace`](trace()) | `[n, n]` → number | Σ aᵢᵢ; linear | – | – |
//! | [`diag`](diag()) | `[m, n]` → `[k]` | aᵢᵢ; linear | – | – |
//! | [`diag_embed`](diag_embed()) | `[n]` → `[n, n]` | the diagonal matrix; linear | – | – |
//! | [`householder_product`](householder_product()) | `[m, n]`, `[n]` | the product of reflections | – | ✓ |

mod call;
mod diagonal;
mod eigen;
mod equations;
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
    Eig, Eigh, eig, eig_ex, eig_jvp, eig_with, eigh, eigh_ex, eigh_jvp, eigh_with, eigvals,
    eigvals_ex, eigvals_jvp, eigvalsh, eigvalsh_ex, eigvalsh_jvp,
};
pub use equations::{
    lyapunov, lyapunov_ex, lyapunov_jvp, lyapunov_positive, lyapunov_positive_ex,
    lyapunov_positive_jvp, sylvester, sylvester_ex, sylvester_jvp,
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
    matrix_norm_jvp, matrix_power, matrix_power_jvp, norm, norm_jvp, rcond,
};
pub use qr::{
    Qr, lq, lq_ex, lq_jvp, ql, ql_ex, ql_jvp, qr, qr_complete, qr_complete_ex, qr_complete_jvp,
    qr_ex, qr_jvp, qr_pivoted, qr_pivoted_ex, qr_pivoted_jvp, rq, rq_ex, rq_jvp,
};
pub use solve::{
    det, det_ex, det_jvp, inv, inv_ex, inv_jvp, lstsq, lstsq_ex, lstsq_jvp, lstsq_min_norm,
    lstsq_min_norm_ex, lstsq_min_norm_jvp, lstsq_residuals, lstsq_residuals_jvp, pinv, pinv_ex,
    pinv_jvp, slogdet, slogdet_ex, slogdet_jvp, solve, solve_ex, solve_jvp, solve_triangular,
    solve_triangular_ex, solve_triangular_jvp,
};
pub use svd::{
    Svd, TruncatedSvd, low_rank, low_rank_ex, low_rank_jvp, svd, svd_ex, svd_full, svd_full_ex,
    svd_full_jvp, svd_jvp, svd_truncated, svd_truncated_ex, svd_truncated_jvp, svd_truncated_with,
    svd_with, svdvals, svdvals_ex, svdvals_jvp,
};
pub use systems::{
    solve_right, solve_right_ex, solve_right_jvp, solve_triangular_right,
    solve_triangular_right_ex, solve_triangular_right_jvp, tensorinv, tensorinv_jvp, tensorsolve,
    tensorsolve_jvp,
};
