//! Functions of matrices: Cholesky factor, polar factors, exponential, square root, functions of
//! Hermitian matrices.

use t4a_linalg::hermitian::Elementary;
use t4a_linalg::polar::Side;
use t4a_linalg::{Op, Result};

use super::call::{call, call_ex, call_jvp, call_one};
use super::matrix::Matrix;
use super::qr::pair;
use super::solve::first;

/// The lower triangular `L` with positive diagonal and `(A + Aᴴ)/2 = L Lᴴ`; the gradient is
/// Hermitian.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `NonPositivePivot` with the batch index.
pub fn cholesky<M: Matrix>(a: M) -> Result<M> {
    Ok(M::from_value(call_one(Op::Cholesky, vec![a.into_value()])?))
}

/// As [`cholesky`], with the status of each matrix instead of an error: 0, or `i + 1` if pivot `i`
/// is not positive. The factor of a matrix that failed is NaN, its gradient is zero.
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn cholesky_ex<M: Matrix>(a: M) -> Result<(M, M::Info)> {
    let (parts, info, device) = call_ex(Op::Cholesky, vec![a.into_value()])?;
    Ok((first(parts), M::info(&info, &device)?))
}

/// The factor and its tangent along `(dA + dAᴴ)/2`.
///
/// # Errors
/// As [`cholesky`]; `Tensor` if the shapes differ.
pub fn cholesky_jvp<M: Matrix>(a: M, da: M) -> Result<(M, M)> {
    let [l, dl] = call_jvp(Op::Cholesky, vec![a.into_value()], vec![da.into_value()])?;
    Ok((first(l), first(dl)))
}

/// The isometry and the positive factor of a polar decomposition, `A = U P` or `A = P U`.
#[derive(Clone, Debug)]
pub struct Polar<M> {
    /// The isometry, `[…, m, n]`.
    pub u: M,
    /// Positive semidefinite, `[…, n, n]` (right) or `[…, m, m]` (left).
    pub p: M,
}

/// `A = U P` (right) or `A = P U` (left). The derivative needs full column or row rank, not
/// different singular values.
///
/// # Errors
/// `NonFinite`, `NoConvergence` with the batch index.
pub fn polar<M: Matrix>(a: M, side: Side) -> Result<Polar<M>> {
    let (u, p) = pair(call(Op::Polar(side), vec![a.into_value()])?);
    Ok(Polar { u, p })
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`polar`]; `RankDeficient`; `Tensor` if the shapes differ.
pub fn polar_jvp<M: Matrix>(a: M, da: M, side: Side) -> Result<(Polar<M>, Polar<M>)> {
    let parts = call_jvp(Op::Polar(side), vec![a.into_value()], vec![da.into_value()])?;
    let [value, tangent] = parts.map(|parts| {
        let (u, p) = pair(parts);
        Polar { u, p }
    });
    Ok((value, tangent))
}

/// `e^A`.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `Overflow` with the batch index.
pub fn expm<M: Matrix>(a: M) -> Result<M> {
    Ok(M::from_value(call_one(Op::Expm, vec![a.into_value()])?))
}

/// `e^A` and its Fréchet derivative `L(A, dA)`.
///
/// # Errors
/// As [`expm`]; `Tensor` if the shapes differ.
pub fn expm_jvp<M: Matrix>(a: M, da: M) -> Result<(M, M)> {
    let [x, dx] = call_jvp(Op::Expm, vec![a.into_value()], vec![da.into_value()])?;
    Ok((first(x), first(dx)))
}

/// The principal square root. For Hermitian matrices [`hermitian_function`] is faster.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `Singular`, and `NoConvergence` if an eigenvalue lies on the negative
/// real axis, with the batch index.
pub fn sqrtm<M: Matrix>(a: M) -> Result<M> {
    Ok(M::from_value(call_one(Op::Sqrtm, vec![a.into_value()])?))
}

/// The root and its tangent along `dA`.
///
/// # Errors
/// As [`sqrtm`]; `Tensor` if the shapes differ.
pub fn sqrtm_jvp<M: Matrix>(a: M, da: M) -> Result<(M, M)> {
    let [x, dx] = call_jvp(Op::Sqrtm, vec![a.into_value()], vec![da.into_value()])?;
    Ok((first(x), first(dx)))
}

/// `f((A + Aᴴ)/2) = V diag(f(λ)) Vᴴ`, with an exact derivative at ties.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `NoConvergence`, and `OutsideDomain` if `f` is not finite at an
/// eigenvalue, with the batch index.
pub fn hermitian_function<M: Matrix>(a: M, f: Elementary) -> Result<M> {
    Ok(M::from_value(call_one(Op::Hermitian(f), vec![a.into_value()])?))
}

/// As [`hermitian_function`], with the status of each matrix as in [`cholesky_ex`].
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn hermitian_function_ex<M: Matrix>(a: M, f: Elementary) -> Result<(M, M::Info)> {
    let (parts, info, device) = call_ex(Op::Hermitian(f), vec![a.into_value()])?;
    Ok((first(parts), M::info(&info, &device)?))
}

/// `f(A)` and its tangent along `(dA + dAᴴ)/2`.
///
/// # Errors
/// As [`hermitian_function`]; `Tensor` if the shapes differ.
pub fn hermitian_function_jvp<M: Matrix>(a: M, da: M, f: Elementary) -> Result<(M, M)> {
    let [x, dx] = call_jvp(Op::Hermitian(f), vec![a.into_value()], vec![da.into_value()])?;
    Ok((first(x), first(dx)))
}
