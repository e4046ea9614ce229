//! Differences between Burn 0.21 and Burn 0.22: adapters for the rows, which use the names of Burn 0.22, and backends
//! that exist for Burn 0.21 only.

use burn_backend::ops::{MaxPool1dWithIndices, MaxPool2dWithIndices};
use burn_backend::quantization::{
    BlockSize, QuantLevel, QuantScheme, QuantizationParametersPrimitive,
};
use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Bytes, DType, Shape, TensorData};
use burn_t4a::{BurnT4a, T4aTensor};
use burn_t4a_transforms::compile::{PrimitiveKind, Traced, TracedTensor};
use burn_t4a_transforms::jvp::{Jvp, JvpTensor};
use burn_t4a_transforms::vmap::{Vmap, VmapTensor};

use crate::material::{Call, Read, Row};

/// Backends that wrap the engine without effect: outside of a mapped function, without tangents, without a recording.
pub fn around<R: Row>() -> [(&'static str, Call); 3] {
    [
        ("vmap", R::run::<Vmap<BurnT4a>>),
        ("jvp", R::run::<Jvp<BurnT4a>>),
        ("compile", R::run::<Traced<BurnT4a>>),
    ]
}

impl Read for VmapTensor<T4aTensor> {
    fn read(self) -> Vec<TensorData> {
        let (x, batched) = self.into_inner();
        assert!(!batched, "a batch");
        x.read()
    }
}

impl Read for JvpTensor<BurnT4a> {
    fn read(self) -> Vec<TensorData> {
        let (x, tangent) = self.into_parts();
        assert!(tangent.is_none(), "a tangent");
        x.read()
    }
}

impl<K: PrimitiveKind<BurnT4a, Primitive: Read>> Read for TracedTensor<BurnT4a, K> {
    fn read(self) -> Vec<TensorData> {
        self.into_inner().read()
    }
}

/// Accessors of tensor data.
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

pub fn max_pool1d<B: Backend>(
    x: FloatTensor<B>,
    window: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    ceil: bool,
) -> MaxPool1dWithIndices<B> {
    B::max_pool1d_with_indices(x, window, stride, padding, dilation, ceil)
}

pub fn max_pool2d<B: Backend>(
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

/// True if Flex computes on flipped and stepped views without elements.
pub const FLEX_READS_EMPTY_VIEWS: bool = true;

/// Parts of the error message for data whose bytes do not fill its shape.
pub const SHORT_DATA: &[&str] = &["from_data", "[2, 3]", "24", "20"];

/// True if the last block of quantized values may be shorter than the others.
pub const SHORT_BLOCKS: bool = true;
