//! The principal square root of a general matrix, by the scaled product form of the iteration of
//! Denman and Beavers.
//!
//! ```text
//! M ← (I + (μ² M + μ⁻² M⁻¹)/2)/2,   X ← μ X (I + μ⁻² M⁻¹)/2,   X → √A,  M → I
//! ```
//!
//! Written in the vocabulary: on dual numbers it converges to the Fréchet derivative as well, which
//! solves `R dR + dR R = dA`; `Ā = L(Aᴴ, R̄)`. For Hermitian matrices
//! [`hermitian`](crate::hermitian) is faster and exact at zero eigenvalues.
//!
//! Reference: S. Cheng, N. Higham, C. Kenney, A. Laub 2001; N. Higham, *Functions of Matrices*,
//! eq. (6.29).

mod op;
#[cfg(test)]
mod tests;

use t4a_algebra::{Field, Real};
use t4a_tensor::Tensor;
use t4a_tensor::loops::parallel;
use t4a_tensor::route::{Path, Route};

use crate::batch::{Output, Shape, Status, Views, is_finite, run};
use crate::degeneracy::rounding;
use crate::eig::eigvals;
use crate::error::{LinalgError, Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::threads::Work;
use crate::vocabulary::{Batched, Dual, Matrices, RealMatrices};

pub use op::SqrtmOp;

const ITERATIONS: usize = 60;

/// `√A` in the vocabulary.
///
/// # Errors
/// `Singular` or `NoConvergence`, also for an eigenvalue on the negative real axis.
pub fn sqrt<M: Matrices>(a: &M) -> Result<M> {
    let size = a.magnitude();
    Ok(near_one(&a.mul_real(&size.recip()))?.mul_real(&size.powf(0.5)))
}

/// `√A` of a matrix whose largest element is about 1: squares of others could leave the range.
fn near_one<M: Matrices>(a: &M) -> Result<M> {
    let unit = a.identity(a.rows());
    let (mut x, mut m) = (a.clone(), a.clone());
    let near = a.epsilon().sqrt();
    let mut left = None;
    for _ in 0..ITERATIONS {
        let defects = m.sub(&unit).norms()?;
        let defect = defects.iter().copied().fold(0.0, f64::max);
        if left.is_none() && defect <= near {
            // Quadratic convergence: one step to rounding, one more for a tangent.
            left = Some(2);
        }
        match &mut left {
            Some(0) => return Ok(x),
            Some(steps) => *steps -= 1,
            None => {}
        }
        let inverse = m.solve(&unit);
        let scale = match defect > 0.1 {
            true => scaling(&m.norms()?, &inverse.norms()?),
            false => 1.0,
        };
        let small = inverse.scale(0.5 / (scale * scale));
        x = x.scale(scale).matmul(&unit.scale(0.5).add(&small));
        m = unit.scale(0.5).add(&m.scale(0.25 * scale * scale)).add(&small.scale(0.5));
    }
    Err(LinalgError::NoConvergence { op: "sqrtm", batch: 0 })
}

/// `μ` with `μ⁴ = ‖M⁻¹‖/‖M‖`, for the matrix of the batch that is farthest from 1.
fn scaling(norms: &[f64], inverses: &[f64]) -> f64 {
    let logs = norms.iter().zip(inverses).map(|(m, i)| (i / m).ln() / 4.0);
    let log = logs.fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    if log.is_finite() { log.exp() } else { 1.0 }
}

/// `L(A, dA)` in the vocabulary.
///
/// # Errors
/// As [`sqrt`].
pub fn jvp<M: Matrices>(a: &M, da: &M) -> Result<M> {
    // The same tangent at A/c: L(c A, E) = L(A, E)/√c.
    let size = a.magnitude();
    let near = Dual::new(a.mul_real(&size.recip()), da.clone());
    Ok(near_one(&near)?.into_tangent().mul_real(&size.powf(-0.5)))
}

/// `Ā = L(Aᴴ, R̄)` in the vocabulary.
///
/// # Errors
/// As [`sqrt`].
pub fn vjp<M: Matrices>(a: &M, r_cotangent: &M) -> Result<M> {
    jvp(&a.adjoint(), r_cotangent)
}

/// The principal square root: `R R = A`, eigenvalues of `R` in the right half plane.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost about 10 inverses and products.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `Singular`, `NegativeEigenvalue`, `NoConvergence` with the
/// batch index.
pub fn sqrtm<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    let (out, info) = sqrtm_ex(a)?;
    check("sqrtm", &info, SINGULAR)?;
    Ok(out)
}

/// As [`sqrtm`], with an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn sqrtm_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<i32>)> {
    Shape::square("sqrtm", a)?;
    one_by_one("sqrtm", &[a], |x| sqrt(&x[0]))
}

/// Whether an eigenvalue is negative, to rounding: the iteration meets a singular matrix then, or
/// does not settle.
fn on_negative_axis<T: LinalgScalar>(a: &Batched<T>) -> bool {
    let unit = a.epsilon() * rounding(a.rows());
    let Ok(values) = a.clone().into_tensor().and_then(|a| Ok(eigvals(&a)?.to_vec()?)) else {
        return false;
    };
    let parts = |z: &T::Complex| (Real::to_f64(Field::re(*z)), Real::to_f64(Field::im(*z)));
    let largest = values.iter().map(|z| parts(z).0.hypot(parts(z).1)).fold(0.0, f64::max);
    values.iter().map(parts).any(|(re, im)| re < -unit * largest && im.abs() <= unit * largest)
}

/// Iterates matrix by matrix, each with its own scaling.
pub(crate) fn one_by_one<T: LinalgScalar>(
    op: &'static str,
    inputs: &[&Tensor<T>],
    f: impl Fn(&[Batched<T>]) -> Result<Batched<T>> + Sync,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let shape = Shape::of(op, inputs[0])?;
    let n = shape.n;
    let views = inputs.iter().map(|t| Views::of(op, t)).collect::<Result<Vec<_>>>()?;
    let count: usize = shape.batch.iter().product();
    let one = |index: usize| -> Result<Tensor<T>> {
        let mut parts = Vec::new();
        for views in &views {
            let mut part = Output::<T>::new(&[], n, n)?;
            part.mats()?[0].copy_from(views.get(index));
            if !is_finite(views.get(index)) {
                return Err(LinalgError::NonFinite { op, batch: index });
            }
            parts.push(Batched::new(&part.matrices(Route::native(Path::LoopIndex))?));
        }
        f(&parts).and_then(Batched::into_tensor).map_err(|error| match error {
            LinalgError::Singular { .. } | LinalgError::NoConvergence { .. }
                if on_negative_axis(&parts[0]) =>
            {
                LinalgError::NegativeEigenvalue { op, batch: index }
            }
            other => other,
        })
    };
    let flops = 50 * n * n * n;
    let mut results: Vec<Option<Result<Tensor<T>>>> = (0..count).map(|_| None).collect();
    parallel::for_each_mut(&mut results, parallel::worthwhile(count, flops), |index, result| {
        *result = Some(one(index));
    });
    let mut out = Output::<T>::new(shape.batch, n, n)?;
    let info = run(
        shape.batch,
        out.mats()?,
        Work::sums(1),
        |_| Ok(()),
        |(), index, slot, _| match &results[index] {
            Some(Ok(result)) => match Views::of(op, result) {
                Ok(views) => {
                    slot.copy_from(views.get(0));
                    Status::Done
                }
                Err(_) => Status::NoConvergence,
            },
            Some(Err(LinalgError::NonFinite { .. })) => Status::NonFinite,
            Some(Err(LinalgError::Singular { index, .. })) => Status::Pivot(*index),
            Some(Err(LinalgError::NegativeEigenvalue { .. })) => Status::NegativeEigenvalue,
            Some(Err(_)) | None => Status::NoConvergence,
        },
    )?;
    let route = results.iter().flatten().flatten().next().map(Tensor::route);
    Ok((out.matrices(route.unwrap_or(Route::native(Path::Empty)))?, info))
}
