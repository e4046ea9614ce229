//! Systems on Burn tensors: right-hand sides that are vectors, batches that broadcast, `X A = B`,
//! tensors.

use burn_tensor::Tensor;
use t4a_linalg::call::{Pair, check_tangents, run, with_tangents};
use t4a_linalg::inverse::InvOp;
use t4a_linalg::operation::MatrixOperation;
use t4a_linalg::solve::SolveOp;
use t4a_linalg::systems::{Movable, Systems, tensor_inverse, tensor_system};
use t4a_linalg::triangular::{SolveTriangularOp, Triangle, TriangleOp};
use t4a_linalg::{LinalgError, MatrixOp, Result};

use super::call::{self, Part};
use super::matrix::{self, Matrix};
use crate::ext::Complex;
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;

/// What systems with matrices `M` have on their right: matrices `[…, n, r]` of the same rank, or
/// vectors `[…, n]`, one for each matrix.
///
/// Axes of the batch broadcast if one of them is 1. Where that of `A` is 1, its matrices are factored
/// once for all right-hand sides, except in the `_ex` functions, which keep them apart.
pub trait RightHandSide<M: Matrix>: Sized {
    /// Whether it is a batch of vectors.
    const VECTOR: bool;

    /// Matrices; a vector is a column.
    fn into_columns(self) -> Part<M>;

    /// The solution in the form of the right-hand side.
    fn from_columns(columns: Part<M>) -> Self;
}

impl<M: Matrix> RightHandSide<M> for M {
    const VECTOR: bool = false;

    fn into_columns(self) -> Part<M> {
        self.into_pair()
    }

    fn from_columns(columns: Part<M>) -> Self {
        Self::from_pair(columns)
    }
}

macro_rules! vectors {
    ($($matrix:literal $vector:literal),*) => {$(
        vectors!(@one Tensor $matrix $vector);
        vectors!(@one Complex $matrix $vector);
    )*};
    (@one $tensor:ident $matrix:literal $vector:literal) => {
        impl<B: Operations> RightHandSide<$tensor<B, $matrix>> for $tensor<B, $vector> {
            const VECTOR: bool = true;

            fn into_columns(self) -> Pair<Floats<B>> {
                <$tensor<B, $matrix> as Matrix>::rows(self).transpose()
            }

            fn from_columns(columns: Pair<Floats<B>>) -> Self {
                <$tensor<B, $matrix> as Matrix>::vectors(columns.transpose())
            }
        }
    };
}

vectors!(2 1, 3 2, 4 3, 5 4, 6 5, 7 6, 8 7);

/// The plan of a system. Wrong rows are left to the operation.
fn plan<M: Matrix>(op: MatrixOp, a: &Part<M>, b: &Part<M>, fold: bool) -> Result<Systems> {
    Systems::new(op.name(), &a.shape(), &b.shape(), fold)
}

/// The solution.
pub(super) fn plain<M: Matrix, R: RightHandSide<M>>(
    op: impl Into<MatrixOp>,
    a: M,
    b: R,
) -> Result<R> {
    let (op, a, b) = (op.into(), a.into_pair(), b.into_columns());
    let systems = plan::<M>(op, &a, &b, true)?;
    let x = call::plain(op, pair::<M>(&systems, a, b)?, super::solve::one::<M>)?;
    Ok(R::from_columns(systems.solution(x.into_pair())?))
}

/// The solution and the status of each system.
pub(super) fn status<M: Matrix, R: RightHandSide<M>>(
    op: impl Into<MatrixOp>,
    a: M,
    b: R,
) -> Result<(R, M::Info)> {
    let (op, a, b) = (op.into(), a.into_pair(), b.into_columns());
    let systems = plan::<M>(op, &a, &b, false)?;
    let (x, info) = call::status(op, pair::<M>(&systems, a, b)?, super::solve::one::<M>)?;
    Ok((R::from_columns(systems.solution(x.into_pair())?), info))
}

/// The solution and its tangent.
pub(super) fn jvp<M: Matrix, R: RightHandSide<M>>(
    op: impl Into<MatrixOp>,
    a: M,
    b: R,
    da: M,
    db: R,
) -> Result<(R, R)> {
    let (op, a, b) = (op.into(), a.into_pair(), b.into_columns());
    let (da, db) = (da.into_pair(), db.into_columns());
    let systems = plan::<M>(op, &a, &b, true)?;
    let tangents = match da.shape() == a.shape() && db.shape() == b.shape() {
        true => pair::<M>(&systems, da, db)?,
        // An error, which the call below reports.
        false => [M::from_pair(da), M::from_pair(db)],
    };
    let inputs = pair::<M>(&systems, a, b)?;
    let (x, dx) = call::jvp(op, inputs, tangents, super::solve::one::<M>)?;
    let read = |x: M| Ok::<_, LinalgError>(R::from_columns(systems.solution(x.into_pair())?));
    Ok((read(x)?, read(dx)?))
}

fn pair<M: Matrix>(systems: &Systems, a: Part<M>, b: Part<M>) -> Result<[M; 2]> {
    Ok([M::from_pair(systems.matrices(a)?), M::from_pair(systems.columns(b)?)])
}

/// `X A = B` as `Aᵀ Xᵀ = Bᵀ`: the transposed matrix and right-hand side.
fn turned<M: Matrix, R: RightHandSide<M>>(a: M, b: R) -> (M, R) {
    (M::from_pair(a.into_pair().transpose()), turned_rhs(b))
}

fn turned_rhs<M: Matrix, R: RightHandSide<M>>(b: R) -> R {
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
pub fn solve_right<M: Matrix, R: RightHandSide<M>>(a: M, b: R) -> Result<R> {
    let (a, b) = turned(a, b);
    Ok(turned_rhs::<M, R>(plain(SolveOp, a, b).map_err(|error| error.of(RIGHT))?))
}

/// As [`solve_right`], with the status of each system as in [`solve_ex`](super::solve_ex).
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn solve_right_ex<M: Matrix, R: RightHandSide<M>>(a: M, b: R) -> Result<(R, M::Info)> {
    let (a, b) = turned(a, b);
    let (x, info) = status(SolveOp, a, b).map_err(|error| error.of(RIGHT))?;
    Ok((turned_rhs::<M, R>(x), info))
}

/// The solution and its tangent along `dA` and `dB`.
///
/// # Errors
/// As [`solve_right`].
pub fn solve_right_jvp<M: Matrix, R: RightHandSide<M>>(a: M, b: R, da: M, db: R) -> Result<(R, R)> {
    let ((a, b), (da, db)) = (turned(a, b), turned(da, db));
    let (x, dx) = jvp(SolveOp, a, b, da, db).map_err(|error| error.of(RIGHT))?;
    Ok((turned_rhs::<M, R>(x), turned_rhs::<M, R>(dx)))
}

const TRIANGULAR_RIGHT: &str = "solve_triangular_right";

/// `X op(T) = B` as `op(T)ᵀ Xᵀ = Bᵀ`: the transpose of `Tᴴ` is the conjugate of `T`.
fn turned_triangle(triangle: Triangle) -> SolveTriangularOp {
    let op = match triangle.op {
        TriangleOp::None => TriangleOp::Transpose,
        TriangleOp::Transpose | TriangleOp::Adjoint => TriangleOp::None,
    };
    SolveTriangularOp { triangle: Triangle { op, ..triangle } }
}

fn turned_matrix<M: Matrix>(t: M, triangle: Triangle) -> M {
    match triangle.op {
        TriangleOp::Adjoint => M::from_pair(t.into_pair().conj()),
        _ => t,
    }
}

/// The solution of `X op(T) = B`; only the triangle named is read.
///
/// # Errors
/// As [`solve`](super::solve()).
pub fn solve_triangular_right<M: Matrix, R: RightHandSide<M>>(
    t: M,
    b: R,
    triangle: Triangle,
) -> Result<R> {
    let (t, b) = (turned_matrix(t, triangle), turned_rhs::<M, R>(b));
    let x = plain(turned_triangle(triangle), t, b);
    Ok(turned_rhs::<M, R>(x.map_err(|error| error.of(TRIANGULAR_RIGHT))?))
}

/// As [`solve_triangular_right`], with the status of each system as in
/// [`solve_ex`](super::solve_ex).
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn solve_triangular_right_ex<M: Matrix, R: RightHandSide<M>>(
    t: M,
    b: R,
    triangle: Triangle,
) -> Result<(R, M::Info)> {
    let (t, b) = (turned_matrix(t, triangle), turned_rhs::<M, R>(b));
    let out = status(turned_triangle(triangle), t, b);
    let (x, info) = out.map_err(|error| error.of(TRIANGULAR_RIGHT))?;
    Ok((turned_rhs::<M, R>(x), info))
}

/// The solution and its tangent along `dT` and `dB`.
///
/// # Errors
/// As [`solve_triangular_right`].
pub fn solve_triangular_right_jvp<M: Matrix, R: RightHandSide<M>>(
    t: M,
    b: R,
    dt: M,
    db: R,
    triangle: Triangle,
) -> Result<(R, R)> {
    let [t, dt] = [t, dt].map(|t| turned_matrix(t, triangle));
    let [b, db] = [b, db].map(turned_rhs::<M, R>);
    let out = jvp(turned_triangle(triangle), t, b, dt, db);
    let (x, dx) = out.map_err(|error| error.of(TRIANGULAR_RIGHT))?;
    Ok((turned_rhs::<M, R>(x), turned_rhs::<M, R>(dx)))
}

/// A tensor of any rank, real or complex.
pub trait Array: Sized {
    /// The backend.
    type Backend: Operations;
    /// Number of axes.
    const RANK: usize;

    /// The primitives.
    fn into_pair(self) -> Pair<Floats<Self::Backend>>;
    /// The tensor of primitives of that rank and kind.
    fn from_pair(value: Pair<Floats<Self::Backend>>) -> Self;
    /// Whether there is an imaginary part.
    const COMPLEX: bool;
}

impl<B: Operations, const D: usize> Array for Tensor<B, D> {
    type Backend = B;
    const RANK: usize = D;
    const COMPLEX: bool = false;

    fn into_pair(self) -> Pair<Floats<B>> {
        Pair::real(matrix::floats(self))
    }
    fn from_pair(value: Pair<Floats<B>>) -> Self {
        matrix::real(value, 0)
    }
}

impl<B: Operations, const D: usize> Array for Complex<B, D> {
    type Backend = B;
    const RANK: usize = D;
    const COMPLEX: bool = true;

    fn into_pair(self) -> Pair<Floats<B>> {
        let (re, im) = self.into_parts();
        Pair::complex(matrix::floats(re), matrix::floats(im))
    }
    fn from_pair(value: Pair<Floats<B>>) -> Self {
        matrix::complex(value, 0)
    }
}

/// `value` under another shape, as the type that the caller wants.
fn shaped<X: Array>(
    op: &'static str,
    value: Pair<Floats<X::Backend>>,
    shape: &[usize],
) -> Result<X> {
    if X::RANK != shape.len() || X::COMPLEX != value.is_complex() {
        let required = "the result is asked for in its rank, complex if the input is";
        return Err(t4a_tensor::TensorError::shape(op, shape, required).into());
    }
    Ok(X::from_pair(value.reshaped(shape)?))
}

/// `X` with `Σ A[i…, j…] X[j…] = B[i…]` over all axes `j…`: `[i…, j…]`, `[i…]` → `[j…]`, as many elements
/// in `i…` as in `j…`.
///
/// # Errors
/// `Tensor` if the shapes do not match, or for a result of another rank; `NonFinite`, `Singular`.
pub fn tensorsolve<A, R, X>(a: A, b: R) -> Result<X>
where
    A: Array,
    R: Array<Backend = A::Backend>,
    X: Array<Backend = A::Backend>,
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
pub fn tensorsolve_jvp<A, R, X>(a: A, b: R, da: A, db: R) -> Result<(X, X)>
where
    A: Array,
    R: Array<Backend = A::Backend>,
    X: Array<Backend = A::Backend>,
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
pub fn tensorinv<A: Array>(a: A, left: usize) -> Result<A> {
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
pub fn tensorinv_jvp<A: Array>(a: A, da: A, left: usize) -> Result<(A, A)> {
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
