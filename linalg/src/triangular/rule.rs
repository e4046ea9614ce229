//! Derivatives of triangular systems: `X = op(T)⁻¹ B`.
//!
//! `B̄ = op(T)⁻ᴴ X̄`, and `−B̄ Xᴴ` is the cotangent of `op(T)`, of which the triangle counts;
//! `dX = op(T)⁻¹ (dB − op(dT) X)`.

use t4a_tensor::Tensor;

use super::{Triangle, TriangleOp};
use crate::error::Result;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices, Region};

/// The entries of `T` that the triangle reads.
fn read<M: Matrices>(t: &M, triangle: Triangle) -> M {
    let off = triangle.unit as isize;
    t.mask(if triangle.upper { Region::Upper(off) } else { Region::Lower(-off) })
}

fn apply<M: Matrices>(t: &M, op: TriangleOp) -> M {
    match op {
        TriangleOp::None => t.clone(),
        TriangleOp::Transpose => t.transpose(),
        TriangleOp::Adjoint => t.adjoint(),
    }
}

/// `(T̄, B̄)` from the solution and its cotangent.
pub fn vjp<M: Matrices>(t: &M, x: &M, x_bar: &M, triangle: Triangle) -> (M, M) {
    let b_bar = match triangle.op {
        TriangleOp::None => t.solve_triangular(x_bar, triangle.adjoint()),
        TriangleOp::Adjoint => {
            t.solve_triangular(x_bar, Triangle { op: TriangleOp::None, ..triangle })
        }
        TriangleOp::Transpose => {
            t.conj().solve_triangular(x_bar, Triangle { op: TriangleOp::None, ..triangle })
        }
    };
    // The cotangent of op(T), brought back through op: each op is its own adjoint map.
    let t_bar = apply(&b_bar.matmul(&x.adjoint()).neg(), triangle.op);
    (read(&t_bar, triangle), b_bar)
}

/// `dX` along `dT` and `dB`; `None` is zero.
pub fn jvp<M: Matrices>(t: &M, x: &M, dt: Option<&M>, db: Option<&M>, triangle: Triangle) -> M {
    let moved = dt.map(|dt| apply(&read(dt, triangle), triangle.op).matmul(x));
    let rhs = match (db, moved) {
        (Some(db), Some(moved)) => db.sub(&moved),
        (Some(db), None) => db.clone(),
        (None, Some(moved)) => moved.neg(),
        (None, None) => x.constant(x.rows(), x.cols(), 0.0),
    };
    t.solve_triangular(&rhs, triangle)
}

/// `(T̄, B̄)` from the solution `X` of `op(T) X = B` and its cotangent. `T̄` lives on the triangle.
///
/// # Errors
/// `Singular`; `Tensor` if shapes do not match.
pub fn solve_triangular_vjp<T: LinalgScalar>(
    t: &Tensor<T>,
    x: &Tensor<T>,
    x_bar: &Tensor<T>,
    triangle: Triangle,
) -> Result<(Tensor<T>, Tensor<T>)> {
    let (t_bar, b_bar) = vjp(&Batched::new(t), &Batched::new(x), &Batched::new(x_bar), triangle);
    Ok((t_bar.into_tensor()?, b_bar.into_tensor()?))
}

/// `dX` along `dT` and `dB`; `None` is zero.
///
/// # Errors
/// As [`solve_triangular_vjp`].
pub fn solve_triangular_jvp<T: LinalgScalar>(
    t: &Tensor<T>,
    x: &Tensor<T>,
    dt: Option<&Tensor<T>>,
    db: Option<&Tensor<T>>,
    triangle: Triangle,
) -> Result<Tensor<T>> {
    let (dt, db) = (dt.map(Batched::new), db.map(Batched::new));
    jvp(&Batched::new(t), &Batched::new(x), dt.as_ref(), db.as_ref(), triangle).into_tensor()
}
