//! User-supplied products, for element types or hardware without a kernel in this crate.
//!
//! ```text
//! nothing            generic loops over the semiring
//! BgemmBackend       batched matrix products of contiguous operands
//! TensordotBackend   whole pairwise contractions of strided tensors
//! ```

use t4a_algebra::Scalar;
use t4a_tensor::Tensor;

use crate::error::Result;

/// Sizes of a batched matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BgemmShape {
    /// Number of products.
    pub batch: usize,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Columns of B and C.
    pub n: usize,
}

/// `C[β] ← A[β] ⊗ B[β]` on row-major `[batch, m, k]`, `[batch, k, n]`, `[batch, m, n]`.
pub trait BgemmBackend<T: Scalar>: Sync {
    /// Computes the products. `c` is initialised with the semiring's zero.
    ///
    /// # Errors
    /// [`EinsumError::Backend`](crate::EinsumError::Backend) with a description of the failure.
    fn bgemm(&self, shape: BgemmShape, a: &[T], b: &[T], c: &mut [T]) -> Result<()>;
}

/// Pairing of the axes of two tensors, as in `tensordot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensordotAxes {
    /// Batch axes of (A, B): in both operands and first in the result.
    pub batch: Vec<(usize, usize)>,
    /// Free axes of A, next in the result.
    pub left: Vec<usize>,
    /// Free axes of B, last in the result.
    pub right: Vec<usize>,
    /// Axes of (A, B) that are summed.
    pub sum: Vec<(usize, usize)>,
}

/// `C[β, μ, ν] = ⊕_κ A[β, μ, κ] ⊗ B[β, κ, ν]` on tensors with axes in any order.
pub trait TensordotBackend<T: Scalar>: Sync {
    /// The contraction, or `None` to fall back to the next tier.
    ///
    /// # Errors
    /// [`EinsumError::Backend`](crate::EinsumError::Backend) with a description of the failure.
    fn tensordot(
        &self,
        axes: &TensordotAxes,
        a: &Tensor<T>,
        b: &Tensor<T>,
    ) -> Result<Option<Tensor<T>>>;
}

/// The products that contractions use, in order of preference.
pub struct ProductBackends<'a, T> {
    /// Tried first.
    pub tensordot: Option<&'a dyn TensordotBackend<T>>,
    /// Used for the remaining products with a summed label.
    pub bgemm: Option<&'a dyn BgemmBackend<T>>,
}

impl<T> Default for ProductBackends<'_, T> {
    /// The loops and matrix products of this crate.
    fn default() -> Self {
        Self { tensordot: None, bgemm: None }
    }
}
