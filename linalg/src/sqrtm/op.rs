//! The square root as an operation.

use t4a_tensor::Tensor;

use super::{jvp, sqrtm, sqrtm_ex, vjp};
use crate::error::Result;
use crate::operation::MatrixFunction;
use crate::scalar::LinalgScalar;
use crate::vocabulary::Matrices;

/// `A` → `√A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SqrtmOp;

impl MatrixFunction for SqrtmOp {
    const NAME: &'static str = "sqrtm";

    fn forward<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
        sqrtm(a)
    }
    fn info<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<i32>> {
        Ok(sqrtm_ex(a)?.1)
    }
    fn vjp<M: Matrices>(a: &M, _: &M, cotangent: &M) -> Result<M> {
        Ok(vjp(a, cotangent))
    }
    fn jvp<M: Matrices>(a: &M, _: &M, da: &M) -> Result<M> {
        Ok(jvp(a, da))
    }
}
