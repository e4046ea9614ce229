//! Random tensors in f64, and comparisons.

// Some backends use few of these functions.
#![allow(dead_code)]

use burn_backend::DType;
use burn_tensor::TensorData;

use super::{Tensor, device};

/// Fixed pseudo-random numbers between −1 and 1, in f64.
pub(crate) fn random<const D: usize>(shape: [usize; D], seed: u64) -> Tensor<D> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let data: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_data(TensorData::new(data, shape), (&device(), DType::F64))
}

pub(crate) fn floats(x: &[f64]) -> Tensor<1> {
    Tensor::from_data(TensorData::new(x.to_vec(), [x.len()]), (&device(), DType::F64))
}

pub(crate) fn f64s<const D: usize>(values: &[f64], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (&device(), DType::F64))
}

/// Distinct numbers between 0.1 and 2.1.
pub(crate) fn positive(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        0.1 + (state >> 33) as f64 / (1u64 << 30) as f64
    };
    (0..count).map(next).collect()
}

#[track_caller]
pub(crate) fn close(x: &[f64], y: &[f64], tolerance: f64) {
    assert_eq!(x.len(), y.len());
    let size = y.iter().fold(1.0f64, |size, y| size.max(y.abs()));
    for (x, y) in x.iter().zip(y) {
        assert!((x - y).abs() <= tolerance * size, "{x} {y}");
    }
}
