//! Products supplied by the user, for element types or machines that this crate does not know.
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
    /// Computes the products. `c` arrives filled with the semiring's zero.
    ///
    /// # Errors
    /// [`EinsumError::Backend`](crate::EinsumError::Backend) with what went wrong.
    fn bgemm(&self, shape: BgemmShape, a: &[T], b: &[T], c: &mut [T]) -> Result<()>;
}

/// Which axes of two tensors meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensordotAxes {
    /// Axes of (A, B) that are kept together; they come first in the result.
    pub batch: Vec<(usize, usize)>,
    /// Axes of A that are kept; they come next.
    pub left: Vec<usize>,
    /// Axes of B that are kept; they come last.
    pub right: Vec<usize>,
    /// Axes of (A, B) that are summed.
    pub sum: Vec<(usize, usize)>,
}

/// `C[β, μ, ν] = ⊕_κ A[β, μ, κ] ⊗ B[β, κ, ν]` on tensors with axes in any order.
pub trait TensordotBackend<T: Scalar>: Sync {
    /// The contraction, or `None` to leave this one to the next tier.
    ///
    /// # Errors
    /// [`EinsumError::Backend`](crate::EinsumError::Backend) with what went wrong.
    fn tensordot(
        &self,
        axes: &TensordotAxes,
        a: &Tensor<T>,
        b: &Tensor<T>,
    ) -> Result<Option<Tensor<T>>>;
}

/// Who multiplies.
pub struct ProductBackends<'a, T> {
    /// Asked first.
    pub tensordot: Option<&'a dyn TensordotBackend<T>>,
    /// Asked for what is left of the products with a sum.
    pub bgemm: Option<&'a dyn BgemmBackend<T>>,
}

impl<T> Default for ProductBackends<'_, T> {
    /// The loops of this crate and its matrix products.
    fn default() -> Self {
        Self { tensordot: None, bgemm: None }
    }
}
