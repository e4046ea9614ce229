//! QR and its relatives LQ, QL, RQ, by adjoints and reversals of axes.

use burn_backend::TensorMetadata;
use t4a_linalg::{Op, Result};

use super::call::{call, call_ex, call_jvp};
use super::matrix::Matrix;
use super::ops::LinalgOps;
use super::value::Value;

/// `A = Q R` of a batch of `m × n` matrices, `k = min(m, n)`; the diagonal of `R` is real and
/// not negative.
#[derive(Clone, Debug)]
pub struct Qr<M> {
    /// Orthonormal columns, `[…, m, k]`.
    pub q: M,
    /// Upper trapezoidal, `[…, k, n]`.
    pub r: M,
}

/// Two matrices out of the parts of a result.
pub(super) fn pair<M: Matrix>(parts: Vec<Value<M::Backend>>) -> (M, M) {
    let [a, b] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    (M::from_value(a), M::from_value(b))
}

fn factors<M: Matrix>(parts: Vec<Value<M::Backend>>) -> Qr<M> {
    let (q, r) = pair(parts);
    Qr { q, r }
}

/// `A = Q R`, thin.
///
/// The derivative needs the leading `k` columns to be independent; without, `backward` panics
/// with the text of `RankDeficient`.
///
/// # Errors
/// `NonFinite` with the batch index.
pub fn qr<M: Matrix>(a: M) -> Result<Qr<M>> {
    Ok(factors(call(Op::Qr, vec![a.into_value()])?))
}

/// As [`qr`], with the status of each matrix; the factors of a matrix that failed are NaN, its
/// gradient is zero.
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn qr_ex<M: Matrix>(a: M) -> Result<(Qr<M>, M::Info)> {
    let (parts, info, device) = call_ex(Op::Qr, vec![a.into_value()])?;
    Ok((factors(parts), M::info(&info, &device)?))
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`qr`]; `RankDeficient`; `Tensor` if the shapes differ.
pub fn qr_jvp<M: Matrix>(a: M, da: M) -> Result<(Qr<M>, Qr<M>)> {
    let [parts, moved] = call_jvp(Op::Qr, vec![a.into_value()], vec![da.into_value()])?;
    Ok((factors(parts), factors(moved)))
}

fn adjoint<B: LinalgOps>(value: Value<B>) -> Value<B> {
    let transposed: Value<B> = value.map(|x| {
        let rank = x.rank();
        B::float_swap_dims(x, rank - 2, rank - 1)
    });
    match transposed {
        Value::Complex { re, im } => Value::Complex { re, im: B::float_neg(im) },
        real => real,
    }
}

fn reverse<B: LinalgOps>(value: Value<B>, from_last: &[usize]) -> Value<B> {
    value.map(|x| {
        let axes: Vec<usize> = from_last.iter().map(|back| x.rank() - back).collect();
        B::float_flip(x, &axes)
    })
}

/// Both factors of the thin QR factorisation as values.
fn values<B: LinalgOps>(a: Value<B>) -> Result<(Value<B>, Value<B>)> {
    let [q, r] = <[_; 2]>::try_from(call(Op::Qr, vec![a])?).unwrap_or_else(|_| unreachable!("two"));
    Ok((q, r))
}

/// `A = L Q`: `([…, m, k], […, k, n])`, `L` lower trapezoidal, `Q` with orthonormal rows.
///
/// # Errors
/// As [`qr`].
pub fn lq<M: Matrix>(a: M) -> Result<(M, M)> {
    let (q, r) = values(adjoint(a.into_value()))?;
    Ok((M::from_value(adjoint(r)), M::from_value(adjoint(q))))
}

/// `A = Q L`: `([…, m, k], […, k, n])`, `L` lower trapezoidal towards the last column.
///
/// # Errors
/// As [`qr`].
pub fn ql<M: Matrix>(a: M) -> Result<(M, M)> {
    // A J = (Q J)(J L J), J the reversal.
    let (q, r) = values(reverse(a.into_value(), &[1]))?;
    Ok((M::from_value(reverse(q, &[1])), M::from_value(reverse(r, &[1, 2]))))
}

/// `A = R Q`: `([…, m, k], […, k, n])`, `R` upper trapezoidal towards the last row.
///
/// # Errors
/// As [`qr`].
pub fn rq<M: Matrix>(a: M) -> Result<(M, M)> {
    // J A = (J R J)(J Q) is an LQ factorisation.
    let (q, r) = values(adjoint(reverse(a.into_value(), &[2])))?;
    Ok((M::from_value(reverse(adjoint(r), &[1, 2])), M::from_value(reverse(adjoint(q), &[2]))))
}
