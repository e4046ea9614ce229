//! Operations on one square matrix with one result of its size.

use std::fmt::Debug;

use t4a_tensor::Tensor;

use super::{MatrixOperation, Outcome, Part, PartKind, Signature, full, only, zeros};
use crate::error::Result;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// An operation `B = f(A)` on a square matrix, with `B` of the same size; it is a [`MatrixOperation`].
pub trait MatrixFunction: Copy + Debug + PartialEq {
    /// Name in errors and tables.
    const NAME: &'static str;

    /// `B`.
    ///
    /// # Errors
    /// Those of [`MatrixOperation::forward`].
    fn forward<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>>;

    /// Status of each matrix.
    ///
    /// # Errors
    /// Those of [`MatrixOperation::info`].
    fn info<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<i32>>;

    /// Cotangent of `A` from `A`, `B` and the cotangent of `B`.
    ///
    /// # Errors
    /// Those of [`MatrixOperation::vjp`].
    fn vjp<M: Matrices>(a: &M, b: &M, cotangent: &M) -> Result<M>;

    /// Tangent of `B` from `A`, `B` and the tangent of `A`.
    ///
    /// # Errors
    /// Those of [`MatrixOperation::jvp`].
    fn jvp<M: Matrices>(a: &M, b: &M, da: &M) -> Result<M>;
}

impl<F: MatrixFunction> MatrixOperation for F {
    const NAME: &'static str = <F as MatrixFunction>::NAME;
    const OPERANDS: Signature = Signature::Square;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[0]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        Ok(Outcome::new(vec![Part::Full(Batched::new(&F::forward(operands[0])?))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        F::info(operands[0])
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let (a, b) = (&operands[0], out.results[0].full());
        let cotangent = full(cotangents, 0).map(|cotangent| F::vjp(a, b, cotangent));
        Ok(vec![cotangent.unwrap_or_else(|| Ok(zeros(a)))?])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        Ok(vec![Part::Full(F::jvp(&operands[0], out.results[0].full(), only(tangents))?)])
    }
}
