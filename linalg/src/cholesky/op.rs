//! The Cholesky factorisation as an operation.

use t4a_tensor::Tensor;

use super::{cholesky, cholesky_ex, rule};
use crate::error::Result;
use crate::operation::MatrixFunction;
use crate::scalar::LinalgScalar;
use crate::vocabulary::Matrices;

/// `A` → `L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CholeskyOp;

impl MatrixFunction for CholeskyOp {
    const NAME: &'static str = "cholesky";

    fn forward<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
        cholesky(a)
    }
    fn info<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<i32>> {
        Ok(cholesky_ex(a)?.1)
    }
    fn vjp<M: Matrices>(_: &M, l: &M, cotangent: &M) -> Result<M> {
        Ok(rule::vjp(l, cotangent))
    }
    fn jvp<M: Matrices>(_: &M, l: &M, da: &M) -> Result<M> {
        Ok(rule::jvp(l, da))
    }
}
