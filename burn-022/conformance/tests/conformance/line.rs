//! Functions of Burn 0.21 that the shared rows call, implemented by those of Burn 0.22.

use burn_backend::ops::{MaxPool1dWithIndices, MaxPool2dWithIndices};
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive, ScaleDtype};
use burn_backend::tensor::{
    BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor, QuantizedTensor,
};
use burn_backend::{Backend, IntDType, TensorMetadata};

use crate::material::{Call, Row};

/// Transformations exist for Burn 0.21 only.
pub fn around<R: Row>() -> [(&'static str, Call); 0] {
    []
}

/// Methods that Burn 0.22 has renamed.
pub trait Earlier: Backend {
    fn float_device(x: &FloatTensor<Self>) -> Device<Self> {
        x.device()
    }

    fn int_device(x: &IntTensor<Self>) -> Device<Self> {
        x.device()
    }

    fn bool_device(x: &BoolTensor<Self>) -> Device<Self> {
        x.device()
    }

    fn q_device(x: &QuantizedTensor<Self>) -> Device<Self> {
        x.device()
    }

    fn float_scatter_add(
        dim: usize,
        x: FloatTensor<Self>,
        indices: IntTensor<Self>,
        value: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::float_scatter(dim, x, indices, value, IndexingUpdateOp::Add)
    }

    fn float_select_add(
        x: FloatTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
        value: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::float_select_assign(x, dim, indices, value, IndexingUpdateOp::Add)
    }

    fn int_scatter_add(
        dim: usize,
        x: IntTensor<Self>,
        indices: IntTensor<Self>,
        value: IntTensor<Self>,
    ) -> IntTensor<Self> {
        Self::int_scatter(dim, x, indices, value, IndexingUpdateOp::Add)
    }

    fn int_select_add(
        x: IntTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
        value: IntTensor<Self>,
    ) -> IntTensor<Self> {
        Self::int_select_assign(x, dim, indices, value, IndexingUpdateOp::Add)
    }
}

impl<B: Backend> Earlier for B {}

pub fn max_pool1d<B: Backend>(
    x: FloatTensor<B>,
    window: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    ceil: bool,
) -> MaxPool1dWithIndices<B> {
    B::max_pool1d_with_indices(x, window, stride, padding, dilation, ceil, IntDType::I64)
}

pub fn max_pool2d<B: Backend>(
    x: FloatTensor<B>,
    window: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    ceil: bool,
) -> MaxPool2dWithIndices<B> {
    B::max_pool2d_with_indices(x, window, stride, padding, dilation, ceil, IntDType::I32)
}

/// The scheme with one scale per `size` elements of a row.
pub fn in_blocks(scheme: QuantScheme, size: u8) -> QuantScheme {
    scheme.per_block([size], ScaleDtype::F32)
}

pub fn parameters<B: Backend>(scales: FloatTensor<B>) -> QuantizationParametersPrimitive<B> {
    QuantizationParametersPrimitive { scales, global: None }
}

/// True if Flex computes on flipped and strided views without elements.
pub const FLEX_READS_EMPTY_VIEWS: bool = false;

/// Text of Burn's own error for data whose number of bytes does not match its shape.
pub const SHORT_DATA: &[&str] = &["[2, 3]", "F32", "20"];

/// True if the last block of a quantized axis may be shorter.
pub const SHORT_BLOCKS: bool = false;
