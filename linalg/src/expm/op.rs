//! The matrix exponential as an operation.

use t4a_tensor::Tensor;

use super::{expm, expm_ex, jvp, vjp};
use crate::error::Result;
use crate::operation::MatrixFunction;
use crate::scalar::LinalgScalar;
use crate::vocabulary::Matrices;

/// `A` → `e^A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExpmOp;

impl MatrixFunction for ExpmOp {
    const NAME: &'static str = "expm";

    fn forward<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
        expm(a)
    }
    fn info<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<i32>> {
        Ok(expm_ex(a)?.1)
    }
    fn vjp<M: Matrices>(a: &M, _: &M, cotangent: &M) -> Result<M> {
        vjp(a, cotangent)
    }
    fn jvp<M: Matrices>(a: &M, _: &M, da: &M) -> Result<M> {
        jvp(a, da)
    }
}
