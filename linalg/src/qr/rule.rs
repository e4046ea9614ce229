//! Derivatives of the QR factorisation.
//!
//! With `copyltu(M)` the Hermitian matrix whose lower triangle is that of `M` (real diagonal,
//! [`hermitian_from_lower`](Matrices::hermitian_from_lower)), and
//! `R = [R₁ R₂]`, `A = [A₁ A₂]` split after `k` columns:
//!
//! ```text
//! Q̄' = Q̄ + Q R₂ R̄₂ᴴ
//! Ā₁ = (Q̄' + Q copyltu(R₁ R̄₁ᴴ − Q̄'ᴴ Q)) R₁⁻ᴴ        Ā₂ = Q R̄₂
//! dR₁ = (W − Ω) R₁,  dQ = X − Q W + Q Ω,  X = dA₁ R₁⁻¹,  W = Qᴴ X,
//! Ω = tril₋(W) − tril₋(W)ᴴ + i Im diag W,            dR₂ = Qᴴ dA₂ − Ω R₂
//! ```
//!
//! Both need `R₁` invertible.
//!
//! Reference: M. Seeger et al. 2017; H. Xie, J.-G. Liu, L. Wang 2020; D. Roberts, L. Roberts 2020.

use crate::degeneracy::{Degeneracy, rounding};
use crate::error::{LinalgError, Result};
use crate::triangular::Triangle;
use crate::vocabulary::{Matrices, RealMatrices, Region};

/// Checks that no diagonal entry of the triangular factor is zero up to rounding.
pub(crate) fn check_full_rank<M: Matrices>(op: &'static str, r: &M) -> Result<()> {
    let diagonal = r.diagonal().re();
    let limit = diagonal.largest().scale(r.epsilon() * rounding(r.rows().max(r.cols())));
    let required = diagonal.cols();
    for (batch, small) in diagonal.within(&limit).norms()?.into_iter().enumerate() {
        if small > 0.0 {
            // The Frobenius norm of an indicator is the square root of its number of ones.
            let rank = required - (small * small).round() as usize;
            return Err(LinalgError::RankDeficient { op, batch, rank, required });
        }
    }
    Ok(())
}

/// `X + Y`; an absent `X` is zero.
fn plus<M: Matrices>(x: Option<&M>, y: M) -> M {
    x.map_or_else(|| y.clone(), |x| x.add(&y))
}

/// `Ā` from the cotangents of `Q` (`m × k`, or `m × m` if complete) and `R`.
///
/// # Errors
/// `RankDeficient` if the leading `k` columns of `A` are dependent; `GaugeIllDefined` if the loss
/// depends on the basis of the complement.
pub fn vjp<M: Matrices>(
    q: &M,
    r: &M,
    q_cotangent: Option<&M>,
    r_cotangent: Option<&M>,
) -> Result<M> {
    let (m, n, width) = (q.rows(), r.cols(), q.cols());
    let k = m.min(n);
    if width > k {
        let q_k = q.slice(0..m, 0..k);
        let q_cotangent = match q_cotangent {
            Some(cotangent) => {
                // Q⊥ Q⊥ᴴ = I − Q Qᴴ: Q̄⊥ acts as −Q⊥ Q̄⊥ᴴ Q on Q.
                let (rest, rest_cotangent) =
                    (q.slice(0..m, k..width), cotangent.slice(0..m, k..width));
                let defect = rest.adjoint().matmul(&rest_cotangent).skew();
                let one = q.re().constant(1, 1, 1.0);
                Degeneracy::default().check("qr_vjp", &defect, &[Some(cotangent)], &one)?;
                Some(
                    cotangent
                        .slice(0..m, 0..k)
                        .sub(&rest.matmul(&rest_cotangent.adjoint().matmul(&q_k))),
                )
            }
            None => None,
        };
        let r_cotangent = r_cotangent.map(|r_cotangent| r_cotangent.slice(0..k, 0..n));
        return vjp(&q_k, &r.slice(0..k, 0..n), q_cotangent.as_ref(), r_cotangent.as_ref());
    }
    check_full_rank("qr_vjp", r)?;
    let r_1 = r.slice(0..k, 0..k);
    let r_cotangent = r_cotangent.map(|r_cotangent| r_cotangent.mask(Region::Upper(0)));
    let mut q_cotangent = q_cotangent.cloned();
    let mut inner = None;
    if let Some(r_cotangent) = &r_cotangent {
        if n > k {
            let (r_2, r_bar_2) = (r.slice(0..k, k..n), r_cotangent.slice(0..k, k..n));
            let of_r_2 = q.matmul(&r_2.matmul(&r_bar_2.adjoint()));
            q_cotangent = Some(plus(q_cotangent.as_ref(), of_r_2));
        }
        inner = Some(r_1.matmul(&r_cotangent.slice(0..k, 0..k).adjoint()));
    }
    if let Some(q_cotangent) = &q_cotangent {
        let overlap = q_cotangent.adjoint().matmul(q);
        inner = Some(inner.map_or_else(|| overlap.neg(), |inner| inner.sub(&overlap)));
    }
    let inner = inner.unwrap_or_else(|| q.constant(k, k, 0.0)).hermitian_from_lower();
    let left = plus(q_cotangent.as_ref(), q.matmul(&inner));
    let a_cotangent = r_1.solve_triangular_right(&left, Triangle::UPPER.adjoint());
    Ok(match &r_cotangent {
        _ if n == k => a_cotangent,
        Some(r_cotangent) => a_cotangent.append(&q.matmul(&r_cotangent.slice(0..k, k..n))),
        None => a_cotangent.append(&q.constant(m, n - k, 0.0)),
    })
}

/// `(dQ, dR)` along `dA`.
///
/// # Errors
/// `RankDeficient` as in [`vjp`].
pub fn jvp<M: Matrices>(q: &M, r: &M, da: &M) -> Result<(M, M)> {
    let (m, n, width) = (q.rows(), r.cols(), q.cols());
    let k = m.min(n);
    if width > k {
        let (q_k, rest) = (q.slice(0..m, 0..k), q.slice(0..m, k..width));
        let (dq, dr) = jvp(&q_k, &r.slice(0..k, 0..n), da)?;
        let moved = q_k.matmul(&dq.adjoint().matmul(&rest)).neg();
        return Ok((dq.append(&moved), dr.stack(&dr.constant(width - k, n, 0.0))));
    }
    check_full_rank("qr_jvp", r)?;
    let r_1 = r.slice(0..k, 0..k);
    let x = r_1.solve_triangular_right(&da.slice(0..m, 0..k), Triangle::UPPER);
    let w = q.adjoint().matmul(&x);
    let lower = w.mask(Region::Lower(-1));
    let diagonal = w.mask(Region::Diagonal);
    // i Im diag W
    let phases = diagonal.sub(&M::from_re(&diagonal.re()));
    let omega = lower.sub(&lower.adjoint()).add(&phases);
    let dq = x.sub(&q.matmul(&w)).add(&q.matmul(&omega));
    let dr = w.sub(&omega).mask(Region::Upper(0)).matmul(&r_1);
    if n == k {
        return Ok((dq, dr));
    }
    let dr_2 = q.adjoint().matmul(&da.slice(0..m, k..n)).sub(&omega.matmul(&r.slice(0..k, k..n)));
    Ok((dq, dr.append(&dr_2)))
}
