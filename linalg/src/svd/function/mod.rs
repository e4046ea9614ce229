//! Functions of the singular values, `F = U diag(f(S)) Vᴴ`.
//!
//! With `f(−σ) = −f(σ)` this is the function of the Hermitian matrix `[0 A; Aᴴ 0]`, whose
//! eigenvalues are `±S`. For `P = Uᴴ dA V`
//!
//! ```text
//! dF = U [herm(P) ∘ (f(Sᵢ) − f(Sⱼ))/(Sᵢ − Sⱼ) + skew(P) ∘ (f(Sᵢ) + f(Sⱼ))/(Sᵢ + Sⱼ)] Vᴴ
//!    + (dA V − U P) diag(f(S)/S) Vᴴ + U diag(f(S)/S) (Uᴴ dA − P Vᴴ)
//! ```
//!
//! The tables are real and symmetric, so the VJP is the same linear map. Close values use the series of
//! [`hermitian`](crate::hermitian): there is no gauge problem and no error at ties. `f(S)/S` at zero is `f′(0)` if
//! `f(0) = 0`; otherwise `F` is discontinuous there and has no derivative.
//!
//! Reference: J. Hawkins, A. Ben-Israel 1973 (generalized matrix functions); V. Noferini 2017.

#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use super::{Svd, Vectors, svd_ex};
use crate::degeneracy::Degeneracy;
use crate::error::{Result, SINGULAR, check};
use crate::hermitian::{SpectralFunction, check_domain, divided_differences};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

/// Function `U diag(f(S)) Vᴴ` of a matrix.
///
/// `Pow(0.0)` is the isometry of the polar decomposition, `Pow(-1.0)` the adjoint of the inverse. For a singular
/// matrix the result depends on arbitrary vectors unless `f(0) = 0`.
///
/// The relative error of first derivatives at a relative gap `g` of two values is at most about `ε^(4/5)`; that of
/// second derivatives is `ε^(3/5)` at `g` below `ε^(1/4)`, including ties and zeros, and `ε/g²`, at most `√ε`, at
/// larger gaps. `ε` is relative to the size of the derivatives of `f` at the values involved. At zero singular values
/// a second derivative requires `f″(0) = 0`, and is an error otherwise (`OutsideDomain`); a third derivative below `g
/// = ε^(1/4)` is an error (`SecondOrderAtTie`).
///
/// Shapes `[…, m, n]` → `[…, m, n]`. Cost that of the thin decomposition and one product.
///
/// ```
/// use t4a_linalg::hermitian::Elementary;
/// use t4a_linalg::svd::svd_function;
/// use t4a_tensor::Tensor;
/// let a = Tensor::from_vec(vec![0.0, 4.0, -9.0, 0.0], &[2, 2])?;
/// let root = svd_function(&a, &Elementary::Pow(0.5))?;
/// assert!((root.to_vec()?[1] - 2f64).abs() < 1e-14);
/// assert!((root.to_vec()?[2] + 3f64).abs() < 1e-14);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// `NotMatrix`; `NonFinite`, `NoConvergence`, and `OutsideDomain` if `f` is not finite at a singular
/// value, with the batch index.
pub fn svd_function<T: LinalgScalar>(
    a: &Tensor<T>,
    f: &impl SpectralFunction<Batched<T::R>>,
) -> Result<Tensor<T>> {
    let (out, values, _, info) = svd_function_ex(a, f)?;
    check("svd_function", &info, SINGULAR)?;
    check_domain("svd_function", &Batched::<T::R>::rows_of(&values))?;
    Ok(out)
}

/// `F`, `f(S)`, the decomposition, and an info tensor.
type SvdFunctionResult<T> = (Tensor<T>, Tensor<<T as LinalgScalar>::R>, Svd<T>, Tensor<i32>);

/// [`svd_function`] with `f(S)`, the decomposition that the derivative rules use, and an info tensor of the batch's
/// shape instead of an error. Singular values outside of the domain of `f` give NaN or ∞.
///
/// # Errors
/// `NotMatrix`.
pub fn svd_function_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    f: &impl SpectralFunction<Batched<T::R>>,
) -> Result<SvdFunctionResult<T>> {
    let (svd, info) = svd_ex(a, Vectors::Thin)?;
    let (u, vh) = (Batched::new(&svd.u), Batched::new(&svd.vh));
    let values = f.value(&Batched::rows_of(&svd.s));
    let out = u.mul_real(&values).matmul(&vh).into_tensor()?;
    Ok((out, values.into_vectors()?, svd, info))
}

/// `numerator / total`; where it is 0/0, the slope at `mean`, which is not finite if `f` is discontinuous there.
fn quotients<R: RealMatrices<Real = R>>(
    [numerator, total, mean]: [&R; 3],
    limit: &R,
    f: &impl SpectralFunction<R>,
) -> R {
    let close = total.within(limit);
    let apart = close.constant(1, 1, 1.0).sub(&close);
    let quotient = numerator.mul(&total.mul(&apart).add(&close).recip());
    let jump = f.value(&mean.mul(&apart).detached()).detached().mul(&close);
    let defect = jump.mul(&jump.within(&limit.scale(0.0)).recip());
    quotient.mul(&apart).add(&f.slope(mean).mul(&close)).add(&defect)
}

/// `(f(σᵢ) + f(σⱼ))/(σᵢ + σⱼ)`, and the row `f(σᵢ)/σᵢ`.
pub(super) fn odd_tables<R: RealMatrices<Real = R>>(
    s: &R,
    limit: &R,
    f: &impl SpectralFunction<R>,
) -> [R; 2] {
    let values = f.value(s);
    let total = s.add(&s.transpose());
    let sums = values.add(&values.transpose());
    let sums = quotients([&sums, &total, &total.scale(0.5)], limit, f);
    [sums, quotients([&values, s, s], limit, f)]
}

/// `Ā` from the decomposition and the cotangent of `F`; the tangent along `dA` is the same linear map.
pub fn vjp_function<M: Matrices>(
    u: &M,
    s: &M::Real,
    vh: &M,
    f_cotangent: &M,
    f: &impl SpectralFunction<M::Real>,
) -> M {
    let limit = Degeneracy::DEFAULT.limit(s, u.rows().max(vh.cols()));
    let [sums, ratios] = odd_tables(s, &limit, f);
    through_tables([u, f_cotangent, vh], [&divided_differences(s, f), &sums, &ratios])
}

/// 1 for the first `p` of the values, else 0.
pub(super) fn kept<R: RealMatrices<Real = R>>(s: &R, p: usize) -> R {
    s.constant(1, p, 1.0).append(&s.constant(1, s.cols() - p, 0.0))
}

/// Derivative along `x` by the tables of differences, of sums, and of ratios, the last one a row.
pub(super) fn through_tables<M: Matrices>(
    [u, x, vh]: [&M; 3],
    [differences, sums, ratios]: [&M::Real; 3],
) -> M {
    let (m, n, k) = (u.rows(), vh.cols(), u.cols());
    let uh = u.adjoint();
    let right = x.matmul(&vh.adjoint());
    let p = uh.matmul(&right);
    let inner = p.herm().mul_real(differences).add(&p.skew().mul_real(sums));
    let mut left = u.matmul(&inner);
    if m > k {
        left = left.add(&right.sub(&u.matmul(&p)).mul_real(ratios));
    }
    let out = left.matmul(vh);
    match n > k {
        true => {
            let beyond = uh.matmul(x).sub(&p.matmul(vh));
            out.add(&u.mul_real(ratios).matmul(&beyond))
        }
        false => out,
    }
}
