//! Moore–Penrose pseudoinverse `P = V diag(1/S) Uᴴ`, with singular values up to a cutoff dropped.
//!
//! At constant rank (Golub, Pereyra 1973) `dP = −P dA P + P Pᴴ dAᴴ (I − A P) + (I − P A) dAᴴ Pᴴ P`. Where the rank
//! changes there is no derivative; the cutoff is a constant.

mod op;
#[cfg(test)]
mod tests;

use t4a_tensor::{Tensor, TensorError};

use crate::degeneracy::Degeneracy;
use crate::error::{Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::svd::{Vectors, svd_ex};
use crate::vocabulary::{Batched, Matrices, RealMatrices};

pub use op::PinvOp;

/// Pseudoinverse; values `σ ≤ rtol·σ₀` are dropped, with `None` those that are zero up to rounding
/// ([`degeneracy`](crate::degeneracy)).
///
/// Shapes `[…, m, n]` → `[…, n, m]`. Cost that of the thin singular value decomposition.
///
/// # Errors
/// `NotMatrix`; `Tensor` for a cutoff that is negative or NaN; `NonFinite`, `NoConvergence` with
/// the batch index.
///
/// ```
/// use t4a_linalg::pinv::pinv;
/// use t4a_tensor::Tensor;
///
/// // (a b)ᵀ has the pseudo-inverse (a b)/(a² + b²).
/// let a = Tensor::from_vec(vec![3.0f64, 4.0], &[2, 1])?;
/// let p = pinv(&a, None)?.to_vec()?;
/// assert!((p[0] - 0.12).abs() < 1e-15 && (p[1] - 0.16).abs() < 1e-15);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn pinv<T: LinalgScalar>(a: &Tensor<T>, rtol: Option<f64>) -> Result<Tensor<T>> {
    let (out, info) = pinv_ex(a, rtol)?;
    check("pinv", &info, SINGULAR)?;
    Ok(out)
}

/// As [`pinv`], with an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`, `Tensor`.
pub fn pinv_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    rtol: Option<f64>,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    if let Some(rtol) = rtol.filter(|rtol| rtol.is_nan() || *rtol < 0.0) {
        return Err(TensorError::value("pinv", format!("rtol must be ≥ 0, given {rtol}")).into());
    }
    let (svd, info) = svd_ex(a, Vectors::Thin)?;
    let (u, vh) = (Batched::new(&svd.u), Batched::new(&svd.vh));
    let s = Batched::<T::R>::rows_of(&svd.s);
    let cutoff = Degeneracy { tolerance: rtol, ..Degeneracy::default() };
    let inverse = s.masked_recip(&cutoff.limit(&s, u.rows().max(vh.cols())));
    let p = vh.adjoint().mul_real(&inverse).matmul(&u.adjoint());
    Ok((p.into_tensor()?, info))
}

/// `A/c`, `c P` and `1/c`: products of two `P`, and of `P` with a cotangent, could overflow otherwise.
fn near_one<M: Matrices>(a: &M, p: &M) -> (M, M, M::Real) {
    let size = a.magnitude();
    let inverse = size.recip();
    (a.mul_real(&inverse), p.mul_real(&size), inverse)
}

/// `Ā = −Pᴴ P̄ Pᴴ + (I − A P) P̄ᴴ P Pᴴ + Pᴴ P P̄ᴴ (I − P A)`.
pub fn vjp<M: Matrices>(a: &M, p: &M, p_cotangent: &M) -> M {
    let (a, p, inverse) = near_one(a, p);
    let p_cotangent = p_cotangent.mul_real(&inverse);
    let (ph, bar_h) = (p.adjoint(), p_cotangent.adjoint());
    let left = bar_h.matmul(&p).matmul(&ph);
    let right = ph.matmul(&p.matmul(&bar_h));
    ph.matmul(&p_cotangent)
        .matmul(&ph)
        .neg()
        .add(&left.sub(&a.matmul(&p.matmul(&left))))
        .add(&right.sub(&right.matmul(&p).matmul(&a)))
        .mul_real(&inverse)
}

/// `dP` along `dA`.
pub fn jvp<M: Matrices>(a: &M, p: &M, da: &M) -> M {
    let (a, p, inverse) = near_one(a, p);
    let da = da.mul_real(&inverse);
    let (ph, dah) = (p.adjoint(), da.adjoint());
    let right = p.matmul(&ph.matmul(&dah));
    let left = dah.matmul(&ph).matmul(&p);
    p.matmul(&da)
        .matmul(&p)
        .neg()
        .add(&right.sub(&right.matmul(&a).matmul(&p)))
        .add(&left.sub(&p.matmul(&a.matmul(&left))))
        .mul_real(&inverse)
}
