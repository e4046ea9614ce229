//! Rows × layouts × dtypes against index-by-index references.

mod errors;
mod movement;
mod random;
mod reduce;

use crate::any::AnyTensor;
use crate::dtype::DType;
use crate::tensor::Tensor;
use crate::testing::Mix;
use crate::with_dtype;

/// Indices below `limit`, in every layout.
fn index_layouts(shape: &[usize], limit: usize) -> Vec<(&'static str, Tensor<i32>)> {
    crate::testing::layouts_of(shape, |i| Mix(i as u64 ^ 77).below(limit.max(1)) as i32)
}

/// The same indices in another integer type.
fn index_of(dtype: DType, index: &Tensor<i32>) -> AnyTensor {
    with_dtype!(dtype, I in int => {
        let data = crate::testing::elements(index).iter().map(|&i| i as I).collect();
        AnyTensor::from(Tensor::<I>::from_vec(data, index.shape()).unwrap())
    }, else => unreachable!())
}

/// `index` with entry `axis` replaced.
fn replaced(index: &[usize], axis: usize, entry: usize) -> Vec<usize> {
    let mut out = index.to_vec();
    out[axis] = entry;
    out
}

/// `shape` with another size at `axis`, so that the index is longer or shorter than the axis.
fn resized(shape: &[usize], axis: usize) -> Vec<usize> {
    let mut out = shape.to_vec();
    out[axis] = if out[axis] == 0 { 0 } else { out[axis] * 3 / 2 };
    out
}
