//! Polar decomposition `A = U P` (right) or `A = P U` (left): `U` an isometry, `P` positive
//! semidefinite.
//!
//! The derivative has its own rule. Differentiating through the singular value decomposition would divide by gaps of
//! singular values, while `U` and `P` only need `σ > 0`.
//!
//! With `Y` the solution of `P Y + Y P = skew(Uᴴ Ū − P̄ P)` and `P̄` made Hermitian:
//!
//! ```text
//! Ā = U (P̄ + 2 Y) + (Ū − U Uᴴ Ū) P⁻¹
//! P Ω + Ω P = X − Xᴴ,  X = Uᴴ dA,   dU = U Ω + (dA − U X) P⁻¹,   dP = X − Ω P
//! ```
//!
//! for `m ≥ n`. A wide matrix of full rank has the isometry of its left decomposition, and
//! `P = Uᴴ A`.

mod op;
#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use crate::error::{LinalgError, Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::svd::{Vectors, svd_ex};
use crate::vocabulary::{Batched, Matrices};

pub use op::PolarOp;

/// Position of the positive factor relative to the isometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Side {
    /// `A = P U`.
    Left,
    /// `A = U P`.
    Right,
}

/// Factors of a polar decomposition.
#[derive(Clone, Debug)]
pub struct Polar<T: LinalgScalar> {
    /// Isometry, `[…, m, n]`.
    pub u: Tensor<T>,
    /// Positive semidefinite factor, `[…, n, n]` (right) or `[…, m, m]` (left).
    pub p: Tensor<T>,
    /// Position of `P`.
    pub side: Side,
}

/// Polar decomposition `A = U P` or `A = P U`.
///
/// Shapes `[…, m, n]` → `[…, m, n]` and `[…, n, n]` (right) or `[…, m, m]` (left). For a rank-deficient matrix `U` is
/// the partial isometry `W Vᴴ`; for a wide (right) or a tall (left) one the adjoint of an isometry. Cost that of the
/// thin singular value decomposition (Higham 1986).
///
/// # Errors
/// `NotMatrix`; `NonFinite`, `NoConvergence` with the batch index.
pub fn polar<T: LinalgScalar>(a: &Tensor<T>, side: Side) -> Result<Polar<T>> {
    let (out, info) = polar_ex(a, side)?;
    check("polar", &info, SINGULAR)?;
    Ok(out)
}

/// As [`polar`], with an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`.
pub fn polar_ex<T: LinalgScalar>(a: &Tensor<T>, side: Side) -> Result<(Polar<T>, Tensor<i32>)> {
    let (svd, info) = svd_ex(a, Vectors::Thin)?;
    let (w, vh) = (Batched::new(&svd.u), Batched::new(&svd.vh));
    let s = Batched::rows_of(&svd.s);
    let basis = match side {
        Side::Right => vh.adjoint(),
        Side::Left => w.clone(),
    };
    let p = basis.mul_real(&s).matmul(&basis.adjoint()).into_tensor()?;
    Ok((Polar { u: w.matmul(&vh).into_tensor()?, p, side }, info))
}

/// `B P⁻¹` with Hermitian `P`.
fn divide<M: Matrices>(b: &M, p: &M) -> M {
    p.solve(&b.adjoint()).adjoint()
}

/// `Ā` of the right decomposition; `None` is zero.
pub fn vjp<M: Matrices>(u: &M, p: &M, u_cotangent: Option<&M>, p_cotangent: Option<&M>) -> M {
    let (m, n) = (u.rows(), u.cols());
    let zero = || p.constant(n, n, 0.0);
    let p_cotangent = p_cotangent.map_or_else(zero, M::herm);
    let overlap = u_cotangent.map_or_else(zero, |u_cotangent| u.adjoint().matmul(u_cotangent));
    let y = p.lyapunov(&overlap.sub(&p_cotangent.matmul(p)).skew());
    let inside = u.matmul(&p_cotangent.add(&y.scale(2.0)));
    match u_cotangent {
        Some(u_cotangent) if m > n => inside.add(&divide(&u_cotangent.sub(&u.matmul(&overlap)), p)),
        _ => inside,
    }
}

/// `Ā` of the decomposition with `P` on the given side.
///
/// # Errors
/// `RankDeficient`.
pub fn vjp_on<M: Matrices>(
    side: Side,
    u: &M,
    p: &M,
    u_cotangent: Option<&M>,
    p_cotangent: Option<&M>,
) -> Result<M> {
    let cotangent = match side {
        Side::Right if u.rows() >= u.cols() => vjp(u, p, u_cotangent, p_cotangent),
        Side::Right => vjp_wide(u, p, u_cotangent, p_cotangent),
        // Aᴴ = Uᴴ P is a right decomposition.
        Side::Left => {
            let u_cotangent = u_cotangent.map(M::adjoint);
            return Ok(
                vjp_on(Side::Right, &u.adjoint(), p, u_cotangent.as_ref(), p_cotangent)?.adjoint()
            );
        }
    };
    named("polar_vjp", &cotangent)?;
    Ok(cotangent)
}

/// `Ā` of the right decomposition of a wide matrix: `P = Uᴴ A`, with `U` from the left decomposition `A = P' U`,
/// where `P' = U P Uᴴ` is regular.
fn vjp_wide<M: Matrices>(u: &M, p: &M, u_cotangent: Option<&M>, p_cotangent: Option<&M>) -> M {
    let left = u.matmul(p).matmul(&u.adjoint());
    let p_cotangent = p_cotangent.map(M::herm);
    let through = p_cotangent.as_ref().map(|p_cotangent| u.matmul(p).matmul(p_cotangent));
    let u_cotangent = match (u_cotangent, through) {
        (Some(u_cotangent), Some(through)) => Some(u_cotangent.add(&through)),
        (u_cotangent, through) => u_cotangent.cloned().or(through),
    };
    let cotangent =
        vjp(&u.adjoint(), &left, u_cotangent.map(|cotangent| cotangent.adjoint()).as_ref(), None)
            .adjoint();
    match p_cotangent {
        Some(p_cotangent) => cotangent.add(&u.matmul(&p_cotangent)),
        None => cotangent,
    }
}

/// `dU` and `dP` of the decomposition with `P` on the given side.
///
/// # Errors
/// `RankDeficient`.
pub fn jvp_on<M: Matrices>(side: Side, u: &M, p: &M, da: &M) -> Result<(M, M)> {
    let (du, dp) = match side {
        Side::Right if u.rows() >= u.cols() => jvp(u, p, da),
        Side::Right => {
            let left = u.matmul(p).matmul(&u.adjoint());
            let du = jvp(&u.adjoint(), &left, &da.adjoint()).0.adjoint();
            let dp = du.adjoint().matmul(&u.matmul(p)).add(&u.adjoint().matmul(da));
            (du, dp)
        }
        Side::Left => {
            let (du, dp) = jvp_on(Side::Right, &u.adjoint(), p, &da.adjoint())?;
            return Ok((du.adjoint(), dp));
        }
    };
    named("polar_jvp", &du)?;
    Ok((du, dp))
}

/// Converts failures of the equations inside of the rules to `RankDeficient`.
fn named<M: Matrices>(op: &'static str, out: &M) -> Result<()> {
    let required = out.rows().min(out.cols());
    Err(match out.error() {
        None => return Ok(()),
        Some(LinalgError::RankDeficient { batch, rank, required, .. }) => {
            LinalgError::RankDeficient { op, batch, rank, required }
        }
        Some(LinalgError::Singular { batch, index, .. }) => {
            LinalgError::RankDeficient { op, batch, rank: index, required }
        }
        Some(other) => other,
    })
}

/// `(dU, dP)` of the right decomposition.
pub fn jvp<M: Matrices>(u: &M, p: &M, da: &M) -> (M, M) {
    let x = u.adjoint().matmul(da);
    let omega = p.lyapunov(&x.skew().scale(2.0));
    let inside = u.matmul(&omega);
    let du = match u.rows() > u.cols() {
        true => inside.add(&divide(&da.sub(&u.matmul(&x)), p)),
        false => inside,
    };
    (du, x.sub(&omega.matmul(p)))
}
