//! Derivatives of triangular systems: `X = op(T)⁻¹ B`.
//!
//! `B̄ = op(T)⁻ᴴ X̄`; the selected triangle of `−B̄ Xᴴ` is the cotangent of `op(T)`. `dX = op(T)⁻¹ (dB − op(dT) X)`.

use super::{Triangle, TriangleOp};
use crate::vocabulary::{Matrices, Region};

/// Entries of `T` in the selected triangle.
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
pub fn vjp<M: Matrices>(t: &M, x: &M, x_cotangent: &M, triangle: Triangle) -> (M, M) {
    let b_cotangent = match triangle.op {
        TriangleOp::None => t.solve_triangular(x_cotangent, triangle.adjoint()),
        TriangleOp::Adjoint => {
            t.solve_triangular(x_cotangent, Triangle { op: TriangleOp::None, ..triangle })
        }
        TriangleOp::Transpose => {
            t.conj().solve_triangular(x_cotangent, Triangle { op: TriangleOp::None, ..triangle })
        }
    };
    // Converts the cotangent of op(T) to that of T: each op is its own adjoint map.
    let t_cotangent = apply(&b_cotangent.matmul(&x.adjoint()).neg(), triangle.op);
    (read(&t_cotangent, triangle), b_cotangent)
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
