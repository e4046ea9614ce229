//! Singular value decomposition `A = U diag(S) Vᴴ`.

use crate::call::Pair;
use crate::svd::{LowRankOp, SvdOp, SvdvalsOp, Truncation};
use crate::{Degeneracy, MatrixOp, Result};
use t4a_diff::Array;
use t4a_tensor::DType;

use super::call::{Arranged, ResultOf, ResultsOf, Shapes, functions, one, parts, plain, row};
use super::matrix::Matrix;

functions! {
    SvdOp: M -> Svd<F, M> = Svd::new;
    SvdvalsOp: M -> M::RealVector = row::<F, M>;
    SvdTruncatedOp: M -> TruncatedSvd<F, M> = TruncatedSvd::new;
    LowRankOp: M -> M = one;
}

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
    fn new(out: ResultsOf<F, M>) -> Result<Self> {
        Ok(Self::of(parts(out)))
    }

    fn of([u, s, vh]: [ResultOf<F, M>; 3]) -> Self {
        Self { u: M::from_pair(u), s: M::real_vector(s), vh: M::from_pair(vh) }
    }
}

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
    plain(SvdOp::THIN, a)
}

/// As [`svd`], with a policy for ties in its derivative.
///
/// # Errors
/// As [`svd`].
pub fn svd_with<F, M: Matrix<F>>(a: M, degeneracy: Degeneracy) -> Result<Svd<F, M>> {
    plain(SvdOp { degeneracy, ..SvdOp::THIN }, a)
}

/// Full singular value decomposition `A = U diag(S) Vᴴ` with square `U` and `V`.
///
/// The vectors beyond `k` are an arbitrary basis: a loss may depend on the subspace that they span, not on the basis.
///
/// # Errors
/// As [`svd`].
pub fn svd_full<F, M: Matrix<F>>(a: M) -> Result<Svd<F, M>> {
    plain(SvdOp::FULL, a)
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
    plain(SvdvalsOp, a)
}

/// Truncated singular value decomposition.
#[derive(Clone, Debug)]
pub struct TruncatedSvd<F, M: Matrix<F>> {
    /// Kept triplets.
    pub kept: Svd<F, M>,
    /// `‖A − U S Vᴴ‖_F` from the dropped values, `[…]`; a constant on the tape.
    pub error: M::RealNumber,
}

impl<F, M: Matrix<F>> TruncatedSvd<F, M> {
    fn new(out: ResultsOf<F, M>) -> Result<Self> {
        let [u, s, vh, error] = parts(out);
        Ok(Self { kept: Svd::of([u, s, vh]), error: M::real_number(error) })
    }
}

/// `A` → the leading `U`, `S`, `Vᴴ`, and the truncation error.
#[derive(Clone, Copy, Debug)]
pub struct SvdTruncatedOp {
    /// Policy that chooses the rank.
    pub truncation: Truncation,
    /// Policy of the derivative rules at ties.
    pub degeneracy: Degeneracy,
}

impl Arranged for SvdTruncatedOp {
    fn name(&self) -> &'static str {
        "svd"
    }
    fn op(&self) -> MatrixOp {
        SvdOp { degeneracy: self.degeneracy, ..SvdOp::THIN }.into()
    }
    fn before<A: Array>(&self, a: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        self.truncation.validate()?;
        Ok(a)
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, _: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        let (p, error) = rank(&out[1], &self.truncation)?;
        let mut kept = leading(out, p);
        kept.push(error);
        Ok(kept)
    }
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
    plain(SvdTruncatedOp { truncation: *truncation, degeneracy }, a)
}

/// Matrix of the given rank that is closest to `A` in norm, `Uₚ Sₚ Vₚᴴ`; `A` if `rank ≥ min(m, n)`.
///
/// One operation with a derivative also if kept values are tied among themselves, where the factors of
/// [`svd_truncated`] have none. A truncation that splits a tie has no derivative.
///
/// # Errors
/// As [`svd`].
pub fn low_rank<F, M: Matrix<F>>(a: M, rank: usize) -> Result<M> {
    plain(LowRankOp { rank }, a)
}

/// First `p` of all triplets.
pub(super) fn leading<A: Array>(parts: Vec<Pair<A>>, p: usize) -> Vec<Pair<A>> {
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
