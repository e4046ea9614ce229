//! Eigendecomposition of general matrices `A V = V diag(λ)`; the results are complex.
//!
//! Columns of `V` have norm 1. Their phases and the order of the eigenvalues are those of faer. The eigenvectors of a
//! defective matrix are dependent: it has no derivative. Near such a matrix derivatives are of the order of `‖V⁻¹‖`.
//!
//! With `G = VᴴV̄ − (VᴴV) diag(Re diag VᴴV̄)`, divided by `conj(λⱼ − λᵢ)` off the diagonal and
//! `Gᵢᵢ = λ̄ᵢ`:
//!
//! ```text
//! Ā = V⁻ᴴ G Vᴴ                        (its real part if A is real)
//! P = V⁻¹ dA V,  dλ = diag P,  D = V (P/(λⱼ − λᵢ)),  dV = D − V diag(Re diag VᴴD)
//! ```
//!
//! Reference: C. Boeddeker et al. 2017.

mod op;
#[cfg(test)]
mod tests;

use faer::MatRef;
use t4a_algebra::{Field, Float, Numeric};
use t4a_tensor::Tensor;

use crate::batch::{
    BatchShape, MatrixStatus, PerMatrix, ResultBuffer, Views, filled, flops, load, run,
};
use crate::degeneracy::{Degeneracy, relative, rounding};
use crate::error::{LinalgError, Result, SINGULAR, check};
use crate::scalar::{LinalgScalar, epsilon, real};
use crate::scale::PowerOfTwo;
use crate::threads::Work;
use crate::vocabulary::{Matrices, RealMatrices};

pub use op::{EigOp, EigvalsOp};

/// Eigendecomposition `A V = V diag(λ)` of a batch of square matrices.
#[derive(Clone, Debug)]
pub struct Eig<T: LinalgScalar> {
    /// Eigenvalues, `[…, n]`.
    pub values: Tensor<T::Complex>,
    /// Eigenvectors of norm 1 as columns, `[…, n, n]`.
    pub vectors: Tensor<T::Complex>,
}

/// Eigendecomposition `A V = V diag(λ)`.
///
/// Shapes `[…, n, n]` → `[…, n]`, `[…, n, n]`, both complex. Cost about 25·n³ flops.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `NoConvergence`, `Overflow` with the batch index.
pub fn eig<T: LinalgScalar>(a: &Tensor<T>) -> Result<Eig<T>> {
    let (out, info) = eig_ex(a)?;
    check("eig", &info, SINGULAR)?;
    Ok(out)
}

/// As [`eig`], with an info tensor of the batch's shape instead of an error; the results of a
/// matrix that failed are NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn eig_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Eig<T>, Tensor<i32>)> {
    let shape = BatchShape::square("eig", a)?;
    let n = shape.n;
    let mut values = ResultBuffer::<T::Complex>::new(shape.batch, n, 1)?;
    let mut vectors = ResultBuffer::<T::Complex>::new(shape.batch, n, n)?;
    let slots = values.slices()?.into_iter().zip(vectors.mats()?.into_iter().map(Some)).collect();
    let info = decompose("eig", a, slots)?;
    let route = info.route();
    Ok((Eig { values: values.vectors(route)?, vectors: vectors.matrices(route)? }, info))
}

/// Eigenvalues without vectors.
///
/// # Errors
/// As [`eig`].
pub fn eigvals<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T::Complex>> {
    let (values, info) = eigvals_ex(a)?;
    check("eigvals", &info, SINGULAR)?;
    Ok(values)
}

/// [`eigvals`] with an info tensor as in [`eig_ex`].
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn eigvals_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T::Complex>, Tensor<i32>)> {
    let shape = BatchShape::square("eigvals", a)?;
    let mut values = ResultBuffer::<T::Complex>::new(shape.batch, shape.n, 1)?;
    let slots = values.slices()?.into_iter().map(|values| (values, None)).collect();
    let info = decompose("eigvals", a, slots)?;
    Ok((values.vectors(info.route())?, info))
}

type EigSlot<'a, C> = (&'a mut [C], Option<faer::MatMut<'a, C>>);

fn decompose<T: LinalgScalar>(
    op: &'static str,
    a: &Tensor<T>,
    slots: PerMatrix<EigSlot<'_, T::Complex>>,
) -> Result<Tensor<i32>> {
    let shape = BatchShape::square(op, a)?;
    let n = shape.n;
    let views = Views::of(op, a)?;
    run(
        shape.batch,
        slots,
        Work::sums(flops(&[25, n, n, n])),
        |_| filled(T::ZERO, n * n),
        |copy, index, (values, vectors), par| {
            // Second attempt near 1 if the growth of the back substitution overflows.
            for exponent in [exponent::<T>(), 0] {
                if !load(views.get(index), copy) {
                    return MatrixStatus::NonFinite;
                }
                if n == 0 {
                    return MatrixStatus::Done;
                }
                let scale = PowerOfTwo::to_exponent(copy, exponent);
                let mut target = vectors.as_mut().map(|v| v.as_mut());
                let a = MatRef::from_column_major_slice(copy, n, n);
                if !T::eigen(a, values, target.as_mut().map(|v| v.as_mut()), par) {
                    return MatrixStatus::NoConvergence;
                }
                if target.is_none_or(normalise) {
                    return if scale.restore(values) {
                        MatrixStatus::Done
                    } else {
                        MatrixStatus::Overflow
                    };
                }
            }
            MatrixStatus::NoConvergence
        },
    )
}

/// Exponent to which the largest element of a matrix is scaled before factorisation: that of 1/ε.
///
/// faer's back substitution replaces pivots below `ε ‖A‖`. The pivot of a conjugate pair is a determinant, the
/// product of two gaps; at norm 1/ε it is below `ε ‖A‖` only if a gap is below `ε ‖A‖`.
fn exponent<T: LinalgScalar>() -> i32 {
    if epsilon::<T>() < 1e-10 { 52 } else { 23 }
}

/// Scales the columns to norm 1; returns true if all of them are finite and nonzero.
fn normalise<C: LinalgScalar>(mut vectors: faer::MatMut<'_, C>) -> bool {
    (0..vectors.ncols()).all(|j| {
        let Some(column) = vectors.as_mut().col_mut(j).try_as_col_major_mut() else {
            unreachable!("results are stored by columns");
        };
        let column = column.as_slice_mut();
        // Squares of the grown elements could overflow.
        PowerOfTwo::to_exponent(column, 0);
        let squares = column.iter().map(|x| x.abs_sq());
        let length = Float::sqrt(squares.fold(C::R::ZERO, Numeric::add));
        let inverse = Field::recip(length);
        column.iter_mut().for_each(|x| *x = Numeric::mul(*x, real(inverse)));
        Float::is_finite(length) && length > C::R::ZERO
    })
}

/// `1 / conj(λⱼ − λᵢ)`, and an indicator of ties (1 at ties, else 0).
fn gaps<C: Matrices>(values: &C, degeneracy: &Degeneracy) -> (C, C::Real) {
    let largest = values.largest();
    // Relative to the largest value: squares of small numbers underflow.
    let scale = largest.masked_recip(&largest.scale(0.0));
    let gap = values.sub(&values.transpose()).mul_real(&scale);
    let (re, im) = (gap.re(), gap.im());
    let squares = re.mul(&re).add(&im.mul(&im));
    let limit = degeneracy.limit(&largest.mul(&scale), values.cols());
    let limit = limit.mul(&limit);
    (gap.mul_real(&squares.masked_recip(&limit)).mul_real(&scale), squares.within(&limit))
}

/// `V⁻¹` of eigenvectors of norm 1.
fn inverse<C: Matrices>(op: &'static str, vectors: &C) -> Result<C> {
    let inverse = vectors.solve(&vectors.identity(vectors.rows()));
    let norms = inverse.norms().map_err(|error| match error {
        LinalgError::Singular { batch, .. } | LinalgError::Overflow { batch, .. } => {
            LinalgError::Defective { op, batch }
        }
        other => other,
    })?;
    // Beyond this norm the columns of the inverse have at most two correct digits.
    let limit = 0.01 / vectors.epsilon();
    match norms.iter().position(|&norm| norm > limit) {
        Some(batch) => Err(LinalgError::Defective { op, batch }),
        None => Ok(inverse),
    }
}

/// Returns an error for directions that split eigenvalues at gaps up to `√ε`, along which the derivative of the rule
/// below is wrong.
pub(crate) fn unsplit<C: Matrices>(values: &C, vectors: &C, x: &C) -> Result<()> {
    let (_, ties) = gaps(values, &Degeneracy::near(x.epsilon()));
    let p = inverse("eig", vectors)?.matmul(&x.matmul(vectors));
    let allowed = relative(x.epsilon());
    split("eig", &p, &ties, allowed, |op, batch| LinalgError::SecondOrderAtTie { op, batch })
}

/// Returns an error if `P = V⁻¹ dA V` is not a multiple of the unit matrix within tied blocks.
fn split<C: Matrices>(
    op: &'static str,
    p: &C,
    ties: &C::Real,
    allowed: f64,
    error: impl Fn(&'static str, usize) -> LinalgError,
) -> Result<()> {
    let block = p.mul_real(ties);
    let mean = block.diagonal().matmul(&C::from_re(ties)).mul_real(&ties.sum_rows().recip());
    // Zero up to rounding without a tie.
    let defects = block.sub(&mean.diagonal_matrix()).norms()?;
    match defects.iter().zip(p.norms()?).position(|(defect, size)| *defect > allowed * size) {
        Some(batch) => Err(error(op, batch)),
        None => Ok(()),
    }
}

/// Returns an error for losses of the vectors of matrices with tied values: within a tied block the cotangent of `V
/// f(Λ) V⁻¹` vanishes, its derivative does not.
fn check_ties<R: RealMatrices<Real = R>>(ties: &R) -> Result<()> {
    let n = ties.rows() as f64;
    // The squared norm of an indicator is its number of ones.
    match ties.norms()?.iter().position(|norm| norm * norm > n + 0.5) {
        Some(batch) => Err(LinalgError::SplitTie { op: "eig_vjp", batch }),
        None => Ok(()),
    }
}

/// `Ā` from the cotangents of eigenvalues (a row) and eigenvectors; `None` is zero. The caller
/// takes the real part if `A` is real.
///
/// # Errors
/// `GaugeIllDefined` if the loss depends on the phases of vectors or the basis of an eigenspace;
/// `SplitTie` if it uses tied vectors; `Defective`.
pub fn vjp<C: Matrices>(
    values: &C,
    vectors: &C,
    values_cotangent: Option<&C>,
    vectors_cotangent: Option<&C>,
    degeneracy: &Degeneracy,
) -> Result<C> {
    let vh = vectors.adjoint();
    let n = vectors.rows();
    let mut g = vectors.constant(n, n, 0.0);
    if let Some(cotangent) = vectors_cotangent {
        let overlap = vh.matmul(cotangent);
        let (inverse, ties) = gaps(values, degeneracy);
        let lengths = overlap.diagonal().re();
        let inner = overlap.sub(&vh.matmul(vectors).mul_real(&lengths));
        let largest = values.largest();
        degeneracy.check("eig_vjp", &inner.mul_real(&ties), &[Some(cotangent)], &largest)?;
        if degeneracy.rejects_split() {
            check_ties(&ties)?;
        }
        g = inner.mul(&inverse);
    }
    if let Some(cotangent) = values_cotangent {
        g = g.add(&cotangent.diagonal_matrix());
    }
    Ok(inverse("eig_vjp", vectors)?.adjoint().matmul(&g.matmul(&vh)))
}

/// Tangents of eigenvalues and eigenvectors, the latter with `Re vᵢᴴ dvᵢ = 0`.
///
/// # Errors
/// `Defective`; `SplitTie` for a direction that splits tied values.
pub fn jvp<C: Matrices>(
    values: &C,
    vectors: &C,
    da: &C,
    degeneracy: &Degeneracy,
) -> Result<(C, C)> {
    let p = inverse("eig_jvp", vectors)?.matmul(&da.matmul(vectors));
    let (inverse, ties) = gaps(values, degeneracy);
    if degeneracy.rejects_split() {
        let allowed = 64.0 * rounding(p.rows()) * p.epsilon();
        split("eig_jvp", &p, &ties, allowed, |op, batch| LinalgError::SplitTie { op, batch })?;
    }
    let raw = vectors.matmul(&p.mul(&inverse.conj()));
    let lengths = vectors.conj().mul(&raw).sum_rows().re();
    Ok((p.diagonal(), raw.sub(&vectors.mul_real(&lengths))))
}
