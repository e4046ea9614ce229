//! QR factorisation: thin, complete, pivoted; LQ, QL and RQ.

use crate::Result;
use crate::qr::{Columns, LqOp, QrOp, QrPivotedOp};
use t4a_diff::Array;

use super::call::{OutcomeOf, ResultsOf, jvp, plain, results, results_ex, results_jvp, status};
use super::matrix::Matrix;

/// QR factorisation `A = Q R` of a batch of `m × n` matrices, `k = min(m, n)`; the diagonal of `R` is real and
/// nonnegative.
#[derive(Clone, Debug)]
pub struct Qr<M> {
    /// Orthonormal columns, `[…, m, k]`, or `[…, m, m]` if complete.
    pub q: M,
    /// Upper trapezoidal, `[…, k, n]`, or `[…, m, n]` if complete.
    pub r: M,
}

/// The two matrices of a result.
pub(super) fn pair<F, M: Matrix<F>>(parts: ResultsOf<F, M>) -> (M, M) {
    let [a, b] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    (M::from_pair(a), M::from_pair(b))
}

impl<M> Qr<M> {
    pub(super) fn new<F>(parts: ResultsOf<F, M>) -> Self
    where
        M: Matrix<F>,
    {
        let (q, r) = pair(parts);
        Self { q, r }
    }
}

const THIN: QrOp = QrOp { columns: Columns::Thin };
const COMPLETE: QrOp = QrOp { columns: Columns::Complete };
const PIVOTED: QrPivotedOp = QrPivotedOp { columns: Columns::Thin };

/// Thin QR factorisation `A = Q R`.
///
/// The derivative requires that the leading `k` columns are independent; otherwise `backward` panics with the message
/// of `RankDeficient`.
///
/// # Errors
/// `NonFinite` with the batch index.
pub fn qr<F, M: Matrix<F>>(a: M) -> Result<Qr<M>> {
    plain(THIN, [a], Qr::new)
}

/// [`qr`] with the status of each matrix; the factors of a failed matrix are NaN, its gradient is zero.
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn qr_ex<F, M: Matrix<F>>(a: M) -> Result<(Qr<M>, M::Info)> {
    status(THIN, [a], Qr::new)
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`qr`]; `RankDeficient`; `Tensor` if the shapes differ.
pub fn qr_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Qr<M>, Qr<M>)> {
    jvp(THIN, [a], [da], Qr::new)
}

/// QR factorisation `A = Q R` with square `Q`.
///
/// The columns beyond `k` are an arbitrary basis of the complement: a loss that depends on more than their span has
/// no derivative, which is an error as in [`svd`](super::svd()).
///
/// # Errors
/// As [`qr`].
pub fn qr_complete<F, M: Matrix<F>>(a: M) -> Result<Qr<M>> {
    plain(COMPLETE, [a], Qr::new)
}

/// As [`qr_complete`], with the status of each matrix as in [`qr_ex`].
///
/// # Errors
/// As [`qr_ex`].
pub fn qr_complete_ex<F, M: Matrix<F>>(a: M) -> Result<(Qr<M>, M::Info)> {
    status(COMPLETE, [a], Qr::new)
}

/// Complete factors and their tangents along `dA`; the tangent of the complement has minimal norm.
///
/// # Errors
/// As [`qr_jvp`].
pub fn qr_complete_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Qr<M>, Qr<M>)> {
    jvp(COMPLETE, [a], [da], Qr::new)
}

/// Thin QR factorisation with column pivoting, `A[:, p] = Q R` with `|R₀₀| ≥ |R₁₁| ≥ …`: the factors and `p`, `[…,
/// n]`, a constant on the tape. The derivative requires full rank as in [`qr`].
///
/// # Errors
/// As [`qr`].
pub fn qr_pivoted<F, M: Matrix<F>>(a: M) -> Result<(Qr<M>, M::Indices)> {
    let out = results(PIVOTED, [a])?;
    let cols = columns::<F, M>(&out);
    Ok((Qr::new(out.results), cols))
}

/// As [`qr_pivoted`], with the status of each matrix as in [`qr_ex`].
///
/// # Errors
/// As [`qr_ex`].
#[allow(clippy::type_complexity)]
pub fn qr_pivoted_ex<F, M: Matrix<F>>(a: M) -> Result<((Qr<M>, M::Indices), M::Info)> {
    let (out, info) = results_ex(PIVOTED, [a])?;
    let cols = columns::<F, M>(&out);
    Ok(((Qr::new(out.results), cols), info))
}

/// The factors, their tangents along `dA`, and `p`.
///
/// # Errors
/// As [`qr_jvp`].
#[allow(clippy::type_complexity)]
pub fn qr_pivoted_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Qr<M>, Qr<M>, M::Indices)> {
    let (out, tangents) = results_jvp(PIVOTED, [a], [da])?;
    let cols = columns::<F, M>(&out);
    Ok((Qr::new(out.results), Qr::new(tangents), cols))
}

fn columns<F, M: Matrix<F>>(out: &OutcomeOf<F, M>) -> M::Indices {
    M::indices(out.permutations[0].clone())
}

/// LQ factorisation `A = L Q`: `([…, m, k], […, k, n])`, `L` lower trapezoidal, `Q` with orthonormal rows.
///
/// # Errors
/// As [`qr`].
pub fn lq<F, M: Matrix<F>>(a: M) -> Result<(M, M)> {
    plain(LqOp, [a], pair)
}

/// As [`lq`], with the status of each matrix as in [`qr_ex`].
///
/// # Errors
/// As [`qr_ex`].
pub fn lq_ex<F, M: Matrix<F>>(a: M) -> Result<((M, M), M::Info)> {
    status(LqOp, [a], pair)
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`qr_jvp`].
#[allow(clippy::type_complexity)]
pub fn lq_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<((M, M), (M, M))> {
    jvp(LqOp, [a], [da], pair)
}

/// Reverses axes, counted from the last one.
fn reversed<F, M: Matrix<F>>(a: M, from_last: &[usize]) -> M {
    let axes: Vec<usize> = from_last.iter().map(|back| M::RANK - back).collect();
    M::from_pair(a.into_pair().map(|x| x.flip(&axes)))
}

/// QL factors from the QR factorisation `A J = (Q J)(J L J)`, where `J` reverses an axis.
fn ql_factors<F, M: Matrix<F>>(parts: ResultsOf<F, M>) -> (M, M) {
    let (q, r) = pair(parts);
    (reversed(q, &[1]), reversed(r, &[1, 2]))
}

/// RQ factors from the LQ factorisation `J A = (J R J)(J Q)`.
fn rq_factors<F, M: Matrix<F>>(parts: ResultsOf<F, M>) -> (M, M) {
    let (l, q) = pair(parts);
    (reversed(l, &[1, 2]), reversed(q, &[2]))
}

/// QL factorisation `A = Q L`: `([…, m, k], […, k, n])`, `L` lower trapezoidal, aligned to the last column.
///
/// # Errors
/// As [`qr`].
pub fn ql<F, M: Matrix<F>>(a: M) -> Result<(M, M)> {
    plain(THIN, [reversed(a, &[1])], ql_factors)
}

/// As [`ql`], with the status of each matrix as in [`qr_ex`].
///
/// # Errors
/// As [`qr_ex`].
pub fn ql_ex<F, M: Matrix<F>>(a: M) -> Result<((M, M), M::Info)> {
    status(THIN, [reversed(a, &[1])], ql_factors)
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`qr_jvp`].
#[allow(clippy::type_complexity)]
pub fn ql_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<((M, M), (M, M))> {
    jvp(THIN, [reversed(a, &[1])], [reversed(da, &[1])], ql_factors)
}

/// RQ factorisation `A = R Q`: `([…, m, k], […, k, n])`, `R` upper trapezoidal, aligned to the last row.
///
/// # Errors
/// As [`qr`].
pub fn rq<F, M: Matrix<F>>(a: M) -> Result<(M, M)> {
    plain(LqOp, [reversed(a, &[2])], rq_factors)
}

/// As [`rq`], with the status of each matrix as in [`qr_ex`].
///
/// # Errors
/// As [`qr_ex`].
pub fn rq_ex<F, M: Matrix<F>>(a: M) -> Result<((M, M), M::Info)> {
    status(LqOp, [reversed(a, &[2])], rq_factors)
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`qr_jvp`].
#[allow(clippy::type_complexity)]
pub fn rq_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<((M, M), (M, M))> {
    jvp(LqOp, [reversed(a, &[2])], [reversed(da, &[2])], rq_factors)
}
