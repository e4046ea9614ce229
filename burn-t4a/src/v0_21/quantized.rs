//! Quantized tensors: integers of eight bits and their scales, converted by the engine
//! ([`t4a_tensor::quantized`]). What is not listed here dequantises and computes in floats.
//!
//! In this version of Burn a block is a run of elements in row-major order, whatever its shape.

use burn_backend::ops::QTensorOps;
use burn_backend::quantization::{
    QuantLevel, QuantScheme, QuantStore, QuantValue, QuantizationParametersPrimitive,
    QuantizedBytes,
};
use burn_backend::{
    DType as BurnDType, ExecutionError, FloatDType, IntDType, QTensorPrimitive, Shape, Slice,
    TensorData, TensorMetadata,
};
use t4a_tensor::{AnyTensor, DType, Result, Tensor, TensorError, quantized};

use super::movement::slice;
use super::primitive::{T4aTensor, dtype as engine, wrap};
use super::{BurnT4a, T4aDevice};
use crate::boundary::accept;

/// A quantized tensor of the backend. Cloning shares the memory.
#[derive(Clone, Debug)]
pub struct T4aQTensor {
    /// The integers, `i8`.
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

/// The grid of a scheme over so many elements, and the shape of the scales.
///
/// # Errors
/// [`TensorError::Value`] for values that are no integers, and if the elements are not a whole number of
/// blocks.
fn grid(op: &'static str, len: usize, scheme: &QuantScheme) -> Result<(Vec<usize>, Vec<usize>)> {
    if matches!(scheme.value, QuantValue::E4M3 | QuantValue::E5M2 | QuantValue::E2M1) {
        return Err(TensorError::value(op, format!("{:?} is not supported", scheme.value)));
    }
    match scheme.level {
        QuantLevel::Tensor => Ok((vec![len], vec![1])),
        QuantLevel::Block(block) => match block.num_elements() {
            size if size > 0 && len.is_multiple_of(size) => {
                Ok((vec![len / size, size], vec![len / size, 1]))
            }
            size => {
                let message = format!("{len} elements are not a whole number of blocks of {size}");
                Err(TensorError::value(op, message))
            }
        },
    }
}

impl T4aQTensor {
    fn dequantized(&self) -> Result<AnyTensor> {
        let (grid, _) = grid("dequantize", self.values.numel(), &self.scheme)?;
        quantized::dequantize(&self.values, &grid, self.scales.clone())
    }

    fn quantized(
        op: &'static str,
        x: &AnyTensor,
        scheme: &QuantScheme,
        s: Vec<f32>,
    ) -> Result<Self> {
        let (grid, shape) = grid(op, x.numel(), scheme)?;
        let (required, given) = (shape.iter().product::<usize>(), s.len());
        if required != given {
            let message = format!("{required} scales are required, given {given}");
            return Err(TensorError::value(op, message));
        }
        let scales: AnyTensor =
            Tensor::from_vec(s.into_iter().map(stored).collect::<Vec<f32>>(), &shape)?.into();
        let values = quantized::quantize(x, &grid, scales.clone(), scheme.value.range())?;
        Ok(Self { values, scales, scheme: scheme.with_store(QuantStore::Native) })
    }

    /// Quantizes with scales that cover the largest magnitude of the tensor or of each block.
    fn covering(x: &AnyTensor, scheme: &QuantScheme) -> Result<Self> {
        const OP: &str = "quantize_dynamic";
        let x = x.clone().cast(DType::F32)?;
        let (grid, _) = grid(OP, x.numel(), scheme)?;
        let (low, high) = scheme.value.range();
        let peaks = floats(quantized::peaks(&x, &grid, &[grid.len() - 1])?)?;
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

    /// What orders the elements: integers under one scale, floats under several.
    fn ordered(&self) -> Result<AnyTensor> {
        match self.scheme.level {
            QuantLevel::Tensor => Ok(self.values.clone()),
            QuantLevel::Block(_) => self.dequantized(),
        }
    }

    fn from_data(data: TensorData) -> Result<Self> {
        const OP: &str = "q_from_data";
        let BurnDType::QFloat(scheme) = data.dtype else {
            let message = format!("quantized data is required, given {}", data.dtype.name());
            return Err(TensorError::value(OP, message));
        };
        let (shape, len) = (data.shape.to_vec(), data.shape.num_elements());
        let (_, scales) = grid(OP, len, &scheme)?;
        let values = match scheme.store {
            QuantStore::Native => len,
            QuantStore::PackedU32(0) => 4 * len.div_ceil(scheme.num_quants()),
            other => {
                let message = format!("values stored as {other:?} are not supported");
                return Err(TensorError::value(OP, message));
            }
        };
        let (required, given) = (values + 4 * scales.iter().product::<usize>(), data.bytes.len());
        if given != required {
            let message = format!("{shape:?} takes {required} bytes, the data has {given}");
            return Err(TensorError::value(OP, message));
        }
        let bytes = QuantizedBytes { bytes: data.bytes, scheme, num_elements: len };
        let (mut values, parameters) = bytes.into_vec_i8();
        // Words that the last values do not fill.
        values.truncate(len);
        Ok(Self {
            values: Tensor::from_vec(values, &shape)?.into(),
            scales: Tensor::from_vec(parameters.scales, &scales)?.into(),
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
