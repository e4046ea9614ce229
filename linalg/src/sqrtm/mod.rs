//! Principal square root of a general matrix by its Schur form.
//!
//! ```text
//! A = Q T Qᴴ,  R R = T,  Rᵢᵢ = √Tᵢᵢ,  Rᵢⱼ = (Tᵢⱼ − Σ Rᵢₖ Rₖⱼ)/(Rᵢᵢ + Rⱼⱼ),  i < k < j
//! ```
//!
//! A singular matrix has a root if its zero eigenvalues are semisimple, as those of positive semidefinite matrices:
//! the numerators vanish up to rounding where both roots do. The derivative solves `R dR + dR R = dA`, exists for
//! regular matrices, and is computed by block matrices (module `frechet`). For Hermitian matrices
//! [`hermitian`](crate::hermitian) is faster.
//!
//! Reference: Å. Björck, S. Hammarling 1983; N. Higham, *Functions of Matrices*, algorithm 6.3.

mod op;
#[cfg(test)]
mod tests;

use t4a_algebra::c64;
use t4a_tensor::Tensor;

use crate::batch::MatrixStatus;
use crate::degeneracy::rounding;
use crate::error::{Result, SINGULAR, check};
use crate::frechet;
use crate::scalar::LinalgScalar;
use crate::scale::PowerOfTwo;
use crate::schur::divided::{quotient, sqrt};
use crate::schur::square::{SquareMatrix, ZERO};
use crate::schur::{SchurForm, function};
use crate::vocabulary::Matrices;

pub use op::SqrtmOp;

/// Root of an upper triangular matrix from the roots of its diagonal. Sums of roots up to `limit` count as zero.
pub(crate) fn triangular(
    t: &SquareMatrix,
    roots: impl Fn(usize) -> c64,
    limit: f64,
) -> Result<SquareMatrix, MatrixStatus> {
    let n = t.n();
    let noise = f64::EPSILON * rounding(n) * t.largest();
    let mut r = SquareMatrix::zeros(n);
    for j in 0..n {
        let mut column = t.col(j).to_vec();
        column[j] = roots(j);
        for i in (0..j).rev() {
            let (first, second) = (r[(i, i)], column[j]);
            column[i] = match column[i] {
                ZERO => ZERO,
                x if first.norm().max(second.norm()) > limit => quotient(x, first + second),
                x if x.norm() <= noise => ZERO,
                _ => return Err(MatrixStatus::Pivot(i)),
            };
            let x = column[i];
            column[..i].iter_mut().zip(r.col(i)).for_each(|(y, r)| *y -= r * x);
        }
        r.col_mut(j).copy_from_slice(&column);
    }
    Ok(r)
}

/// `√T` of a scaled Schur form.
fn root(form: &SchurForm, scale: PowerOfTwo) -> Result<SquareMatrix, MatrixStatus> {
    if form.on_negative_axis() {
        return Err(MatrixStatus::NegativeEigenvalue);
    }
    let limit = form.uncertainty();
    let value = |i: usize| match form.value(i) {
        z if form.hermitian && z.re < 0.0 => ZERO,
        z => sqrt(z),
    };
    let mut r = triangular(&form.t, value, limit.sqrt())?;
    scale.root().restore(r.data_mut());
    Ok(r)
}

/// Principal square root: `R R = A`, eigenvalues of `R` in the right half plane or zero. The root of a real matrix is
/// real.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost about 25·n³ complex products, less for triangular and Hermitian matrices.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `NegativeEigenvalue`, `NoConvergence`, and `Singular` for a matrix
/// that has no root because zero is a defective eigenvalue, with the batch index.
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
    function("sqrtm", a, PowerOfTwo::by_square, root)
}

/// `L(A, dA)` for any implementor of [`Matrices`]: the solution of `R dR + dR R = dA`. The error of a failed matrix
/// is carried in the result: `Singular` for a direction that moves a zero eigenvalue.
pub fn jvp<M: Matrices>(a: &M, da: &M) -> M {
    frechet::along(SqrtmOp, a, da)
}

/// `Ā` for any implementor of [`Matrices`].
pub fn vjp<M: Matrices>(a: &M, r_cotangent: &M) -> M {
    frechet::cotangent(SqrtmOp, a, r_cotangent)
}
