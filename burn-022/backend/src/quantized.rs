//! Quantized tensors: codes of eight bits and their scales, converted by the engine ([`t4a_tensor::quantized`]).
//! Operations that are not listed here dequantise and compute in floats.
//!
//! Blocks have a shape: a tensor `[n, m]` in blocks of `[a, b]` is read as `[n/a, a, m/b, b]`.
//! In a scheme of two levels the scales of the blocks are relative to one of the tensor.

use burn_backend::ops::QTensorOps;
use burn_backend::quantization::{
    QuantMode, QuantScheme, QuantStore, QuantValue, QuantizationParametersPrimitive,
    QuantizedBytes, ScaleDtype, global_scale_dtype, params_shape, quantizable, scale_to_dtype,
};
use burn_backend::{
    DType as BurnDType, ExecutionError, FloatDType, IntDType, Shape, Slice, TensorData,
    TensorMetadata,
};
use burn_std::quantization::quantized_data_len;
use t4a_tensor::any::Number;
use t4a_tensor::quantized::{self, Code, Minifloat};
use t4a_tensor::{AnyTensor, DType, Result, Tensor, TensorError};

use crate::backend::{BurnT4a, T4aDevice};
use crate::boundary::accept;
use crate::movement::slice;
use crate::primitive::{T4aTensor, dtype as engine, wrap};

/// A quantized tensor of the backend. Cloning shares the memory.
#[derive(Clone, Debug)]
pub struct T4aQTensor {
    /// The codes, `i8`: integers, or the bits of floats.
    values: AnyTensor,
    /// The scales, `f32`: the grid of blocks, or one.
    scales: AnyTensor,
    /// What the scales of blocks are relative to in a scheme of two levels.
    global: Option<f32>,
    scheme: QuantScheme,
}

/// True for symmetric schemes whose scales can be stored.
pub(crate) fn supported(scheme: &QuantScheme) -> bool {
    scheme.mode == QuantMode::Symmetric && quantizable(scheme)
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

/// # Errors
/// [`TensorError::Value`] for a scheme that is not [`supported`].
fn check(op: &'static str, scheme: &QuantScheme) -> Result<()> {
    if supported(scheme) {
        return Ok(());
    }
    Err(TensorError::value(op, format!("{scheme:?} is not supported")))
}

/// # Errors
/// [`TensorError::Value`] for data whose packed values Burn does not read.
fn readable(op: &'static str, scheme: &QuantScheme) -> Result<()> {
    match (scheme.store, code(scheme)) {
        (QuantStore::Native, _) | (QuantStore::PackedU32(0), Code::Integers { .. }) => Ok(()),
        (store, _) => {
            let message = format!("{:?} stored as {store:?} is not supported", scheme.value);
            Err(TensorError::value(op, message))
        }
    }
}

impl TensorMetadata for T4aQTensor {
    type Device = T4aDevice;

    fn dtype(&self) -> BurnDType {
        BurnDType::QFloat(self.scheme)
    }

    fn shape(&self) -> Shape {
        self.values.shape().iter().copied().collect()
    }

    fn rank(&self) -> usize {
        self.values.rank()
    }

    fn device(&self) -> T4aDevice {
        T4aDevice
    }

    fn can_mut(&self) -> bool {
        !self.values.buffer().is_shared()
    }
}

/// A scale as its dtype stores it; zero becomes the least positive one.
fn stored(scale: f32, dtype: ScaleDtype) -> f32 {
    let scale = scale_to_dtype(scale, dtype);
    if scale > 0.0 && scale.is_finite() { scale } else { scale_to_dtype(f32::MIN_POSITIVE, dtype) }
}

/// The elements of a tensor of floats as `f32`.
fn floats(x: AnyTensor) -> Result<Vec<f32>> {
    x.cast(DType::F32)?.typed::<f32>()?.to_vec()
}

/// The grid of a scheme: a pair of axes per axis, the blocks and the elements in one, or one axis for all
/// without blocks.
///
/// # Errors
/// [`TensorError::Value`] if an axis is not a whole number of blocks.
fn grid(op: &'static str, shape: &[usize], scheme: &QuantScheme) -> Result<Vec<usize>> {
    let Some(block) = scheme.block_size() else {
        return Ok(vec![shape.iter().product()]);
    };
    let sizes = block.to_dim_vec(shape.len());
    let mut pairs = Vec::with_capacity(2 * shape.len());
    for (&size, &block) in shape.iter().zip(&sizes) {
        let block = usize::from(block);
        if block == 0 || size % block != 0 {
            let message = format!("{shape:?} is not a whole number of blocks {sizes:?}");
            return Err(TensorError::value(op, message));
        }
        pairs.extend([size / block, block]);
    }
    Ok(pairs)
}

/// `[a, b, …] → [a, 1, b, 1, …]`
fn spread(scales: &AnyTensor) -> Result<AnyTensor> {
    let shape: Vec<usize> = scales.shape().iter().flat_map(|&size| [size, 1]).collect();
    scales.reshape(&shape)
}

impl T4aQTensor {
    /// The scale of every value, in a shape that broadcasts against [`grid`].
    fn steps(&self) -> Result<AnyTensor> {
        let scales = match self.global {
            Some(global) => self.scales.clone().mul_scalar(Number::Float(global.into()))?,
            None => self.scales.clone(),
        };
        if self.scheme.block_size().is_some() { spread(&scales) } else { Ok(scales) }
    }

    /// The values as `f32`.
    fn dequantized(&self) -> Result<AnyTensor> {
        let grid = grid("dequantize", self.values.shape(), &self.scheme)?;
        quantized::dequantize(&self.values, &grid, self.steps()?, code(&self.scheme))
    }

    /// The codes of `x / s`.
    fn quantized(
        x: &AnyTensor,
        scheme: &QuantScheme,
        scales: AnyTensor,
        global: Option<f32>,
    ) -> Result<Self> {
        let scheme = scheme.with_store(QuantStore::Native);
        let mut out = Self { values: x.clone(), scales, global, scheme };
        let grid = grid("quantize", x.shape(), &scheme)?;
        out.values = quantized::quantize(x, &grid, out.steps()?, code(&scheme))?;
        Ok(out)
    }

    /// Quantizes with scales that cover the largest magnitude of the tensor or of each block.
    fn covering(x: &AnyTensor, scheme: &QuantScheme) -> Result<Self> {
        const OP: &str = "quantize_dynamic";
        check(OP, scheme)?;
        let x = x.clone().cast(DType::F32)?;
        let grid = grid(OP, x.shape(), scheme)?;
        let peaks = match scheme.block_size() {
            Some(_) => {
                let within: Vec<usize> = (0..x.rank()).map(|axis| 2 * axis + 1).collect();
                let blocks: Vec<usize> = grid.iter().copied().step_by(2).collect();
                quantized::peaks(&x, &grid, &within)?.reshape(&blocks)?
            }
            None => quantized::peaks(&x, &grid, &[0])?.reshape(&[1])?,
        };
        let (low, high) = scheme.value.range();
        let steps = floats(peaks.clone())?.into_iter().map(|peak| 2.0 * peak / (high - low));
        let dtype = scheme.scale_dtype();
        let (global, scales): (_, Vec<f32>) = match global_scale_dtype(scheme) {
            Some(of) => {
                let steps: Vec<f32> = steps.collect();
                let peak = steps.iter().copied().fold(0.0, f32::max);
                let global = stored(peak / dtype.max_representable(), of);
                (Some(global), steps.iter().map(|step| stored(step / global, dtype)).collect())
            }
            None => (None, steps.map(|step| stored(step, dtype)).collect()),
        };
        let scales = Tensor::from_vec(scales, peaks.shape())?.into();
        Self::quantized(&x, scheme, scales, global)
    }

    /// An operation that moves values: of the integers, or, where blocks would be torn, of the floats,
    /// which are then quantized by `scheme`.
    #[track_caller]
    fn moved(
        self,
        scheme: QuantScheme,
        f: impl FnOnce(&AnyTensor) -> Result<AnyTensor>,
    ) -> T4aQTensor {
        accept(if self.scheme.block_size().is_some() {
            self.dequantized().and_then(|x| Self::covering(&f(&x)?, &scheme))
        } else {
            f(&self.values).map(|values| Self { values, ..self })
        })
    }

    /// Numbers in the order of the elements: integers under one scale are, other values are dequantized.
    fn ordered(&self) -> Result<AnyTensor> {
        match (self.scheme.block_size(), code(&self.scheme)) {
            (None, Code::Integers { .. }) => Ok(self.values.clone()),
            _ => self.dequantized(),
        }
    }

    fn from_data(data: TensorData) -> Result<Self> {
        const OP: &str = "q_from_data";
        let (bytes, shape, dtype) = data.into_parts();
        let BurnDType::QFloat(scheme) = dtype else {
            let message = format!("quantized data is required, given {}", dtype.name());
            return Err(TensorError::value(OP, message));
        };
        check(OP, &scheme)?;
        readable(OP, &scheme)?;
        grid(OP, &shape, &scheme)?;
        let required = quantized_data_len(&scheme, &shape);
        if bytes.len() != required {
            let given = bytes.len();
            let message = format!("{shape:?} takes {required} bytes, the data has {given}");
            return Err(TensorError::value(OP, message));
        }
        let grid = params_shape(&shape, &scheme);
        let (values, scales) = QuantizedBytes { bytes, scheme, shape: shape.clone() }.into_vec_i8();
        Ok(Self {
            values: Tensor::from_vec(values, &shape)?.into(),
            scales: Tensor::from_vec(scales.block, &grid)?.into(),
            global: scales.global,
            scheme: scheme.with_store(QuantStore::Native),
        })
    }

    fn into_data(self) -> Result<TensorData> {
        let values = self.values.typed::<i8>()?.to_vec()?;
        let scales = floats(self.scales)?;
        Ok(TensorData::quantized(values, self.values.shape(), self.scheme, &scales, self.global))
    }
}

impl QTensorOps<BurnT4a> for BurnT4a {
    fn q_from_data(data: TensorData, _device: &T4aDevice) -> T4aQTensor {
        accept(T4aQTensor::from_data(data))
    }

    async fn q_into_data(tensor: T4aQTensor) -> std::result::Result<TensorData, ExecutionError> {
        Ok(accept(tensor.into_data()))
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
            check(OP, scheme)?;
            let x = tensor.into_any().cast(DType::F32)?;
            let grid = params_shape(&x.shape().iter().copied().collect(), scheme);
            let dtype = scheme.scale_dtype();
            let scales: Vec<f32> = floats(parameters.scales.into_any())?
                .into_iter()
                .map(|scale| stored(scale, dtype))
                .collect();
            if scales.len() != grid.num_elements() {
                let (required, given) = (grid.num_elements(), scales.len());
                let message = format!("{required} scales are required, given {given}");
                return Err(TensorError::value(OP, message));
            }
            let global = match (parameters.global, global_scale_dtype(scheme)) {
                (Some(global), Some(of)) => {
                    floats(global.into_any())?.first().map(|&s| stored(s, of))
                }
                (None, None) => None,
                _ => {
                    let message = "a scale of the tensor belongs to a scheme of two levels";
                    return Err(TensorError::value(OP, message));
                }
            };
            T4aQTensor::quantized(&x, scheme, Tensor::from_vec(scales, &grid)?.into(), global)
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
        let mut scheme = tensor.scheme;
        scheme.swap_block_dims(tensor.rank(), dim1, dim2);
        tensor.moved(scheme, |x| x.swap_axes(dim1, dim2))
    }

    fn q_permute(tensor: T4aQTensor, axes: &[usize]) -> T4aQTensor {
        let mut scheme = tensor.scheme;
        scheme.permute_block_dims(tensor.rank(), axes);
        tensor.moved(scheme, |x| x.permute(axes))
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
