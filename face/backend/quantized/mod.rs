//! Quantized tensors: codes of eight bits and their scales, converted by the engine ([`t4a_tensor::quantized`]).
//! Operations without a method here dequantize and compute in floats.
//!
//! Blocks differ between the versions of Burn: runs of elements in 0.21 (`runs`), boxes in 0.22 (`boxes`).

use burn_backend::ops::QTensorOps;
use burn_backend::quantization::{
    QuantScheme, QuantStore, QuantValue, QuantizationParametersPrimitive,
};
use burn_backend::{
    DType as BurnDType, ExecutionError, FloatDType, IntDType, Shape, Slice, TensorData,
    TensorMetadata,
};
use t4a_tensor::quantized::{self, Code, Minifloat};
use t4a_tensor::{AnyTensor, DType, Result, Tensor, TensorError};

use super::data::parts;
use super::movement::slice;
use super::primitive::{T4aTensor, dtype as engine, wrap};
use super::{BurnT4a, T4aDevice};
use crate::boundary::accept;

#[cfg(burn_line = "0.22")]
mod boxes;
#[cfg(burn_line = "0.21")]
mod runs;

#[cfg(burn_line = "0.22")]
use boxes as blocks;
#[cfg(burn_line = "0.22")]
pub(super) use boxes::supported;
#[cfg(burn_line = "0.21")]
use runs as blocks;

/// A quantized tensor of the backend. Cloning shares the memory.
#[derive(Clone, Debug)]
pub struct T4aQTensor {
    /// Codes, dtype `i8`: integers, or the bits of 8- or 4-bit floats.
    values: AnyTensor,
    scales: Scales,
    scheme: QuantScheme,
}

/// Scales of a quantized tensor.
#[derive(Clone, Debug)]
struct Scales {
    /// Dtype `f32`: one scale, or one per block.
    each: AnyTensor,
    /// Scale of the whole tensor, by which the scales of blocks are multiplied.
    #[cfg(burn_line = "0.22")]
    global: Option<f32>,
}

impl TensorMetadata for T4aQTensor {
    #[cfg(burn_line = "0.22")]
    type Device = T4aDevice;

    #[cfg(burn_line = "0.22")]
    fn device(&self) -> T4aDevice {
        T4aDevice
    }

    #[cfg(burn_line = "0.22")]
    fn can_mut(&self) -> bool {
        !self.values.buffer().is_shared()
    }

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

/// Converts the value type of a scheme to the engine's interpretation of codes.
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

/// Reads the elements of a float tensor as `f32`.
fn floats(x: AnyTensor) -> Result<Vec<f32>> {
    x.cast(DType::F32)?.typed::<f32>()?.to_vec()
}

/// # Errors
/// [`TensorError::Value`] unless there is one scale per block.
fn one_per_block(op: &'static str, required: usize, given: usize) -> Result<()> {
    if required == given {
        return Ok(());
    }
    Err(TensorError::value(op, format!("{required} scales are required, given {given}")))
}

impl T4aQTensor {
    /// Returns the values as `f32`.
    fn dequantized(&self) -> Result<AnyTensor> {
        let shape = self.values.shape();
        let (grid, steps) = blocks::steps("dequantize", shape, &self.scales, &self.scheme)?;
        quantized::dequantize(&self.values, &grid, steps, code(&self.scheme))
    }

    /// Quantizes `x` with given scales: codes of `x / s`.
    fn quantized(
        op: &'static str,
        x: &AnyTensor,
        scheme: &QuantScheme,
        scales: Scales,
    ) -> Result<Self> {
        let scheme = scheme.with_store(QuantStore::Native);
        let (grid, steps) = blocks::steps(op, x.shape(), &scales, &scheme)?;
        let values = quantized::quantize(x, &grid, steps, code(&scheme))?;
        Ok(Self { values, scales, scheme })
    }

    /// Quantizes with scales computed from the largest magnitude of the tensor or of each block.
    fn covering(x: &AnyTensor, scheme: &QuantScheme) -> Result<Self> {
        const OP: &str = "quantize_dynamic";
        blocks::check(OP, scheme)?;
        let x = x.clone().cast(DType::F32)?;
        let scales = blocks::covering(OP, &x, scheme)?;
        Self::quantized(OP, &x, scheme, scales)
    }

    /// Applies an operation that moves elements to the codes. With several blocks, whose elements the operation
    /// would separate, applies it to the dequantized values and quantizes the result by `scheme`.
    #[track_caller]
    fn moved(
        self,
        scheme: QuantScheme,
        f: impl FnOnce(&AnyTensor) -> Result<AnyTensor>,
    ) -> T4aQTensor {
        accept(if blocks::any(&self.scheme) {
            self.dequantized().and_then(|x| Self::covering(&f(&x)?, &scheme))
        } else {
            f(&self.values).map(|values| Self { values, ..self })
        })
    }

    /// Permutes the axes of the tensor and of the block shape, by [`Self::moved`].
    #[track_caller]
    fn permuted(self, axes: &[usize]) -> T4aQTensor {
        let scheme = blocks::permuted(self.scheme, self.values.rank(), axes);
        self.moved(scheme, |x| x.permute(axes))
    }

    /// Numbers with the same order as the elements: the codes themselves if they are integers with one scale,
    /// otherwise the dequantized values.
    fn ordered(&self) -> Result<AnyTensor> {
        match (blocks::any(&self.scheme), code(&self.scheme)) {
            (false, Code::Integers { .. }) => Ok(self.values.clone()),
            _ => self.dequantized(),
        }
    }

    fn from_data(data: TensorData) -> Result<Self> {
        const OP: &str = "q_from_data";
        let (bytes, shape, dtype) = parts(data);
        let BurnDType::QFloat(scheme) = dtype else {
            let message = format!("quantized data is required, given {}", dtype.name());
            return Err(TensorError::value(OP, message));
        };
        blocks::check(OP, &scheme)?;
        match (scheme.store, code(&scheme)) {
            (QuantStore::Native, _) | (QuantStore::PackedU32(0), Code::Integers { .. }) => {}
            // Burn does not unpack other stores.
            (store, _) => {
                let message = format!("{:?} stored as {store:?} is not supported", scheme.value);
                return Err(TensorError::value(OP, message));
            }
        }
        let required = blocks::bytes(OP, &shape, &scheme)?;
        if bytes.len() != required {
            let given = bytes.len();
            let message = format!("{shape:?} takes {required} bytes, the data has {given}");
            return Err(TensorError::value(OP, message));
        }
        let (values, scales) = blocks::read(bytes, &shape, scheme)?;
        let values = Tensor::from_vec(values, &shape)?.into();
        Ok(Self { values, scales, scheme: scheme.with_store(QuantStore::Native) })
    }

    fn into_data(self) -> Result<TensorData> {
        let values = self.values.typed::<i8>()?.to_vec()?;
        blocks::data(values, self.values.shape(), self.scheme, self.scales)
    }
}

impl QTensorOps<BurnT4a> for BurnT4a {
    fn q_from_data(data: TensorData, _device: &T4aDevice) -> T4aQTensor {
        accept(T4aQTensor::from_data(data))
    }

    async fn q_into_data(tensor: T4aQTensor) -> std::result::Result<TensorData, ExecutionError> {
        Ok(accept(tensor.into_data()))
    }

    #[cfg(burn_line = "0.21")]
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
        const OP: &str = "quantize";
        let run = || {
            blocks::check(OP, scheme)?;
            let x = tensor.into_any().cast(DType::F32)?;
            let scales = blocks::given(OP, parameters, x.shape(), scheme)?;
            T4aQTensor::quantized(OP, &x, scheme, scales)
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
        let scheme = tensor.scheme;
        tensor.moved(scheme, |x| x.reshape(&shape))
    }

    fn q_expand(tensor: T4aQTensor, shape: Shape) -> T4aQTensor {
        let scheme = tensor.scheme;
        tensor.moved(scheme, |x| x.expand(&shape))
    }

    fn q_swap_dims(tensor: T4aQTensor, dim1: usize, dim2: usize) -> T4aQTensor {
        let mut axes: Vec<usize> = (0..tensor.rank()).collect();
        axes.swap(dim1, dim2);
        tensor.permuted(&axes)
    }

    fn q_permute(tensor: T4aQTensor, axes: &[usize]) -> T4aQTensor {
        tensor.permuted(axes)
    }

    fn q_flip(tensor: T4aQTensor, axes: &[usize]) -> T4aQTensor {
        let scheme = tensor.scheme;
        tensor.moved(scheme, |x| x.flip(axes))
    }

    fn q_slice(tensor: T4aQTensor, slices: &[Slice]) -> T4aQTensor {
        let scheme = tensor.scheme;
        tensor.moved(scheme, |x| slice(x, slices))
    }

    fn q_select(tensor: T4aQTensor, dim: usize, indices: T4aTensor) -> T4aQTensor {
        let scheme = tensor.scheme;
        tensor.moved(scheme, |x| x.index_select(dim, indices.any()))
    }

    fn q_gather(dim: usize, tensor: T4aQTensor, indices: T4aTensor) -> T4aQTensor {
        let scheme = tensor.scheme;
        tensor.moved(scheme, |x| x.gather(dim, indices.any()))
    }

    fn q_argmax(tensor: T4aQTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        let index = tensor.ordered().and_then(|x| x.max_with_index(dim)?.1.cast(engine(out_dtype)));
        wrap(index)
    }

    fn q_argmin(tensor: T4aQTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        let index = tensor.ordered().and_then(|x| x.min_with_index(dim)?.1.cast(engine(out_dtype)));
        wrap(index)
    }
}
