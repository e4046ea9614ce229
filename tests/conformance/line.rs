//! What the rows call on Burn 0.21 in the words of Burn 0.22.

use burn_backend::ops::{MaxPool1dWithIndices, MaxPool2dWithIndices};
use burn_backend::quantization::{
    BlockSize, QuantLevel, QuantScheme, QuantizationParametersPrimitive,
};
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Bytes, DType, Shape, TensorData};

/// The parts of data.
pub trait Fields {
    fn dtype(&self) -> DType;
    fn shape(&self) -> &Shape;
    fn bytes(&self) -> &Bytes;
}

impl Fields for TensorData {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

pub fn max_pool1d_with_indices<B: Backend>(
    x: FloatTensor<B>,
    window: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    ceil: bool,
) -> MaxPool1dWithIndices<B> {
    B::max_pool1d_with_indices(x, window, stride, padding, dilation, ceil)
}

pub fn max_pool2d_with_indices<B: Backend>(
    x: FloatTensor<B>,
    window: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    ceil: bool,
) -> MaxPool2dWithIndices<B> {
    B::max_pool2d_with_indices(x, window, stride, padding, dilation, ceil)
}

/// The scheme with a scale for every `size` elements of a row.
pub fn in_blocks(scheme: QuantScheme, size: u8) -> QuantScheme {
    scheme.with_level(QuantLevel::Block(BlockSize::new([size])))
}

pub fn parameters<B: Backend>(scales: FloatTensor<B>) -> QuantizationParametersPrimitive<B> {
    QuantizationParametersPrimitive { scales }
}
