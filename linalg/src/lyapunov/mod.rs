//! The Lyapunov equation `P X + X P = B` with positive definite Hermitian `P`.
//!
//! In the eigenbasis of `P = V diag(E) Vᴴ` the solution is `Xᵢⱼ = Bᵢⱼ / (Eᵢ + Eⱼ)`. It appears in
//! the derivatives of the polar decomposition and of the square root, and is its own adjoint.

#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use crate::degeneracy::Degeneracy;
use crate::eigh::eigh;
use crate::error::{LinalgError, Result};
use crate::scalar::LinalgScalar;
use crate::triangular::check_system;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

/// The solution of `P X + X P = B`. Reads `(P + Pᴴ)/2`.
///
/// Shapes `[…, n, n]`, `[…, n, n]` → `[…, n, n]`. Cost about 9·n³ + 4 products.
///
/// # Errors
/// `NotSquare`, `Tensor`; `NonFinite`, `NoConvergence`, and `RankDeficient` if `P` is not positive
/// definite to rounding.
pub fn lyapunov<T: LinalgScalar>(p: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let op = "lyapunov";
    let n = check_system(op, p, b)?.n;
    let out = eigh(p)?;
    let (e, v) = (Batched::<T::R>::rows_of(&out.values), Batched::new(&out.vectors));
    let limit = Degeneracy::default().limit(&e, n);
    let limits = limit.norms()?;
    if n > 0 {
        for (batch, (row, limit)) in out.values.to_vec()?.chunks_exact(n).zip(limits).enumerate() {
            let positive = row.iter().filter(|e| t4a_algebra::Real::to_f64(**e) > limit).count();
            if positive < n {
                return Err(LinalgError::RankDeficient { op, batch, rank: positive, required: n });
            }
        }
    }
    let inverse = e.add(&e.transpose()).recip();
    let inner = v.adjoint().matmul(&Batched::new(b)).matmul(&v).mul_real(&inverse);
    v.matmul(&inner).matmul(&v.adjoint()).into_tensor()
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
