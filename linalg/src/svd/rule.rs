//! Derivatives of the singular value decomposition.
//!
//! With all `k = min(m, n)` triplets at hand the cotangents may belong to the leading `p ≤ k` of
//! them. `W = Uᴴ Ū` and `Z = Vᴴ V̄` split into kept rows (`p`) and discarded rows (`r`):
//!
//! ```text
//! a = skew(Wₚ) + skew(Zₚ)      b = skew(Wₚ) − skew(Zₚ)
//! G = a/(Sⱼ−Sᵢ) + b/(Sⱼ+Sᵢ) + diag S̄
//! X = ½[(Wᵣ+Zᵣ)/(Sₚ−Sᵣ) + (Wᵣ−Zᵣ)/(Sₚ+Sᵣ)]     Y = ½[(Wᵣ+Zᵣ)/(Sₚ−Sᵣ) − (Wᵣ−Zᵣ)/(Sₚ+Sᵣ)]
//! Ā = (U [G; X] + (Ū − U W)/Sₚ) Vₚᴴ + Uₚ (V [0; Y] + (V̄ − V Z)/Sₚ)ᴴ
//! ```
//!
//! The diagonal of `b/(2Sᵢ)` is the phase term of the complex case. `a` vanishes on ties exactly
//! if the loss does not depend on the basis of the tied subspace, and its diagonal if the loss
//! does not depend on phases: that is the gauge check. A loss of values and vectors must treat tied
//! values alike as well, `S̄ᵢ = S̄ⱼ`; `tr C f(A)` does not, its derivative at a tie is not a function
//! of the cotangents: see [`hermitian`](crate::hermitian) for functions of matrices. Quotients by singular values that are zero
//! are masked, which gives the derivative of least norm for a rank-deficient matrix.
//!
//! Reference: M. Seeger et al. 2017 for the real case; Z.-Q. Wan, S.-X. Zhang 2019 for the complex
//! one; A. Francuz, N. Schuch, B. Vanhecke 2023 for the truncated one.

use crate::degeneracy::Degeneracy;
use crate::error::Result;
use crate::vocabulary::{Matrices, RealMatrices};

/// Cotangents, or tangents, of the three factors; `None` is zero.
#[derive(Clone, Debug)]
pub struct SvdRule<M: Matrices> {
    /// `m × p`.
    pub u: Option<M>,
    /// `1 × p`.
    pub s: Option<M::Real>,
    /// `p × n`.
    pub vh: Option<M>,
}

/// `Ā` from the cotangents of the leading `p` of all `k` triplets, or of full factors.
///
/// # Errors
/// `GaugeIllDefined` if the loss depends on phases, on the basis of a degenerate subspace or on that
/// of a complement.
pub fn vjp<M: Matrices>(
    u: &M,
    s: &M::Real,
    vh: &M,
    bar: &SvdRule<M>,
    degeneracy: &Degeneracy,
) -> Result<M> {
    let (m, n, k) = (u.rows(), vh.cols(), s.cols());
    if u.cols() > k || vh.rows() > k {
        let v_bar = bar.vh.as_ref().map(M::adjoint);
        let (u, u_bar) = thin(u, bar.u.as_ref(), k, degeneracy)?;
        let (v, v_bar) = thin(&vh.adjoint(), v_bar.as_ref(), k, degeneracy)?;
        let bar = SvdRule { u: u_bar, s: bar.s.clone(), vh: v_bar.map(|v| v.adjoint()) };
        return vjp(&u, s, &v.adjoint(), &bar, degeneracy);
    }
    let given = [bar.u.as_ref().map(M::cols), bar.vh.as_ref().map(M::rows)];
    let p = given.into_iter().flatten().next().or(bar.s.as_ref().map(|s| s.cols())).unwrap_or(0);
    let (u_p, vh_p) = (u.slice(0..m, 0..p), vh.slice(0..p, 0..n));
    if bar.u.is_none() && bar.vh.is_none() {
        return Ok(match &bar.s {
            Some(s_bar) => u_p.mul_real(s_bar).matmul(&vh_p),
            None => u.constant(m, n, 0.0),
        });
    }
    let zero = || u.constant(k, p, 0.0);
    let v_bar = bar.vh.as_ref().map(M::adjoint);
    let w = bar.u.as_ref().map_or_else(zero, |u_bar| u.adjoint().matmul(u_bar));
    let z = v_bar.as_ref().map_or_else(zero, |v_bar| vh.matmul(v_bar));

    let s_p = s.slice(0..1, 0..p);
    let limit = degeneracy.limit(s, m.max(n));
    let (w_p, z_p) = (w.slice(0..p, 0..p), z.slice(0..p, 0..p));
    let (skew_w, skew_z) = (w_p.skew(), z_p.skew());
    let (a, b) = (skew_w.add(&skew_z), skew_w.sub(&skew_z));
    let gaps = degeneracy.gaps(&s_p.sub(&s_p.transpose()), &limit, s);
    let cotangents = [bar.u.as_ref(), v_bar.as_ref()];
    degeneracy.check("svd_vjp", &a.mul_real(&gaps.ties), &cotangents)?;
    let sums = s_p.add(&s_p.transpose()).masked_recip(&limit);
    let mut g = a.mul_real(&gaps.inverse).add(&b.mul_real(&sums));
    if let Some(s_bar) = &bar.s {
        degeneracy.check_values::<M>("svd_vjp", s_bar, &gaps.ties, &cotangents)?;
        g = g.add(&M::from_re(&s_bar.diagonal_matrix()));
    }

    let (mut left, mut right) = (g, None);
    if p < k {
        let (w_r, z_r) = (w.slice(p..k, 0..p), z.slice(p..k, 0..p));
        let s_r = s.slice(0..1, p..k).transpose();
        let gaps = degeneracy.gaps(&s_p.sub(&s_r), &limit, s);
        let sums = s_p.add(&s_r).masked_recip(&limit);
        let even = w_r.add(&z_r);
        degeneracy.check("svd_vjp", &even.mul_real(&gaps.ties), &cotangents)?;
        let even = even.mul_real(&gaps.inverse).scale(0.5);
        let odd = w_r.sub(&z_r).mul_real(&sums).scale(0.5);
        left = left.stack(&even.add(&odd));
        right = Some(u.constant(p, p, 0.0).stack(&even.sub(&odd)));
    }
    // What leaves the span of the k vectors; nothing does if they are a complete basis.
    let inverse = s_p.masked_recip(&limit);
    let outside = |vectors: &M, coefficients: M, bar: &Option<M>, overlap: &M| match bar {
        Some(bar) if vectors.rows() > k => {
            let inner = coefficients.sub(&overlap.mul_real(&inverse));
            vectors.matmul(&inner).add(&bar.mul_real(&inverse))
        }
        _ => vectors.matmul(&coefficients),
    };
    let mut a_bar = outside(u, left, &bar.u, &w).matmul(&vh_p);
    if right.is_some() || n > k {
        let right = right.unwrap_or_else(zero);
        let right = outside(&vh.adjoint(), right, &v_bar, &z);
        a_bar = a_bar.add(&u_p.matmul(&right.adjoint()));
    }
    Ok(a_bar)
}

/// Tangents of all three factors, thin or full; `dU` and `dVᴴ` in the gauge where tied vectors do
/// not rotate into each other and complements move as little as possible.
pub fn jvp<M: Matrices>(
    u: &M,
    s: &M::Real,
    vh: &M,
    da: &M,
    degeneracy: &Degeneracy,
) -> (M, M::Real, M) {
    let (m, n, k) = (u.rows(), vh.cols(), s.cols());
    if u.cols() > k || vh.rows() > k {
        let v = vh.adjoint();
        let (u_k, v_k) = (u.slice(0..m, 0..k), v.slice(0..n, 0..k));
        let (du, ds, dvh) = jvp(&u_k, s, &v_k.adjoint(), da, degeneracy);
        return (complete(u, du), ds, complete(&v, dvh.adjoint()).adjoint());
    }
    let v = vh.adjoint();
    let da_v = da.matmul(&v);
    let dp = u.adjoint().matmul(&da_v);
    let ds = dp.diagonal().re();
    let limit = degeneracy.limit(s, m.max(n));
    let gaps = degeneracy.gaps(&s.sub(&s.transpose()), &limit, s).inverse;
    let sums = s.add(&s.transpose()).masked_recip(&limit);
    let even = dp.herm().mul_real(&gaps);
    let odd = dp.skew().mul_real(&sums);
    let inverse = s.masked_recip(&limit);
    let mut du = u.matmul(&even.add(&odd));
    if m > k {
        du = du.add(&da_v.sub(&u.matmul(&dp)).mul_real(&inverse));
    }
    let mut dv = v.matmul(&even.sub(&odd));
    if n > k {
        let outside = da.adjoint().matmul(u).sub(&v.matmul(&dp.adjoint()));
        dv = dv.add(&outside.mul_real(&inverse));
    }
    (du, ds, dv.adjoint())
}

/// The thin part of a factor, and its cotangent with what the complement contributes.
///
/// `U⊥ U⊥ᴴ = I − U Uᴴ` gives `dU⊥ = −U (dUᴴ U⊥)`, so `Ū⊥` acts as `−U⊥ (Ū⊥ᴴ U)` on `U`.
fn thin<M: Matrices>(
    u: &M,
    bar: Option<&M>,
    k: usize,
    degeneracy: &Degeneracy,
) -> Result<(M, Option<M>)> {
    let (m, width) = (u.rows(), u.cols());
    if width == k {
        return Ok((u.clone(), bar.cloned()));
    }
    let u_k = u.slice(0..m, 0..k);
    let bar = match bar {
        Some(bar) if bar.cols() > k => {
            let rest = u.slice(0..m, k..width);
            let rest_bar = bar.slice(0..m, k..width);
            let defect = rest.adjoint().matmul(&rest_bar).skew();
            degeneracy.check("svd_vjp", &defect, &[Some(bar)])?;
            let moved = rest.matmul(&rest_bar.adjoint().matmul(&u_k));
            Some(bar.slice(0..m, 0..k).sub(&moved))
        }
        bar => bar.cloned(),
    };
    Ok((u_k, bar))
}

/// The tangent of a full factor from that of its thin part: the complement follows.
fn complete<M: Matrices>(u: &M, du: M) -> M {
    let (m, k, width) = (u.rows(), du.cols(), u.cols());
    if width == k {
        return du;
    }
    let moved = du.adjoint().matmul(&u.slice(0..m, k..width));
    du.append(&u.slice(0..m, 0..k).matmul(&moved).neg())
}
