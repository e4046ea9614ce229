//! Reshapes that represent row vectors, scalars and indices as matrices.

use t4a_diff::{Array, Integers};
use t4a_tensor::{AnyTensor, DType, Result};

/// Removes `drop` axes of size 1: for a row vector `[…, 1, k]` the last but one, for a scalar `[…, 1, 1]` both.
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

/// Reshapes `[…, k]` to `[…, 1, k]`.
pub(super) fn row<A: Array>(x: A) -> A {
    let mut sizes = x.shape();
    sizes.insert(sizes.len() - 1, 1);
    x.reshape(&sizes)
}

/// Status of each matrix, on the backend of `like`; shape `[1]` for a single matrix.
pub(super) fn info<A: Array>(info: &t4a_tensor::Tensor<i32>, like: &A) -> Result<A::Integers> {
    // CubeCL has no tensors of rank 0 either.
    let info = if info.rank() == 0 { info.reshape(&[1])? } else { info.clone() };
    Ok(like.indices(AnyTensor::from(info).cast(DType::I64)?))
}

/// Reads indices to the host.
pub(super) fn host(indices: &impl Integers) -> Result<t4a_tensor::Tensor<i64>> {
    Ok(indices.elements()?.cast(DType::I64)?.typed()?.clone())
}
