//! Derivatives of `X = A⁻¹ B`, from the packed factors `A[p] = L U`.
//!
//! `B̄ = A⁻ᴴ X̄`, `Ā = −B̄ Xᴴ`; `dX = A⁻¹ (dB − dA X)`. For factors at hand the two triangular
//! systems are differentiated one after the other.

use t4a_tensor::Tensor;

use crate::error::Result;
use crate::lu::LuFactors;
use crate::permutation::Permutation;
use crate::scalar::LinalgScalar;
use crate::triangular::{self, Triangle, TriangleOp};
use crate::vocabulary::{Batched, Matrices, Region};

const LOWER: Triangle = Triangle::LOWER.unit();
const UPPER: Triangle = Triangle::UPPER;

/// `A⁻¹ B` from packed factors.
pub(crate) fn apply_inverse<M: Matrices>(packed: &M, rows: &Permutation, b: &M) -> M {
    let y = packed.solve_triangular(&b.permute_rows(rows), LOWER);
    packed.solve_triangular(&y, UPPER)
}

/// `A⁻ᴴ B` from packed factors.
pub(crate) fn apply_inverse_adjoint<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    b: &M,
) -> Result<M> {
    let y = packed.solve_triangular(b, UPPER.adjoint());
    Ok(packed.solve_triangular(&y, LOWER.adjoint()).permute_rows(&rows.inverse()?))
}

/// `(Ā, B̄)` from the solution and its cotangent.
///
/// # Errors
/// `OutOfMemory`.
pub fn vjp<M: Matrices>(packed: &M, rows: &Permutation, x: &M, x_bar: &M) -> Result<(M, M)> {
    let b_bar = apply_inverse_adjoint(packed, rows, x_bar)?;
    Ok((b_bar.matmul(&x.adjoint()).neg(), b_bar))
}

/// `dX` along `dA` and `dB`; `None` is zero.
pub fn jvp<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    x: &M,
    da: Option<&M>,
    db: Option<&M>,
) -> M {
    let rhs = match (db, da.map(|da| da.matmul(x))) {
        (Some(db), Some(moved)) => db.sub(&moved),
        (Some(db), None) => db.clone(),
        (None, Some(moved)) => moved.neg(),
        (None, None) => x.constant(x.rows(), x.cols(), 0.0),
    };
    apply_inverse(packed, rows, &rhs)
}

/// `(Ā, B̄)` from the solution `X` of `A X = B` and its cotangent. Cost: two triangular solves and
/// one product.
///
/// # Errors
/// `Singular`; `Tensor` if shapes do not match.
pub fn solve_vjp<T: LinalgScalar>(
    factors: &LuFactors<T>,
    x: &Tensor<T>,
    x_bar: &Tensor<T>,
) -> Result<(Tensor<T>, Tensor<T>)> {
    let packed = Batched::new(&factors.packed);
    let (a, b) = vjp(&packed, &factors.rows, &Batched::new(x), &Batched::new(x_bar))?;
    Ok((a.into_tensor()?, b.into_tensor()?))
}

/// `dX` along `dA` and `dB`; `None` is zero.
///
/// # Errors
/// As [`solve_vjp`].
pub fn solve_jvp<T: LinalgScalar>(
    factors: &LuFactors<T>,
    x: &Tensor<T>,
    da: Option<&Tensor<T>>,
    db: Option<&Tensor<T>>,
) -> Result<Tensor<T>> {
    let (da, db) = (da.map(Batched::new), db.map(Batched::new));
    let packed = Batched::new(&factors.packed);
    jvp(&packed, &factors.rows, &Batched::new(x), da.as_ref(), db.as_ref()).into_tensor()
}

/// The triangular systems of `op(A) X = B` with `A[p] = L U`, first to last: what each reads, and
/// its solution. `x` is the last solution, in the order of the factors.
fn stages<M: Matrices>(packed: &M, x: &M, op: TriangleOp) -> [(Triangle, M); 2] {
    let (lower, upper) = (Triangle { op, ..LOWER }, Triangle { op, ..UPPER });
    let apply = |t: &M| match op {
        TriangleOp::None => t.matmul(x),
        TriangleOp::Transpose => t.transpose().matmul(x),
        TriangleOp::Adjoint => t.adjoint().matmul(x),
    };
    match op {
        // L Y = P B, U X = Y
        TriangleOp::None => [(lower, apply(&packed.mask(Region::Upper(0)))), (upper, x.clone())],
        // op(U) Y = B, op(L) X = Y
        _ => {
            let unit = packed.identity(packed.rows());
            [(upper, apply(&packed.mask(Region::Lower(-1)).add(&unit))), (lower, x.clone())]
        }
    }
}

/// Cotangents of the packed factors and of `B` from the solution of `op(A) X = B`.
///
/// # Errors
/// `OutOfMemory`.
pub fn factored_vjp<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    x: &M,
    x_bar: &M,
    op: TriangleOp,
) -> Result<(M, M)> {
    let plain = op == TriangleOp::None;
    let ordered = |y: &M| if plain { y.clone() } else { y.permute_rows(rows) };
    let [(first, y), (second, x)] = stages(packed, &ordered(x), op);
    let (second_bar, y_bar) = triangular::vjp(packed, &x, &ordered(x_bar), second);
    let (first_bar, b_bar) = triangular::vjp(packed, &y, &y_bar, first);
    let b_bar = if plain { b_bar.permute_rows(&rows.inverse()?) } else { b_bar };
    Ok((first_bar.add(&second_bar), b_bar))
}

/// `dX` of `op(A) X = B` along tangents of the packed factors and of `B`; `None` is zero.
///
/// # Errors
/// `OutOfMemory`.
pub fn factored_jvp<M: Matrices>(
    packed: &M,
    rows: &Permutation,
    x: &M,
    d_packed: Option<&M>,
    db: Option<&M>,
    op: TriangleOp,
) -> Result<M> {
    let plain = op == TriangleOp::None;
    let x = if plain { x.clone() } else { x.permute_rows(rows) };
    let db = db.map(|db| if plain { db.permute_rows(rows) } else { db.clone() });
    let [(first, y), (second, x)] = stages(packed, &x, op);
    let dy = triangular::jvp(packed, &y, d_packed, db.as_ref(), first);
    let dx = triangular::jvp(packed, &x, d_packed, Some(&dy), second);
    Ok(if plain { dx } else { dx.permute_rows(&rows.inverse()?) })
}

/// Cotangents of the packed factors and of `B` from the solution of
/// [`lu_solve`](super::lu_solve). Cost: two triangular solves and three products.
///
/// # Errors
/// `Singular`; `Tensor` if shapes do not match.
pub fn lu_solve_vjp<T: LinalgScalar>(
    factors: &LuFactors<T>,
    x: &Tensor<T>,
    x_bar: &Tensor<T>,
    op: TriangleOp,
) -> Result<(Tensor<T>, Tensor<T>)> {
    let [packed, x, x_bar] = [&factors.packed, x, x_bar].map(Batched::new);
    let (packed_bar, b_bar) = factored_vjp(&packed, &factors.rows, &x, &x_bar, op)?;
    Ok((packed_bar.into_tensor()?, b_bar.into_tensor()?))
}

/// `dX` of [`lu_solve`](super::lu_solve) along tangents of the packed factors and of `B`; `None`
/// is zero.
///
/// # Errors
/// As [`lu_solve_vjp`].
pub fn lu_solve_jvp<T: LinalgScalar>(
    factors: &LuFactors<T>,
    x: &Tensor<T>,
    d_packed: Option<&Tensor<T>>,
    db: Option<&Tensor<T>>,
    op: TriangleOp,
) -> Result<Tensor<T>> {
    let (d_packed, db) = (d_packed.map(Batched::new), db.map(Batched::new));
    let (packed, x) = (Batched::new(&factors.packed), Batched::new(x));
    factored_jvp(&packed, &factors.rows, &x, d_packed.as_ref(), db.as_ref(), op)?.into_tensor()
}
