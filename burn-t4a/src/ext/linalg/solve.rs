//! Linear systems, least squares, determinants and inverses.

use t4a_linalg::triangular::Triangle;
use t4a_linalg::{Op, Result};
use t4a_tensor::TensorError;

use super::call::{call, call_ex, call_jvp, call_one};
use super::matrices::{ComplexMatrix, Entries, RealMatrix};
use super::matrix::Matrix;
use super::ops::LinalgOps;
use super::value::Value;

/// One matrix out of the parts of a result.
pub(super) fn first<M: Matrix>(mut parts: Vec<Value<M::Backend>>) -> M {
    M::from_value(parts.swap_remove(0))
}

/// The solution of `A X = B`: `[…, n, n]`, `[…, n, r]` → `[…, n, r]`.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `Singular` with the batch index.
pub fn solve<M: Matrix>(a: M, b: M) -> Result<M> {
    Ok(M::from_value(call_one(Op::Solve, vec![a.into_value(), b.into_value()])?))
}

/// As [`solve`], with the status of each system instead of an error: 0, or `i + 1` if pivot `i` is
/// zero. The solution of a system that failed is NaN, its gradient is zero.
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn solve_ex<M: Matrix>(a: M, b: M) -> Result<(M, M::Info)> {
    let (parts, info, device) = call_ex(Op::Solve, vec![a.into_value(), b.into_value()])?;
    Ok((first(parts), M::info(&info, &device)?))
}

/// The solution and its tangent along `dA` and `dB`.
///
/// # Errors
/// As [`solve`].
pub fn solve_jvp<M: Matrix>(a: M, b: M, da: M, db: M) -> Result<(M, M)> {
    let inputs = vec![a.into_value(), b.into_value()];
    let [x, dx] = call_jvp(Op::Solve, inputs, vec![da.into_value(), db.into_value()])?;
    Ok((first(x), first(dx)))
}

/// The solution of `op(T) X = B`; only the triangle named is read.
///
/// # Errors
/// As [`solve`].
pub fn solve_triangular<M: Matrix>(t: M, b: M, triangle: Triangle) -> Result<M> {
    let op = Op::SolveTriangular(triangle);
    Ok(M::from_value(call_one(op, vec![t.into_value(), b.into_value()])?))
}

/// As [`solve_triangular`], with the status of each system as in [`solve_ex`].
///
/// # Errors
/// As [`solve_ex`].
pub fn solve_triangular_ex<M: Matrix>(t: M, b: M, triangle: Triangle) -> Result<(M, M::Info)> {
    let inputs = vec![t.into_value(), b.into_value()];
    let (parts, info, device) = call_ex(Op::SolveTriangular(triangle), inputs)?;
    Ok((first(parts), M::info(&info, &device)?))
}

/// The solution of `P X + X P = B` with positive definite Hermitian `P`.
///
/// # Errors
/// As [`solve`]; `RankDeficient` if `P` is not positive definite to rounding.
pub fn lyapunov<M: Matrix>(p: M, b: M) -> Result<M> {
    Ok(M::from_value(call_one(Op::Lyapunov, vec![p.into_value(), b.into_value()])?))
}

/// `X` with `‖A X − B‖` minimal, and `‖X‖` minimal if `A` is wide: `[…, m, n]`, `[…, m, r]` →
/// `[…, n, r]`. `A` has full rank; [`lstsq_min_norm`] serves any rank.
///
/// # Errors
/// `Tensor` if the shapes do not match; `NonFinite`, `Singular` with the batch index if a diagonal
/// entry of `R` is zero.
pub fn lstsq<M: Matrix>(a: M, b: M) -> Result<M> {
    let (a, b) = (a.into_value(), b.into_value());
    check_rows("lstsq", &a, &b)?;
    Ok(M::from_value(match &a {
        Value::Real(_) => least_squares::<_, RealMatrix<_>>(&a, &b)?,
        Value::Complex { .. } => least_squares::<_, ComplexMatrix<_>>(&a, &b)?,
    }))
}

fn least_squares<B: LinalgOps, A: Entries<B>>(a: &Value<B>, b: &Value<B>) -> Result<Value<B>> {
    let (a, b) = (A::from_value(a), A::from_value(b));
    let tall = a.rows() >= a.cols();
    let factored = if tall { a } else { a.adjoint() };
    let factors = call(Op::Qr, vec![factored.into_value()?])?;
    let (q, r) = (A::from_value(&factors[0]), A::from_value(&factors[1]));
    match tall {
        true => r.solve_triangular(&q.adjoint().matmul(&b), Triangle::UPPER),
        false => q.matmul(&r.solve_triangular(&b, Triangle::UPPER.adjoint())),
    }
    .into_value()
}

/// The solution of least norm `X = A⁺ B`, of any rank; `rtol` as in [`pinv`].
///
/// # Errors
/// As [`pinv`]; `Tensor` if the shapes do not match.
pub fn lstsq_min_norm<M: Matrix>(a: M, b: M, rtol: Option<f64>) -> Result<M> {
    let (a, b) = (a.into_value(), b.into_value());
    check_rows("lstsq_min_norm", &a, &b)?;
    let p = call_one(Op::Pinv(rtol), vec![a])?;
    Ok(M::from_value(match &p {
        Value::Real(_) => product::<_, RealMatrix<_>>(&p, &b)?,
        Value::Complex { .. } => product::<_, ComplexMatrix<_>>(&p, &b)?,
    }))
}

fn product<B: LinalgOps, A: Entries<B>>(a: &Value<B>, b: &Value<B>) -> Result<Value<B>> {
    A::from_value(a).matmul(&A::from_value(b)).into_value()
}

fn check_rows<B: LinalgOps>(op: &'static str, a: &Value<B>, b: &Value<B>) -> Result<()> {
    let (a, b) = (a.shape(), b.shape());
    let last = a.len() - 1;
    match a[..last] == b[..last] {
        true => Ok(()),
        false => Err(TensorError::shapes(op, &a, &b, "[…, m, n] and […, m, r]").into()),
    }
}

/// `A⁻¹`. Prefer [`solve`] to a product with an inverse.
///
/// # Errors
/// As [`solve`].
pub fn inv<M: Matrix>(a: M) -> Result<M> {
    Ok(M::from_value(call_one(Op::Inv, vec![a.into_value()])?))
}

/// As [`inv`], with the status of each matrix as in [`solve_ex`].
///
/// # Errors
/// As [`solve_ex`].
pub fn inv_ex<M: Matrix>(a: M) -> Result<(M, M::Info)> {
    let (parts, info, device) = call_ex(Op::Inv, vec![a.into_value()])?;
    Ok((first(parts), M::info(&info, &device)?))
}

/// `A⁻¹` and its tangent along `dA`.
///
/// # Errors
/// As [`solve`].
pub fn inv_jvp<M: Matrix>(a: M, da: M) -> Result<(M, M)> {
    let [b, db] = call_jvp(Op::Inv, vec![a.into_value()], vec![da.into_value()])?;
    Ok((first(b), first(db)))
}

/// The pseudoinverse `[…, n, m]`; singular values below `rtol` times the largest are dropped,
/// machine epsilon times the larger dimension if `None`. Its derivative is that at constant rank.
///
/// # Errors
/// `NonFinite`, `NoConvergence` with the batch index; `Tensor` for a cutoff below zero.
pub fn pinv<M: Matrix>(a: M, rtol: Option<f64>) -> Result<M> {
    Ok(M::from_value(call_one(Op::Pinv(rtol), vec![a.into_value()])?))
}

/// The pseudoinverse and its tangent along `dA`.
///
/// # Errors
/// As [`pinv`].
pub fn pinv_jvp<M: Matrix>(a: M, da: M, rtol: Option<f64>) -> Result<(M, M)> {
    let [p, dp] = call_jvp(Op::Pinv(rtol), vec![a.into_value()], vec![da.into_value()])?;
    Ok((first(p), first(dp)))
}

/// `det A`, `[…]`. The gradient of a singular matrix, its cofactors, comes with the native backend;
/// elsewhere and in second order `backward` panics with the text of `RankDeficient`.
///
/// # Errors
/// `NotSquare`; `NonFinite` with the batch index.
pub fn det<M: Matrix>(a: M) -> Result<M::Number> {
    Ok(M::number(call_one(Op::Det, vec![a.into_value()])?))
}

/// `det A` and its tangent along `dA`.
///
/// # Errors
/// As [`det`]; `RankDeficient`.
pub fn det_jvp<M: Matrix>(a: M, da: M) -> Result<(M::Number, M::Number)> {
    let parts = call_jvp(Op::Det, vec![a.into_value()], vec![da.into_value()])?;
    let [d, dd] = parts.map(|mut parts| M::number(parts.swap_remove(0)));
    Ok((d, dd))
}

/// The sign (a phase, if complex) of `det A` and `ln|det A|`, each `[…]`; 0 and −∞ for a singular
/// matrix, which has no gradient.
///
/// # Errors
/// As [`det`].
pub fn slogdet<M: Matrix>(a: M) -> Result<(M::Number, M::RealNumber)> {
    let parts = call(Op::Slogdet, vec![a.into_value()])?;
    Ok(numbers::<M>(parts))
}

/// Sign and logarithm of the determinant, and the tangents of both along `dA`.
///
/// # Errors
/// As [`slogdet`]; `RankDeficient`.
#[allow(clippy::type_complexity)]
pub fn slogdet_jvp<M: Matrix>(
    a: M,
    da: M,
) -> Result<((M::Number, M::RealNumber), (M::Number, M::RealNumber))> {
    let [parts, moved] = call_jvp(Op::Slogdet, vec![a.into_value()], vec![da.into_value()])?;
    Ok((numbers::<M>(parts), numbers::<M>(moved)))
}

fn numbers<M: Matrix>(parts: Vec<Value<M::Backend>>) -> (M::Number, M::RealNumber) {
    let [sign, log] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    (M::number(sign), M::real_number(log))
}
