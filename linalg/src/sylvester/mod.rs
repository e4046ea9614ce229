//! The Sylvester equation `A X + X B = C`, and the Lyapunov equation `A X + X Aᴴ = C`, by Schur forms.
//!
//! ```text
//! A = U T Uᴴ,  B = V S Vᴴ,  T Y + Y S = Uᴴ C V,  X = U Y Vᴴ
//! (T + sⱼⱼ I) yⱼ = fⱼ − Σ sₖⱼ yₖ,  k < j
//! ```
//!
//! The solution is unique unless an eigenvalue of `A` is the negative of one of `B`. With `G` the solution of
//! `Aᴴ G + G Bᴴ = X̄`:
//!
//! ```text
//! C̄ = G,  Ā = −G Xᴴ,  B̄ = −Xᴴ G,   A dX + dX B = dC − dA X − X dB
//! ```
//!
//! For positive definite Hermitian `A` there is [`lyapunov_positive`](crate::lyapunov).
//!
//! Reference: R. Bartels, G. Stewart 1972.

mod op;
#[cfg(test)]
mod tests;

use faer::{MatMut, MatRef, Par};
use t4a_algebra::c64;
use t4a_linalg_kernels::Kernels;
use t4a_tensor::{Tensor, TensorError};

use crate::batch::{BatchShape, MatrixStatus, ResultBuffer, Views, filled, flops, load, run};
use crate::error::{Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::scale::{PowerOfTwo, largest};
use crate::schur::SchurForm;
use crate::schur::divided::quotient;
use crate::schur::square::{SquareMatrix, ZERO, store, widened};
use crate::threads::Work;
use crate::vocabulary::{Batched, Matrices};

pub use op::SylvesterOp;

/// The solution of `A X + X B = C`.
///
/// Shapes `[…, m, m]`, `[…, n, n]`, `[…, m, n]` → `[…, m, n]`. Cost about 25·(m³ + n³) + m·n·(m + n) complex
/// products.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `NoConvergence`, `Overflow`, and
/// `CommonEigenvalue` if an eigenvalue of `A` is the negative of one of `B` to rounding, with the batch index.
pub fn sylvester<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    c: &Tensor<T>,
) -> Result<Tensor<T>> {
    let (x, info) = sylvester_ex(a, b, c)?;
    check("sylvester", &info, SINGULAR)?;
    Ok(x)
}

/// As [`sylvester`], with an info tensor of the batch's shape instead of an error. The solution of an equation
/// that failed is NaN.
///
/// # Errors
/// `NotMatrix`, `NotSquare`, `Tensor`.
pub fn sylvester_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    c: &Tensor<T>,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let op = "sylvester";
    let (of_a, of_b, of_c) =
        (BatchShape::square(op, a)?, BatchShape::square(op, b)?, BatchShape::of(op, c)?);
    of_a.same_batch(op, &of_b)?;
    of_a.same_batch(op, &of_c)?;
    let (m, n) = (of_a.n, of_b.n);
    if (of_c.m, of_c.n) != (m, n) {
        let required = "[…, m, m], […, n, n] and […, m, n]";
        return Err(TensorError::shapes(op, a.shape(), c.shape(), required).into());
    }
    let mut out = ResultBuffer::<T>::new(of_a.batch, m, n)?;
    let slots = out.mats()?;
    let (a, b, c) = (Views::of(op, a)?, Views::of(op, b)?, Views::of(op, c)?);
    let largest_size = m.max(n);
    let work = Work::whole(flops(&[25, largest_size, largest_size, largest_size]));
    let info = run(
        of_a.batch,
        slots,
        work,
        |_| filled(T::ZERO, m * m + n * n + m * n),
        |copy, index, slot, _| {
            let (left, rest) = copy.split_at_mut(m * m);
            let (right, rhs) = rest.split_at_mut(n * n);
            if !load(a.get(index), left) || !load(b.get(index), right) || !load(c.get(index), rhs) {
                return MatrixStatus::NonFinite;
            }
            let a = SquareMatrix::from_columns(m, widened(left));
            let b = SquareMatrix::from_columns(n, widened(right));
            match solve(a, b, widened(rhs)) {
                Ok(x) if store(&x, slot.as_mut()) => MatrixStatus::Done,
                Ok(_) => MatrixStatus::Overflow,
                Err(status) => status,
            }
        },
    )?;
    Ok((out.matrices(info.route())?, info))
}

/// Solution of one equation; `C` and `X` are column-major.
fn solve(
    mut a: SquareMatrix,
    mut b: SquareMatrix,
    mut c: Vec<c64>,
) -> Result<Vec<c64>, MatrixStatus> {
    let size = largest(a.data()).max(largest(b.data()));
    let of_matrices = PowerOfTwo::apply(a.data_mut(), |_| size);
    PowerOfTwo::apply(b.data_mut(), |_| size);
    let of_rhs = PowerOfTwo::apply(&mut c, largest);
    let same = b == a.adjoint();
    let left = SchurForm::of(a).ok_or(MatrixStatus::NoConvergence)?;
    let right = if same { Some(left.adjoint()) } else { SchurForm::of(b) };
    let right = right.ok_or(MatrixStatus::NoConvergence)?;
    let (u, v) = (left.unitary(), right.unitary());
    let mut y = between(&u.adjoint(), &c, &v);
    substitute(&left, &right, &mut y)?;
    let mut x = between(&u, &y, &v.adjoint());
    of_rhs.over(of_matrices).restore(&mut x);
    Ok(x)
}

/// `U C V`.
fn between(u: &SquareMatrix, c: &[c64], v: &SquareMatrix) -> Vec<c64> {
    let (m, n) = (u.n(), v.n());
    let (mut half, mut out) = (vec![ZERO; m * n], vec![ZERO; m * n]);
    if m * n > 0 {
        let into = MatMut::from_column_major_slice_mut(&mut half, m, n);
        let c = MatRef::from_column_major_slice(c, m, n);
        <c64 as Kernels>::matmul(into, u.as_ref(), c, Par::Seq);
        let into = MatMut::from_column_major_slice_mut(&mut out, m, n);
        let half = MatRef::from_column_major_slice(&half, m, n);
        <c64 as Kernels>::matmul(into, half, v.as_ref(), Par::Seq);
    }
    out
}

/// Overwrites `F` with `Y` of `T Y + Y S = F`.
fn substitute(left: &SchurForm, right: &SchurForm, y: &mut [c64]) -> Result<(), MatrixStatus> {
    let (t, s) = (&left.t, &right.t);
    let m = t.n();
    let limit = left.uncertainty() + right.uncertainty();
    for j in 0..s.n() {
        let (before, rest) = y.split_at_mut(j * m);
        let y = &mut rest[..m];
        for (x, &s) in before.chunks_exact(m.max(1)).zip(s.col(j)) {
            y.iter_mut().zip(x).for_each(|(y, x)| *y -= s * x);
        }
        for i in (0..m).rev() {
            let sum = t[(i, i)] + s[(j, j)];
            if sum.norm() <= limit {
                return Err(MatrixStatus::CommonEigenvalue);
            }
            let x = if y[i] == ZERO { ZERO } else { quotient(y[i], sum) };
            y[i] = x;
            y[..i].iter_mut().zip(t.col(i)).for_each(|(y, t)| *y -= t * x);
        }
    }
    Ok(())
}

/// Cotangents of `A`, `B` and `C` from the solution and its cotangent. The error of an equation is carried in the
/// result.
pub fn vjp<M: Matrices>(a: &M, b: &M, x: &M, x_cotangent: &M) -> [M; 3] {
    let g = M::operate(SylvesterOp.into(), &[&a.adjoint(), &b.adjoint(), x_cotangent]);
    let xh = x.adjoint();
    [g.matmul(&xh).neg(), xh.matmul(&g).neg(), g]
}

/// `dX` along `dA`, `dB` and `dC`; `None` is zero.
pub fn jvp<M: Matrices>(a: &M, b: &M, x: &M, [da, db, dc]: [Option<&M>; 3]) -> M {
    let mut rhs = match dc {
        Some(dc) => dc.clone(),
        None => x.constant(x.rows(), x.cols(), 0.0),
    };
    if let Some(da) = da {
        rhs = rhs.sub(&da.matmul(x));
    }
    if let Some(db) = db {
        rhs = rhs.sub(&x.matmul(db));
    }
    M::operate(SylvesterOp.into(), &[a, b, &rhs])
}

/// The solution of the Lyapunov equation `A X + X Aᴴ = C`, Hermitian to rounding for Hermitian `C`.
///
/// Shapes `[…, n, n]`, `[…, n, n]` → `[…, n, n]`. Cost about 25·n³ complex products.
///
/// # Errors
/// As [`sylvester`]; `CommonEigenvalue` if two eigenvalues of `A` have a sum `λᵢ + λ̄ⱼ` that is zero to
/// rounding.
pub fn lyapunov<T: LinalgScalar>(a: &Tensor<T>, c: &Tensor<T>) -> Result<Tensor<T>> {
    let b = Batched::new(a).adjoint().into_tensor()?;
    sylvester(a, &b, c).map_err(|error| error.of("lyapunov"))
}
