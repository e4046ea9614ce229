//! The Lyapunov equation `P X + X P = B` with positive definite Hermitian `P`.
//!
//! In the eigenbasis of `P = V diag(E) Vᴴ` the solution is `Xᵢⱼ = Bᵢⱼ / (Eᵢ + Eⱼ)`. It appears in
//! the derivatives of the polar decomposition and of the square root, and is its own adjoint.

mod op;
#[cfg(test)]
mod tests;

use t4a_algebra::Real;
use t4a_tensor::Tensor;

use crate::batch::{Views, is_finite, spoil_failed};
use crate::degeneracy::Degeneracy;
use crate::eigh::eigh_ex;
use crate::error::{LinalgError, NON_FINITE, Result, check};
use crate::scalar::LinalgScalar;
use crate::triangular::check_system;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

pub use op::LyapunovOp;

/// The solution of `P X + X P = B`. Reads `(P + Pᴴ)/2`.
///
/// Shapes `[…, n, n]`, `[…, n, n]` → `[…, n, n]`. Cost about 9·n³ + 4 products.
///
/// # Errors
/// `NotSquare`, `Tensor`; `NonFinite`, `NoConvergence`, and `RankDeficient` if `P` is not positive
/// definite to rounding, with the batch index.
pub fn lyapunov<T: LinalgScalar>(p: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let (x, info) = lyapunov_ex(p, b)?;
    let required = p.shape()[p.rank() - 1];
    check("lyapunov", &info, |op, batch, rank| LinalgError::RankDeficient {
        op,
        batch,
        rank,
        required,
    })?;
    Ok(x)
}

/// As [`lyapunov`], with an info tensor of the batch's shape instead of an error: 0, or `r + 1` if
/// only `r` eigenvalues of `P` are positive, or [`NON_FINITE`],
/// [`NO_CONVERGENCE`](crate::error::NO_CONVERGENCE). The solution of an equation that failed is
/// NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor`.
pub fn lyapunov_ex<T: LinalgScalar>(
    p: &Tensor<T>,
    b: &Tensor<T>,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let n = check_system("lyapunov", p, b)?.n;
    let (out, mut info) = eigh_ex(p)?;
    let (e, v) = (Batched::<T::R>::rows_of(&out.values), Batched::new(&out.vectors));
    let limits = Degeneracy::default().limit(&e, n).norms()?;
    let values = out.values.to_vec()?;
    let rhs = Views::of("lyapunov", b)?;
    for (batch, code) in info.as_mut_slice()?.iter_mut().enumerate() {
        let row = &values[batch * n..(batch + 1) * n];
        let positive = row.iter().filter(|e| Real::to_f64(**e) > limits[batch]).count();
        if *code == 0 && !is_finite(rhs.get(batch)) {
            *code = NON_FINITE;
        } else if *code == 0 && positive < n {
            *code = positive as i32 + 1;
        }
    }
    let inverse = e.add(&e.transpose()).recip();
    let inner = v.adjoint().matmul(&Batched::new(b)).matmul(&v).mul_real(&inverse);
    let x = v.matmul(&inner).matmul(&v.adjoint()).into_tensor()?;
    Ok((spoil_failed(x, &info)?, info))
}

/// `(P̄, B̄)` from the solution and its cotangent: `B̄` solves `P B̄ + B̄ P = X̄`, and
/// `P̄ = −herm(B̄ Xᴴ + Xᴴ B̄)`.
pub fn vjp<M: Matrices>(p: &M, x: &M, x_bar: &M) -> (M, M) {
    let b_bar = p.lyapunov(x_bar);
    let xh = x.adjoint();
    (b_bar.matmul(&xh).add(&xh.matmul(&b_bar)).herm().neg(), b_bar)
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
