//! Determinants by LU factorisation: `det A` and `(sign, ln|det A|)`.
//!
//! `d det = tr(adj(A) dA)`, and `adj(A) = det(A) A⁻¹` for a regular matrix. Determinants are
//! polynomials, so singular matrices have derivatives of every order as well. With the singular
//! vectors of the smallest values as constant borders,
//!
//! ```text
//! M = [A  U_r; V_rᴴ  0],   P = M⁻¹,   det A = det M · det P₂₂
//! adj A = det M (det P₂₂ · P₁₁ − P₁₂ adj(P₂₂) P₂₁)
//! ```
//!
//! where `M` is regular and `P₂₂` is small, `r × r`; its adjugate is computed without divisions. This form is used if
//! a pivot is small.
//!
//! Reference: W. Govaerts 2000, section 3.2 (bordering); D. Faddeev, I. Sominsky 1949 (adjugate).

mod op;
#[cfg(test)]
mod tests;

use t4a_algebra::{Field, Float, Numeric, Real};
use t4a_tensor::Tensor;

use crate::batch::{BatchShape, ResultBuffer, Views};
use crate::degeneracy::rounding;
use crate::error::{LinalgError, Result, SINGULAR, check};
use crate::lu::{PackedLu, lu_factor_ex};
use crate::permutation::Permutation;
use crate::scalar::{LinalgScalar, epsilon, nan, real};
use crate::solve::apply_inverse_adjoint;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

pub use op::{DetOp, SlogdetOp};

/// `det A`. A singular matrix gives 0.
///
/// Shapes `[…, n, n]` → `[…]`. Cost ⅔·n³ flops. The product of many pivots may over- or underflow; [`slogdet`] does
/// not.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite` with the batch index.
pub fn det<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    let (out, _, info) = det_ex(a)?;
    check("det", &info, SINGULAR)?;
    Ok(out)
}

/// [`det`] with the factors, and an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn det_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T>, PackedLu<T>, Tensor<i32>)> {
    let (factors, pivots, info) = factor("det", a)?;
    let mut out = ResultBuffer::<T>::new(BatchShape::of("det", a)?.batch, 1, 1)?;
    for (det, (sign, pivots)) in out.slices()?.into_iter().zip(&pivots) {
        det[0] = pivots.iter().fold(*sign, |product, &u| Numeric::mul(product, u));
    }
    Ok((out.numbers(info.route())?, factors, info))
}

/// `(sign, ln|det A|)` with `|sign| = 1`, or `(0, −∞)` for a singular matrix.
///
/// Shapes `[…, n, n]` → `[…]`, `[…]`. Cost ⅔·n³ flops.
///
/// # Errors
/// As [`det`].
pub fn slogdet<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<T::R>)> {
    let (out, _, info) = slogdet_ex(a)?;
    check("slogdet", &info, SINGULAR)?;
    Ok(out)
}

/// `(sign, ln|det|)`, the factors, and an info tensor.
type Slogdet<T> = ((Tensor<T>, Tensor<<T as LinalgScalar>::R>), PackedLu<T>, Tensor<i32>);

/// [`slogdet`] with the factors, and an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn slogdet_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<Slogdet<T>> {
    let (factors, pivots, info) = factor("slogdet", a)?;
    let batch = BatchShape::of("slogdet", a)?.batch;
    let mut signs = ResultBuffer::<T>::new(batch, 1, 1)?;
    let mut logs = ResultBuffer::<T::R>::new(batch, 1, 1)?;
    let slots = signs.slices()?.into_iter().zip(logs.slices()?);
    for ((sign_out, log_out), (sign, pivots)) in slots.zip(&pivots) {
        let (mut sign, mut log) = (*sign, <T::R as Numeric>::ZERO);
        for &u in pivots {
            let size = Field::modulus(u);
            sign = match u == T::ZERO {
                true => T::ZERO,
                false => Numeric::mul(sign, Field::div(u, real(size))),
            };
            log = Numeric::add(log, Float::ln(size));
        }
        (sign_out[0], log_out[0]) = (sign, log);
    }
    let route = info.route();
    Ok(((signs.numbers(route)?, logs.numbers(route)?), factors, info))
}

type DetFactors<T> = (PackedLu<T>, Vec<(T, Vec<T>)>, Tensor<i32>);

/// Factors, `det P` and the pivots of each matrix; NaN for a matrix with non-finite elements.
fn factor<T: LinalgScalar>(op: &'static str, a: &Tensor<T>) -> Result<DetFactors<T>> {
    let n = BatchShape::square(op, a)?.n;
    let (factors, mut info) = lu_factor_ex(a)?;
    let views = Views::of(op, &factors.packed)?;
    let odd = factors.rows.signs()?;
    let one = |b: usize| {
        let u = views.get(b);
        let sign = if odd[b] { Numeric::neg(T::ONE) } else { T::ONE };
        let sign = if n > 0 && Field::re(u[(0, 0)]).is_nan() { nan() } else { sign };
        (sign, (0..n).map(|i| u[(i, i)]).collect())
    };
    let pivots = (0..odd.len()).map(one).collect();
    // A zero pivot is a valid result here, not a failure.
    info.as_mut_slice()?.iter_mut().for_each(|code| *code = Ord::min(*code, 0));
    Ok((factors, pivots, info))
}

/// True if a pivot is so small that dividing by it would lose half of the digits.
pub(crate) fn nearly_singular<T: LinalgScalar>(factors: &PackedLu<T>) -> Result<bool> {
    let diagonal = Batched::new(&factors.packed).diagonal().into_tensor()?;
    let n = diagonal.shape()[diagonal.rank() - 1];
    let pivots = diagonal.to_vec()?;
    let tiny = |row: &[T]| {
        let sizes = || row.iter().map(|u| u.modulus().to_f64());
        let largest = sizes().fold(0.0, f64::max);
        sizes().any(|size| size <= epsilon::<T>().sqrt() * largest)
    };
    Ok(n > 0 && pivots.chunks_exact(n).any(tiny))
}

/// `Ā` of a regular matrix from `det A` and its cotangent, `1 × 1` each.
///
/// # Errors
/// `OutOfMemory`.
pub fn vjp<M: Matrices>(packed: &M, rows: &Permutation, det: &M, det_cotangent: &M) -> Result<M> {
    let inverse = apply_inverse_adjoint(packed, rows, &packed.identity(packed.rows()))?;
    Ok(inverse.mul(&det.conj().mul(det_cotangent)))
}

/// `adj(A)` of a matrix of any rank, differentiable to any order; its singular value decomposition is a constant.
///
/// # Errors
/// The first error of the preceding operations.
pub fn adjugate<M: Matrices>(a: &M, u: &M, s: &M::Real, vh: &M) -> Result<M> {
    let n = a.rows();
    if n == 0 {
        return Ok(a.clone());
    }
    let largest = s.largest_real();
    let small = s.within(&largest.scale(s.epsilon().sqrt())).norms()?;
    // The Frobenius norm of an indicator is the square root of its number of ones.
    let r = small.into_iter().map(|x| (x * x).round() as usize).max().unwrap_or(0).clamp(1, n);
    // Borders of the norm of A keep M well conditioned.
    let size = a.magnitude();
    let right = u.detached().slice(0..n, n - r..n).mul_real(&size);
    let below = vh.detached().slice(n - r..n, 0..n).mul_real(&size);
    let m = a.append(&right).stack(&below.append(&a.constant(r, r, 0.0)));
    let p = m.solve(&m.identity(n + r));
    let (head, tail) = (0..n, n..n + r);
    let (p_12, p_21) = (p.slice(head.clone(), tail.clone()), p.slice(tail.clone(), head.clone()));
    let (adj, det) = small_adjugate(&p.slice(tail.clone(), tail));
    let regular = p.slice(head.clone(), head).mul(&det);
    Ok(regular.sub(&p_12.matmul(&adj).matmul(&p_21)).mul(&m.det()))
}

/// `adj Y` and `det Y` (`1 × 1`) without divisions: `Mₖ = Y Mₖ₋₁ + cₖ₋₁ I`, `cₖ = −tr(Y Mₖ)/k`. Cost r⁴ operations,
/// for small matrices.
fn small_adjugate<M: Matrices>(y: &M) -> (M, M) {
    let r = y.rows();
    let unit = y.identity(r);
    let (mut m, mut k) = (unit.clone(), 1);
    loop {
        let product = y.matmul(&m);
        let c = product.trace().scale(-1.0 / k as f64);
        if k == r {
            let sign = if r.is_multiple_of(2) { 1.0 } else { -1.0 };
            return (m.scale(-sign), c.scale(sign));
        }
        m = product.add(&unit.mul(&c));
        k += 1;
    }
}

/// Checks each matrix for pivots that are zero up to rounding.
pub(crate) fn check_pivots<M: Matrices>(op: &'static str, packed: &M) -> Result<()> {
    let diagonal = packed.diagonal();
    // Relative to the largest pivot: squares of small numbers underflow.
    let largest = diagonal.largest();
    let diagonal = diagonal.mul_real(&largest.masked_recip(&largest.scale(0.0)));
    let (re, im) = (diagonal.re(), diagonal.im());
    let squares = re.mul(&re).add(&im.mul(&im));
    let limit = squares.largest_real().scale((packed.epsilon() * rounding(packed.rows())).powi(2));
    for (batch, zero) in squares.within(&limit).norms()?.into_iter().enumerate() {
        if zero > 0.0 {
            let required = packed.rows();
            let rank = required - (zero * zero).round() as usize;
            return Err(LinalgError::RankDeficient { op, batch, rank, required });
        }
    }
    Ok(())
}

/// `Ā = (l̄ + i Im(conj(sign)·s̄)) A⁻ᴴ` from the cotangents of `sign` and `ln|det A|`.
///
/// # Errors
/// `OutOfMemory`.
pub fn slogdet_rule<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    sign: &M,
    sign_cotangent: Option<&M>,
    log_cotangent: Option<&M::Real>,
) -> Result<M> {
    let inverse = apply_inverse_adjoint(packed, rows, &packed.identity(packed.rows()))?;
    let zero = || sign.re().scale(0.0);
    let re = log_cotangent.cloned().unwrap_or_else(zero);
    let im = sign_cotangent.map_or_else(zero, |cotangent| sign.conj().mul(cotangent).im());
    Ok(inverse.mul(&M::from_parts(&re, &im)))
}
