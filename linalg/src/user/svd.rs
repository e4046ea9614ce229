//! Singular value decomposition `A = U diag(S) Vᴴ`.

use crate::call::Pair;
use crate::svd::{LowRankOp, SvdOp, SvdvalsOp, Truncation, Vectors};
use crate::{Degeneracy, Result};
use t4a_diff::Array;
use t4a_tensor::DType;

use super::call::{ResultsOf, jvp, one, plain, status};
use super::matrix::Matrix;

/// Singular value decomposition `A = U diag(S) Vᴴ` of a batch of `m × n` matrices, `k = min(m, n)`, singular values
/// in nonincreasing order.
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
    pub(super) fn new(parts: ResultsOf<F, M>) -> Self {
        let [u, s, vh] = <[_; 3]>::try_from(parts).unwrap_or_else(|_| unreachable!("three"));
        Self { u: M::from_pair(u), s: M::real_vector(s), vh: M::from_pair(vh) }
    }
}

const THIN: SvdOp = SvdOp { vectors: Vectors::Thin, degeneracy: Degeneracy::DEFAULT };
const FULL: SvdOp = SvdOp { vectors: Vectors::Full, degeneracy: Degeneracy::DEFAULT };

/// Thin singular value decomposition `A = U diag(S) Vᴴ`.
///
/// Gauge: a loss must not depend on the phases of the pairs `(uᵢ, vᵢ)`, nor on the basis within a subspace of equal
/// singular values. Ties: the derivative of a loss of tied vectors is not a function of the cotangents, and is an
/// error; [`svd_function`](super::svd_function), [`polar`](super::polar), [`low_rank`] and [`svdvals`] are smooth
/// there, and [`svd_with`] has the option for losses of subspaces ([`degeneracy`](crate::degeneracy)). `backward`
/// panics with the message of [`LinalgError::GaugeIllDefined`](crate::LinalgError) or `SplitTie`, since it cannot
/// return an error. A change of sign of real vectors does not appear in a derivative. Zero singular values are ties;
/// losses of the other vectors have a derivative.
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

/// [`svd`] with the status of each matrix instead of an error; the factors of a failed matrix are NaN, its gradient
/// is zero.
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn svd_ex<F, M: Matrix<F>>(a: M) -> Result<(Svd<F, M>, M::Info)> {
    status(THIN, [a], Svd::new)
}

/// The decomposition and its tangent along `dA`, in the gauge `uᵢᴴ duᵢ + vᵢᴴ dvᵢ = 0` in which tied vectors do not
/// rotate into each other.
///
/// # Errors
/// As [`svd`]; `SplitTie` if the direction splits tied values or moves values off zero; `Tensor` if the shapes
/// differ.
pub fn svd_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Svd<F, M>, Svd<F, M>)> {
    jvp(THIN, [a], [da], Svd::new)
}

/// Full singular value decomposition `A = U diag(S) Vᴴ` with square `U` and `V`.
///
/// The vectors beyond `k` are an arbitrary basis: a loss may depend on the subspace that they span, not on the basis.
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

/// Full decomposition and its tangent along `dA`; the tangents of the complements have minimal norm.
///
/// # Errors
/// As [`svd_jvp`].
pub fn svd_full_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Svd<F, M>, Svd<F, M>)> {
    jvp(FULL, [a], [da], Svd::new)
}

/// Row of an operation with one result.
pub(super) fn row<F, M: Matrix<F>>(mut parts: ResultsOf<F, M>) -> M::RealVector {
    M::real_vector(parts.swap_remove(0))
}

/// Singular values in nonincreasing order, `[…, k]`.
///
/// The gradient is `U diag(S̄) Vᴴ` with the computed basis. At ties with different `S̄ᵢ`, and at zeros with `S̄ᵢ ≠
/// 0`, it depends on this basis and is one of the generalised gradients (Clarke): the gradient of the largest of tied
/// values is `u₁ v₁ᴴ` of one pair, not a mean; that of the sum of all values includes `uᵢ vᵢᴴ` of zero values, so it
/// is a subgradient of the nuclear norm, not the one of least norm.
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

/// Singular values and their tangents along `dA`; for tied values those along `A + t dA` for `t > 0`.
///
/// # Errors
/// As [`svd_jvp`].
pub fn svdvals_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M::RealVector, M::RealVector)> {
    jvp(SvdvalsOp, [a], [da], row::<F, M>)
}

/// Truncated singular value decomposition.
#[derive(Clone, Debug)]
pub struct TruncatedSvd<F, M: Matrix<F>> {
    /// Kept triplets.
    pub kept: Svd<F, M>,
    /// `‖A − U S Vᴴ‖_F` from the dropped values, `[…]`; a constant on the tape.
    pub error: M::RealNumber,
}

/// Leading `p` singular triplets; `p` is the largest number over the matrices of the batch, a constant on the tape.
///
/// The derivative contains the coupling of kept and discarded vectors: without it gradients of a truncated
/// decomposition are off by tens of percent. Exact ties are split at [`max_dim`](Truncation::max_dim); a loss that
/// depends on which of the tied vectors were kept has no derivative, which is an error as in [`svd`]. [`low_rank`] is
/// `U S Vᴴ` as one operation.
///
/// # Errors
/// As [`svd`]; `Tensor` for inconsistent policies.
pub fn svd_truncated<F, M: Matrix<F>>(a: M, truncation: &Truncation) -> Result<TruncatedSvd<F, M>> {
    svd_truncated_with(a, truncation, Degeneracy::DEFAULT)
}

/// [`svd_truncated`] with a policy for ties in its derivative. If ties are caused by a symmetry that the loss has as
/// well, as in tensor networks, rounding splits them by more than the default tolerance; a larger tolerance excludes
/// quotients by such gaps from the gradient.
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

/// [`svd_truncated`] with the status of each matrix as in [`svd_ex`]. Failed matrices do not influence the rank.
///
/// # Errors
/// As [`svd_ex`]; `Tensor` for inconsistent policies.
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
/// As [`svd_jvp`]; `Tensor` for inconsistent policies.
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

/// Matrix of the given rank that is closest to `A` in norm, `Uₚ Sₚ Vₚᴴ`; `A` if `rank ≥ min(m, n)`.
///
/// One operation with a derivative also if kept values are tied among themselves, where the factors of
/// [`svd_truncated`] have none. A truncation that splits a tie has no derivative.
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
    parts: ResultsOf<F, M>,
    truncation: &Truncation,
) -> Result<TruncatedSvd<F, M>> {
    let (p, error) = rank(&parts[1], truncation)?;
    Ok(TruncatedSvd { kept: leading(parts, p), error: M::real_number(error) })
}

fn leading<F, M: Matrix<F>>(parts: ResultsOf<F, M>, p: usize) -> Svd<F, M> {
    Svd::new(leading_parts(parts, p))
}

/// First `p` of all triplets.
pub(super) fn leading_parts<A: Array>(parts: Vec<Pair<A>>, p: usize) -> Vec<Pair<A>> {
    // Columns of `U` and of `S`, rows of `Vᴴ`.
    let first =
        |(part, from_last): (Pair<A>, usize)| part.narrow(part.shape().len() - from_last, 0, p);
    parts.into_iter().zip([1, 1, 2]).map(first).collect()
}

/// Number of kept singular values over the rows of `s`, and the truncation error.
pub(super) fn rank<A: Array>(s: &Pair<A>, truncation: &Truncation) -> Result<(usize, Pair<A>)> {
    let shape = s.shape();
    let axis = shape.len() - 1;
    let k = shape[axis];
    let values = s.re.elements()?.cast(DType::F64)?.typed::<f64>()?.to_vec()?;
    // NaN marks a failed matrix.
    let rows = values.chunks_exact(k.max(1)).filter(|row| !row[0].is_nan());
    let p = rows.map(|row| truncation.rank(row)).max().unwrap_or_else(|| truncation.limit(k));
    let dropped = s.re.detach().narrow(axis, p, k - p);
    Ok((p, Pair::real(dropped.mul(&dropped).sum(axis).sqrt())))
}
