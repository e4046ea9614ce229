//! Quantization schemes of Burn 0.21. A block is a run of elements in row-major order, independent of the shape;
//! the last block may be shorter.

use burn_backend::quantization::{
    QuantLevel, QuantScheme, QuantStore, QuantizationParametersPrimitive, QuantizedBytes,
};
use burn_backend::{Bytes, QTensorPrimitive, Shape, Slice, TensorData};
use t4a_tensor::{AnyTensor, Result, Tensor, TensorError, quantized};

use super::{BurnT4a, Scales, T4aQTensor, floats, one_per_block, slice};

impl QTensorPrimitive for T4aQTensor {
    fn scheme(&self) -> &QuantScheme {
        &self.scheme
    }

    fn default_scheme() -> QuantScheme {
        QuantScheme::default().with_store(QuantStore::Native)
    }
}

/// # Errors
/// [`TensorError::Value`] for a block size of zero.
pub(super) fn check(op: &'static str, scheme: &QuantScheme) -> Result<()> {
    match scheme.level {
        QuantLevel::Block(block) if block.num_elements() == 0 => {
            Err(TensorError::value(op, "blocks of no elements"))
        }
        _ => Ok(()),
    }
}

/// Returns true if the scheme has more than one scale.
pub(super) fn any(scheme: &QuantScheme) -> bool {
    matches!(scheme.level, QuantLevel::Block(_))
}

/// Returns the scheme after a permutation of axes: unchanged, since blocks have no shape.
pub(super) fn permuted(scheme: QuantScheme, _rank: usize, _axes: &[usize]) -> QuantScheme {
    scheme
}

/// Number of blocks in `len` elements, and elements per block; without blocks, one block of all elements.
fn blocks(len: usize, scheme: &QuantScheme) -> (usize, usize) {
    match scheme.level {
        QuantLevel::Tensor => (1, len),
        QuantLevel::Block(block) => (len.div_ceil(block.num_elements()), block.num_elements()),
    }
}

/// Replaces a scale that is zero, subnormal or not finite by `f32::MIN_POSITIVE`, so that values can be divided by
/// it.
fn stored(scale: f32) -> f32 {
    if scale.is_normal() { scale } else { f32::MIN_POSITIVE }
}

/// Scales of blocks, shape `[blocks, 1]`.
fn scales(values: Vec<f32>) -> Result<Scales> {
    let count = values.len();
    Ok(Scales { each: Tensor::from_vec(values, &[count, 1])?.into() })
}

/// Returns the shape of the tensor split into blocks, and scales that broadcast to it.
pub(super) fn steps(
    _op: &'static str,
    shape: &[usize],
    scales: &Scales,
    scheme: &QuantScheme,
) -> Result<(Vec<usize>, AnyTensor)> {
    let len = shape.iter().product();
    let (count, size) = blocks(len, scheme);
    if count == 1 {
        return Ok((vec![len], scales.each.reshape(&[1])?));
    }
    if count * size == len {
        return Ok((vec![count, size], scales.each.clone()));
    }
    // The last block is shorter, so there is one scale per element.
    let each = scales.each.expand(&[count, size])?.reshape(&[count * size])?;
    Ok((vec![len], slice(&each, &[Slice::from(0..len)])?))
}

/// Scales that map the largest magnitude of each block to the end of the range of codes.
pub(super) fn covering(_op: &'static str, x: &AnyTensor, scheme: &QuantScheme) -> Result<Scales> {
    let (count, size) = blocks(x.numel(), scheme);
    let flat = x.reshape(&[x.numel()])?;
    // Padding of the last block with zeros.
    let rest: AnyTensor = Tensor::<f32>::zeros(&[count * size - x.numel()])?.into();
    let whole = if rest.numel() == 0 { flat } else { AnyTensor::cat(&[flat, rest], 0)? };
    let peaks = floats(quantized::peaks(&whole, &[count, size], &[1])?)?;
    let (low, high) = scheme.value.range();
    scales(peaks.into_iter().map(|peak| stored(2.0 * peak / (high - low))).collect())
}

/// Validates scales given as an argument.
///
/// # Errors
/// [`TensorError::Value`] if the number of scales differs from the number of blocks.
pub(super) fn given(
    op: &'static str,
    parameters: QuantizationParametersPrimitive<BurnT4a>,
    shape: &[usize],
    scheme: &QuantScheme,
) -> Result<Scales> {
    let given = floats(parameters.scales.into_any())?;
    one_per_block(op, blocks(shape.iter().product(), scheme).0, given.len())?;
    scales(given.into_iter().map(stored).collect())
}

/// Number of bytes that the codes take in data.
fn value_bytes(len: usize, scheme: &QuantScheme) -> usize {
    match scheme.store {
        QuantStore::Native => len,
        _ => 4 * len.div_ceil(scheme.num_quants()),
    }
}

/// Number of bytes of quantized data.
pub(super) fn bytes(_op: &'static str, shape: &Shape, scheme: &QuantScheme) -> Result<usize> {
    let len = shape.num_elements();
    Ok(value_bytes(len, scheme) + 4 * blocks(len, scheme).0)
}

/// Decodes codes and scales from data.
pub(super) fn read(bytes: Bytes, shape: &Shape, scheme: QuantScheme) -> Result<(Vec<i8>, Scales)> {
    let len = shape.num_elements();
    let (values, each) = bytes.split_at(value_bytes(len, &scheme));
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_ne_bytes(word)).collect()
    };
    let each = scales(words(each).into_iter().map(f32::from_bits).collect())?;
    let values: Vec<i8> = match scheme.store {
        QuantStore::Native => values.iter().map(|&byte| byte as i8).collect(),
        // Burn rounds the number of blocks down, so its unpacking is called with a scheme of one scale.
        _ => {
            let mut packed = words(values);
            packed.push(0);
            let bytes = Bytes::from_elems(packed);
            let scheme = scheme.with_level(QuantLevel::Tensor);
            let (mut values, _) = QuantizedBytes { bytes, scheme, num_elements: len }.into_vec_i8();
            // Removes the padding of the last packed word.
            values.truncate(len);
            values
        }
    };
    Ok((values, each))
}

/// Encodes codes and scales as data.
pub(super) fn data(
    values: Vec<i8>,
    shape: &[usize],
    scheme: QuantScheme,
    scales: Scales,
) -> Result<TensorData> {
    Ok(TensorData::quantized(values, shape.to_vec(), scheme, &floats(scales.each)?))
}
