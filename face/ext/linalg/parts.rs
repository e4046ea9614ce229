//! Rows, numbers and indices in the shapes of matrices.

use t4a_diff::{Array, Integers};
use t4a_tensor::{AnyTensor, DType, Result};

/// `drop` axes of size 1 at the place of the matrix left out: of a row `[…, 1, k]` the last but one, of a number
/// `[…, 1, 1]` both.
pub(super) fn lower<A: Array>(x: A, drop: usize) -> A {
    if drop == 0 {
        return x;
    }
    let mut sizes = x.shape();
    let last = sizes.pop().filter(|_| drop == 1);
    sizes.pop();
    sizes.extend(last);
    x.reshape(&sizes)
}

/// `[…, k]` as `[…, 1, k]`.
pub(super) fn row<A: Array>(x: A) -> A {
    let mut sizes = x.shape();
    sizes.insert(sizes.len() - 1, 1);
    x.reshape(&sizes)
}

/// The status of each matrix, beside its array; of a single matrix `[1]`.
pub(super) fn info<A: Array>(info: &t4a_tensor::Tensor<i32>, like: &A) -> Result<A::Integers> {
    let info = like.indices(AnyTensor::from(info.clone()).cast(DType::I64)?);
    Ok(if info.shape().is_empty() { info.reshape(&[1]) } else { info })
}

/// Indices on the host.
pub(super) fn host(indices: &impl Integers) -> Result<t4a_tensor::Tensor<i64>> {
    Ok(indices.elements()?.cast(DType::I64)?.typed()?.clone())
}
