//! LQ, QL and RQ, by adjoints and flips of QR.
//!
//! ```text
//! LQ:  Aᴴ = Qᴴ Lᴴ is QR          QL:  A J = (Q J)(J L J) is QR          RQ:  J A = (J R J)(J Q) is LQ
//! ```
//! with `J` the reversal of an axis. Diagonals of triangular factors are real and ≥ 0.

use t4a_tensor::Tensor;

use super::{Columns, Qr, qr_ex, qr_jvp, qr_vjp};
use crate::error::{LinalgError, Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `A = L Q`, rows of `Q` orthonormal, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Lq<T: LinalgScalar> {
    /// Lower trapezoidal, `[…, m, k]`.
    pub l: Tensor<T>,
    /// `[…, k, n]`.
    pub q: Tensor<T>,
}

/// `A = Q L`, columns of `Q` orthonormal, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Ql<T: LinalgScalar> {
    /// `[…, m, k]`.
    pub q: Tensor<T>,
    /// Lower trapezoidal towards the last column, `[…, k, n]`.
    pub l: Tensor<T>,
}

/// `A = R Q`, rows of `Q` orthonormal, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Rq<T: LinalgScalar> {
    /// Upper trapezoidal towards the last row, `[…, m, k]`.
    pub r: Tensor<T>,
    /// `[…, k, n]`.
    pub q: Tensor<T>,
}

fn adjoint<T: LinalgScalar>(t: &Tensor<T>) -> Result<Tensor<T>> {
    Batched::new(t).adjoint().into_tensor()
}

#[derive(Clone, Copy)]
enum Reverse {
    Rows,
    Cols,
    Both,
}

fn flip<T: LinalgScalar>(t: &Tensor<T>, which: Reverse) -> Result<Tensor<T>> {
    let r = t.rank();
    if r < 2 {
        return Err(LinalgError::NotMatrix { op: "flip", shape: t.shape().to_vec() });
    }
    Ok(match which {
        Reverse::Rows => t.flip(&[r - 2])?,
        Reverse::Cols => t.flip(&[r - 1])?,
        Reverse::Both => t.flip(&[r - 2, r - 1])?,
    })
}

fn flip_all<T: LinalgScalar>(t: Option<&Tensor<T>>, which: Reverse) -> Result<Option<Tensor<T>>> {
    t.map(|t| flip(t, which)).transpose()
}

/// `A = L Q`. Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]`.
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

/// `A = Q L`. Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]`.
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
    let (Qr { q, r }, info) = qr_ex(&flip(a, Reverse::Cols)?, Columns::Thin)?;
    Ok((Ql { q: flip(&q, Reverse::Cols)?, l: flip(&r, Reverse::Both)? }, info))
}

/// `A = R Q`. Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]`.
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
    let (Lq { l, q }, info) = lq_ex(&flip(a, Reverse::Rows)?)?;
    Ok((Rq { r: flip(&l, Reverse::Both)?, q: flip(&q, Reverse::Rows)? }, info))
}

impl<T: LinalgScalar> Lq<T> {
    fn as_qr(&self) -> Result<Qr<T>> {
        Ok(Qr { q: adjoint(&self.q)?, r: adjoint(&self.l)? })
    }
}

/// `Ā` from the cotangents of the factors of `A = L Q`; `None` is zero.
///
/// # Errors
/// As [`qr_vjp`].
pub fn lq_vjp<T: LinalgScalar>(
    lq: &Lq<T>,
    l_bar: Option<&Tensor<T>>,
    q_bar: Option<&Tensor<T>>,
) -> Result<Tensor<T>> {
    let q_bar = q_bar.map(adjoint).transpose()?;
    let l_bar = l_bar.map(adjoint).transpose()?;
    adjoint(&qr_vjp(&lq.as_qr()?, q_bar.as_ref(), l_bar.as_ref())?)
}

/// Tangents of the factors of `A = L Q` along `dA`.
///
/// # Errors
/// As [`qr_jvp`].
pub fn lq_jvp<T: LinalgScalar>(lq: &Lq<T>, da: &Tensor<T>) -> Result<Lq<T>> {
    let Qr { q, r } = qr_jvp(&lq.as_qr()?, &adjoint(da)?)?;
    Ok(Lq { l: adjoint(&r)?, q: adjoint(&q)? })
}

impl<T: LinalgScalar> Ql<T> {
    fn as_qr(&self) -> Result<Qr<T>> {
        Ok(Qr { q: flip(&self.q, Reverse::Cols)?, r: flip(&self.l, Reverse::Both)? })
    }
}

/// `Ā` from the cotangents of the factors of `A = Q L`; `None` is zero.
///
/// # Errors
/// As [`qr_vjp`]: the trailing `k` columns of `A` must be independent.
pub fn ql_vjp<T: LinalgScalar>(
    ql: &Ql<T>,
    q_bar: Option<&Tensor<T>>,
    l_bar: Option<&Tensor<T>>,
) -> Result<Tensor<T>> {
    let q_bar = flip_all(q_bar, Reverse::Cols)?;
    let l_bar = flip_all(l_bar, Reverse::Both)?;
    flip(&qr_vjp(&ql.as_qr()?, q_bar.as_ref(), l_bar.as_ref())?, Reverse::Cols)
}

/// Tangents of the factors of `A = Q L` along `dA`.
///
/// # Errors
/// As [`ql_vjp`].
pub fn ql_jvp<T: LinalgScalar>(ql: &Ql<T>, da: &Tensor<T>) -> Result<Ql<T>> {
    let Qr { q, r } = qr_jvp(&ql.as_qr()?, &flip(da, Reverse::Cols)?)?;
    Ok(Ql { q: flip(&q, Reverse::Cols)?, l: flip(&r, Reverse::Both)? })
}

impl<T: LinalgScalar> Rq<T> {
    fn as_lq(&self) -> Result<Lq<T>> {
        Ok(Lq { l: flip(&self.r, Reverse::Both)?, q: flip(&self.q, Reverse::Rows)? })
    }
}

/// `Ā` from the cotangents of the factors of `A = R Q`; `None` is zero.
///
/// # Errors
/// As [`qr_vjp`]: the trailing `k` rows of `A` must be independent.
pub fn rq_vjp<T: LinalgScalar>(
    rq: &Rq<T>,
    r_bar: Option<&Tensor<T>>,
    q_bar: Option<&Tensor<T>>,
) -> Result<Tensor<T>> {
    let r_bar = flip_all(r_bar, Reverse::Both)?;
    let q_bar = flip_all(q_bar, Reverse::Rows)?;
    flip(&lq_vjp(&rq.as_lq()?, r_bar.as_ref(), q_bar.as_ref())?, Reverse::Rows)
}

/// Tangents of the factors of `A = R Q` along `dA`.
///
/// # Errors
/// As [`rq_vjp`].
pub fn rq_jvp<T: LinalgScalar>(rq: &Rq<T>, da: &Tensor<T>) -> Result<Rq<T>> {
    let Lq { l, q } = lq_jvp(&rq.as_lq()?, &flip(da, Reverse::Rows)?)?;
    Ok(Rq { r: flip(&l, Reverse::Both)?, q: flip(&q, Reverse::Rows)? })
}
