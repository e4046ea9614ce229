//! Systems on Burn tensors: right-hand sides that are vectors, batches that broadcast, `X A = B`,
//! tensors.

use burn_backend::Shape;
use burn_backend::TensorMetadata;
use burn_backend::tensor::FloatTensor;
use burn_tensor::{Tensor, TensorPrimitive};
use t4a_linalg::systems::{Movable, Systems, tensor_inverse, tensor_system};
use t4a_linalg::triangular::{Op as TriangleOp, Triangle};
use t4a_linalg::{LinalgError, Op, Result};

use super::call;
use super::matrix::Matrix;
use super::ops::LinalgOps;
use super::value::Value;
use crate::ext::Complex;

/// What systems with matrices `M` have on their right: matrices `[…, n, r]` of the same rank, or
/// vectors `[…, n]`, one for each matrix.
///
/// Axes of the batch broadcast if one of them is 1. Where that of `A` is 1, its matrices are factored
/// once for all right-hand sides, except in the `_ex` functions, which keep them apart.
pub trait RightHandSide<M: Matrix>: Sized {
    /// Whether it is a batch of vectors.
    const VECTOR: bool;

    /// Matrices; a vector is a column.
    fn into_columns(self) -> Value<M::Backend>;

    /// The solution in the form of the right-hand side.
    fn from_columns(columns: Value<M::Backend>) -> Self;
}

impl<M: Matrix> RightHandSide<M> for M {
    const VECTOR: bool = false;

    fn into_columns(self) -> Value<M::Backend> {
        self.into_value()
    }

    fn from_columns(columns: Value<M::Backend>) -> Self {
        Self::from_value(columns)
    }
}

macro_rules! vectors {
    ($($matrix:literal $vector:literal),*) => {$(
        vectors!(@one Tensor $matrix $vector);
        vectors!(@one Complex $matrix $vector);
    )*};
    (@one $tensor:ident $matrix:literal $vector:literal) => {
        impl<B: LinalgOps> RightHandSide<$tensor<B, $matrix>> for $tensor<B, $vector> {
            const VECTOR: bool = true;

            fn into_columns(self) -> Value<B> {
                transposed(<$tensor<B, $matrix> as Matrix>::rows(self))
            }

            fn from_columns(columns: Value<B>) -> Self {
                <$tensor<B, $matrix> as Matrix>::vectors(transposed(columns))
            }
        }
    };
}

vectors!(2 1, 3 2, 4 3, 5 4, 6 5, 7 6, 8 7);

impl<B: LinalgOps> Movable for Value<B> {
    fn reshaped(self, shape: &[usize]) -> Result<Self> {
        Ok(self.map(|x| B::float_reshape(x, Shape::from(shape.to_vec()))))
    }
    fn expanded(self, shape: &[usize]) -> Result<Self> {
        Ok(self.map(|x| B::float_expand(x, Shape::from(shape.to_vec()))))
    }
    fn permuted(self, axes: &[usize]) -> Result<Self> {
        Ok(self.map(|x| B::float_permute(x, axes)))
    }
}

fn transposed<B: LinalgOps>(x: Value<B>) -> Value<B> {
    x.map(|x: FloatTensor<B>| {
        let rank = x.rank();
        B::float_swap_dims(x, rank - 2, rank - 1)
    })
}

/// The plan of a system. Wrong rows are left to the operation.
fn plan<B: LinalgOps>(op: &Op, a: &Value<B>, b: &Value<B>, fold: bool) -> Result<Systems> {
    Systems::new(op.name(), &a.shape(), &b.shape(), fold)
}

/// The solution.
pub(super) fn plain<M: Matrix, R: RightHandSide<M>>(op: Op, a: M, b: R) -> Result<R> {
    let (a, b) = (a.into_value(), b.into_columns());
    let systems = plan(&op, &a, &b, true)?;
    let x = call::plain(op, pair::<M>(&systems, a, b)?, super::solve::one::<M>)?;
    Ok(R::from_columns(systems.solution(x.into_value())?))
}

/// The solution and the status of each system.
pub(super) fn status<M: Matrix, R: RightHandSide<M>>(op: Op, a: M, b: R) -> Result<(R, M::Info)> {
    let (a, b) = (a.into_value(), b.into_columns());
    let systems = plan(&op, &a, &b, false)?;
    let (x, info) = call::status(op, pair::<M>(&systems, a, b)?, super::solve::one::<M>)?;
    Ok((R::from_columns(systems.solution(x.into_value())?), info))
}

/// The solution and its tangent.
pub(super) fn along<M: Matrix, R: RightHandSide<M>>(
    op: Op,
    a: M,
    b: R,
    da: M,
    db: R,
) -> Result<(R, R)> {
    let (a, b) = (a.into_value(), b.into_columns());
    let (da, db) = (da.into_value(), db.into_columns());
    let systems = plan(&op, &a, &b, true)?;
    let tangents = match da.shape() == a.shape() && db.shape() == b.shape() {
        true => pair::<M>(&systems, da, db)?,
        // An error, which the call below reports.
        false => [M::from_value(da), M::from_value(db)],
    };
    let inputs = pair::<M>(&systems, a, b)?;
    let (x, dx) = call::along(op, inputs, tangents, super::solve::one::<M>)?;
    let read = |x: M| Ok::<_, LinalgError>(R::from_columns(systems.solution(x.into_value())?));
    Ok((read(x)?, read(dx)?))
}

fn pair<M: Matrix>(
    systems: &Systems,
    a: Value<M::Backend>,
    b: Value<M::Backend>,
) -> Result<[M; 2]> {
    Ok([M::from_value(systems.matrices(a)?), M::from_value(systems.columns(b)?)])
}

/// `X A = B` as `Aᵀ Xᵀ = Bᵀ`: the transposed matrix and right-hand side.
fn turned<M: Matrix, R: RightHandSide<M>>(a: M, b: R) -> (M, R) {
    (M::from_value(transposed(a.into_value())), turned_rhs(b))
}

fn turned_rhs<M: Matrix, R: RightHandSide<M>>(b: R) -> R {
    match R::VECTOR {
        true => b,
        false => R::from_columns(transposed(b.into_columns())),
    }
}

const RIGHT: &str = "solve_right";

/// The solution of `X A = B`: `[…, n, n]`, `[…, r, n]` → `[…, r, n]`, or of `x A = b` for vectors.
///
/// # Errors
/// As [`solve`](super::solve()).
pub fn solve_right<M: Matrix, R: RightHandSide<M>>(a: M, b: R) -> Result<R> {
    let (a, b) = turned(a, b);
    Ok(turned_rhs::<M, R>(plain(Op::Solve, a, b).map_err(|error| error.of(RIGHT))?))
}

/// As [`solve_right`], with the status of each system as in [`solve_ex`](super::solve_ex).
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn solve_right_ex<M: Matrix, R: RightHandSide<M>>(a: M, b: R) -> Result<(R, M::Info)> {
    let (a, b) = turned(a, b);
    let (x, info) = status(Op::Solve, a, b).map_err(|error| error.of(RIGHT))?;
    Ok((turned_rhs::<M, R>(x), info))
}

/// The solution and its tangent along `dA` and `dB`.
///
/// # Errors
/// As [`solve_right`].
pub fn solve_right_jvp<M: Matrix, R: RightHandSide<M>>(a: M, b: R, da: M, db: R) -> Result<(R, R)> {
    let ((a, b), (da, db)) = (turned(a, b), turned(da, db));
    let (x, dx) = along(Op::Solve, a, b, da, db).map_err(|error| error.of(RIGHT))?;
    Ok((turned_rhs::<M, R>(x), turned_rhs::<M, R>(dx)))
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
    // (X op(T))ᵀ = op(T)ᵀ Xᵀ; the transpose of Tᴴ is the conjugate of T.
    let (t, op) = match triangle.op {
        TriangleOp::None => (t, TriangleOp::Transpose),
        TriangleOp::Transpose => (t, TriangleOp::None),
        TriangleOp::Adjoint => (M::from_value(conj(t.into_value())), TriangleOp::None),
    };
    let b = turned_rhs::<M, R>(b);
    let x = plain(Op::SolveTriangular(Triangle { op, ..triangle }), t, b);
    Ok(turned_rhs::<M, R>(x.map_err(|error| error.of("solve_triangular_right"))?))
}

fn conj<B: LinalgOps>(value: Value<B>) -> Value<B> {
    match value {
        Value::Complex { re, im } => Value::Complex { re, im: B::float_neg(im) },
        real => real,
    }
}

/// `Aᴴ`.
pub(super) fn adjoint<B: LinalgOps>(value: Value<B>) -> Value<B> {
    transposed(conj(value))
}

/// A tensor of any rank, real or complex.
pub trait Array: Sized {
    /// The backend.
    type Backend: LinalgOps;
    /// Number of axes.
    const RANK: usize;

    /// The primitives.
    fn into_value(self) -> Value<Self::Backend>;
    /// The tensor of primitives of that rank and kind.
    fn from_value(value: Value<Self::Backend>) -> Self;
    /// Whether there is an imaginary part.
    const COMPLEX: bool;
}

fn tensor<B: LinalgOps, const D: usize>(x: FloatTensor<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

impl<B: LinalgOps, const D: usize> Array for Tensor<B, D> {
    type Backend = B;
    const RANK: usize = D;
    const COMPLEX: bool = false;

    fn into_value(self) -> Value<B> {
        Value::Real(self.into_primitive().tensor())
    }
    fn from_value(value: Value<B>) -> Self {
        match value {
            Value::Real(x) | Value::Complex { re: x, .. } => tensor(x),
        }
    }
}

impl<B: LinalgOps, const D: usize> Array for Complex<B, D> {
    type Backend = B;
    const RANK: usize = D;
    const COMPLEX: bool = true;

    fn into_value(self) -> Value<B> {
        let (re, im) = self.into_parts();
        Value::Complex { re: re.into_primitive().tensor(), im: im.into_primitive().tensor() }
    }
    fn from_value(value: Value<B>) -> Self {
        match value {
            Value::Real(x) => Complex::from_real(tensor(x)),
            Value::Complex { re, im } => match Complex::new(tensor(re), tensor(im)) {
                Ok(pair) => pair,
                Err(_) => unreachable!("the parts come out of one operation"),
            },
        }
    }
}

/// `value` under another shape, as the type that the caller wants.
fn shaped<X: Array>(op: &'static str, value: Value<X::Backend>, shape: &[usize]) -> Result<X> {
    if X::RANK != shape.len() || X::COMPLEX != value.is_complex() {
        let required = "the result is asked for in its rank, complex if the input is";
        return Err(t4a_tensor::TensorError::shape(op, shape, required).into());
    }
    Ok(X::from_value(value.reshaped(shape)?))
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
    let (a, b) = (a.into_value(), b.into_value());
    let shape = a.shape();
    let (n, right) = tensor_system(&shape, &b.shape())?;
    let inputs = [a.reshaped(&[n, n])?, b.reshaped(&[n, 1])?];
    let out = A::Backend::linalg_forward(&Op::Solve, &inputs, false);
    let mut parts = out.map_err(|error| error.of(NAME))?.parts;
    shaped(NAME, parts.swap_remove(0), right)
}

/// `B` with `Σ A[i…, j…] B[j…, k…] = δ[i…, k…]`, `i…` the first `left` axes: `[i…, j…]` → `[j…, i…]`, as
/// many elements in `i…` as in `j…`.
///
/// # Errors
/// `Tensor` if the shapes do not match; `NonFinite`, `Singular`.
pub fn tensorinv<A: Array>(a: A, left: usize) -> Result<A> {
    const NAME: &str = "tensorinv";
    let a = a.into_value();
    let (n, shape) = tensor_inverse(&a.shape(), left)?;
    let out = A::Backend::linalg_forward(&Op::Inv, &[a.reshaped(&[n, n])?], false);
    let mut parts = out.map_err(|error| error.of(NAME))?.parts;
    shaped(NAME, parts.swap_remove(0), &shape)
}
