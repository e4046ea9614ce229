//! Matrix norms and condition numbers.
//!
//! | norm | `‖A‖` |
//! |---|---|
//! | `Frobenius` | `√Σ |aᵢⱼ|²` |
//! | `One`, `MinusOne` | largest, smallest `Σᵢ |aᵢⱼ|` of a column |
//! | `Inf`, `MinusInf` | largest, smallest `Σⱼ |aᵢⱼ|` of a row |
//! | `Two`, `MinusTwo` | largest, smallest singular value |
//! | `Nuclear` | sum of the singular values |
//!
//! The names with a minus sign follow NumPy; these are not norms. Elementwise norms are programs in the vocabulary,
//! the others functions of [`svdvals`](crate::svd::svdvals()). If several columns or rows attain the extremum, the
//! derivative is the mean of theirs; the derivative of `|0|` is 0.
//!
//! Sums are those of [`t4a_tensor::reduce`]: the relative error of elementwise norms is at most `2·(514 + log₂
//! mn)·ε`.

#[cfg(test)]
mod tests;

use t4a_tensor::{Tensor, TensorError};

use crate::batch::BatchShape;
use crate::error::{NON_FINITE, OVERFLOW, Result, SINGULAR, check};
use crate::inverse::inv_ex;
use crate::scalar::LinalgScalar;
use crate::svd::svdvals_ex;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

/// Norm of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// `√Σ |aᵢⱼ|²`.
    Frobenius,
    /// Sum of the singular values.
    Nuclear,
    /// Largest sum of moduli of a column.
    One,
    /// Smallest sum of moduli of a column.
    MinusOne,
    /// Largest singular value.
    Two,
    /// Smallest singular value.
    MinusTwo,
    /// Largest sum of moduli of a row.
    Inf,
    /// Smallest sum of moduli of a row.
    MinusInf,
}

impl Norm {
    /// True if the norm is a function of the singular values.
    pub fn is_spectral(self) -> bool {
        matches!(self, Norm::Nuclear | Norm::Two | Norm::MinusTwo)
    }

    /// Checks that an extremum is over at least one value.
    ///
    /// # Errors
    /// `Tensor`.
    pub fn check(self, op: &'static str, m: usize, n: usize) -> Result<()> {
        let (count, of) = match self {
            Norm::Frobenius | Norm::Nuclear => return Ok(()),
            Norm::One | Norm::MinusOne => (n, "columns"),
            Norm::Inf | Norm::MinusInf => (m, "rows"),
            Norm::Two | Norm::MinusTwo => (m.min(n), "singular values"),
        };
        match count {
            0 => Err(TensorError::value(op, format!("a {m} × {n} matrix has no {of}")).into()),
            _ => Ok(()),
        }
    }
}

/// The norm from the singular values, a row in nonincreasing order.
pub fn of_values<R: RealMatrices<Real = R>>(s: &R, norm: Norm) -> R {
    let k = s.cols();
    match norm {
        Norm::Two => s.slice(0..1, 0..1),
        Norm::MinusTwo => s.slice(0..1, k - 1..k),
        _ => s.transpose().sum_rows(),
    }
}

/// Norm from the elements, `1 × 1`, for norms that are not spectral.
pub fn of_elements<M: Matrices>(a: &M, norm: Norm) -> M::Real {
    if a.rows() == 0 || a.cols() == 0 {
        // The other axis may have any length.
        return a.re().constant(1, 1, 0.0);
    }
    let total = |row: M::Real| row.transpose().sum_rows();
    match norm {
        Norm::One => extremum(&a.modulus().sum_rows(), true),
        Norm::MinusOne => extremum(&a.modulus().sum_rows(), false),
        Norm::Inf => extremum(&a.modulus().transpose().sum_rows(), true),
        Norm::MinusInf => extremum(&a.modulus().transpose().sum_rows(), false),
        _ => {
            // Elements are scaled to about 1 before squaring, by a normal factor with a normal reciprocal; infinite
            // and subnormal largest elements use the extreme factor of the range.
            let mut largest = a.re().largest_real();
            if M::IS_COMPLEX {
                largest = largest.add(&a.im().largest_real());
            }
            let tiny = largest.constant(1, 1, a.min_positive());
            let inverse = largest.add(&largest.within(&tiny).mul(&tiny)).recip();
            let limit = tiny.scale(8.0);
            let inverse = inverse.add(&inverse.within(&limit).mul(&limit));
            let x = a.mul_real(&inverse);
            let (re, im) = (x.re(), x.im());
            let sum = total(re.mul(&re).add(&im.mul(&im)).sum_rows());
            // For the zero matrix the root is √1 − 1, whose derivative is 0.
            let zero = sum.within(&sum.scale(0.0));
            sum.add(&zero).powf(0.5).sub(&zero).mul(&inverse.recip())
        }
    }
}

/// Largest or smallest element of a row of nonnegative elements.
fn extremum<R: RealMatrices<Real = R>>(row: &R, largest: bool) -> R {
    let chosen = match largest {
        true => row.largest_real().within(row),
        false => row.within(&row.smallest_real()),
    };
    let count = chosen.transpose().sum_rows();
    row.mul(&chosen).transpose().sum_rows().mul(&count.recip())
}

/// Norm `‖A‖`.
///
/// Shapes `[…, m, n]` → `[…]`. Cost: one pass over the elements; for spectral norms that of the singular values. NaN
/// and ∞ propagate, except in spectral norms.
///
/// ```
/// use t4a_linalg::norm::{Norm, matrix_norm};
/// use t4a_tensor::Tensor;
/// let a = Tensor::from_vec(vec![3.0, 0.0, -4.0, 0.0], &[2, 2])?;
/// assert_eq!(matrix_norm(&a, Norm::Frobenius)?.to_vec()?, [5.0]);
/// assert_eq!(matrix_norm(&a, Norm::One)?.to_vec()?, [7.0]);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
///
/// # Errors
/// `NotMatrix`, `Tensor` for extrema over no values; spectral norms `NonFinite`, `NoConvergence` with the batch
/// index.
pub fn matrix_norm<T: LinalgScalar>(a: &Tensor<T>, norm: Norm) -> Result<Tensor<T::R>> {
    measure("matrix_norm", a, norm)?.into_numbers()
}

fn measure<T: LinalgScalar>(op: &'static str, a: &Tensor<T>, norm: Norm) -> Result<Batched<T::R>> {
    let shape = BatchShape::of(op, a)?;
    norm.check(op, shape.m, shape.n)?;
    Ok(match norm.is_spectral() {
        true => of_values(&values(op, a)?, norm),
        false => of_elements(&Batched::new(a), norm),
    })
}

fn values<T: LinalgScalar>(op: &'static str, a: &Tensor<T>) -> Result<Batched<T::R>> {
    let (s, info) = svdvals_ex(a)?;
    check(op, &info, SINGULAR)?;
    Ok(Batched::rows_of(&s))
}

/// Condition number from the singular values, a row, for `Two` and `MinusTwo`.
pub fn condition_of_values<R: RealMatrices<Real = R>>(s: &R, norm: Norm) -> R {
    // The derivatives contain quotients by squares: the values are scaled to norm 1.
    let (s, k) = (s.near_one(), s.cols());
    let (first, last) = (s.slice(0..1, 0..1), s.slice(0..1, k - 1..k));
    // The zero matrix has condition number 1/0 = ∞.
    let over = |x: &R, y: &R| x.add(&first.within(&first.scale(0.0))).mul(&y.recip());
    match norm {
        Norm::MinusTwo => over(&last, &first),
        _ => over(&first, &last),
    }
}

/// Condition number `‖A‖ ‖A⁻¹‖`: for `Two` the quotient of the largest and the smallest singular value, for
/// `MinusTwo` its inverse; ∞ for singular matrices.
///
/// Shapes `[…, n, n]` → `[…]`; `Two` and `MinusTwo` `[…, m, n]` → `[…]`. Cost that of the singular
/// values, or of an inverse.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor` for matrices without elements; `NonFinite`, `NoConvergence`
/// with the batch index.
pub fn cond<T: LinalgScalar>(a: &Tensor<T>, norm: Norm) -> Result<Tensor<T::R>> {
    const NAME: &str = "cond";
    if matches!(norm, Norm::Two | Norm::MinusTwo) {
        let shape = BatchShape::of(NAME, a)?;
        norm.check(NAME, shape.m, shape.n)?;
        return condition_of_values(&values(NAME, a)?, norm).into_numbers();
    }
    BatchShape::square(NAME, a)?;
    let a = &Batched::new(a).near_one().into_tensor()?;
    let (inverse, info) = inv_ex(a)?;
    // A matrix whose inverse overflows is singular up to rounding.
    let codes = info.to_vec()?.into_iter().map(|code| if code == OVERFLOW { 1 } else { code });
    let codes: Vec<i32> = codes.collect();
    let bad = Tensor::from_vec(codes.iter().map(|&code| code.min(0)).collect(), info.shape())?;
    check(NAME, &bad, SINGULAR)?;
    debug_assert!(codes.iter().all(|&code| code != NON_FINITE));
    // The inverse of a singular matrix is NaN here; norms are computed for regular matrices only.
    let unit = Batched::new(a).identity(a.shape()[a.rank() - 1]).into_tensor()?;
    let size = a.shape().iter().rev().take(2).product::<usize>();
    let (mut inverse, unit) = (inverse.to_vec()?, unit.to_vec()?);
    for (b, _) in codes.iter().enumerate().filter(|&(_, &code)| code > 0) {
        let range = b * size..(b + 1) * size;
        inverse[range.clone()].copy_from_slice(&unit[range]);
    }
    let inverse = Tensor::from_vec(inverse, a.shape())?;
    let product = measure(NAME, a, norm)?.mul(&measure(NAME, &inverse, norm)?).into_numbers()?;
    let infinity = <T::R as t4a_algebra::Float>::INFINITY;
    let values = product.to_vec()?.into_iter().zip(codes);
    let values = values.map(|(x, code)| if code > 0 { infinity } else { x }).collect();
    Ok(Tensor::from_vec(values, product.shape())?)
}
