//! LQ, QL and RQ factorisations, by adjoints and flips of QR.
//!
//! ```text
//! LQ:  Aᴴ = Qᴴ Lᴴ is QR          QL:  A J = (Q J)(J L J) is QR          RQ:  J A = (J R J)(J Q) is LQ
//! ```
//! with `J` the reversal of an axis. Diagonals of triangular factors are real and ≥ 0.

use t4a_tensor::Tensor;

use super::{Columns, Qr, qr_ex};
use crate::error::{LinalgError, Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// LQ factorisation `A = L Q`; rows of `Q` are orthonormal, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Lq<T: LinalgScalar> {
    /// Lower trapezoidal, `[…, m, k]`.
    pub l: Tensor<T>,
    /// Orthonormal rows, `[…, k, n]`.
    pub q: Tensor<T>,
}

/// QL factorisation `A = Q L`; columns of `Q` are orthonormal, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Ql<T: LinalgScalar> {
    /// Orthonormal columns, `[…, m, k]`.
    pub q: Tensor<T>,
    /// Lower trapezoidal towards the last column, `[…, k, n]`.
    pub l: Tensor<T>,
}

/// RQ factorisation `A = R Q`; rows of `Q` are orthonormal, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Rq<T: LinalgScalar> {
    /// Upper trapezoidal towards the last row, `[…, m, k]`.
    pub r: Tensor<T>,
    /// Orthonormal rows, `[…, k, n]`.
    pub q: Tensor<T>,
}

fn adjoint<T: LinalgScalar>(t: &Tensor<T>) -> Result<Tensor<T>> {
    Batched::new(t).adjoint().into_tensor()
}

#[derive(Clone, Copy)]
enum ReversedAxes {
    Rows,
    Cols,
    Both,
}

fn flip<T: LinalgScalar>(t: &Tensor<T>, which: ReversedAxes) -> Result<Tensor<T>> {
    let r = t.rank();
    if r < 2 {
        return Err(LinalgError::NotMatrix { op: "flip", shape: t.shape().to_vec() });
    }
    Ok(match which {
        ReversedAxes::Rows => t.flip(&[r - 2])?,
        ReversedAxes::Cols => t.flip(&[r - 1])?,
        ReversedAxes::Both => t.flip(&[r - 2, r - 1])?,
    })
}

/// LQ factorisation `A = L Q`. Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]`.
///
/// # Errors
/// As [`qr`](super::qr()).
pub fn lq<T: LinalgScalar>(a: &Tensor<T>) -> Result<Lq<T>> {
    let (out, info) = lq_ex(a)?;
    check("lq", &info, SINGULAR)?;
    Ok(out)
}

/// As [`lq`], with an info tensor as in [`qr_ex`].
///
/// # Errors
/// `NotMatrix`.
pub fn lq_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Lq<T>, Tensor<i32>)> {
    let (Qr { q, r }, info) = qr_ex(&adjoint(a)?, Columns::Thin)?;
    Ok((Lq { l: adjoint(&r)?, q: adjoint(&q)? }, info))
}

/// QL factorisation `A = Q L`. Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]`.
///
/// # Errors
/// As [`qr`](super::qr()).
pub fn ql<T: LinalgScalar>(a: &Tensor<T>) -> Result<Ql<T>> {
    let (out, info) = ql_ex(a)?;
    check("ql", &info, SINGULAR)?;
    Ok(out)
}

/// As [`ql`], with an info tensor as in [`qr_ex`].
///
/// # Errors
/// `NotMatrix`.
pub fn ql_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Ql<T>, Tensor<i32>)> {
    let (Qr { q, r }, info) = qr_ex(&flip(a, ReversedAxes::Cols)?, Columns::Thin)?;
    Ok((Ql { q: flip(&q, ReversedAxes::Cols)?, l: flip(&r, ReversedAxes::Both)? }, info))
}

/// RQ factorisation `A = R Q`. Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]`.
///
/// # Errors
/// As [`qr`](super::qr()).
pub fn rq<T: LinalgScalar>(a: &Tensor<T>) -> Result<Rq<T>> {
    let (out, info) = rq_ex(a)?;
    check("rq", &info, SINGULAR)?;
    Ok(out)
}

/// As [`rq`], with an info tensor as in [`qr_ex`].
///
/// # Errors
/// `NotMatrix`.
pub fn rq_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Rq<T>, Tensor<i32>)> {
    let (Lq { l, q }, info) = lq_ex(&flip(a, ReversedAxes::Rows)?)?;
    Ok((Rq { r: flip(&l, ReversedAxes::Both)?, q: flip(&q, ReversedAxes::Rows)? }, info))
}
