//! Quantized values: codes of at most eight bits ([`Code`]) that represent `value(code) · s`, with a scale `s` per
//! tensor or per block.
//!
//! The blocks are given by a *grid*: a shape with as many elements as the tensor, to which scales broadcast. One scale
//! for all: `[n]` with scales `[1]`. A scale per run of `b` elements: `[n/b, b]` with scales `[n/b, 1]`. Blocks of
//! `a × b` in a matrix: `[n/a, a, m/b, b]` with scales `[n/a, 1, m/b, 1]`.

use crate::any::{AnyTensor, Number};
use crate::dtype::DType;
use crate::error::Result;
use crate::map::map;
use crate::tensor::Tensor;

mod minifloat;

pub use minifloat::Minifloat;
use minifloat::{Decode, Encode};

/// Encoding of values in eight bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// Integers within a range; halves round away from zero, NaN gives 0.
    Integers {
        /// The smallest integer.
        low: f32,
        /// The largest integer.
        high: f32,
    },
    /// Floats of at most eight bits, rounded to nearest, ties to even.
    Floats(Minifloat),
}

/// `value(q) · s` as `f32`, in the shape of the `i8` codes `q`.
///
/// # Errors
/// A grid of another number of elements; scales that do not broadcast; codes that are not `i8`.
pub fn dequantize(
    q: &AnyTensor,
    grid: &[usize],
    scales: AnyTensor,
    code: Code,
) -> Result<AnyTensor> {
    let values = match code {
        Code::Integers { .. } => q.clone().cast(DType::F32)?,
        Code::Floats(format) => map(Decode(format), q.typed::<i8>()?.clone())?.into(),
    };
    values.reshape(grid)?.mul(scales)?.reshape(q.shape())
}

/// The `i8` code of the value nearest to `x / s`; quotients out of the range of the code saturate.
///
/// # Errors
/// As [`dequantize`].
pub fn quantize(x: &AnyTensor, grid: &[usize], scales: AnyTensor, code: Code) -> Result<AnyTensor> {
    let scaled = x.reshape(grid)?.div(scales)?.reshape(x.shape())?;
    let format = match code {
        Code::Integers { low, high } => {
            let [low, high] = [low, high].map(|bound| Number::Float(bound.into()));
            return scaled.round_away()?.clamp(low, high)?.cast(DType::I8);
        }
        Code::Floats(format) => format,
    };
    let scaled = scaled.cast(DType::F32)?;
    Ok(map(Encode(format), scaled.typed::<f32>()?.clone())?.into())
}

/// The largest magnitude of every block: the grid axes in `within` are reduced to size 1.
///
/// # Errors
/// As [`dequantize`]; for axes that are not in the grid.
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
        // 2 and −2 are 4 quarters of a peak, out of the range of 3; 2.5 is rounded away from zero.
        let code = Code::Integers { low: -3.0, high: 3.0 };
        let q = quantize(&x, &grid, scales.clone(), code).unwrap();
        assert_eq!((q.shape(), q.dtype()), (&[2, 4][..], DType::I8));
        assert_eq!(q.typed::<i8>().unwrap().to_vec().unwrap(), [2, -3, 1, 3, 3, 1, -3, 0]);
        let back = dequantize(&q, &grid, scales, code).unwrap();
        assert_eq!(read(&back), [1.0, -1.5, 1.0, 3.0, 75.0, 25.0, -56.25, 0.0]);
        let none = AnyTensor::from(Tensor::<f32>::zeros(&[0, 4]).unwrap());
        assert_eq!(read(&super::peaks(&none, &[0], &[0]).unwrap()), [0.0]);
        assert_eq!(super::peaks(&none, &[0, 2], &[1]).unwrap().shape(), [0, 1]);
        assert!(dequantize(&q, &[3, 3], peaks_of(&q), code).is_err());
    }

    #[test]
    fn floats_are_codes_under_a_scale() {
        // 448 · 2 is the end of the range, 8.5 · 2 is between the adjacent E4M3 numbers 8 and 9.
        let x = vec![0.0f32, 17.0, -19.0, 3.0, 2000.0, -2000.0];
        let x = AnyTensor::from(Tensor::from_vec(x, &[2, 3]).unwrap());
        let scale = AnyTensor::from(Tensor::from_vec(vec![2.0f32], &[1]).unwrap());
        let code = Code::Floats(Minifloat::E4M3);
        // The codes of a transposed view.
        let turned = x.swap_axes(0, 1).unwrap();
        let q = quantize(&turned, &[6], scale.clone(), code).unwrap();
        assert_eq!((q.shape(), q.dtype()), (&[3, 2][..], DType::I8));
        let back = dequantize(&q, &[6], scale, code).unwrap().swap_axes(0, 1).unwrap();
        let back = back.typed::<f32>().unwrap().to_vec().unwrap();
        assert_eq!(back, [0.0, 16.0, -20.0, 3.0, 896.0, -896.0]);
    }

    fn peaks_of(q: &AnyTensor) -> AnyTensor {
        peaks(&q.clone().cast(DType::F32).unwrap(), &[8], &[0]).unwrap()
    }
}
