//! The Lyapunov equation `P X + X P = B` with positive definite Hermitian `P`.
//!
//! In the eigenbasis of `P = V diag(E) Vᴴ` the solution is `Xᵢⱼ = Bᵢⱼ / (Eᵢ + Eⱼ)`. The equation appears in the
//! derivatives of the polar decomposition; its solution operator is self-adjoint. For general matrices see
//! [`sylvester::lyapunov`](crate::sylvester::lyapunov).

mod op;
#[cfg(test)]
mod tests;

use t4a_algebra::Real;
use t4a_tensor::{Tensor, TensorError};

use crate::batch::{ResultBuffer, Views, load, spoil_failed};
use crate::degeneracy::Degeneracy;
use crate::eigh::eigh_ex;
use crate::error::{LinalgError, NON_FINITE, Result, check};
use crate::scalar::LinalgScalar;
use crate::scale::{PowerOfTwo, largest};
use crate::triangular::check_system;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

pub use op::LyapunovPositiveOp;

/// Solution of `P X + X P = B`, with `(P + Pᴴ)/2` for `P`.
///
/// Shapes `[…, n, n]`, `[…, n, n]` → `[…, n, n]`. Cost about 9·n³ + 4 products.
///
/// # Errors
/// `NotSquare`, `Tensor`; `NonFinite`, `NoConvergence`, and `RankDeficient` if `P` is not positive
/// definite to rounding, with the batch index.
///
/// ```
/// use t4a_linalg::lyapunov::lyapunov_positive;
/// use t4a_tensor::Tensor;
///
/// // P X + X P = B, for numbers: 2 · 3 x = 12.
/// let [p, b] = [3.0, 12.0].map(|x| Tensor::from_vec(vec![x], &[1, 1]));
/// assert_eq!(lyapunov_positive(&p?, &b?)?.to_vec()?, [2.0]);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn lyapunov_positive<T: LinalgScalar>(p: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let (x, info) = lyapunov_positive_ex(p, b)?;
    let required = p.shape()[p.rank() - 1];
    check("lyapunov_positive", &info, |op, batch, rank| LinalgError::RankDeficient {
        op,
        batch,
        rank,
        required,
    })?;
    Ok(x)
}

/// As [`lyapunov_positive`], with an info tensor of the batch's shape instead of an error: 0, or `r + 1` if
/// only `r` eigenvalues of `P` are positive, or [`NON_FINITE`],
/// [`NO_CONVERGENCE`](crate::error::NO_CONVERGENCE). The solution of an equation that failed is
/// NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor`.
pub fn lyapunov_positive_ex<T: LinalgScalar>(
    p: &Tensor<T>,
    b: &Tensor<T>,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let shape = check_system("lyapunov_positive", p, b)?;
    let n = shape.n;
    if b.shape() != p.shape() {
        let (op, required) = ("lyapunov_positive", "[…, n, n] and […, n, n]");
        return Err(TensorError::shapes(op, p.shape(), b.shape(), required).into());
    }
    let (out, mut info) = eigh_ex(p)?;
    let mut e = out.values;
    // Sums of eigenvalues, and of elements of B, could overflow.
    let rhs = Views::of("lyapunov_positive", b)?;
    let mut near = ResultBuffer::<T>::new(shape.batch, n, n)?;
    let mut finite = Vec::new();
    let mut scales = Vec::new();
    for (batch, near) in near.slices()?.into_iter().enumerate() {
        finite.push(load(rhs.get(batch), near));
        let row = &mut e.as_mut_slice()?[batch * n..(batch + 1) * n];
        let of_p = PowerOfTwo::apply(row, largest);
        scales.push(PowerOfTwo::apply(near, largest).over(of_p));
    }
    let near = Batched::new(&near.matrices(info.route())?);
    let values = e.to_vec()?;
    let (e, v) = (Batched::<T::R>::rows_of(&e), Batched::new(&out.vectors));
    let limits = Degeneracy::default().limit(&e, n).norms()?;
    for (batch, code) in info.as_mut_slice()?.iter_mut().enumerate() {
        let row = &values[batch * n..(batch + 1) * n];
        let positive = row.iter().filter(|e| Real::to_f64(**e) > limits[batch]).count();
        if *code == 0 && !finite[batch] {
            *code = NON_FINITE;
        } else if *code == 0 && positive < n {
            *code = positive as i32 + 1;
        }
    }
    let inverse = e.add(&e.transpose()).recip();
    let inner = v.adjoint().matmul(&near).matmul(&v).mul_real(&inverse);
    let mut x = v.matmul(&inner).matmul(&v.adjoint()).into_tensor()?;
    if scales.iter().any(|scale| !scale.is_one()) {
        let matrices = x.as_mut_slice()?.chunks_exact_mut(n * n);
        matrices.zip(scales).for_each(|(x, scale)| {
            scale.restore(x);
        });
    }
    Ok((spoil_failed(x, &info)?, info))
}

/// `(P̄, B̄)` from the solution and its cotangent: `B̄` solves `P B̄ + B̄ P = X̄`, and
/// `P̄ = −herm(B̄ Xᴴ + Xᴴ B̄)`.
pub fn vjp<M: Matrices>(p: &M, x: &M, x_cotangent: &M) -> (M, M) {
    let b_cotangent = p.lyapunov(x_cotangent);
    let xh = x.adjoint();
    (b_cotangent.matmul(&xh).add(&xh.matmul(&b_cotangent)).herm().neg(), b_cotangent)
}

/// `dX` along `dP` and `dB`; `None` is zero.
pub fn jvp<M: Matrices>(p: &M, x: &M, dp: Option<&M>, db: Option<&M>) -> M {
    let moved = dp.map(|dp| {
        let dp = dp.herm();
        dp.matmul(x).add(&x.matmul(&dp))
    });
    let rhs = match (db, moved) {
        (Some(db), Some(moved)) => db.sub(&moved),
        (Some(db), None) => db.clone(),
        (None, Some(moved)) => moved.neg(),
        (None, None) => x.constant(x.rows(), x.cols(), 0.0),
    };
    p.lyapunov(&rhs)
}
