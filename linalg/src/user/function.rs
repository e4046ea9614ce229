//! Matrix functions: Cholesky factor, polar factors, exponential, square root, logarithm, functions of Hermitian
//! matrices and of singular values.

use crate::Result;
use crate::cholesky::CholeskyOp;
use crate::expm::ExpmOp;
use crate::hermitian::{Elementary, HermitianFunctionOp};
use crate::logm::LogmOp;
use crate::polar::{PolarOp, Side};
use crate::sqrtm::SqrtmOp;
use crate::svd::SvdFunctionOp;

use super::call::{ResultsOf, jvp, one, plain, status};
use super::matrix::Matrix;
use super::qr::pair;

/// The lower triangular `L` with positive diagonal and `(A + Aᴴ)/2 = L Lᴴ`; the gradient is
/// Hermitian.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `NonPositivePivot` with the batch index.
pub fn cholesky<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(CholeskyOp, [a], one)
}

const UPPER: &str = "cholesky_upper";

fn upper<F, M: Matrix<F>>(parts: ResultsOf<F, M>) -> M {
    M::from_pair(parts[0].adjoint())
}

/// The upper triangular `U = Lᴴ` with positive diagonal and `(A + Aᴴ)/2 = Uᴴ U`.
///
/// # Errors
/// As [`cholesky`].
pub fn cholesky_upper<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(CholeskyOp, [a], upper).map_err(|error| error.of(UPPER))
}

/// As [`cholesky_upper`], with the status of each matrix as in [`cholesky_ex`].
///
/// # Errors
/// As [`cholesky_ex`].
pub fn cholesky_upper_ex<F, M: Matrix<F>>(a: M) -> Result<(M, M::Info)> {
    status(CholeskyOp, [a], upper).map_err(|error| error.of(UPPER))
}

/// The upper factor and its tangent along `(dA + dAᴴ)/2`.
///
/// # Errors
/// As [`cholesky_jvp`].
pub fn cholesky_upper_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M, M)> {
    jvp(CholeskyOp, [a], [da], upper).map_err(|error| error.of(UPPER))
}

/// [`cholesky`] with the status of each matrix instead of an error: 0, or `i + 1` if pivot `i` is not positive. The
/// factor of a failed matrix is NaN, its gradient is zero.
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn cholesky_ex<F, M: Matrix<F>>(a: M) -> Result<(M, M::Info)> {
    status(CholeskyOp, [a], one)
}

/// The factor and its tangent along `(dA + dAᴴ)/2`.
///
/// # Errors
/// As [`cholesky`]; `Tensor` if the shapes differ.
pub fn cholesky_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M, M)> {
    jvp(CholeskyOp, [a], [da], one)
}

/// The isometry and the positive factor of a polar decomposition, `A = U P` or `A = P U`.
#[derive(Clone, Debug)]
pub struct Polar<M> {
    /// The isometry, `[…, m, n]`.
    pub u: M,
    /// Positive semidefinite, `[…, n, n]` (right) or `[…, m, m]` (left).
    pub p: M,
}

impl<M> Polar<M> {
    pub(super) fn new<F>(parts: ResultsOf<F, M>) -> Self
    where
        M: Matrix<F>,
    {
        let (u, p) = pair(parts);
        Self { u, p }
    }
}

/// Polar decomposition `A = U P` (right) or `A = P U` (left), of tall and wide matrices. The derivative requires full
/// rank, but not distinct singular values.
///
/// # Errors
/// `NonFinite`, `NoConvergence` with the batch index.
pub fn polar<F, M: Matrix<F>>(a: M, side: Side) -> Result<Polar<M>> {
    plain(PolarOp { side }, [a], Polar::new)
}

/// As [`polar`], with the status of each matrix as in [`cholesky_ex`].
///
/// # Errors
/// As [`cholesky_ex`].
pub fn polar_ex<F, M: Matrix<F>>(a: M, side: Side) -> Result<(Polar<M>, M::Info)> {
    status(PolarOp { side }, [a], Polar::new)
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`polar`]; `RankDeficient`; `Tensor` if the shapes differ.
pub fn polar_jvp<F, M: Matrix<F>>(a: M, da: M, side: Side) -> Result<(Polar<M>, Polar<M>)> {
    jvp(PolarOp { side }, [a], [da], Polar::new)
}

/// `e^A`.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `Overflow` with the batch index.
pub fn expm<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(ExpmOp, [a], one)
}

/// As [`expm`], with the status of each matrix as in [`cholesky_ex`].
///
/// # Errors
/// As [`cholesky_ex`].
pub fn expm_ex<F, M: Matrix<F>>(a: M) -> Result<(M, M::Info)> {
    status(ExpmOp, [a], one)
}

/// `e^A` and its Fréchet derivative `L(A, dA)`.
///
/// # Errors
/// As [`expm`]; `Tensor` if the shapes differ.
pub fn expm_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M, M)> {
    jvp(ExpmOp, [a], [da], one)
}

/// Principal square root. A singular matrix has one unless zero is a defective eigenvalue, but no derivative, which
/// is the error `Singular`. For Hermitian matrices [`hermitian_function`] is faster.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `Singular`, `NegativeEigenvalue`, `NoConvergence` with the batch index.
pub fn sqrtm<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(SqrtmOp, [a], one)
}

/// As [`sqrtm`], with the status of each matrix as in [`cholesky_ex`].
///
/// # Errors
/// As [`cholesky_ex`].
pub fn sqrtm_ex<F, M: Matrix<F>>(a: M) -> Result<(M, M::Info)> {
    status(SqrtmOp, [a], one)
}

/// The root and its tangent along `dA`.
///
/// # Errors
/// As [`sqrtm`]; `Tensor` if the shapes differ.
pub fn sqrtm_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M, M)> {
    jvp(SqrtmOp, [a], [da], one)
}

/// The principal logarithm: `e^B = A`, imaginary parts of the eigenvalues of `B` between −π and π.
/// For Hermitian matrices [`hermitian_function`] is faster.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `Singular`, `NegativeEigenvalue`, `NoConvergence` with the batch index.
pub fn logm<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(LogmOp, [a], one)
}

/// As [`logm`], with the status of each matrix as in [`cholesky_ex`].
///
/// # Errors
/// As [`cholesky_ex`].
pub fn logm_ex<F, M: Matrix<F>>(a: M) -> Result<(M, M::Info)> {
    status(LogmOp, [a], one)
}

/// The logarithm and its tangent along `dA`.
///
/// # Errors
/// As [`logm`]; `Tensor` if the shapes differ.
pub fn logm_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M, M)> {
    jvp(LogmOp, [a], [da], one)
}

/// `f((A + Aᴴ)/2) = V diag(f(λ)) Vᴴ`, with an exact derivative at ties.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `NoConvergence`, and `OutsideDomain` if `f` is not finite at an
/// eigenvalue, with the batch index.
pub fn hermitian_function<F, M: Matrix<F>>(a: M, f: Elementary) -> Result<M> {
    plain(HermitianFunctionOp { function: f }, [a], one)
}

/// As [`hermitian_function`], with the status of each matrix as in [`cholesky_ex`].
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn hermitian_function_ex<F, M: Matrix<F>>(a: M, f: Elementary) -> Result<(M, M::Info)> {
    status(HermitianFunctionOp { function: f }, [a], one)
}

/// `f(A)` and its tangent along `(dA + dAᴴ)/2`.
///
/// # Errors
/// As [`hermitian_function`]; `Tensor` if the shapes differ.
pub fn hermitian_function_jvp<F, M: Matrix<F>>(a: M, da: M, f: Elementary) -> Result<(M, M)> {
    jvp(HermitianFunctionOp { function: f }, [a], [da], one)
}

/// Function `U f(S) Vᴴ` of the singular values, with an exact derivative at ties. Use it there for losses that weight
/// the vectors of [`svd`](super::svd()) by functions of their values.
///
/// `Pow(0.0)` is the isometry of [`polar`], `Pow(1.0)` is `A`. A singular matrix has a derivative if
/// `f(0) = 0` and `f′(0)` is finite.
///
/// # Errors
/// `NonFinite`, `NoConvergence`, and `OutsideDomain` if `f` is not finite at a singular value, with
/// the batch index.
pub fn svd_function<F, M: Matrix<F>>(a: M, f: Elementary) -> Result<M> {
    plain(SvdFunctionOp { function: f }, [a], one)
}

/// As [`svd_function`], with the status of each matrix as in [`cholesky_ex`].
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn svd_function_ex<F, M: Matrix<F>>(a: M, f: Elementary) -> Result<(M, M::Info)> {
    status(SvdFunctionOp { function: f }, [a], one)
}

/// `U f(S) Vᴴ` and its tangent along `dA`.
///
/// # Errors
/// As [`svd_function`]; `OutsideDomain` where there is no derivative; `Tensor` if the shapes differ.
pub fn svd_function_jvp<F, M: Matrix<F>>(a: M, da: M, f: Elementary) -> Result<(M, M)> {
    jvp(SvdFunctionOp { function: f }, [a], [da], one)
}
