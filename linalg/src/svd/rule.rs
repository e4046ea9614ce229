//! Derivatives of the singular value decomposition.
//!
//! Given all `k = min(m, n)` triplets, the cotangents may be those of the leading `p ≤ k`. `W = Uᴴ Ū` and `Z = Vᴴ V̄`
//! are split into kept rows (`p`) and discarded rows (`r`):
//!
//! ```text
//! a = skew(Wₚ) + skew(Zₚ)      b = skew(Wₚ) − skew(Zₚ)
//! G = a/(Sⱼ−Sᵢ) + b/(Sⱼ+Sᵢ) + diag S̄
//! X = ½[(Wᵣ+Zᵣ)/(Sₚ−Sᵣ) + (Wᵣ−Zᵣ)/(Sₚ+Sᵣ)]     Y = ½[(Wᵣ+Zᵣ)/(Sₚ−Sᵣ) − (Wᵣ−Zᵣ)/(Sₚ+Sᵣ)]
//! Ā = (U [G; X] + (Ū − U W)/Sₚ) Vₚᴴ + Uₚ (V [0; Y] + (V̄ − V Z)/Sₚ)ᴴ
//! ```
//!
//! The diagonal of `b/(2Sᵢ)` is the phase term of the complex case. `a` vanishes at ties if the loss is independent
//! of the basis of the tied subspace, and on its diagonal if the loss is independent of phases: this is the gauge
//! check. [`degeneracy`](crate::degeneracy) states which losses of tied vectors are accepted. With `separable`,
//! quotients by zero singular values are masked, which gives the derivative of least norm for a rank-deficient
//! matrix.
//!
//! Reference: M. Seeger et al. 2017 for the real case; Z.-Q. Wan, S.-X. Zhang 2019 for the complex
//! one; A. Francuz, N. Schuch, B. Vanhecke 2023 for the truncated one.

use crate::degeneracy::{Degeneracy, TiedBlocks, columns};
use crate::error::Result;
use crate::vocabulary::{Matrices, RealMatrices, Spectrum};

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
/// of a complement; `SplitTie` if it uses tied vectors.
pub fn vjp<M: Matrices>(
    u: &M,
    s: &M::Real,
    vh: &M,
    cotangent: &SvdRule<M>,
    degeneracy: &Degeneracy,
) -> Result<M> {
    let (m, n, k) = (u.rows(), vh.cols(), s.cols());
    if u.cols() > k || vh.rows() > k {
        let v_cotangent = cotangent.vh.as_ref().map(M::adjoint);
        let (u, u_cotangent) = thin(u, cotangent.u.as_ref(), k, degeneracy)?;
        let (v, v_cotangent) = thin(&vh.adjoint(), v_cotangent.as_ref(), k, degeneracy)?;
        let cotangent = SvdRule {
            u: u_cotangent,
            s: cotangent.s.clone(),
            vh: v_cotangent.map(|v| v.adjoint()),
        };
        return vjp(&u, s, &v.adjoint(), &cotangent, degeneracy);
    }
    let given = [cotangent.u.as_ref().map(M::cols), cotangent.vh.as_ref().map(M::rows)];
    let p =
        given.into_iter().flatten().next().or(cotangent.s.as_ref().map(|s| s.cols())).unwrap_or(0);
    let (u_p, vh_p) = (u.slice(0..m, 0..p), vh.slice(0..p, 0..n));
    if cotangent.u.is_none() && cotangent.vh.is_none() {
        return Ok(match &cotangent.s {
            Some(s_cotangent) => u_p.mul_real(s_cotangent).matmul(&vh_p),
            None => u.constant(m, n, 0.0),
        });
    }
    let zero = || u.constant(k, p, 0.0);
    let v_cotangent = cotangent.vh.as_ref().map(M::adjoint);
    let w = cotangent.u.as_ref().map_or_else(zero, |u_cotangent| u.adjoint().matmul(u_cotangent));
    let z = v_cotangent.as_ref().map_or_else(zero, |v_cotangent| vh.matmul(v_cotangent));

    let s_p = s.slice(0..1, 0..p);
    let limit = degeneracy.limit(s, m.max(n));
    let (w_p, z_p) = (w.slice(0..p, 0..p), z.slice(0..p, 0..p));
    let (skew_w, skew_z) = (w_p.skew(), z_p.skew());
    let (a, b) = (skew_w.add(&skew_z), skew_w.sub(&skew_z));
    let gaps = s_p.sub(&s_p.transpose());
    let cotangents = [cotangent.u.as_ref(), v_cotangent.as_ref()];
    let largest = s.largest_real();
    let blocks = TiedBlocks::find("svd_vjp", degeneracy, Spectrum::Singular, s, &limit, m.max(n))?;
    if M::IS_COMPLEX || blocks.is_some() {
        let ties = TiedBlocks::part(blocks.as_ref(), &a, &gaps, &limit);
        degeneracy.check("svd_vjp", &ties, &cotangents, &largest)?;
    }
    if let Some(blocks) = &blocks {
        check(blocks, [&w, &z], cotangent)?;
    }
    let sums = s_p.add(&s_p.transpose()).masked_recip(&limit);
    let inverse = degeneracy.inverse(&gaps, &limit, s);
    let mut g = a.mul_real(&inverse).add(&b.mul_real(&sums));
    if let Some(s_cotangent) = &cotangent.s {
        g = g.add(&M::from_re(s_cotangent).diagonal_matrix());
    }

    let (mut left, mut right) = (g, None);
    if p < k {
        let (w_r, z_r) = (w.slice(p..k, 0..p), z.slice(p..k, 0..p));
        let s_r = s.slice(0..1, p..k).transpose();
        let gaps = s_p.sub(&s_r);
        let sums = s_p.add(&s_r).masked_recip(&limit);
        let even = w_r.add(&z_r);
        if blocks.is_some() {
            degeneracy.check(
                "svd_vjp",
                &even.mul_real(&gaps.within(&limit)),
                &cotangents,
                &largest,
            )?;
        }
        let even = even.mul_real(&degeneracy.inverse(&gaps, &limit, s)).scale(0.5);
        let odd = w_r.sub(&z_r).mul_real(&sums).scale(0.5);
        left = left.stack(&even.add(&odd));
        right = Some(u.constant(p, p, 0.0).stack(&even.sub(&odd)));
    }
    // Component orthogonal to the k vectors; zero if they form a complete basis.
    let inverse = s_p.masked_recip(&limit);
    let outside = |vectors: &M, coefficients: M, cotangent: &Option<M>, overlap: &M| match cotangent
    {
        Some(cotangent) if vectors.rows() > k => {
            let inner = coefficients.sub(&overlap.mul_real(&inverse));
            vectors.matmul(&inner).add(&cotangent.mul_real(&inverse))
        }
        _ => vectors.matmul(&coefficients),
    };
    let mut a_cotangent = outside(u, left, &cotangent.u, &w).matmul(&vh_p);
    if right.is_some() || n > k {
        let right = right.unwrap_or_else(zero);
        let right = outside(&vh.adjoint(), right, &v_cotangent, &z);
        a_cotangent = a_cotangent.add(&u_p.matmul(&right.adjoint()));
    }
    Ok(a_cotangent)
}

/// Returns an error for losses of tied vectors: `w = Uᴴ Ū`, `z = Vᴴ V̄`, `k × p`.
fn check<M: Matrices>(
    blocks: &TiedBlocks<M::Real>,
    [w, z]: [&M; 2],
    cotangent: &SvdRule<M>,
) -> Result<()> {
    let (k, p) = (w.rows(), w.cols());
    if p == 0 {
        return Ok(());
    }
    // Discarded triplets have zero cotangents.
    let wide = |x: &M| if p < k { x.append(&x.constant(k, k - p, 0.0)) } else { x.clone() };
    let row = |x: M::Real| if p < k { x.append(&x.constant(1, k - p, 0.0)) } else { x };
    let none = || w.re().constant(1, p, 0.0);
    let of_u = row(cotangent.u.as_ref().map_or_else(none, columns));
    let of_v = row(cotangent.vh.as_ref().map_or_else(none, |vh| columns(&vh.transpose())));
    blocks.check_vectors(&wide(w), &of_u)?;
    blocks.check_vectors(&wide(z), &of_v)?;
    match &cotangent.s {
        Some(s) => blocks.check_values(&row(s.clone()), &of_u.add(&of_v)),
        None => Ok(()),
    }
}

/// Tangents of all three factors, thin or full; `dU` and `dVᴴ` in the gauge in which tied vectors do not rotate into
/// each other and the tangent of the complement has minimal norm.
///
/// # Errors
/// `SplitTie` for a direction that splits tied values or moves values off zero.
pub fn jvp<M: Matrices>(
    u: &M,
    s: &M::Real,
    vh: &M,
    da: &M,
    degeneracy: &Degeneracy,
) -> Result<(M, M::Real, M)> {
    let (m, n, k) = (u.rows(), vh.cols(), s.cols());
    if u.cols() > k || vh.rows() > k {
        let v = vh.adjoint();
        let (u_k, v_k) = (u.slice(0..m, 0..k), v.slice(0..n, 0..k));
        let (du, ds, dvh) = jvp(&u_k, s, &v_k.adjoint(), da, degeneracy)?;
        return Ok((complete(u, du), ds, complete(&v, dvh.adjoint()).adjoint()));
    }
    let v = vh.adjoint();
    let da_v = da.matmul(&v);
    let dp = u.adjoint().matmul(&da_v);
    let ds = dp.diagonal().re();
    let limit = degeneracy.limit(s, m.max(n));
    let blocks = TiedBlocks::find("svd_jvp", degeneracy, Spectrum::Singular, s, &limit, m.max(n))?;
    let gaps = degeneracy.inverse(&s.sub(&s.transpose()), &limit, s);
    let sums = s.add(&s.transpose()).masked_recip(&limit);
    let even = dp.herm().mul_real(&gaps);
    let odd = dp.skew().mul_real(&sums);
    let inverse = s.masked_recip(&limit);
    if let Some(blocks) = blocks.filter(|_| degeneracy.rejects_split()) {
        let size = columns(da).largest_real();
        blocks.check_direction(&dp, &size)?;
        // Along dA zero singular values stay zero, and their vectors leave the null spaces only.
        let kept = blocks.zero().constant(1, 1, 1.0).sub(blocks.zero()).transpose();
        let left = da_v.sub(&u.matmul(&dp.mul_real(&kept)));
        blocks.compare(&left.modulus().mul(blocks.zero()), &size)?;
        let right = da.adjoint().matmul(u).sub(&v.matmul(&dp.adjoint().mul_real(&kept)));
        blocks.compare(&right.modulus().mul(blocks.zero()), &size)?;
    }
    let mut du = u.matmul(&even.add(&odd));
    if m > k {
        du = du.add(&da_v.sub(&u.matmul(&dp)).mul_real(&inverse));
    }
    let mut dv = v.matmul(&even.sub(&odd));
    if n > k {
        let outside = da.adjoint().matmul(u).sub(&v.matmul(&dp.adjoint()));
        dv = dv.add(&outside.mul_real(&inverse));
    }
    Ok((du, ds, dv.adjoint()))
}

/// Thin part of a factor, and its cotangent including the contribution of the complement.
///
/// `U⊥ U⊥ᴴ = I − U Uᴴ` gives `dU⊥ = −U (dUᴴ U⊥)`, so `Ū⊥` acts as `−U⊥ (Ū⊥ᴴ U)` on `U`.
fn thin<M: Matrices>(
    u: &M,
    cotangent: Option<&M>,
    k: usize,
    degeneracy: &Degeneracy,
) -> Result<(M, Option<M>)> {
    let (m, width) = (u.rows(), u.cols());
    if width == k {
        return Ok((u.clone(), cotangent.cloned()));
    }
    let u_k = u.slice(0..m, 0..k);
    let cotangent = match cotangent {
        Some(cotangent) if cotangent.cols() > k => {
            let rest = u.slice(0..m, k..width);
            let rest_cotangent = cotangent.slice(0..m, k..width);
            let defect = rest.adjoint().matmul(&rest_cotangent).skew();
            degeneracy.check(
                "svd_vjp",
                &defect,
                &[Some(cotangent)],
                &u.re().constant(1, 1, 1.0),
            )?;
            let moved = rest.matmul(&rest_cotangent.adjoint().matmul(&u_k));
            Some(cotangent.slice(0..m, 0..k).sub(&moved))
        }
        cotangent => cotangent.cloned(),
    };
    Ok((u_k, cotangent))
}

/// Tangent of a full factor from that of its thin part.
fn complete<M: Matrices>(u: &M, du: M) -> M {
    let (m, k, width) = (u.rows(), du.cols(), u.cols());
    if width == k {
        return du;
    }
    let moved = du.adjoint().matmul(&u.slice(0..m, k..width));
    du.append(&u.slice(0..m, 0..k).matmul(&moved).neg())
}
