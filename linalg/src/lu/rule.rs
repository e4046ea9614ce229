//! Derivatives of the LU factorisation `A[p][:, q] = L U`; permutations are constants.
//!
//! With blocks split after `k = min(m, n)` rows and columns, `L = [L₁; L₂]`, `U = [U₁ U₂]` (at most one of `L₂`, `U₂`
//! is not empty):
//!
//! ```text
//! F = tril₋(L₁ᴴ L̄₁ − Ū₂ U₂ᴴ) + triu(Ū₁ U₁ᴴ − L₂ᴴ L̄₂)
//! Ā = [L₁⁻ᴴ F U₁⁻ᴴ   L₁⁻ᴴ Ū₂]        Ā₂ = L̄₂ U₁⁻ᴴ below
//! X = L₁⁻¹ dA₁ U₁⁻¹,  dL₁ = L₁ tril₋ X,  dU₁ = triu(X) U₁
//! dU₂ = L₁⁻¹ (dA₂ − dL₁ U₂),  dL₂ = (dA₂ − L₂ dU₁) U₁⁻¹
//! ```
//!
//! Both need `U₁` invertible.

use crate::error::Result;
use crate::permutation::Permutation;
use crate::triangular::Triangle;
use crate::vocabulary::{Matrices, Region};

const UNIT: Triangle = Triangle::LOWER.unit();

/// `Ā` in pivoted order from the cotangents of `L` and `U`; the caller undoes the permutations.
pub fn vjp<M: Matrices>(l: &M, u: &M, l_cotangent: &M, u_cotangent: &M) -> M {
    let (m, n, k) = (l.rows(), u.cols(), l.cols());
    let (l_1, u_1) = (l.slice(0..k, 0..k), u.slice(0..k, 0..k));
    let mut lower = l_1.adjoint().matmul(&l_cotangent.slice(0..k, 0..k));
    let mut upper = u_cotangent.slice(0..k, 0..k).matmul(&u_1.adjoint());
    if n > k {
        lower = lower.sub(&u_cotangent.slice(0..k, k..n).matmul(&u.slice(0..k, k..n).adjoint()));
    }
    if m > k {
        upper = upper.sub(&l.slice(k..m, 0..k).adjoint().matmul(&l_cotangent.slice(k..m, 0..k)));
    }
    let f = lower.mask(Region::Lower(-1)).add(&upper.mask(Region::Upper(0)));
    let right = u_1.solve_triangular_right(&f, Triangle::UPPER.adjoint());
    let mut a_cotangent = l_1.solve_triangular(&right, UNIT.adjoint());
    if n > k {
        a_cotangent = a_cotangent
            .append(&l_1.solve_triangular(&u_cotangent.slice(0..k, k..n), UNIT.adjoint()));
    }
    if m > k {
        let below = l_cotangent.slice(k..m, 0..k);
        a_cotangent =
            a_cotangent.stack(&u_1.solve_triangular_right(&below, Triangle::UPPER.adjoint()));
    }
    a_cotangent
}

/// `(dL, dU)` along `dA` in pivoted order.
pub fn jvp<M: Matrices>(l: &M, u: &M, da: &M) -> (M, M) {
    let (m, n, k) = (l.rows(), u.cols(), l.cols());
    let (l_1, u_1) = (l.slice(0..k, 0..k), u.slice(0..k, 0..k));
    let left = l_1.solve_triangular(&da.slice(0..k, 0..k), UNIT);
    let x = u_1.solve_triangular_right(&left, Triangle::UPPER);
    let mut dl = l_1.matmul(&x.mask(Region::Lower(-1)));
    let mut du = x.mask(Region::Upper(0)).matmul(&u_1);
    if n > k {
        let right = da.slice(0..k, k..n).sub(&dl.matmul(&u.slice(0..k, k..n)));
        du = du.append(&l_1.solve_triangular(&right, UNIT));
    } else if m > k {
        let below = da.slice(k..m, 0..k).sub(&l.slice(k..m, 0..k).matmul(&du));
        dl = dl.stack(&u_1.solve_triangular_right(&below, Triangle::UPPER));
    }
    (dl, du)
}

/// `L` and `U` of a packed factorisation.
pub(crate) fn unpack<M: Matrices>(packed: &M) -> (M, M) {
    let (m, n) = (packed.rows(), packed.cols());
    let k = m.min(n);
    let ones = packed.constant(m, k, 1.0).mask(Region::Diagonal);
    let l = packed.slice(0..m, 0..k).mask(Region::Lower(-1)).add(&ones);
    (l, packed.slice(0..k, 0..n).mask(Region::Upper(0)))
}

/// `Ā` from the cotangent of the packed factors.
///
/// # Errors
/// `OutOfMemory`.
pub fn vjp_packed<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    cols: Option<&Permutation>,
    cotangent: &M,
) -> Result<M> {
    let (m, n) = (packed.rows(), packed.cols());
    let k = m.min(n);
    let (l, u) = unpack(packed);
    let l_cotangent = cotangent.slice(0..m, 0..k).mask(Region::Lower(-1));
    let u_cotangent = cotangent.slice(0..k, 0..n).mask(Region::Upper(0));
    unpermuted(vjp(&l, &u, &l_cotangent, &u_cotangent), rows, cols)
}

/// `A[p][:, q]`.
fn permuted<M: Matrices>(a: &M, rows: &Permutation, cols: Option<&Permutation>) -> M {
    let a = a.permute_rows(rows);
    cols.map(|cols| a.permute_cols(cols)).unwrap_or(a)
}

/// Adjoint and inverse of [`permuted`].
fn unpermuted<M: Matrices>(a: M, rows: &Permutation, cols: Option<&Permutation>) -> Result<M> {
    let a = a.permute_rows(&rows.inverse()?);
    match cols {
        Some(cols) => Ok(a.permute_cols(&cols.inverse()?)),
        None => Ok(a),
    }
}

/// Tangent of the packed factors along `dA`.
pub fn jvp_packed<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    cols: Option<&Permutation>,
    da: &M,
) -> M {
    let (m, n) = (packed.rows(), packed.cols());
    let k = m.min(n);
    let (l, u) = unpack(packed);
    let (dl, du) = jvp(&l, &u, &permuted(da, rows, cols));
    let dl = if n > k { dl.append(&dl.constant(m, n - k, 0.0)) } else { dl };
    let du = if m > k { du.stack(&du.constant(m - k, n, 0.0)) } else { du };
    dl.add(&du)
}
