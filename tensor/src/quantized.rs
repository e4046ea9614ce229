//! Quantized values: integers of at most eight bits, each standing for `q · s`, where a scale `s` belongs to
//! a tensor or to a block of it.
//!
//! Which blocks there are, a *grid* says: a shape of as many elements as the tensor, in which scales
//! broadcast. One scale for all: `[n]` with scales `[1]`. A scale per run of `b` elements: `[n/b, b]` with
//! scales `[n/b, 1]`. Blocks of `a × b` in a matrix: `[n/a, a, m/b, b]` with scales `[n/a, 1, m/b, 1]`.

use crate::any::{AnyTensor, Number};
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// `q · s` as `f32`, in the shape of `q`.
///
/// # Errors
/// A grid of another number of elements; scales that do not broadcast.
pub fn dequantize(q: &AnyTensor, grid: &[usize], scales: AnyTensor) -> Result<AnyTensor> {
    q.clone().cast(DType::F32)?.reshape(grid)?.mul(scales)?.reshape(q.shape())
}

/// `round(x / s)` as `i8`, halves away from zero, within a range.
///
/// # Errors
/// As [`dequantize`].
pub fn quantize(
    x: &AnyTensor,
    grid: &[usize],
    scales: AnyTensor,
    (low, high): (f32, f32),
) -> Result<AnyTensor> {
    let [low, high] = [low, high].map(|bound| Number::Float(bound.into()));
    let scaled = x.reshape(grid)?.div(scales)?.reshape(x.shape())?;
    scaled.round_away()?.clamp(low, high)?.cast(DType::I8)
}

/// The largest magnitude of every block: those axes of the grid that lie within blocks have size 1.
///
/// # Errors
/// As [`dequantize`]; axes that the grid has not.
pub fn peaks(x: &AnyTensor, grid: &[usize], within: &[usize]) -> Result<AnyTensor> {
    if x.numel() == 0 {
        let size = |(axis, &size)| if within.contains(&axis) { 1 } else { size };
        let blocks: Vec<usize> = grid.iter().enumerate().map(size).collect();
        return AnyTensor::from(Tensor::<f32>::zeros(&blocks)?).cast(x.dtype());
    }
    x.reshape(grid)?.max_abs(within)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn blocks_have_scales_of_their_own() {
        let x = vec![1.0f32, -2.0, 0.5, 4.0, 100.0, 25.0, -75.0, 0.0];
        let x = AnyTensor::from(Tensor::from_vec(x, &[2, 4]).unwrap());
        let grid = [4, 2];
        let peaks = peaks(&x, &grid, &[1]).unwrap();
        assert_eq!(peaks.shape(), [4, 1]);
        let read = |x: &AnyTensor| x.typed::<f32>().unwrap().to_vec().unwrap();
        assert_eq!(read(&peaks), [2.0, 4.0, 100.0, 75.0]);
        let scales = peaks.mul_scalar(Number::Float(0.25)).unwrap();
        // 2 and −2 are 4 quarters of a peak, beyond the range of 3; 2.5 is rounded away from zero.
        let q = quantize(&x, &grid, scales.clone(), (-3.0, 3.0)).unwrap();
        assert_eq!((q.shape(), q.dtype()), (&[2, 4][..], DType::I8));
        assert_eq!(q.typed::<i8>().unwrap().to_vec().unwrap(), [2, -3, 1, 3, 3, 1, -3, 0]);
        let back = dequantize(&q, &grid, scales).unwrap();
        assert_eq!(read(&back), [1.0, -1.5, 1.0, 3.0, 75.0, 25.0, -56.25, 0.0]);
        let none = AnyTensor::from(Tensor::<f32>::zeros(&[0, 4]).unwrap());
        assert_eq!(read(&super::peaks(&none, &[0], &[0]).unwrap()), [0.0]);
        assert_eq!(super::peaks(&none, &[0, 2], &[1]).unwrap().shape(), [0, 1]);
        assert!(dequantize(&q, &[3, 3], peaks_of(&q)).is_err());
    }

    fn peaks_of(q: &AnyTensor) -> AnyTensor {
        peaks(&q.clone().cast(DType::F32).unwrap(), &[8], &[0]).unwrap()
    }
}
