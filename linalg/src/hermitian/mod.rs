//! Functions of Hermitian matrices, `f(A) = V diag(f(λ)) Vᴴ`.
//!
//! `d f(A) = V (Γ ∘ Vᴴ dA V) Vᴴ` with divided differences `Γᵢⱼ = (f(λᵢ) − f(λⱼ))/(λᵢ − λⱼ)`, a symmetric matrix, so
//! the VJP has the same form (Daleckii, Krein 1965). For close eigenvalues the quotient is `f′ + g² f‴/24` at their
//! mean, `g` the gap: there is no gauge problem and no error at ties. Second derivatives use second divided
//! differences (module `second`) at gaps below `ε^(1/4)`, and the derivatives of the factors elsewhere, with an error
//! of at most the order of `√ε`.

mod function;
mod op;
pub(crate) mod second;
#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use crate::eigh::{Eigh, eigh_ex};
use crate::error::{LinalgError, OUTSIDE_DOMAIN, Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

pub use function::{Elementary, ScalarFunction, SpectralFunction};
pub use op::HermitianFunctionOp;

/// `f((A + Aᴴ)/2)`.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost that of the eigendecomposition and one product.
///
/// ```
/// use t4a_linalg::hermitian::{Elementary, hermitian_function};
/// use t4a_tensor::Tensor;
/// let a = Tensor::from_vec(vec![2.0, 0.0, 0.0, 8.0], &[2, 2])?;
/// let root = hermitian_function(&a, &Elementary::Pow(0.5))?;
/// assert!((root.to_vec()?[3] - 8f64.sqrt()).abs() < 1e-14);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `NoConvergence`, and `OutsideDomain` if `f` is not finite
/// at an eigenvalue, with the batch index.
pub fn hermitian_function<T: LinalgScalar>(
    a: &Tensor<T>,
    f: &impl SpectralFunction<Batched<T::R>>,
) -> Result<Tensor<T>> {
    let ((out, values), _, info) = hermitian_function_ex(a, f)?;
    check("hermitian_function", &info, SINGULAR)?;
    check_domain("hermitian_function", &Batched::<T::R>::rows_of(&values))?;
    Ok(out)
}

/// `f(A)` with `f(λ)`, the decomposition, and an info tensor.
type HermitianFunctionResult<T> =
    ((Tensor<T>, Tensor<<T as LinalgScalar>::R>), Eigh<T>, Tensor<i32>);

/// [`hermitian_function`] with `f(λ)`, the decomposition that the derivative rules use, and an info tensor of the
/// batch's shape instead of an error. Eigenvalues outside of the domain of `f` give NaN or ∞.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn hermitian_function_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    f: &impl SpectralFunction<Batched<T::R>>,
) -> Result<HermitianFunctionResult<T>> {
    let (eigh, info) = eigh_ex(a)?;
    let v = Batched::new(&eigh.vectors);
    let values = f.value(&Batched::rows_of(&eigh.values));
    let out = v.mul_real(&values).matmul(&v.adjoint()).into_tensor()?;
    Ok(((out, values.into_vectors()?), eigh, info))
}

/// Divided differences of `f` at a row of eigenvalues.
pub(crate) fn divided_differences<R: RealMatrices<Real = R>>(
    values: &R,
    f: &impl SpectralFunction<R>,
) -> R {
    let gap = values.sub(&values.transpose());
    let mean = values.add(&values.transpose()).scale(0.5);
    let f_values = f.value(values);
    let difference = f_values.sub(&f_values.transpose());
    // Cancellation costs ε/g, the truncated series g⁴: both errors are equal at g = ε^(1/5) on the scale of f.
    let length = f.length(&mean);
    let limit = length.scale(values.epsilon().powf(0.2));
    // |g| ≤ |limit| without squares that underflow: exactly one of the two, or both at 0 ≤ 0.
    let (above, below) = (gap.within(&limit), gap.within(&limit.neg()));
    let close = above.add(&below).sub(&above.mul(&below));
    let apart = close.constant(1, 1, 1.0).sub(&close);
    let quotient = difference.mul(&gap.mul(&apart).add(&close).recip());
    // The mean of distant values may be outside of the domain, such as that of 1 and −1.
    let mean = mean.mul(&close).add(&values.mul(&apart));
    // The derivative of a reciprocal is its square, which may overflow where there is no gap.
    let nothing = length.scale(0.0);
    let still = gap.within(&nothing);
    let length = length.mul(&still.constant(1, 1, 1.0).sub(&still)).add(&still);
    let ratio = gap.mul(&length.masked_recip(&nothing));
    let correction = f.bend(&mean).mul(&ratio.mul(&ratio).mul(&close)).scale(1.0 / 24.0);
    let series = f.slope(&mean).add(&correction);
    quotient.mul(&apart).add(&series.mul(&close))
}

/// Returns an error with the first matrix whose function values, or their derivatives, are not finite.
pub(crate) fn check_domain<M: Matrices>(op: &'static str, values: &M) -> Result<()> {
    match values.norms()?.iter().position(|norm| !norm.is_finite()) {
        Some(batch) => Err(LinalgError::OutsideDomain { op, batch }),
        None => Ok(()),
    }
}

/// Status of a function with these values at the spectrum.
pub(crate) fn outside_domain<T: LinalgScalar>(
    mut info: Tensor<i32>,
    values: &Tensor<T::R>,
) -> Result<Tensor<i32>> {
    let norms = Batched::<T::R>::rows_of(values).norms()?;
    for (code, norm) in info.as_mut_slice()?.iter_mut().zip(norms) {
        if *code == 0 && !norm.is_finite() {
            *code = OUTSIDE_DOMAIN;
        }
    }
    Ok(info)
}

/// `Ā`, Hermitian, from the eigendecomposition and the cotangent of `f(A)`.
pub fn vjp<M: Matrices>(
    values: &M::Real,
    vectors: &M,
    f_cotangent: &M,
    f: &impl SpectralFunction<M::Real>,
) -> M {
    let vh = vectors.adjoint();
    let gamma = divided_differences(values, f);
    let inner = vh.matmul(&f_cotangent.herm()).matmul(vectors).mul_real(&gamma);
    vectors.matmul(&inner).matmul(&vh)
}

/// `d f(A)` along `(dA + dAᴴ)/2`; the same linear map as the VJP.
pub fn jvp<M: Matrices>(
    values: &M::Real,
    vectors: &M,
    da: &M,
    f: &impl SpectralFunction<M::Real>,
) -> M {
    vjp(values, vectors, da, f)
}
