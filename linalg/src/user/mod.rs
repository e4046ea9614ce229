//! User-level functions, generic over the tensor types of an interface crate.
//!
//! ```text
//! svd qr lu eigen function            factorisations and matrix functions
//! solve equations                     linear systems; Sylvester and Lyapunov equations
//! norm diagonal systems               compositions: powers, norms; vectors, broadcasting, X A = B
//! left_dims                           tensors as matrices: some axes form the rows
//! matrix                              traits of argument and result types, implemented by an interface
//! call                                functions as values: plain, with status, with tangents
//! ```
//!
//! An interface crate re-exports the functions with its own `F`, which is inferred from the tensor types. All are
//! differentiable to the same order as the arrays.
//!
//! # Forms
//! ```text
//! inv(a)                        the results
//! status(op::InvOp, a)          and the status of each matrix, instead of an error
//! jvp(op::InvOp, a, da)         and their tangents along dA
//! jvp(op::SolveOp, (a, b), (da, db))
//! status(op::SvdOp { degeneracy, ..op::SvdOp::THIN }, a)
//! ```
//!
//! # Errors
//! A function returns the error of the first failed matrix, with its index in the batch. [`status`] returns the status of
//! each matrix instead: a failed matrix affects neither the results nor the gradients of the others.
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
//! All have gradients, and second derivatives if the arrays can be differentiated twice. [`trace`], [`diag`] and
//! [`diag_embed`] are linear and fail for no matrix; each of the others has a value in [`op`] for [`status`] and [`jvp`].
//!
//! | function | shapes | |
//! |---|---|---|
//! | [`svd`](svd()) | `[m, n]` → U `[m, k]`, S `[k]`, Vᴴ `[k, n]` | singular values and vectors, k = min(m, n) |
//! | [`svd_full`](svd_full()) | U `[m, m]`, Vᴴ `[n, n]` | with bases of the null spaces |
//! | [`svd_truncated`](svd_truncated()) | k chosen by a [`Truncation`](crate::svd::Truncation) | the part that is kept, and what it leaves out |
//! | [`low_rank`](low_rank()) | → `[m, n]` | the closest matrix of a rank, smooth at ties |
//! | [`svdvals`](svdvals()) | → `[k]` | singular values alone |
//! | [`svd_left_dims`](svd_left_dims()) | tensors | svd with some axes as rows |
//! | [`qr`](qr()) | → Q `[m, k]`, R `[k, n]` | orthonormal columns, R's diagonal ≥ 0 |
//! | [`qr_complete`](qr_complete()) | → Q `[m, m]`, R `[m, n]` | with a basis of the complement |
//! | [`qr_pivoted`](qr_pivoted()) | and column indices `[n]` | A P = Q R, R's diagonal falling |
//! | [`qr_left_dims`](qr_left_dims()) | tensors | qr with some axes as rows |
//! | [`lq`](lq()) | → L `[m, k]`, Q `[k, n]` | A = L Q |
//! | [`ql`](ql()) | → Q `[m, k]`, L `[k, n]` | A = Q L |
//! | [`rq`](rq()) | → R `[m, k]`, Q `[k, n]` | A = R Q |
//! | [`lu`](lu()) | → P, L `[m, k]`, U `[k, n]` | P A = L U, row pivots |
//! | [`lu_full`](lu_full()) | and column indices | rows and columns exchanged: reveals the rank |
//! | [`lu_factor`](lu_factor()) | → packed `[n, n]`, rows `[n]` | factors to solve with more than once |
//! | [`lu_solve`](lu_solve()) | `b` `[n, r]` or `[n]` | systems with these factors |
//! | [`cholesky`](cholesky()) | `[n, n]` → L | A = L Lᴴ |
//! | [`cholesky_upper`](cholesky_upper()) | `[n, n]` → U | A = Uᴴ U |
//! | [`eigh`](eigh()) | `[n, n]` → values `[n]` rising, V `[n, n]` | Hermitian eigenvalues and vectors |
//! | [`eigh_left_dims`](eigh_left_dims()) | tensors | eigh with some axes as rows |
//! | [`eigvalsh`](eigvalsh()) | → `[n]` rising | Hermitian eigenvalues |
//! | [`eig`](eig()) | → complex `[n]`, V `[n, n]` | eigenvalues and vectors |
//! | [`eigvals`](eigvals()) | → complex `[n]` | eigenvalues |
//! | [`polar`](polar()) | → U `[m, n]`, P | A = U P or P U, P positive |
//! | [`polar_left_dims`](polar_left_dims()) | tensors | polar with some axes as rows |
//! | [`expm`](expm()) | `[n, n]` | eᴬ |
//! | [`sqrtm`](sqrtm()) | `[n, n]` | the principal root |
//! | [`logm`](logm()) | `[n, n]` | the principal logarithm |
//! | [`hermitian_function`](hermitian_function()) | `[n, n]` | V f(Λ) Vᴴ, smooth at ties |
//! | [`svd_function`](svd_function()) | `[m, n]` | U f(S) Vᴴ, smooth at ties |
//! | [`matrix_power`](matrix_power()) | `[n, n]` | Aᵏ for any integer k |
//! | [`solve`](solve()) | `A` `[n, n]`, `b` `[n, r]` or `[n]` | A x = b |
//! | [`solve_right`](solve_right()) | `b` `[r, n]` or `[n]` | x A = b |
//! | [`solve_triangular`](solve_triangular()) | as `solve` | with one triangle of A |
//! | [`solve_triangular_right`](solve_triangular_right()) | as `solve_right` | with one triangle of A |
//! | [`sylvester`](sylvester()) | `[m, m]`, `[n, n]`, `[m, n]` | A X + X B = C |
//! | [`lyapunov`](lyapunov()) | `[n, n]`, `[n, n]` | A X + X Aᴴ = C |
//! | [`lyapunov_positive`](lyapunov_positive()) | `[n, n]`, `[n, n]` | P X + X P = B, P positive definite |
//! | [`lstsq`](lstsq()) | `A` `[m, n]`, m ≥ n | least squares by qr |
//! | [`lstsq_min_norm`](lstsq_min_norm()) | `A` `[m, n]` | the least solution of any rank, by svd |
//! | [`lstsq_residuals`](lstsq_residuals()) | `A`, `b`, `x` | ‖A x − b‖² per column |
//! | [`tensorsolve`](tensorsolve()) | tensors | `solve` with several axes as rows |
//! | [`tensorinv`](tensorinv()) | tensors | `inv` with several axes as rows |
//! | [`inv`](inv()) | `[n, n]` | A⁻¹ |
//! | [`pinv`](pinv()) | `[m, n]` → `[n, m]` | the pseudo-inverse |
//! | [`det`](det()) | `[n, n]` → number | determinant |
//! | [`slogdet`](slogdet()) | → sign, number | and its logarithm, without overflow |
//! | [`norm`](norm()) | any → `[1]` | √Σ∣xᵢ∣² over everything |
//! | [`matrix_norm`](matrix_norm()) | `[m, n]` → number | 1, 2, ∞, Frobenius, nuclear, and least ones |
//! | [`cond`](cond()) | `[n, n]` → number | ‖A‖ ‖A⁻¹‖ |
//! | [`rcond`](rcond()) | `[n, n]` → number | 1/(‖A‖ ‖A⁻¹‖), 0 if singular |
//! | [`trace`](trace()) | `[n, n]` → number | Σ aᵢᵢ; linear |
//! | [`diag`](diag()) | `[m, n]` → `[k]` | aᵢᵢ; linear |
//! | [`diag_embed`](diag_embed()) | `[n]` → `[n, n]` | the diagonal matrix; linear |
//! | [`householder_product`](householder_product()) | `[m, n]`, `[n]` | the product of reflections |

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

pub use call::{Composition, Function, jvp, status};
pub use diagonal::{diag, diag_embed, trace};
pub use eigen::{Eig, Eigh, eig, eig_with, eigh, eigh_with, eigvals, eigvalsh};
pub use equations::{lyapunov, lyapunov_positive, sylvester};
pub use function::{
    Polar, cholesky, cholesky_upper, expm, hermitian_function, logm, polar, sqrtm, svd_function,
};
pub use left_dims::{eigh_left_dims, polar_left_dims, qr_left_dims, svd_left_dims};
pub use lu::{Lu, LuFactors, lu, lu_factor, lu_full, lu_solve};
pub use matrix::{Matrix, Ranked, RightHandSide};
pub use norm::{Norm, cond, householder_product, matrix_norm, matrix_power, norm, rcond};
pub use qr::{Qr, lq, ql, qr, qr_complete, qr_pivoted, rq};
pub use solve::{
    det, inv, lstsq, lstsq_min_norm, lstsq_residuals, pinv, slogdet, solve, solve_triangular,
};
pub use svd::{
    Svd, TruncatedSvd, low_rank, svd, svd_full, svd_truncated, svd_truncated_with, svd_with,
    svdvals,
};
pub use systems::{solve_right, solve_triangular_right, tensorinv, tensorsolve};

/// The functions as values, for [`status`] and [`jvp`]. Those of the table [`MatrixOp`](crate::MatrixOp) are its
/// operations.
pub mod op {
    pub use super::equations::LyapunovOp;
    pub use super::function::CholeskyUpperOp;
    pub use super::left_dims::{EighLeftDimsOp, PolarLeftDimsOp, QrLeftDimsOp, SvdLeftDimsOp};
    pub use super::lu::{LuFullOp, LuOp, LuSolveOp};
    pub use super::norm::{
        CondOp, HouseholderProductOp, MatrixNormOp, MatrixPowerOp, NormOp, RcondOp,
    };
    pub use super::qr::{QlOp, RqOp};
    pub use super::solve::LstsqResidualsOp;
    pub use super::svd::SvdTruncatedOp;
    pub use super::systems::{SolveRightOp, SolveTriangularRightOp, TensorinvOp, TensorsolveOp};
    pub use crate::cholesky::CholeskyOp;
    pub use crate::det::{DetOp, SlogdetOp};
    pub use crate::eig::{EigOp, EigvalsOp};
    pub use crate::eigh::{EighOp, EigvalshOp};
    pub use crate::expm::ExpmOp;
    pub use crate::hermitian::HermitianFunctionOp;
    pub use crate::inverse::InvOp;
    pub use crate::logm::LogmOp;
    pub use crate::lstsq::{LstsqMinNormOp, LstsqOp};
    pub use crate::lu::LuFactorOp;
    pub use crate::lyapunov::LyapunovPositiveOp;
    pub use crate::pinv::PinvOp;
    pub use crate::polar::PolarOp;
    pub use crate::qr::{LqOp, QrOp, QrPivotedOp};
    pub use crate::solve::SolveOp;
    pub use crate::sqrtm::SqrtmOp;
    pub use crate::svd::{LowRankOp, SvdFunctionOp, SvdOp, SvdvalsOp};
    pub use crate::sylvester::SylvesterOp;
    pub use crate::triangular::SolveTriangularOp;
}
