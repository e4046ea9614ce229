//! QR, also complete and pivoted, and its relatives LQ, QL, RQ.

use crate::Result;
use crate::qr::{Columns, LqOp, QrOp, QrPivotedOp};
use t4a_diff::Array;

use super::call::{Outcome, Parts, jvp, plain, results, results_ex, results_jvp, status};
use super::matrix::Matrix;

/// `A = Q R` of a batch of `m × n` matrices, `k = min(m, n)`; the diagonal of `R` is real and
/// not negative.
#[derive(Clone, Debug)]
pub struct Qr<M> {
    /// Orthonormal columns, `[…, m, k]`, or `[…, m, m]` if complete.
    pub q: M,
    /// Upper trapezoidal, `[…, k, n]`, or `[…, m, n]` if complete.
    pub r: M,
}

/// Two matrices out of the parts of a result.
pub(super) fn pair<F, M: Matrix<F>>(parts: Parts<F, M>) -> (M, M) {
    let [a, b] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    (M::from_pair(a), M::from_pair(b))
}

impl<M> Qr<M> {
    pub(super) fn new<F>(parts: Parts<F, M>) -> Self
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

/// `A = Q R`, thin.
///
/// The derivative needs the leading `k` columns to be independent; without, `backward` panics
/// with the text of `RankDeficient`.
///
/// # Errors
/// `NonFinite` with the batch index.
pub fn qr<F, M: Matrix<F>>(a: M) -> Result<Qr<M>> {
    plain(THIN, [a], Qr::new)
}

/// As [`qr`], with the status of each matrix; the factors of a matrix that failed are NaN, its
/// gradient is zero.
///
/// # Errors
/// Those that do not belong to one matrix.
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

/// `A = Q R` with square `Q`.
///
/// The columns beyond `k` are an arbitrary basis of the complement: a loss that depends on more
/// than their span has no derivative and is reported as in [`svd`](super::svd()).
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

/// The complete factors and their tangents along `dA`; the complement moves as little as possible.
///
/// # Errors
/// As [`qr_jvp`].
pub fn qr_complete_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Qr<M>, Qr<M>)> {
    jvp(COMPLETE, [a], [da], Qr::new)
}

/// `A[:, p] = Q R`, thin, with `|R₀₀| ≥ |R₁₁| ≥ …`: the factors and `p`, `[…, n]`, a constant on
/// the tape. The derivative needs full rank as in [`qr`].
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

fn columns<F, M: Matrix<F>>(out: &Outcome<F, M>) -> M::Indices {
    M::indices(out.permutations[0].clone())
}

/// `A = L Q`: `([…, m, k], […, k, n])`, `L` lower trapezoidal, `Q` with orthonormal rows.
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

/// With axes reversed, counted from the last one.
fn reversed<F, M: Matrix<F>>(a: M, from_last: &[usize]) -> M {
    let axes: Vec<usize> = from_last.iter().map(|back| M::RANK - back).collect();
    M::from_pair(a.into_pair().map(|x| x.flip(&axes)))
}

/// `A J = (Q J)(J L J)`, `J` the reversal.
fn ql_factors<F, M: Matrix<F>>(parts: Parts<F, M>) -> (M, M) {
    let (q, r) = pair(parts);
    (reversed(q, &[1]), reversed(r, &[1, 2]))
}

/// `J A = (J R J)(J Q)` is an LQ factorisation.
fn rq_factors<F, M: Matrix<F>>(parts: Parts<F, M>) -> (M, M) {
    let (l, q) = pair(parts);
    (reversed(l, &[1, 2]), reversed(q, &[2]))
}

/// `A = Q L`: `([…, m, k], […, k, n])`, `L` lower trapezoidal towards the last column.
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

/// `A = R Q`: `([…, m, k], […, k, n])`, `R` upper trapezoidal towards the last row.
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
