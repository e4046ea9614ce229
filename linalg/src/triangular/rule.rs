//! Derivatives of triangular systems: `X = op(T)⁻¹ B`.
//!
//! `B̄ = op(T)⁻ᴴ X̄`, and `−B̄ Xᴴ` is the cotangent of `op(T)`, of which the triangle counts;
//! `dX = op(T)⁻¹ (dB − op(dT) X)`.

use super::{Triangle, TriangleOp};
use crate::vocabulary::{Matrices, Region};

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
