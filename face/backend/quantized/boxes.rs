//! Quantization schemes of Burn 0.22, with blocks of any shape: a tensor `[n, m]` in blocks of `[a, b]` is reshaped
//! to `[n/a, a, m/b, b]`. In a scheme with two levels the scales of blocks are relative to one scale of the tensor.

use burn_backend::quantization::{
    QuantMode, QuantScheme, QuantizationParametersPrimitive, QuantizedBytes, ScaleDtype,
    global_scale_dtype, params_shape, quantizable, scale_to_dtype,
};
use burn_backend::{Bytes, Shape, TensorData};
use burn_std::quantization::quantized_data_len;
use t4a_tensor::any::Number;
use t4a_tensor::{AnyTensor, Result, Tensor, TensorError, quantized};

use super::{BurnT4a, Scales, floats, one_per_block};

/// Returns true for symmetric schemes whose scale dtype the backend can store.
pub(crate) fn supported(scheme: &QuantScheme) -> bool {
    scheme.mode == QuantMode::Symmetric && quantizable(scheme)
}

/// # Errors
/// [`TensorError::Value`] for a scheme that is not [`supported`].
pub(super) fn check(op: &'static str, scheme: &QuantScheme) -> Result<()> {
    if supported(scheme) {
        return Ok(());
    }
    Err(TensorError::value(op, format!("{scheme:?} is not supported")))
}

/// Returns true if the scheme has more than one scale.
pub(super) fn any(scheme: &QuantScheme) -> bool {
    scheme.block_size().is_some()
}

/// Returns the scheme with its block shape permuted like the axes of the tensor.
pub(super) fn permuted(mut scheme: QuantScheme, rank: usize, axes: &[usize]) -> QuantScheme {
    scheme.permute_block_dims(rank, axes);
    scheme
}

/// Rounds a scale to its dtype; a scale that is not positive and finite is replaced by the smallest positive one.
fn stored(scale: f32, dtype: ScaleDtype) -> f32 {
    let scale = scale_to_dtype(scale, dtype);
    if scale > 0.0 && scale.is_finite() { scale } else { scale_to_dtype(f32::MIN_POSITIVE, dtype) }
}

/// Shape with two axes per axis of the tensor (number of blocks, block size), or one axis of all elements for a
/// scheme without blocks.
///
/// # Errors
/// [`TensorError::Value`] if a block size does not divide its axis.
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

/// Returns the shape of the tensor split into blocks, and scales that broadcast to it.
pub(super) fn steps(
    op: &'static str,
    shape: &[usize],
    scales: &Scales,
    scheme: &QuantScheme,
) -> Result<(Vec<usize>, AnyTensor)> {
    let grid = grid(op, shape, scheme)?;
    let mut each = scales.each.clone();
    if let Some(global) = scales.global {
        each = each.mul_scalar(Number::Float(global.into()))?;
    }
    if any(scheme) {
        // `[a, b, …] → [a, 1, b, 1, …]`
        let spread: Vec<usize> = each.shape().iter().flat_map(|&size| [size, 1]).collect();
        each = each.reshape(&spread)?;
    }
    Ok((grid, each))
}

/// Scales that map the largest magnitude of each block to the end of the range of codes.
pub(super) fn covering(op: &'static str, x: &AnyTensor, scheme: &QuantScheme) -> Result<Scales> {
    let grid = grid(op, x.shape(), scheme)?;
    let peaks = if any(scheme) {
        let within: Vec<usize> = (0..x.rank()).map(|axis| 2 * axis + 1).collect();
        let blocks: Vec<usize> = grid.iter().copied().step_by(2).collect();
        quantized::peaks(x, &grid, &within)?.reshape(&blocks)?
    } else {
        quantized::peaks(x, &grid, &[0])?.reshape(&[1])?
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
    Ok(Scales { each: Tensor::from_vec(scales, peaks.shape())?.into(), global })
}

/// Validates scales given as an argument.
///
/// # Errors
/// [`TensorError::Value`] if the number of scales or of levels differs from that of the scheme.
pub(super) fn given(
    op: &'static str,
    parameters: QuantizationParametersPrimitive<BurnT4a>,
    shape: &[usize],
    scheme: &QuantScheme,
) -> Result<Scales> {
    let grid = params_shape(&shape.iter().copied().collect(), scheme);
    let dtype = scheme.scale_dtype();
    let scales = floats(parameters.scales.into_any())?;
    let scales: Vec<f32> = scales.into_iter().map(|scale| stored(scale, dtype)).collect();
    one_per_block(op, grid.num_elements(), scales.len())?;
    let global = match (parameters.global, global_scale_dtype(scheme)) {
        (Some(global), Some(of)) => floats(global.into_any())?.first().map(|&s| stored(s, of)),
        (None, None) => None,
        _ => {
            let message = "a scale of the tensor belongs to a scheme of two levels";
            return Err(TensorError::value(op, message));
        }
    };
    Ok(Scales { each: Tensor::from_vec(scales, &grid)?.into(), global })
}

/// Number of bytes of quantized data with this shape and scheme.
pub(super) fn bytes(op: &'static str, shape: &Shape, scheme: &QuantScheme) -> Result<usize> {
    grid(op, shape, scheme)?;
    Ok(quantized_data_len(scheme, shape))
}

/// Decodes codes and scales from data.
pub(super) fn read(bytes: Bytes, shape: &Shape, scheme: QuantScheme) -> Result<(Vec<i8>, Scales)> {
    let grid = params_shape(shape, &scheme);
    let (values, scales) = QuantizedBytes { bytes, scheme, shape: shape.clone() }.into_vec_i8();
    let each = Tensor::from_vec(scales.block, &grid)?.into();
    Ok((values, Scales { each, global: scales.global }))
}

/// Encodes codes and scales as data.
pub(super) fn data(
    values: Vec<i8>,
    shape: &[usize],
    scheme: QuantScheme,
    scales: Scales,
) -> Result<TensorData> {
    let Scales { each, global } = scales;
    Ok(TensorData::quantized(values, shape, scheme, &floats(each)?, global))
}
