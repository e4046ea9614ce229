//! Erased tensors of regular and of random values.

use super::{AnyTensor, FromNumber, Number};
use crate::dtype::DType;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, checked_numel};
use crate::map::SMALL;
use crate::random::{self, Distribution, Generator};
use crate::tensor::Tensor;
use crate::{create, with_dtype};

/// Maximum number of repeated elements in a view: a larger size exceeds any memory, and is an error at creation and not
/// at the first write.
const REPEATED: usize = 1 << 38;

/// True if an integer is in the range of an integer dtype.
fn fits(dtype: DType, value: i128) -> bool {
    with_dtype!(dtype, I in int => I::try_from(value).is_ok(), else => false)
}

impl AnyTensor {
    /// A tensor of equal elements. A large one is a view that repeats a single element: it is allocated at the first
    /// write.
    ///
    /// # Errors
    /// [`TensorError::SizeOverflow`], [`TensorError::OutOfMemory`].
    pub fn full(shape: &[usize], value: Number, dtype: DType) -> Result<AnyTensor> {
        let repeated = SMALL + 1..=REPEATED;
        let large = checked_numel(shape).is_some_and(|numel| repeated.contains(&numel));
        let of: Dims = if large { shape.iter().map(|_| 1).collect() } else { shape.into() };
        let x = with_dtype!(dtype, T in all => {
            Tensor::full(&of, T::from_number(value)).map(AnyTensor::from)
        }, else => unreachable!("every dtype is covered"))?;
        if large { x.expand(shape) } else { Ok(x) }
    }

    /// A tensor of zeros, or of `false`.
    ///
    /// # Errors
    /// As [`AnyTensor::full`].
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<AnyTensor> {
        Self::full(shape, Number::Int(0), dtype)
    }

    /// A tensor of ones, or of `true`.
    ///
    /// # Errors
    /// As [`AnyTensor::full`].
    pub fn ones(shape: &[usize], dtype: DType) -> Result<AnyTensor> {
        Self::full(shape, Number::Int(1), dtype)
    }

    /// The identity matrix: [`create::eye`].
    ///
    /// # Errors
    /// [`TensorError::DTypeUnsupported`] for `bool`; as [`AnyTensor::full`].
    pub fn eye(rows: usize, cols: usize, dtype: DType) -> Result<AnyTensor> {
        with_dtype!(dtype, T in numeric => create::eye::<T>(rows, cols).map(AnyTensor::from),
            else => Err(TensorError::DTypeUnsupported { op: "eye", dtype, expected: "a number" }))
    }

    /// `start, start + step, …`, with `end` excluded: [`create::arange`].
    ///
    /// # Errors
    /// As there; [`TensorError::Value`] for an element that an integer dtype cannot hold;
    /// [`TensorError::DTypeUnsupported`] for `bool`.
    pub fn arange(start: Number, end: Number, step: Number, dtype: DType) -> Result<AnyTensor> {
        let op = "arange";
        if dtype.is_int()
            && let Some((first, last)) = create::ends(start, end, step)?
            && !(fits(dtype, first) && fits(dtype, last))
        {
            let message = format!("{dtype} cannot hold the numbers from {first} to {last}");
            return Err(TensorError::value(op, message));
        }
        with_dtype!(dtype, T in numeric => create::arange::<T>(start, end, step).map(AnyTensor::from),
            else => Err(TensorError::DTypeUnsupported { op, dtype, expected: "a number" }))
    }

    /// `n` equidistant numbers, both ends included: [`create::linspace`].
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeUnsupported`] unless `dtype` is a float.
    pub fn linspace(start: f64, end: f64, n: usize, dtype: DType) -> Result<AnyTensor> {
        let op = "linspace";
        with_dtype!(dtype, T in float => create::linspace::<T>(start, end, n).map(AnyTensor::from),
            else => Err(TensorError::DTypeUnsupported { op, dtype, expected: "a float" }))
    }

    /// Random elements.
    ///
    /// Bounds of a uniform distribution over integers are truncated to integers; a Bernoulli draw is
    /// 0 or 1 in any dtype.
    ///
    /// # Errors
    /// [`TensorError::Value`] for parameters that name no distribution of the dtype, and
    /// [`TensorError::DTypeUnsupported`] for dtypes without one.
    pub fn random(
        generator: &Generator,
        shape: &[usize],
        distribution: Distribution,
        dtype: DType,
    ) -> Result<AnyTensor> {
        let op = "random";
        if let Distribution::Bernoulli(p) = distribution {
            return with_dtype!(dtype, T in all => {
                let values = [false, true].map(|v| Number::Bool(v).to::<T>());
                random::bernoulli(generator, shape, p, values).map(AnyTensor::from)
            }, else => unreachable!("every dtype is covered"));
        }
        if dtype == DType::Bool && distribution == Distribution::Standard {
            return random::bernoulli(generator, shape, 0.5, [false, true]).map(AnyTensor::from);
        }
        if dtype.is_float() {
            return with_dtype!(dtype, T in float => match distribution {
                Distribution::Normal(mean, deviation) => {
                    random::normal::<T>(generator, shape, mean, deviation)
                }
                Distribution::Uniform(low, high) => {
                    random::uniform(generator, shape, low.to_f64(), high.to_f64())
                }
                _ => random::uniform(generator, shape, 0.0, 1.0),
            }.map(AnyTensor::from), else => unreachable!("a float"));
        }
        with_dtype!(dtype, I in int => match distribution {
            Distribution::Normal(mean, deviation) => {
                random::normal_int::<I>(generator, shape, mean, deviation)
            }
            Distribution::Uniform(low, high) => {
                if [low, high].iter().any(|v| !v.to_f64().is_finite()) {
                    let message = format!("bounds must be finite, given [{low:?}, {high:?})");
                    return Err(TensorError::value(op, message));
                }
                let [low, high] = [low, high].map(|v| v.as_integer().unwrap_or(v.to_i64().into()));
                if low >= high || !fits(dtype, low) || !fits(dtype, high - 1) {
                    let message = format!("[{low}, {high}) is not a range of {dtype}");
                    return Err(TensorError::value(op, message));
                }
                // A span of 2⁶⁴ wraps to 0, which encodes it.
                random::uniform_span(generator, shape, low as I, (high - low) as u64)
            }
            _ => {
                let bits = 8 * dtype.size() as u32;
                let span = 1u64.checked_shl(bits).unwrap_or(0);
                random::uniform_span::<I>(generator, shape, 0, span)
            }
        }.map(AnyTensor::from), else => {
            Err(TensorError::DTypeUnsupported { op, dtype, expected: "a real number" })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_tensors_of_every_dtype() {
        for dtype in DType::ALL {
            let zeros = AnyTensor::zeros(&[2, 3], dtype).unwrap();
            let ones = AnyTensor::ones(&[2, 3], dtype).unwrap();
            assert_eq!((zeros.dtype(), zeros.shape()), (dtype, &[2, 3][..]));
            with_dtype!(dtype, T in all => {
                let one = ones.typed::<T>().unwrap().get(&[1, 2]).unwrap();
                assert_eq!(one, Number::Bool(true).to::<T>());
                assert_ne!(zeros.typed::<T>().unwrap().get(&[1, 2]).unwrap(), one);
            }, else => unreachable!());
            assert_eq!(AnyTensor::eye(2, 2, dtype).is_ok(), dtype != DType::Bool);
            let range = AnyTensor::arange(Number::Int(0), Number::Int(5), Number::Int(2), dtype);
            assert_eq!(range.is_ok_and(|x| x.numel() == 3), dtype != DType::Bool);
            assert_eq!(AnyTensor::linspace(0.0, 1.0, 3, dtype).is_ok(), dtype.is_float());
        }
    }

    #[test]
    fn ranges_that_an_integer_type_cannot_hold() {
        let range =
            |a, b, dtype| AnyTensor::arange(Number::Int(a), Number::Int(b), Number::Int(1), dtype);
        assert!(range(0, 256, DType::U8).is_ok() && range(-128, 128, DType::I8).is_ok());
        for (a, b, dtype) in [(0, 257, DType::U8), (-1, 3, DType::U64), (0, 129, DType::I8)] {
            assert!(matches!(range(a, b, dtype), Err(TensorError::Value { op: "arange", .. })));
        }
        // An empty range has no element out of range.
        assert!(range(300, 300, DType::U8).is_ok());
    }

    #[test]
    fn random_tensors_of_every_dtype() {
        let g = Generator::new(4);
        let pairs = [
            Distribution::Standard,
            Distribution::Uniform(Number::Int(0), Number::Float(2.0)),
            Distribution::Bernoulli(0.5),
            Distribution::Normal(0.0, 10.0),
        ];
        for dtype in DType::ALL {
            for law in pairs {
                let got = AnyTensor::random(&g, &[3, 500], law, dtype);
                let served = match law {
                    Distribution::Bernoulli(_) => true,
                    Distribution::Standard => !dtype.is_complex(),
                    _ => dtype.is_float() || dtype.is_int(),
                };
                assert_eq!(got.is_ok(), served, "{dtype} {law:?}");
            }
        }
        let bytes = AnyTensor::random(&g, &[5000], Distribution::Standard, DType::U8).unwrap();
        let bytes = bytes.typed::<u8>().unwrap().to_vec().unwrap();
        assert!((0..=255).all(|v| bytes.contains(&v)));
        let law = Distribution::Uniform(Number::Int(0), Number::Int(256));
        let bytes = AnyTensor::random(&g, &[5000], law, DType::U8).unwrap();
        assert!(bytes.typed::<u8>().unwrap().to_vec().unwrap().contains(&255));
        for (low, high) in [(0, 257), (-1, 4), (4, 4)] {
            let law = Distribution::Uniform(Number::Int(low), Number::Int(high));
            let got = AnyTensor::random(&g, &[2], law, DType::U8);
            assert!(matches!(got, Err(TensorError::Value { .. })));
        }
        let law = Distribution::Uniform(Number::Int(i64::MIN), Number::UInt(1 << 63));
        assert!(AnyTensor::random(&g, &[2], law, DType::I64).is_ok());
    }
}
