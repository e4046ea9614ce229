//! Linear systems with vectors as right-hand sides, broadcast batches, `X A = B`, and tensors.

use crate::call::{OperationResults, Pair};
use crate::inverse::InvOp;
use crate::solve::SolveOp;
use crate::systems::{Movable, tensor_inverse, tensor_system};
use crate::triangular::{SolveTriangularOp, Triangle, TriangleOp};
use crate::{MatrixOp, Result};
use t4a_diff::Array;
use t4a_tensor::{Tensor, TensorError};

use super::call::{Arranged, Function, ResultOf, Shapes, parts, plain};
use super::matrix::{Matrix, Ranked, RightHandSide};

/// Implements [`Function`] for linear systems, whose right-hand sides are matrices or vectors: operations, and the
/// functions that convert right-hand sides to columns and columns to solutions.
macro_rules! systems {
    ($($op:ty),+: $columns:path, $solution:path) => {$(
        impl<F, M, R> super::call::Function<F, (M, R), R> for $op
        where
            M: Matrix<F>,
            R: super::matrix::RightHandSide<F, M>,
        {
            type Array = M::Array;
            type Info = M::Info;

            fn operands((a, b): (M, R)) -> Vec<crate::call::Pair<M::Array>> {
                vec![a.into_pair(), $columns(b)]
            }
            fn results(out: super::call::ResultsOf<F, M>) -> crate::Result<R> {
                let [x] = super::call::parts(out);
                Ok($solution(x))
            }
            fn info(
                codes: &t4a_tensor::Tensor<i32>,
                like: &M::Array,
            ) -> crate::Result<M::Info> {
                M::info(codes, like)
            }
        }
    )+};
}
pub(super) use systems;

/// `Bᵀ` of a right-hand side of `X A = B`; a vector is one column on either side.
fn transposed<F, M: Matrix<F>, R: RightHandSide<F, M>>(b: R) -> ResultOf<F, M> {
    match R::VECTOR {
        true => b.into_columns(),
        false => b.into_columns().transpose(),
    }
}

/// `X` from `Xᵀ`.
fn untransposed<F, M: Matrix<F>, R: RightHandSide<F, M>>(x: ResultOf<F, M>) -> R {
    R::from_columns(if R::VECTOR { x } else { x.transpose() })
}

systems!(SolveRightOp, SolveTriangularRightOp: transposed, untransposed);

/// `A`, `B` → `X` with `X A = B`, as `Aᵀ Xᵀ = Bᵀ`.
#[derive(Clone, Copy, Debug)]
pub struct SolveRightOp;

impl Arranged for SolveRightOp {
    fn name(&self) -> &'static str {
        "solve_right"
    }
    fn op(&self) -> MatrixOp {
        SolveOp.into()
    }
    fn before<A: Array>(&self, mut operands: Vec<Pair<A>>, fold: bool) -> Result<Vec<Pair<A>>> {
        operands[0] = operands[0].transpose();
        SolveOp.before(operands, fold).map_err(|error| error.of(Arranged::name(self)))
    }
    fn after<A: Array>(
        &self,
        results: Vec<Pair<A>>,
        shapes: &Shapes,
        fold: bool,
    ) -> Result<Vec<Pair<A>>> {
        SolveOp.after(results, shapes, fold)
    }
}

/// The solution of `X A = B`: `[…, n, n]`, `[…, r, n]` → `[…, r, n]`, or of `x A = b` for vectors.
///
/// # Errors
/// As [`solve`](super::solve()).
pub fn solve_right<F, M: Matrix<F>, R: RightHandSide<F, M>>(a: M, b: R) -> Result<R> {
    plain(SolveRightOp, (a, b))
}

/// `T`, `B` → `X` with `X op(T) = B`, as `op(T)ᵀ Xᵀ = Bᵀ`.
#[derive(Clone, Copy, Debug)]
pub struct SolveTriangularRightOp {
    /// Selected triangle and its transformation.
    pub triangle: Triangle,
}

impl SolveTriangularRightOp {
    /// Operation with `op(T)ᵀ`; the transpose of `Tᴴ` is the conjugate of `T`.
    fn transposed(self) -> SolveTriangularOp {
        let op = match self.triangle.op {
            TriangleOp::None => TriangleOp::Transpose,
            TriangleOp::Transpose | TriangleOp::Adjoint => TriangleOp::None,
        };
        SolveTriangularOp { triangle: Triangle { op, ..self.triangle } }
    }
}

impl Arranged for SolveTriangularRightOp {
    fn name(&self) -> &'static str {
        "solve_triangular_right"
    }
    fn op(&self) -> MatrixOp {
        self.transposed().into()
    }
    fn before<A: Array>(&self, mut operands: Vec<Pair<A>>, fold: bool) -> Result<Vec<Pair<A>>> {
        if self.triangle.op == TriangleOp::Adjoint {
            operands[0] = operands[0].conj();
        }
        let out = self.transposed().before(operands, fold);
        out.map_err(|error| error.of(Arranged::name(self)))
    }
    fn after<A: Array>(
        &self,
        results: Vec<Pair<A>>,
        shapes: &Shapes,
        fold: bool,
    ) -> Result<Vec<Pair<A>>> {
        self.transposed().after(results, shapes, fold)
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
    plain(SolveTriangularRightOp { triangle }, (t, b))
}

/// Converts a result to the requested type.
fn ranked<F, X: Ranked<F>>(op: &'static str, value: Pair<X::Array>) -> Result<X> {
    let shape = value.shape();
    if X::RANK != shape.len() || X::COMPLEX != value.is_complex() {
        let required = "a result type of the same rank, complex if the input is";
        return Err(TensorError::shape(op, &shape, required).into());
    }
    Ok(X::from_pair(value))
}

/// Tensors `A`, `B` → `X` with `Σ A[i…, j…] X[j…] = B[i…]`.
#[derive(Clone, Copy, Debug)]
pub struct TensorsolveOp;

impl TensorsolveOp {
    const NAME: &str = "tensorsolve";
}

impl Arranged for TensorsolveOp {
    fn name(&self) -> &'static str {
        Self::NAME
    }
    fn op(&self) -> MatrixOp {
        SolveOp.into()
    }
    fn before<A: Array>(&self, mut operands: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        let (b, a) = (operands.swap_remove(1), operands.swap_remove(0));
        let (n, _) = tensor_system(&a.shape(), &b.shape())?;
        Ok(vec![a.reshaped(&[n, n])?, b.reshaped(&[n, 1])?])
    }
    fn after<A: Array>(&self, x: Vec<Pair<A>>, shapes: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        let (_, right) = tensor_system(&shapes[0], &shapes[1])?;
        Ok(vec![x[0].map(|x| x.reshape(right))])
    }
}

impl<F, A, R, X> Function<F, (A, R), X> for TensorsolveOp
where
    A: Ranked<F>,
    R: Ranked<F, Array = A::Array>,
    X: Ranked<F, Array = A::Array>,
{
    type Array = A::Array;
    type Info = <A::Single as Matrix<F>>::Info;

    fn operands((a, b): (A, R)) -> Vec<Pair<A::Array>> {
        vec![a.into_pair(), b.into_pair()]
    }
    fn results(out: OperationResults<A::Array>) -> Result<X> {
        let [x] = parts(out);
        ranked(Self::NAME, x)
    }
    fn info(codes: &Tensor<i32>, like: &A::Array) -> Result<Self::Info> {
        A::Single::info(codes, like)
    }
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
    plain(TensorsolveOp, (a, b))
}

/// Tensor `A` → the inverse of its matrix, whose rows are the first axes.
#[derive(Clone, Copy, Debug)]
pub struct TensorinvOp {
    /// Number of axes that form the rows.
    pub left: usize,
}

impl TensorinvOp {
    const NAME: &str = "tensorinv";
}

impl Arranged for TensorinvOp {
    fn name(&self) -> &'static str {
        Self::NAME
    }
    fn op(&self) -> MatrixOp {
        InvOp.into()
    }
    fn before<A: Array>(&self, mut operands: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        let a = operands.swap_remove(0);
        let (n, _) = tensor_inverse(&a.shape(), self.left)?;
        Ok(vec![a.reshaped(&[n, n])?])
    }
    fn after<A: Array>(&self, x: Vec<Pair<A>>, shapes: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        let (_, shape) = tensor_inverse(&shapes[0], self.left)?;
        Ok(vec![x[0].map(|x| x.reshape(&shape))])
    }
}

impl<F, A: Ranked<F>> Function<F, A, A> for TensorinvOp {
    type Array = A::Array;
    type Info = <A::Single as Matrix<F>>::Info;

    fn operands(a: A) -> Vec<Pair<A::Array>> {
        vec![a.into_pair()]
    }
    fn results(out: OperationResults<A::Array>) -> Result<A> {
        let [inverse] = parts(out);
        ranked(Self::NAME, inverse)
    }
    fn info(codes: &Tensor<i32>, like: &A::Array) -> Result<Self::Info> {
        A::Single::info(codes, like)
    }
}

/// `B` with `Σ A[i…, j…] B[j…, k…] = δ[i…, k…]`, `i…` the first `left` axes: `[i…, j…]` → `[j…, i…]`, as
/// many elements in `i…` as in `j…`.
///
/// # Errors
/// `Tensor` if the shapes do not match; `NonFinite`, `Singular`.
pub fn tensorinv<F, A: Ranked<F>>(a: A, left: usize) -> Result<A> {
    plain(TensorinvOp { left }, a)
}
