//! Matrix functions: Cholesky factor, polar factors, exponential, square root, logarithm, functions of Hermitian
//! matrices and of singular values.

use crate::call::Pair;
use crate::cholesky::CholeskyOp;
use crate::expm::ExpmOp;
use crate::hermitian::{Elementary, HermitianFunctionOp};
use crate::logm::LogmOp;
use crate::polar::{PolarOp, Side};
use crate::sqrtm::SqrtmOp;
use crate::svd::SvdFunctionOp;
use crate::{MatrixOp, Result};
use t4a_diff::Array;

use super::call::{Arranged, ResultsOf, Shapes, functions, one, plain, two};
use super::matrix::Matrix;

functions! {
    CholeskyOp: M -> M = one;
    CholeskyUpperOp: M -> M = one;
    PolarOp: M -> Polar<M> = Polar::new;
    ExpmOp: M -> M = one;
    SqrtmOp: M -> M = one;
    LogmOp: M -> M = one;
    HermitianFunctionOp: M -> M = one;
    SvdFunctionOp: M -> M = one;
}

/// The lower triangular `L` with positive diagonal and `(A + Aᴴ)/2 = L Lᴴ`; the gradient is
/// Hermitian.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `NonPositivePivot` with the batch index.
pub fn cholesky<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(CholeskyOp, a)
}

/// `A` → the upper Cholesky factor.
#[derive(Clone, Copy, Debug)]
pub struct CholeskyUpperOp;

impl Arranged for CholeskyUpperOp {
    fn name(&self) -> &'static str {
        "cholesky_upper"
    }
    fn op(&self) -> MatrixOp {
        CholeskyOp.into()
    }
    fn after<A: Array>(&self, l: Vec<Pair<A>>, _: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        Ok(vec![l[0].adjoint()])
    }
}

/// The upper triangular `U = Lᴴ` with positive diagonal and `(A + Aᴴ)/2 = Uᴴ U`.
///
/// # Errors
/// As [`cholesky`].
pub fn cholesky_upper<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(CholeskyUpperOp, a)
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
    fn new<F>(out: ResultsOf<F, M>) -> Result<Self>
    where
        M: Matrix<F>,
    {
        let (u, p) = two(out)?;
        Ok(Self { u, p })
    }
}

/// Polar decomposition `A = U P` (right) or `A = P U` (left), of tall and wide matrices. The derivative requires full
/// rank, but not distinct singular values.
///
/// # Errors
/// `NonFinite`, `NoConvergence` with the batch index.
pub fn polar<F, M: Matrix<F>>(a: M, side: Side) -> Result<Polar<M>> {
    plain(PolarOp { side }, a)
}

/// `e^A`; its tangent is the Fréchet derivative `L(A, dA)`.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `Overflow` with the batch index.
pub fn expm<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(ExpmOp, a)
}

/// Principal square root. A singular matrix has one unless zero is a defective eigenvalue, but no derivative, which
/// is the error `Singular`. For Hermitian matrices [`hermitian_function`] is faster.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `Singular`, `NegativeEigenvalue`, `NoConvergence` with the batch index.
pub fn sqrtm<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(SqrtmOp, a)
}

/// The principal logarithm: `e^B = A`, imaginary parts of the eigenvalues of `B` between −π and π.
/// For Hermitian matrices [`hermitian_function`] is faster.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `Singular`, `NegativeEigenvalue`, `NoConvergence` with the batch index.
pub fn logm<F, M: Matrix<F>>(a: M) -> Result<M> {
    plain(LogmOp, a)
}

/// `f((A + Aᴴ)/2) = V diag(f(λ)) Vᴴ`, with an exact derivative at ties.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `NoConvergence`, and `OutsideDomain` if `f` is not finite at an
/// eigenvalue, with the batch index.
pub fn hermitian_function<F, M: Matrix<F>>(a: M, f: Elementary) -> Result<M> {
    plain(HermitianFunctionOp { function: f }, a)
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
    plain(SvdFunctionOp { function: f }, a)
}
