//! Linear systems with vectors as right-hand sides, broadcast batches, `X A = B`, and tensors.

use crate::call::{Pair, check_tangents, run, with_tangents};
use crate::inverse::InvOp;
use crate::solve::SolveOp;
use crate::systems::{Movable, Systems, tensor_inverse, tensor_system};
use crate::triangular::{SolveTriangularOp, Triangle, TriangleOp};
use crate::{LinalgError, MatrixOp, Result};

use super::call::{self, ResultOf};
use super::matrix::{Matrix, Ranked, RightHandSide};

/// Plan of a system. A mismatch of rows is reported by the operation.
fn plan<F, M: Matrix<F>>(
    op: MatrixOp,
    a: &ResultOf<F, M>,
    b: &ResultOf<F, M>,
    fold: bool,
) -> Result<Systems> {
    Systems::new(op.name(), &a.shape(), &b.shape(), fold)
}

/// The solution.
pub(super) fn plain<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    op: impl Into<MatrixOp>,
    a: M,
    b: R,
) -> Result<R> {
    let (op, a, b) = (op.into(), a.into_pair(), b.into_columns());
    let systems = plan::<F, M>(op, &a, &b, true)?;
    let x = call::plain(op, pair::<F, M>(&systems, a, b)?, call::one::<F, M>)?;
    Ok(R::from_columns(systems.solution(x.into_pair())?))
}

/// The solution and the status of each system.
pub(super) fn status<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    op: impl Into<MatrixOp>,
    a: M,
    b: R,
) -> Result<(R, M::Info)> {
    let (op, a, b) = (op.into(), a.into_pair(), b.into_columns());
    let systems = plan::<F, M>(op, &a, &b, false)?;
    let (x, info) = call::status(op, pair::<F, M>(&systems, a, b)?, call::one::<F, M>)?;
    Ok((R::from_columns(systems.solution(x.into_pair())?), info))
}

/// The solution and its tangent.
pub(super) fn jvp<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    op: impl Into<MatrixOp>,
    a: M,
    b: R,
    da: M,
    db: R,
) -> Result<(R, R)> {
    let (op, a, b) = (op.into(), a.into_pair(), b.into_columns());
    let (da, db) = (da.into_pair(), db.into_columns());
    let systems = plan::<F, M>(op, &a, &b, true)?;
    let tangents = match da.shape() == a.shape() && db.shape() == b.shape() {
        true => pair::<F, M>(&systems, da, db)?,
        // Invalid: the call below returns the error.
        false => [M::from_pair(da), M::from_pair(db)],
    };
    let inputs = pair::<F, M>(&systems, a, b)?;
    let (x, dx) = call::jvp(op, inputs, tangents, call::one::<F, M>)?;
    let read = |x: M| Ok::<_, LinalgError>(R::from_columns(systems.solution(x.into_pair())?));
    Ok((read(x)?, read(dx)?))
}

fn pair<F, M: Matrix<F>>(
    systems: &Systems,
    a: ResultOf<F, M>,
    b: ResultOf<F, M>,
) -> Result<[M; 2]> {
    Ok([M::from_pair(systems.matrices(a)?), M::from_pair(systems.columns(b)?)])
}

/// `X A = B` as `Aᵀ Xᵀ = Bᵀ`: the transposed matrix and right-hand side.
fn turned<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> (M, R) {
    (M::from_pair(a.into_pair().transpose()), turned_rhs(b))
}

fn turned_rhs<F, M: Matrix<F>, R: RightHandSide<F, M>>(b: R) -> R {
    match R::VECTOR {
        true => b,
        false => R::from_columns(b.into_columns().transpose()),
    }
}

const RIGHT: &str = "solve_right";

/// The solution of `X A = B`: `[…, n, n]`, `[…, r, n]` → `[…, r, n]`, or of `x A = b` for vectors.
///
/// # Errors
/// As [`solve`](super::solve()).
pub fn solve_right<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<R> {
    let (a, b) = turned(a, b);
    Ok(turned_rhs::<F, M, R>(plain(SolveOp, a, b).map_err(|error| error.of(RIGHT))?))
}

/// As [`solve_right`], with the status of each system as in [`solve_ex`](super::solve_ex).
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn solve_right_ex<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<(R, M::Info)> {
    let (a, b) = turned(a, b);
    let (x, info) = status(SolveOp, a, b).map_err(|error| error.of(RIGHT))?;
    Ok((turned_rhs::<F, M, R>(x), info))
}

/// The solution and its tangent along `dA` and `dB`.
///
/// # Errors
/// As [`solve_right`].
pub fn solve_right_jvp<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    a: M,
    b: R,
    da: M,
    db: R,
) -> Result<(R, R)> {
    let ((a, b), (da, db)) = (turned(a, b), turned(da, db));
    let (x, dx) = jvp(SolveOp, a, b, da, db).map_err(|error| error.of(RIGHT))?;
    Ok((turned_rhs::<F, M, R>(x), turned_rhs::<F, M, R>(dx)))
}

const TRIANGULAR_RIGHT: &str = "solve_triangular_right";

/// `X op(T) = B` as `op(T)ᵀ Xᵀ = Bᵀ`; the transpose of `Tᴴ` is the conjugate of `T`.
fn turned_triangle(triangle: Triangle) -> SolveTriangularOp {
    let op = match triangle.op {
        TriangleOp::None => TriangleOp::Transpose,
        TriangleOp::Transpose | TriangleOp::Adjoint => TriangleOp::None,
    };
    SolveTriangularOp { triangle: Triangle { op, ..triangle } }
}

fn turned_matrix<F, M: Matrix<F>>(t: M, triangle: Triangle) -> M {
    match triangle.op {
        TriangleOp::Adjoint => M::from_pair(t.into_pair().conj()),
        _ => t,
    }
}

/// Solution of `X op(T) = B`; only the selected triangle is read.
///
/// # Errors
/// As [`solve`](super::solve()).
pub fn solve_triangular_right<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    t: M,
    b: R,
    triangle: Triangle,
) -> Result<R> {
    let (t, b) = (turned_matrix(t, triangle), turned_rhs::<F, M, R>(b));
    let x = plain(turned_triangle(triangle), t, b);
    Ok(turned_rhs::<F, M, R>(x.map_err(|error| error.of(TRIANGULAR_RIGHT))?))
}

/// As [`solve_triangular_right`], with the status of each system as in
/// [`solve_ex`](super::solve_ex).
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn solve_triangular_right_ex<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    t: M,
    b: R,
    triangle: Triangle,
) -> Result<(R, M::Info)> {
    let (t, b) = (turned_matrix(t, triangle), turned_rhs::<F, M, R>(b));
    let out = status(turned_triangle(triangle), t, b);
    let (x, info) = out.map_err(|error| error.of(TRIANGULAR_RIGHT))?;
    Ok((turned_rhs::<F, M, R>(x), info))
}

/// The solution and its tangent along `dT` and `dB`.
///
/// # Errors
/// As [`solve_triangular_right`].
pub fn solve_triangular_right_jvp<F, M: Matrix<F>, R: RightHandSide<F, M>>(
    t: M,
    b: R,
    dt: M,
    db: R,
    triangle: Triangle,
) -> Result<(R, R)> {
    let [t, dt] = [t, dt].map(|t| turned_matrix(t, triangle));
    let [b, db] = [b, db].map(turned_rhs::<F, M, R>);
    let out = jvp(turned_triangle(triangle), t, b, dt, db);
    let (x, dx) = out.map_err(|error| error.of(TRIANGULAR_RIGHT))?;
    Ok((turned_rhs::<F, M, R>(x), turned_rhs::<F, M, R>(dx)))
}

/// Reshapes `value` and converts it to the requested type.
fn shaped<F, X: Ranked<F>>(op: &'static str, value: Pair<X::Array>, shape: &[usize]) -> Result<X> {
    if X::RANK != shape.len() || X::COMPLEX != value.is_complex() {
        let required = "a result type of the same rank, complex if the input is";
        return Err(t4a_tensor::TensorError::shape(op, shape, required).into());
    }
    Ok(X::from_pair(value.reshaped(shape)?))
}

/// `X` with `Σ A[i…, j…] X[j…] = B[i…]` over all axes `j…`: `[i…, j…]`, `[i…]` → `[j…]`, as many elements
/// in `i…` as in `j…`.
///
/// # Errors
/// `Tensor` if the shapes do not match, or for a result of another rank; `NonFinite`, `Singular`.
pub fn tensorsolve<F, A, R, X>(a: A, b: R) -> Result<X>
where
    A: Ranked<F>,
    R: Ranked<F, Array = A::Array>,
    X: Ranked<F, Array = A::Array>,
{
    const NAME: &str = "tensorsolve";
    let (a, b) = (a.into_pair(), b.into_pair());
    let shape = a.shape();
    let (n, right) = tensor_system(&shape, &b.shape())?;
    let inputs = [a.reshaped(&[n, n])?, b.reshaped(&[n, 1])?];
    let mut parts = run(SolveOp, &inputs).map_err(|error| error.of(NAME))?.results;
    shaped(NAME, parts.swap_remove(0), right)
}

/// The solution and its tangent along `dA` and `dB`.
///
/// # Errors
/// As [`tensorsolve`]; `Tensor` if the shapes differ.
pub fn tensorsolve_jvp<F, A, R, X>(a: A, b: R, da: A, db: R) -> Result<(X, X)>
where
    A: Ranked<F>,
    R: Ranked<F, Array = A::Array>,
    X: Ranked<F, Array = A::Array>,
{
    const NAME: &str = "tensorsolve";
    let (inputs, tangents) = ([a.into_pair(), b.into_pair()], [da.into_pair(), db.into_pair()]);
    check_tangents(NAME, &inputs, &tangents)?;
    let shape = inputs[0].shape();
    let (n, right) = tensor_system(&shape, &inputs[1].shape())?;
    let flat = |[a, b]: [_; 2]| -> Result<_> {
        Ok([Pair::reshaped(a, &[n, n])?, Pair::reshaped(b, &[n, 1])?])
    };
    let out = with_tangents(SolveOp, &flat(inputs)?, &flat(tangents)?);
    let (mut out, mut moving) = out.map_err(|error| error.of(NAME))?;
    let read = |x| shaped(NAME, x, right);
    Ok((read(out.results.swap_remove(0))?, read(moving.swap_remove(0))?))
}

/// `B` with `Σ A[i…, j…] B[j…, k…] = δ[i…, k…]`, `i…` the first `left` axes: `[i…, j…]` → `[j…, i…]`, as
/// many elements in `i…` as in `j…`.
///
/// # Errors
/// `Tensor` if the shapes do not match; `NonFinite`, `Singular`.
pub fn tensorinv<F, A: Ranked<F>>(a: A, left: usize) -> Result<A> {
    const NAME: &str = "tensorinv";
    let a = a.into_pair();
    let (n, shape) = tensor_inverse(&a.shape(), left)?;
    let out = run(InvOp, &[a.reshaped(&[n, n])?]);
    let mut parts = out.map_err(|error| error.of(NAME))?.results;
    shaped(NAME, parts.swap_remove(0), &shape)
}

/// The inverse and its tangent along `dA`.
///
/// # Errors
/// As [`tensorinv`]; `Tensor` if the shapes differ.
pub fn tensorinv_jvp<F, A: Ranked<F>>(a: A, da: A, left: usize) -> Result<(A, A)> {
    const NAME: &str = "tensorinv";
    let (inputs, tangents) = ([a.into_pair()], [da.into_pair()]);
    check_tangents(NAME, &inputs, &tangents)?;
    let (n, shape) = tensor_inverse(&inputs[0].shape(), left)?;
    let flat = |[a]: [_; 1]| -> Result<_> { Ok([Pair::reshaped(a, &[n, n])?]) };
    let out = with_tangents(InvOp, &flat(inputs)?, &flat(tangents)?);
    let (mut out, mut moving) = out.map_err(|error| error.of(NAME))?;
    let read = |x| shaped(NAME, x, &shape);
    Ok((read(out.results.swap_remove(0))?, read(moving.swap_remove(0))?))
}
