//! Matrix products of erased tensors.

use t4a_algebra::Standard;

use super::AnyTensor;
use super::elementwise::{same_dtype, unsupported};
use crate::error::Result;
use crate::matmul::matmul;
use crate::with_dtype;

impl AnyTensor {
    /// `[…, m, k] · […, k, n] → […, m, n]` with batch axes broadcast.
    ///
    /// # Errors
    /// [`ShapeMismatch`](crate::TensorError::ShapeMismatch), `DTypeMismatch`, `DTypeUnsupported`.
    pub fn matmul(&self, rhs: &Self) -> Result<Self> {
        same_dtype("matmul", self, rhs)?;
        with_dtype!(self.dtype().modular(), T in modular => {
            let (a, b) = (self.typed_modular::<T>()?, rhs.typed_modular()?);
            Ok(Self::from(matmul::<Standard, T>(a, b)?).with_sign_of(self.dtype()))
        }, else => Err(unsupported("matmul", self.dtype(), "numeric")))
    }
}
