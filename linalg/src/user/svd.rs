//! The singular value decomposition `A = U diag(S) Vᴴ`.

use crate::call::Pair;
use crate::svd::{LowRankOp, SvdOp, SvdvalsOp, Truncation, Vectors};
use crate::{Degeneracy, Result};
use t4a_diff::Array;
use t4a_tensor::DType;

use super::call::{Parts, jvp, one, plain, status};
use super::matrix::Matrix;

/// `A = U diag(S) Vᴴ` of a batch of `m × n` matrices, `k = min(m, n)`, singular values in
/// nonincreasing order.
#[derive(Clone, Debug)]
pub struct Svd<F, M: Matrix<F>> {
    /// Left singular vectors, `[…, m, k]`, or `[…, m, m]` if full.
    pub u: M,
    /// Singular values, `[…, k]`, real.
    pub s: M::RealVector,
    /// Right singular vectors as rows, `[…, k, n]`, or `[…, n, n]` if full.
    pub vh: M,
}

impl<F, M: Matrix<F>> Svd<F, M> {
    pub(super) fn new(parts: Parts<F, M>) -> Self {
        let [u, s, vh] = <[_; 3]>::try_from(parts).unwrap_or_else(|_| unreachable!("three"));
        Self { u: M::from_pair(u), s: M::real_vector(s), vh: M::from_pair(vh) }
    }
}

const THIN: SvdOp = SvdOp { vectors: Vectors::Thin, degeneracy: Degeneracy::DEFAULT };
const FULL: SvdOp = SvdOp { vectors: Vectors::Full, degeneracy: Degeneracy::DEFAULT };

/// `A = U diag(S) Vᴴ`, thin.
///
/// Gauge: a loss must not depend on the phases of the pairs `(uᵢ, vᵢ)`, nor on the basis within a
/// subspace of equal singular values. Ties: the derivative of a loss of tied vectors is not a function
/// of what the rule is given, and is an error; [`svd_function`](super::svd_function),
/// [`polar`](super::polar), [`low_rank`] and [`svdvals`] are smooth there, and [`svd_with`] has the
/// option for losses of subspaces ([`degeneracy`](crate::degeneracy)). `backward` panics with the text
/// of [`LinalgError::GaugeIllDefined`](crate::LinalgError) or `SplitTie`: it has no other way to return
/// an error. A change of sign of real vectors cannot be seen in a derivative. Singular values that are
/// zero are ties; losses of the other vectors have their derivative.
///
/// # Errors
/// `NonFinite`, `NoConvergence` with the batch index.
pub fn svd<F, M: Matrix<F>>(a: M) -> Result<Svd<F, M>> {
    plain(THIN, [a], Svd::new)
}

/// As [`svd`], with a policy for ties in its derivative.
///
/// # Errors
/// As [`svd`].
pub fn svd_with<F, M: Matrix<F>>(a: M, degeneracy: Degeneracy) -> Result<Svd<F, M>> {
    plain(SvdOp { vectors: Vectors::Thin, degeneracy }, [a], Svd::new)
}

/// As [`svd`], with the status of each matrix instead of an error; the factors of a matrix that
/// failed are NaN, its gradient is zero.
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn svd_ex<F, M: Matrix<F>>(a: M) -> Result<(Svd<F, M>, M::Info)> {
    status(THIN, [a], Svd::new)
}

/// The decomposition and its tangent along `dA`, in the gauge `uᵢᴴ duᵢ + vᵢᴴ dvᵢ = 0` where tied
/// vectors do not rotate into each other.
///
/// # Errors
/// As [`svd`]; `SplitTie` if the direction splits tied values or moves values off zero; `Tensor` if the
/// shapes differ.
pub fn svd_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Svd<F, M>, Svd<F, M>)> {
    jvp(THIN, [a], [da], Svd::new)
}

/// `A = U diag(S) Vᴴ` with square `U` and `V`.
///
/// The vectors beyond `k` are an arbitrary basis: a loss may depend on the subspace they span, not
/// on the basis.
///
/// # Errors
/// As [`svd`].
pub fn svd_full<F, M: Matrix<F>>(a: M) -> Result<Svd<F, M>> {
    plain(FULL, [a], Svd::new)
}

/// As [`svd_full`], with the status of each matrix as in [`svd_ex`].
///
/// # Errors
/// As [`svd_ex`].
pub fn svd_full_ex<F, M: Matrix<F>>(a: M) -> Result<(Svd<F, M>, M::Info)> {
    status(FULL, [a], Svd::new)
}

/// The full decomposition and its tangent along `dA`; complements move as little as possible.
///
/// # Errors
/// As [`svd_jvp`].
pub fn svd_full_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Svd<F, M>, Svd<F, M>)> {
    jvp(FULL, [a], [da], Svd::new)
}

/// The row of a result with one part.
pub(super) fn row<F, M: Matrix<F>>(mut parts: Parts<F, M>) -> M::RealVector {
    M::real_vector(parts.swap_remove(0))
}

/// Singular values in nonincreasing order, `[…, k]`.
///
/// The gradient is `U diag(S̄) Vᴴ` of the basis computed. At ties with different `S̄ᵢ`, and at zeros with
/// `S̄ᵢ ≠ 0`, it depends on this basis and is one of the generalised gradients (Clarke): that of the largest of
/// tied values is `u₁ v₁ᴴ` of one pair, not a mean; that of the sum of all values includes `uᵢ vᵢᴴ` of those that
/// are zero, so it is a subgradient of the nuclear norm, not the least one.
///
/// # Errors
/// As [`svd`].
pub fn svdvals<F, M: Matrix<F>>(a: M) -> Result<M::RealVector> {
    plain(SvdvalsOp, [a], row::<F, M>)
}

/// As [`svdvals`], with the status of each matrix as in [`svd_ex`].
///
/// # Errors
/// As [`svd_ex`].
pub fn svdvals_ex<F, M: Matrix<F>>(a: M) -> Result<(M::RealVector, M::Info)> {
    status(SvdvalsOp, [a], row::<F, M>)
}

/// Singular values and their tangents along `dA`; tied values move as along `A + t dA` for `t > 0`.
///
/// # Errors
/// As [`svd_jvp`].
pub fn svdvals_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M::RealVector, M::RealVector)> {
    jvp(SvdvalsOp, [a], [da], row::<F, M>)
}

/// The leading singular triplets.
#[derive(Clone, Debug)]
pub struct TruncatedSvd<F, M: Matrix<F>> {
    /// The triplets kept.
    pub kept: Svd<F, M>,
    /// `‖A − U S Vᴴ‖_F` from the values dropped, `[…]`; a constant on the tape.
    pub error: M::RealNumber,
}

/// The leading `p` singular triplets; `p` is the largest number that a matrix of the batch asks
/// for, a constant on the tape.
///
/// The derivative contains the coupling of kept and discarded vectors: without it gradients of a
/// truncated decomposition are off by tens of percent. Exact ties give exactly
/// [`max_dim`](Truncation::max_dim) triplets; a loss that depends on which of tied vectors were
/// kept has no derivative and is reported as in [`svd`]. [`low_rank`] is `U S Vᴴ` as one operation.
///
/// # Errors
/// As [`svd`]; `Tensor` for policies that contradict themselves.
pub fn svd_truncated<F, M: Matrix<F>>(a: M, truncation: &Truncation) -> Result<TruncatedSvd<F, M>> {
    svd_truncated_with(a, truncation, Degeneracy::DEFAULT)
}

/// As [`svd_truncated`], with a policy for ties in its derivative. Where ties come from a symmetry
/// that the loss has as well, as in tensor networks, rounding splits them by more than the default
/// tolerance; a larger one keeps quotients by such gaps out of the gradient.
///
/// # Errors
/// As [`svd_truncated`].
pub fn svd_truncated_with<F, M: Matrix<F>>(
    a: M,
    truncation: &Truncation,
    degeneracy: Degeneracy,
) -> Result<TruncatedSvd<F, M>> {
    truncation.validate()?;
    truncated(plain(SvdOp { vectors: Vectors::Thin, degeneracy }, [a], |parts| parts)?, truncation)
}

/// As [`svd_truncated`], with the status of each matrix as in [`svd_ex`]. Matrices that failed have
/// no say in the rank.
///
/// # Errors
/// As [`svd_ex`]; `Tensor` for policies that contradict themselves.
pub fn svd_truncated_ex<F, M: Matrix<F>>(
    a: M,
    truncation: &Truncation,
) -> Result<(TruncatedSvd<F, M>, M::Info)> {
    truncation.validate()?;
    let (parts, info) = status(THIN, [a], |parts| parts)?;
    Ok((truncated(parts, truncation)?, info))
}

/// The leading triplets and their tangents along `dA`; the rank is a constant.
///
/// # Errors
/// As [`svd_jvp`]; `Tensor` for policies that contradict themselves.
pub fn svd_truncated_jvp<F, M: Matrix<F>>(
    a: M,
    da: M,
    truncation: &Truncation,
) -> Result<(Svd<F, M>, Svd<F, M>)> {
    truncation.validate()?;
    let (parts, tangents) = jvp(THIN, [a], [da], |parts| parts)?;
    let (p, _) = rank(&parts[1], truncation)?;
    Ok((leading(parts, p), leading(tangents, p)))
}

/// The matrix of a rank that is closest to `A` in norm, `Uₚ Sₚ Vₚᴴ`; `A` if `rank ≥ min(m, n)`.
///
/// One operation with a derivative where kept values are tied among themselves, which has none through
/// the factors of [`svd_truncated`]. At a cut through a tie there is no derivative.
///
/// # Errors
/// As [`svd`].
pub fn low_rank<F, M: Matrix<F>>(a: M, rank: usize) -> Result<M> {
    plain(LowRankOp { rank }, [a], one)
}

/// As [`low_rank`], with the status of each matrix as in [`svd_ex`].
///
/// # Errors
/// As [`svd_ex`].
pub fn low_rank_ex<F, M: Matrix<F>>(a: M, rank: usize) -> Result<(M, M::Info)> {
    status(LowRankOp { rank }, [a], one)
}

/// The matrix and its tangent along `dA`.
///
/// # Errors
/// As [`low_rank`]; `SplitTie` at a cut through a tie; `Tensor` if the shapes differ.
pub fn low_rank_jvp<F, M: Matrix<F>>(a: M, da: M, rank: usize) -> Result<(M, M)> {
    jvp(LowRankOp { rank }, [a], [da], one)
}

pub(super) fn truncated<F, M: Matrix<F>>(
    parts: Parts<F, M>,
    truncation: &Truncation,
) -> Result<TruncatedSvd<F, M>> {
    let (p, error) = rank(&parts[1], truncation)?;
    Ok(TruncatedSvd { kept: leading(parts, p), error: M::real_number(error) })
}

fn leading<F, M: Matrix<F>>(parts: Parts<F, M>, p: usize) -> Svd<F, M> {
    Svd::new(leading_parts(parts, p))
}

/// The first `p` of all triplets.
pub(super) fn leading_parts<A: Array>(parts: Vec<Pair<A>>, p: usize) -> Vec<Pair<A>> {
    // Columns of `U` and of `S`, rows of `Vᴴ`.
    let first =
        |(part, from_last): (Pair<A>, usize)| part.narrow(part.shape().len() - from_last, 0, p);
    parts.into_iter().zip([1, 1, 2]).map(first).collect()
}

/// How many of the singular values in the rows of `s` to keep, and the error of that.
pub(super) fn rank<A: Array>(s: &Pair<A>, truncation: &Truncation) -> Result<(usize, Pair<A>)> {
    let shape = s.shape();
    let axis = shape.len() - 1;
    let k = shape[axis];
    let values = s.re.elements()?.cast(DType::F64)?.typed::<f64>()?.to_vec()?;
    // NaN: a matrix that failed.
    let rows = values.chunks_exact(k.max(1)).filter(|row| !row[0].is_nan());
    let p = rows.map(|row| truncation.rank(row)).max().unwrap_or_else(|| truncation.limit(k));
    let dropped = s.re.detach().narrow(axis, p, k - p);
    Ok((p, Pair::real(dropped.mul(&dropped).sum(axis).sqrt())))
}
