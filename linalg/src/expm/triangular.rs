//! Exponential of triangular matrices. After each squaring the diagonal and the first superdiagonal are replaced by
//! `e^λ` and `t exp[λᵢ, λⱼ]`, so that errors do not grow with the number of squarings.
//!
//! Reference: A. Al-Mohy, N. Higham 2009, code fragment 2.1.

use faer::MatRef;
use t4a_algebra::{Numeric, c64};
use t4a_tensor::Tensor;

use super::{pade, plans, times_powers};
use crate::batch::MatrixStatus;
use crate::error::Result;
use crate::scalar::LinalgScalar;
use crate::scale::PowerOfTwo;
use crate::schur::square::SquareMatrix;
use crate::schur::{divided, function};
use crate::vocabulary::{Batched, Matrices};

/// True if all elements on one side of the diagonal are zero.
pub(super) fn is_triangular<T: LinalgScalar>(a: MatRef<'_, T>) -> bool {
    let upper = |a: MatRef<'_, T>| {
        (0..a.ncols()).all(|j| (j + 1..a.nrows()).all(|i| a[(i, j)] == <T as Numeric>::ZERO))
    };
    upper(a) || upper(a.transpose())
}

/// `e^A` of a batch of triangular matrices; not finite on overflow.
pub(super) fn exp<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    let unscaled = |data: &mut [c64]| PowerOfTwo::none(data);
    let (out, _) = function("expm", a, unscaled, |form, _| {
        upper(&form.t).map_err(|_| MatrixStatus::NoConvergence)
    })?;
    Ok(out)
}

fn upper(t: &SquareMatrix) -> Result<SquareMatrix> {
    let n = t.n();
    let data = (0..n).flat_map(|i| (0..n).map(move |j| t[(i, j)])).collect();
    let a = Batched::new(&Tensor::from_vec(data, &[1, n, n])?);
    let (degree, squarings) = plans(&a, 1.0, Batched::norms)?;
    let near = pade(&times_powers(&a, squarings.iter().map(|s| -s)), degree).into_tensor()?;
    let near = near.to_vec()?;
    let mut x = SquareMatrix::from_fn(n, |i, j| near[i * n + j]);
    exact(&mut x, t, squarings[0]);
    for left in (0..squarings[0]).rev() {
        x = x.times(&x);
        exact(&mut x, t, left);
    }
    Ok(x)
}

/// Diagonal and first superdiagonal of `exp(T/2ˢ)`.
fn exact(x: &mut SquareMatrix, t: &SquareMatrix, s: i32) {
    let power = |z: c64| z * 0.5f64.powi(s / 2) * 0.5f64.powi(s - s / 2);
    for i in 0..t.n() {
        x[(i, i)] = power(t[(i, i)]).exp();
        if i > 0 {
            let (a, b) = (power(t[(i - 1, i - 1)]), power(t[(i, i)]));
            x[(i - 1, i)] = power(t[(i - 1, i)]) * divided::exp(a, b);
        }
    }
}
