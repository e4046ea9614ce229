//! Least squares `min ‖A X − B‖`, and the minimum-norm solution.
//!
//! With full rank the solution is `X = P B`, `P` the pseudoinverse in terms of a QR factorisation:
//! `P = R⁻¹ Qᴴ` from `A = Q R` (tall), `P = Q R⁻ᴴ` from `Aᴴ = Q R` (wide). The rule of the
//! pseudoinverse becomes, with `G = Pᴴ X̄`:
//!
//! ```text
//! B̄ = G,   Ā = −G Xᴴ + (B − A X)(P G)ᴴ + (Pᴴ X)(X̄ − Aᴴ G)ᴴ
//! dX = P (dB − dA X) + P Pᴴ dAᴴ (B − A X) + (I − P A) dAᴴ Pᴴ X
//! ```
//!
//! where the second term vanishes for wide and the third for tall matrices. For rank-deficient matrices use
//! [`lstsq_min_norm`], which truncates small singular values.
//!
//! Reference: G. Golub, V. Pereyra 1973.

mod op;
#[cfg(test)]
mod tests;

use t4a_algebra::Real;
use t4a_tensor::{Tensor, TensorError};

use crate::batch::{BatchShape, Views, is_finite, spoil_failed};
use crate::degeneracy::rounding;
use crate::error::{LinalgError, NON_FINITE, Result, SINGULAR, check};
use crate::pinv::pinv_ex;
use crate::qr::{Columns, Qr, qr_ex};
use crate::scalar::{LinalgScalar, epsilon};
use crate::systems::broadcast;
use crate::triangular::{Triangle, solve_triangular_ex};
use crate::vocabulary::{Batched, Matrices, RealMatrices};

pub use op::{LstsqMinNormOp, LstsqOp};

/// Least-squares solution with the QR factorisation that the derivative rules use.
#[derive(Clone, Debug)]
pub struct Lstsq<T: LinalgScalar> {
    /// Solution, `[…, n, r]`.
    pub x: Tensor<T>,
    /// `A = Q R` if `m ≥ n`, else `Aᴴ = Q R`.
    pub qr: Qr<T>,
}

fn check_shapes<'a, T: LinalgScalar>(
    op: &'static str,
    a: &'a Tensor<T>,
    b: &Tensor<T>,
) -> Result<BatchShape<'a>> {
    let (shape, rhs) = (BatchShape::of(op, a)?, BatchShape::of(op, b)?);
    shape.same_batch(op, &rhs)?;
    if shape.m != rhs.m {
        let required = "[…, m, n] and […, m, r]";
        return Err(TensorError::shapes(op, a.shape(), b.shape(), required).into());
    }
    Ok(shape)
}

/// `X` with minimal `‖A X − B‖`, and minimal `‖X‖` if `A` is wide; `A` must have full rank.
///
/// Shapes `[…, m, n]`, `[…, m, r]` → `[…, n, r]`, vectors and batches as in
/// [`solve`](crate::solve::solve); the rules take equal batches of matrices. Cost 2·m·n·k + … flops:
/// one QR factorisation.
///
/// # Errors
/// `NotMatrix`, `Tensor` if shapes do not match; `NonFinite`, `RankDeficient` with the batch index.
pub fn lstsq<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Lstsq<T>> {
    let k = BatchShape::of("lstsq", a)?.k();
    let mut qr = None;
    let x = broadcast("lstsq", a, b, |a, b, _| {
        let (out, info) = lstsq_ex(a, b)?;
        check("lstsq", &info, |op, batch, rank| LinalgError::RankDeficient {
            op,
            batch,
            rank,
            required: k,
        })?;
        qr = Some(out.qr);
        Ok(out.x)
    })?;
    match qr {
        Some(qr) => Ok(Lstsq { x, qr }),
        None => unreachable!("the factors of the solution"),
    }
}

/// `Σᵢ |A X − B|²ᵢⱼ`, a row, for any implementor of [`Matrices`].
pub fn residuals<M: Matrices>(a: &M, b: &M, x: &M) -> M::Real {
    let rest = a.matmul(x).sub(b);
    let (re, im) = (rest.re(), rest.im());
    re.mul(&re).add(&im.mul(&im)).sum_rows()
}

/// Squared residual `Σᵢ |A X − B|²ᵢⱼ` of each right-hand side.
///
/// Shapes `[…, m, n]`, `[…, m, r]`, `[…, n, r]` → `[…, r]`. Cost 2·m·n·r flops. The gradient of its sum
/// with respect to `X` is zero at a solution.
///
/// # Errors
/// `NotMatrix`, `Tensor` if the shapes do not match.
pub fn lstsq_residuals<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    x: &Tensor<T>,
) -> Result<Tensor<T::R>> {
    check_shapes("lstsq_residuals", a, b)?;
    residuals(&Batched::new(a), &Batched::new(b), &Batched::new(x)).into_vectors()
}

/// As [`lstsq`], with an info tensor of the batch's shape instead of an error: 0, or `i + 1` if
/// diagonal entry `i` of `R` is zero to rounding, or [`NON_FINITE`].
///
/// # Errors
/// `NotMatrix`, `Tensor`.
pub fn lstsq_ex<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Lstsq<T>, Tensor<i32>)> {
    let shape = check_shapes("lstsq", a, b)?;
    let (tall, k) = (shape.m >= shape.n, shape.k());
    let factored = match tall {
        true => a.clone(),
        false => Batched::new(a).adjoint().into_tensor()?,
    };
    let (qr, mut info) = qr_ex(&factored, Columns::Thin)?;
    let q = Batched::new(&qr.q);
    let (x, solved) = if tall {
        let rhs = q.adjoint().matmul(&Batched::new(b)).into_tensor()?;
        solve_triangular_ex(&qr.r, &rhs, Triangle::UPPER)?
    } else {
        let (y, solved) = solve_triangular_ex(&qr.r, b, Triangle::UPPER.adjoint())?;
        (q.matmul(&Batched::new(&y)).into_tensor()?, solved)
    };
    let diagonal = Batched::new(&qr.r).diagonal().into_tensor()?.to_vec()?;
    let unit = epsilon::<T>() * rounding(shape.m.max(shape.n));
    let codes = info.as_mut_slice()?;
    for (batch, (code, &later)) in
        codes.iter_mut().zip(solved.as_slice().unwrap_or_default()).enumerate()
    {
        let sizes: Vec<f64> =
            diagonal[batch * k..(batch + 1) * k].iter().map(|d| d.modulus().to_f64()).collect();
        let limit = unit * sizes.iter().copied().fold(0.0, f64::max);
        match sizes.iter().position(|&d| d <= limit) {
            _ if *code != 0 => {}
            Some(i) => *code = i as i32 + 1,
            None => *code = later,
        }
    }
    let x = spoil_failed(x, &info)?;
    Ok((Lstsq { x, qr }, info))
}

/// Applies `P` and `Pᴴ` by the QR factorisation.
struct Pseudoinverse<'a, M> {
    q: &'a M,
    r: &'a M,
    tall: bool,
}

impl<M: Matrices> Pseudoinverse<'_, M> {
    fn apply(&self, y: &M) -> M {
        match self.tall {
            true => self.r.solve_triangular(&self.q.adjoint().matmul(y), Triangle::UPPER),
            false => self.q.matmul(&self.r.solve_triangular(y, Triangle::UPPER.adjoint())),
        }
    }

    fn apply_adjoint(&self, y: &M) -> M {
        match self.tall {
            true => self.q.matmul(&self.r.solve_triangular(y, Triangle::UPPER.adjoint())),
            false => self.r.solve_triangular(&self.q.adjoint().matmul(y), Triangle::UPPER),
        }
    }

    /// `Pᴴ X / c` and the power of two `c`, a constant. The product itself, divided twice by a small matrix, may
    /// overflow.
    fn of_solution(&self, x: &M) -> (M, M::Real) {
        let size = x.magnitude().power_of_two();
        (self.apply_adjoint(&x.mul_real(&size.recip())), size)
    }
}

/// `(Ā, B̄)` from the solution, `A = Q R` or `Aᴴ = Q R`, and the cotangent.
pub fn vjp<M: Matrices>(a: &M, b: &M, x: &M, q: &M, r: &M, x_cotangent: &M) -> (M, M) {
    let p = Pseudoinverse { q, r, tall: a.rows() >= a.cols() };
    let g = p.apply_adjoint(x_cotangent);
    let direct = g.matmul(&x.adjoint()).neg();
    let rest = if a.rows() > a.cols() {
        b.sub(&a.matmul(x)).matmul(&p.apply(&g).adjoint())
    } else if a.rows() < a.cols() {
        let outside = x_cotangent.sub(&a.adjoint().matmul(&g));
        let (through, size) = p.of_solution(x);
        through.matmul(&outside.adjoint()).mul_real(&size)
    } else {
        return (direct, g);
    };
    (direct.add(&rest), g)
}

/// `dX` along `dA` and `dB`; `None` is zero.
pub fn jvp<M: Matrices>(a: &M, b: &M, x: &M, q: &M, r: &M, da: Option<&M>, db: Option<&M>) -> M {
    let p = Pseudoinverse { q, r, tall: a.rows() >= a.cols() };
    let Some(da) = da else {
        return db.map_or_else(|| x.scale(0.0), |db| p.apply(db));
    };
    let through = da.matmul(x).neg();
    let direct = p.apply(&db.map_or_else(|| through.clone(), |db| db.add(&through)));
    if a.rows() > a.cols() {
        let residual = da.adjoint().matmul(&b.sub(&a.matmul(x)));
        direct.add(&p.apply(&p.apply_adjoint(&residual)))
    } else if a.rows() < a.cols() {
        let (through, size) = p.of_solution(x);
        let moved = da.adjoint().matmul(&through).mul_real(&size);
        direct.add(&moved.sub(&p.apply(&a.matmul(&moved))))
    } else {
        direct
    }
}

/// `X = P B` with the pseudoinverse: the minimum-norm solution for any rank. `rtol` as in
/// [`pinv`](crate::pinv::pinv), vectors and batches as in [`lstsq`].
///
/// # Errors
/// As [`pinv`](crate::pinv::pinv); `Tensor` if shapes do not match; `NonFinite` also for `B`.
pub fn lstsq_min_norm<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    rtol: Option<f64>,
) -> Result<Tensor<T>> {
    broadcast("lstsq_min_norm", a, b, |a, b, _| Ok(min_norm(a, b, rtol)?.0))
}

/// `P B` and `P`.
pub(crate) fn min_norm<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    rtol: Option<f64>,
) -> Result<(Tensor<T>, Tensor<T>)> {
    let ((x, p), info) = min_norm_ex(a, b, rtol)?;
    check("lstsq_min_norm", &info, SINGULAR)?;
    Ok((x, p))
}

/// As [`lstsq_min_norm`], with an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`, `Tensor`.
pub fn lstsq_min_norm_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    rtol: Option<f64>,
) -> Result<(Tensor<T>, Tensor<i32>)> {
    let ((x, _), info) = min_norm_ex(a, b, rtol)?;
    Ok((x, info))
}

type LstsqResult<T> = ((Tensor<T>, Tensor<T>), Tensor<i32>);

fn min_norm_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    rtol: Option<f64>,
) -> Result<LstsqResult<T>> {
    check_shapes("lstsq_min_norm", a, b)?;
    let (p, mut info) = pinv_ex(a, rtol)?;
    let rhs = Views::of("lstsq_min_norm", b)?;
    for (batch, code) in info.as_mut_slice()?.iter_mut().enumerate() {
        if *code == 0 && !is_finite(rhs.get(batch)) {
            *code = NON_FINITE;
        }
    }
    let x = Batched::new(&p).matmul(&Batched::new(b)).into_tensor()?;
    Ok(((spoil_failed(x, &info)?, p), info))
}
