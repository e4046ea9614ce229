//! The inverse as an operation.

use t4a_tensor::Tensor;

use super::{inv, inv_ex, jvp, vjp};
use crate::error::Result;
use crate::operation::MatrixFunction;
use crate::scalar::LinalgScalar;
use crate::vocabulary::Matrices;

/// `A` → `A⁻¹`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InvOp;

impl MatrixFunction for InvOp {
    const NAME: &'static str = "inv";

    fn forward<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
        inv(a)
    }
    fn info<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<i32>> {
        Ok(inv_ex(a)?.1)
    }
    fn vjp<M: Matrices>(_: &M, b: &M, cotangent: &M) -> Result<M> {
        Ok(vjp(b, cotangent))
    }
    fn jvp<M: Matrices>(_: &M, b: &M, da: &M) -> Result<M> {
        Ok(jvp(b, da))
    }
}
