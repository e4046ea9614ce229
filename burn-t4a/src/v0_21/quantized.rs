//! Quantized tensors: codes of eight bits and their scales, converted by the engine ([`t4a_tensor::quantized`]).
//! Operations that are not listed here dequantise and compute in floats.
//!
//! In this version of Burn a block is a run of elements in row-major order, whatever its shape; the last one may
//! be shorter.

use burn_backend::ops::QTensorOps;
use burn_backend::quantization::{
    QuantLevel, QuantScheme, QuantStore, QuantValue, QuantizationParametersPrimitive,
    QuantizedBytes,
};
use burn_backend::{
    Bytes, DType as BurnDType, ExecutionError, FloatDType, IntDType, QTensorPrimitive, Shape,
    Slice, TensorData, TensorMetadata,
};
use t4a_tensor::quantized::{self, Code, Minifloat};
use t4a_tensor::{AnyTensor, DType, Result, Tensor, TensorError};

use super::movement::slice;
use super::primitive::{T4aTensor, dtype as engine, wrap};
use super::{BurnT4a, T4aDevice};
use crate::boundary::accept;

/// A quantized tensor of the backend. Cloning shares the memory.
#[derive(Clone, Debug)]
pub struct T4aQTensor {
    /// The codes, `i8`: integers, or the bits of floats.
    values: AnyTensor,
    /// The scales, `f32`: one, or one per block, `[blocks, 1]`.
    scales: AnyTensor,
    scheme: QuantScheme,
}

impl QTensorPrimitive for T4aQTensor {
    fn scheme(&self) -> &QuantScheme {
        &self.scheme
    }

    fn default_scheme() -> QuantScheme {
        QuantScheme::default().with_store(QuantStore::Native)
    }
}

impl TensorMetadata for T4aQTensor {
    fn dtype(&self) -> BurnDType {
        BurnDType::QFloat(self.scheme)
    }

    fn shape(&self) -> Shape {
        self.values.shape().iter().copied().collect()
    }

    fn rank(&self) -> usize {
        self.values.rank()
    }
}

/// A scale that can be divided by.
fn stored(scale: f32) -> f32 {
    if scale.is_normal() { scale } else { f32::MIN_POSITIVE }
}

/// The elements of a tensor of floats as `f32`.
fn floats(x: AnyTensor) -> Result<Vec<f32>> {
    x.cast(DType::F32)?.typed::<f32>()?.to_vec()
}

/// The meaning of the codes of a scheme.
fn code(scheme: &QuantScheme) -> Code {
    match scheme.value {
        QuantValue::E4M3 => Code::Floats(Minifloat::E4M3),
        QuantValue::E5M2 => Code::Floats(Minifloat::E5M2),
        QuantValue::E2M1 => Code::Floats(Minifloat::E2M1),
        integers => {
            let (low, high) = integers.range();
            Code::Integers { low, high }
        }
    }
}

/// The number of blocks of a scheme in so many elements, and the elements of one; without blocks, one of all.
///
/// # Errors
/// [`TensorError::Value`] for blocks of no elements.
fn blocks(op: &'static str, len: usize, scheme: &QuantScheme) -> Result<(usize, usize)> {
    match scheme.level {
        QuantLevel::Tensor => Ok((1, len)),
        QuantLevel::Block(block) => match block.num_elements() {
            0 => Err(TensorError::value(op, "blocks of no elements")),
            size => Ok((len.div_ceil(size), size)),
        },
    }
}

impl T4aQTensor {
    /// A grid of all elements and scales that broadcast in it.
    fn steps(&self, op: &'static str) -> Result<(Vec<usize>, AnyTensor)> {
        let len = self.values.numel();
        let (count, size) = blocks(op, len, &self.scheme)?;
        if count == 1 {
            return Ok((vec![len], self.scales.reshape(&[1])?));
        }
        if count * size == len {
            return Ok((vec![count, size], self.scales.clone()));
        }
        // The last block is shorter: a scale per element.
        let scales = self.scales.expand(&[count, size])?.reshape(&[count * size])?;
        Ok((vec![len], slice(&scales, &[Slice::from(0..len)])?))
    }

    /// The values as `f32`.
    fn dequantized(&self) -> Result<AnyTensor> {
        let (grid, steps) = self.steps("dequantize")?;
        quantized::dequantize(&self.values, &grid, steps, code(&self.scheme))
    }

    /// The codes of `x / s`.
    fn quantized(
        op: &'static str,
        x: &AnyTensor,
        scheme: &QuantScheme,
        s: Vec<f32>,
    ) -> Result<Self> {
        let (required, _) = blocks(op, x.numel(), scheme)?;
        let given = s.len();
        if required != given {
            let message = format!("{required} scales are required, given {given}");
            return Err(TensorError::value(op, message));
        }
        let s: Vec<f32> = s.into_iter().map(stored).collect();
        let scales = Tensor::from_vec(s, &[required, 1])?.into();
        let scheme = scheme.with_store(QuantStore::Native);
        let mut out = Self { values: x.clone(), scales, scheme };
        let (grid, steps) = out.steps(op)?;
        out.values = quantized::quantize(x, &grid, steps, code(&scheme))?;
        Ok(out)
    }

    /// Quantizes with scales that cover the largest magnitude of the tensor or of each block.
    fn covering(x: &AnyTensor, scheme: &QuantScheme) -> Result<Self> {
        const OP: &str = "quantize_dynamic";
        let x = x.clone().cast(DType::F32)?;
        let (count, size) = blocks(OP, x.numel(), scheme)?;
        let flat = x.reshape(&[x.numel()])?;
        // Zeros to the end of the last block.
        let rest: AnyTensor = Tensor::<f32>::zeros(&[count * size - x.numel()])?.into();
        let whole = if rest.numel() == 0 { flat } else { AnyTensor::cat(&[flat, rest], 0)? };
        let peaks = floats(quantized::peaks(&whole, &[count, size], &[1])?)?;
        let (low, high) = scheme.value.range();
        let steps = peaks.into_iter().map(|peak| 2.0 * peak / (high - low)).collect();
        Self::quantized(OP, &x, scheme, steps)
    }

    /// An operation that moves values: of the integers, or, where blocks would be torn, of the floats,
    /// which are then quantized again.
    #[track_caller]
    fn moved(self, f: impl FnOnce(&AnyTensor) -> Result<AnyTensor>) -> Self {
        accept(match self.scheme.level {
            QuantLevel::Tensor => f(&self.values).map(|values| Self { values, ..self }),
            QuantLevel::Block(_) => {
                self.dequantized().and_then(|x| Self::covering(&f(&x)?, &self.scheme))
            }
        })
    }

    /// Numbers in the order of the elements: integers under one scale are, other values are dequantized.
    fn ordered(&self) -> Result<AnyTensor> {
        match (self.scheme.level, code(&self.scheme)) {
            (QuantLevel::Tensor, Code::Integers { .. }) => Ok(self.values.clone()),
            _ => self.dequantized(),
        }
    }

    fn from_data(data: TensorData) -> Result<Self> {
        const OP: &str = "q_from_data";
        let BurnDType::QFloat(scheme) = data.dtype else {
            let message = format!("quantized data is required, given {}", data.dtype.name());
            return Err(TensorError::value(OP, message));
        };
        let (shape, len) = (data.shape.to_vec(), data.shape.num_elements());
        let (count, _) = blocks(OP, len, &scheme)?;
        let values = match (scheme.store, code(&scheme)) {
            (QuantStore::Native, _) => len,
            (QuantStore::PackedU32(0), Code::Integers { .. }) => {
                4 * len.div_ceil(scheme.num_quants())
            }
            (store, _) => {
                let message = format!("{:?} stored as {store:?} is not supported", scheme.value);
                return Err(TensorError::value(OP, message));
            }
        };
        let (required, given) = (values + 4 * count, data.bytes.len());
        if given != required {
            let message = format!("{shape:?} takes {required} bytes, the data has {given}");
            return Err(TensorError::value(OP, message));
        }
        let (values, scales) = data.bytes.split_at(values);
        let words = |bytes: &[u8]| -> Vec<u32> {
            bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_ne_bytes(word)).collect()
        };
        let scales: Vec<f32> = words(scales).into_iter().map(f32::from_bits).collect();
        let values: Vec<i8> = match scheme.store {
            QuantStore::Native => values.iter().map(|&byte| byte as i8).collect(),
            // Burn counts the blocks of a scheme rounded down, so it unpacks the values under one scale.
            _ => {
                let mut packed = words(values);
                packed.push(0);
                let scheme = scheme.with_level(QuantLevel::Tensor);
                let bytes = Bytes::from_elems(packed);
                let (mut values, _) =
                    QuantizedBytes { bytes, scheme, num_elements: len }.into_vec_i8();
                // Words that the last values do not fill.
                values.truncate(len);
                values
            }
        };
        Ok(Self {
            values: Tensor::from_vec(values, &shape)?.into(),
            scales: Tensor::from_vec(scales, &[count, 1])?.into(),
            scheme: scheme.with_store(QuantStore::Native),
        })
    }

    fn into_data(self) -> Result<TensorData> {
        let values = self.values.typed::<i8>()?.to_vec()?;
        let (shape, scales) = (self.values.shape().to_vec(), floats(self.scales)?);
        Ok(TensorData::quantized(values, shape, self.scheme, &scales))
    }
}

impl QTensorOps<BurnT4a> for BurnT4a {
    fn q_from_data(data: TensorData, _device: &T4aDevice) -> T4aQTensor {
        accept(T4aQTensor::from_data(data))
    }

    async fn q_into_data(tensor: T4aQTensor) -> std::result::Result<TensorData, ExecutionError> {
        Ok(accept(tensor.into_data()))
    }

    fn q_device(_tensor: &T4aQTensor) -> T4aDevice {
        T4aDevice
    }

    fn q_to_device(tensor: T4aQTensor, _device: &T4aDevice) -> T4aQTensor {
        tensor
    }

    fn quantize(
        tensor: T4aTensor,
        scheme: &QuantScheme,
        parameters: QuantizationParametersPrimitive<BurnT4a>,
    ) -> T4aQTensor {
        let run = || {
            let x = tensor.into_any().cast(DType::F32)?;
            T4aQTensor::quantized("quantize", &x, scheme, floats(parameters.scales.into_any())?)
        };
        accept(run())
    }

    fn quantize_dynamic(tensor: T4aTensor, scheme: &QuantScheme) -> T4aQTensor {
        accept(T4aQTensor::covering(tensor.any(), scheme))
    }

    fn dequantize(tensor: T4aQTensor, dtype: FloatDType) -> T4aTensor {
        wrap(tensor.dequantized().and_then(|x| x.cast(engine(dtype))))
    }

    fn q_reshape(tensor: T4aQTensor, shape: Shape) -> T4aQTensor {
        tensor.moved(|x| x.reshape(&shape))
    }

    fn q_expand(tensor: T4aQTensor, shape: Shape) -> T4aQTensor {
        tensor.moved(|x| x.expand(&shape))
    }

    fn q_swap_dims(tensor: T4aQTensor, dim1: usize, dim2: usize) -> T4aQTensor {
        tensor.moved(|x| x.swap_axes(dim1, dim2))
    }

    fn q_permute(tensor: T4aQTensor, axes: &[usize]) -> T4aQTensor {
        tensor.moved(|x| x.permute(axes))
    }

    fn q_flip(tensor: T4aQTensor, axes: &[usize]) -> T4aQTensor {
        tensor.moved(|x| x.flip(axes))
    }

    fn q_slice(tensor: T4aQTensor, slices: &[Slice]) -> T4aQTensor {
        tensor.moved(|x| slice(x, slices))
    }

    fn q_select(tensor: T4aQTensor, dim: usize, indices: T4aTensor) -> T4aQTensor {
        tensor.moved(|x| x.index_select(dim, indices.any()))
    }

    fn q_gather(dim: usize, tensor: T4aQTensor, indices: T4aTensor) -> T4aQTensor {
        tensor.moved(|x| x.gather(dim, indices.any()))
    }

    fn q_argmax(tensor: T4aQTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        wrap(tensor.ordered().and_then(|x| x.max_with_index(dim)?.1.cast(engine(out_dtype))))
    }

    fn q_argmin(tensor: T4aQTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        wrap(tensor.ordered().and_then(|x| x.min_with_index(dim)?.1.cast(engine(out_dtype))))
    }
}
