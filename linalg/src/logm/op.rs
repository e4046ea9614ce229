//! The matrix logarithm as an operation.

use t4a_tensor::Tensor;

use super::{jvp, logm, logm_ex, vjp};
use crate::error::Result;
use crate::operation::MatrixFunction;
use crate::scalar::LinalgScalar;
use crate::vocabulary::Matrices;

/// `A` → `ln A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LogmOp;

impl MatrixFunction for LogmOp {
    const NAME: &'static str = "logm";

    fn forward<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
        logm(a)
    }
    fn info<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<i32>> {
        Ok(logm_ex(a)?.1)
    }
    fn vjp<M: Matrices>(a: &M, _: &M, cotangent: &M) -> Result<M> {
        Ok(vjp(a, cotangent))
    }
    fn jvp<M: Matrices>(a: &M, _: &M, da: &M) -> Result<M> {
        Ok(jvp(a, da))
    }
}
