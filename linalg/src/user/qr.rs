//! QR factorisation: thin, complete, pivoted; LQ, QL and RQ.

use crate::call::Pair;
use crate::qr::{LqOp, QrOp, QrPivotedOp};
use crate::{MatrixOp, Result};
use t4a_diff::Array;

use super::call::{Arranged, ResultsOf, Shapes, functions, plain, two};
use super::matrix::Matrix;

functions! {
    QrOp: M -> Qr<M> = Qr::new;
    QrPivotedOp: M -> (Qr<M>, M::Indices) = pivoted;
    LqOp: M -> (M, M) = two;
    QlOp: M -> (M, M) = two;
    RqOp: M -> (M, M) = two;
}

/// QR factorisation `A = Q R` of a batch of `m × n` matrices, `k = min(m, n)`; the diagonal of `R` is real and
/// nonnegative.
#[derive(Clone, Debug)]
pub struct Qr<M> {
    /// Orthonormal columns, `[…, m, k]`, or `[…, m, m]` if complete.
    pub q: M,
    /// Upper trapezoidal, `[…, k, n]`, or `[…, m, n]` if complete.
    pub r: M,
}

impl<M> Qr<M> {
    fn new<F>(out: ResultsOf<F, M>) -> Result<Self>
    where
        M: Matrix<F>,
    {
        let (q, r) = two(out)?;
        Ok(Self { q, r })
    }
}

/// Thin QR factorisation `A = Q R`.
///
/// The derivative requires that the leading `k` columns are independent; otherwise `backward` panics with the message
/// of `RankDeficient`.
///
/// # Errors
/// `NonFinite` with the batch index.
pub fn qr<F, M: Matrix<F>>(a: M) -> Result<Qr<M>> {
    plain(QrOp::THIN, a)
}

/// QR factorisation `A = Q R` with square `Q`.
///
/// The columns beyond `k` are an arbitrary basis of the complement: a loss that depends on more than their span has
/// no derivative, which is an error as in [`svd`](super::svd()). Their tangent has minimal norm.
///
/// # Errors
/// As [`qr`].
pub fn qr_complete<F, M: Matrix<F>>(a: M) -> Result<Qr<M>> {
    plain(QrOp::COMPLETE, a)
}

/// Thin QR factorisation with column pivoting, `A[:, p] = Q R` with `|R₀₀| ≥ |R₁₁| ≥ …`: the factors and `p`, `[…,
/// n]`, a constant on the tape. The derivative requires full rank as in [`qr`].
///
/// # Errors
/// As [`qr`].
pub fn qr_pivoted<F, M: Matrix<F>>(a: M) -> Result<(Qr<M>, M::Indices)> {
    plain(QrPivotedOp::THIN, a)
}

fn pivoted<F, M: Matrix<F>>(out: ResultsOf<F, M>) -> Result<(Qr<M>, M::Indices)> {
    let columns = M::indices(out.permutations[0].clone());
    Ok((Qr::new(out)?, columns))
}

/// LQ factorisation `A = L Q`: `([…, m, k], […, k, n])`, `L` lower trapezoidal, `Q` with orthonormal rows.
///
/// # Errors
/// As [`qr`].
pub fn lq<F, M: Matrix<F>>(a: M) -> Result<(M, M)> {
    plain(LqOp, a)
}

/// Reverses the rows and the columns as selected.
fn reversed<A: Array>(a: &Pair<A>, rows: bool, columns: bool) -> Pair<A> {
    let rank = a.shape().len();
    let axes = [(rows, rank - 2), (columns, rank - 1)].into_iter();
    let axes: Vec<usize> = axes.filter(|(reverse, _)| *reverse).map(|(_, axis)| axis).collect();
    a.map(|x| x.flip(&axes))
}

/// `A` → `Q`, `L` from the QR factorisation `A J = (Q J)(J L J)`, where `J` reverses an axis.
#[derive(Clone, Copy, Debug)]
pub struct QlOp;

impl Arranged for QlOp {
    fn name(&self) -> &'static str {
        "ql"
    }
    fn op(&self) -> MatrixOp {
        QrOp::THIN.into()
    }
    fn before<A: Array>(&self, a: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        Ok(vec![reversed(&a[0], false, true)])
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, _: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        Ok(vec![reversed(&out[0], false, true), reversed(&out[1], true, true)])
    }
}

/// `A` → `R`, `Q` from the LQ factorisation `J A = (J R J)(J Q)`.
#[derive(Clone, Copy, Debug)]
pub struct RqOp;

impl Arranged for RqOp {
    fn name(&self) -> &'static str {
        "rq"
    }
    fn op(&self) -> MatrixOp {
        LqOp.into()
    }
    fn before<A: Array>(&self, a: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        Ok(vec![reversed(&a[0], true, false)])
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, _: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        Ok(vec![reversed(&out[0], true, true), reversed(&out[1], true, false)])
    }
}

/// QL factorisation `A = Q L`: `([…, m, k], […, k, n])`, `L` lower trapezoidal, aligned to the last column.
///
/// # Errors
/// As [`qr`].
pub fn ql<F, M: Matrix<F>>(a: M) -> Result<(M, M)> {
    plain(QlOp, a)
}

/// RQ factorisation `A = R Q`: `([…, m, k], […, k, n])`, `R` upper trapezoidal, aligned to the last row.
///
/// # Errors
/// As [`qr`].
pub fn rq<F, M: Matrix<F>>(a: M) -> Result<(M, M)> {
    plain(RqOp, a)
}
