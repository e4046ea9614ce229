//! Quantized tensors, which are shared by all examples: methods that are not listed dequantise and compute in floats.

use burn_backend::ops::QTensorOps;
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::tensor::{Device, QuantizedTensor};
use burn_backend::{
    Backend, ExecutionError, FloatDType, IntDType, Shape, Slice, TensorData, TensorMetadata,
};

use crate::backend::{Vmap, refuse};
use crate::rows::{F, I};
use crate::tensor::VmapTensor;

/// Tensor of the inner backend; panics if the operand is batched.
#[track_caller]
fn shared<P: TensorMetadata>(op: &str, x: VmapTensor<P>) -> P {
    match x.into_inner() {
        (x, false) => x,
        _ => refuse(
            op,
            "a quantized tensor belongs to all examples and cannot be made from a batch, or indexed by one; \
             dequantize first",
        ),
    }
}

macro_rules! below {
    ($($f:ident($($arg:ident: $t:ty),*) -> $y:ty;)*) => {$(
        fn $f($($arg: $t),*) -> $y {
            B::$f($($arg),*)
        }
    )*};
}

impl<B: Backend> QTensorOps<Self> for Vmap<B> {
    below! {
        q_from_data(data: TensorData, device: &Device<B>) -> QuantizedTensor<B>;
        q_device(x: &QuantizedTensor<B>) -> Device<B>;
        q_to_device(x: QuantizedTensor<B>, device: &Device<B>) -> QuantizedTensor<B>;
        q_reshape(x: QuantizedTensor<B>, shape: Shape) -> QuantizedTensor<B>;
        q_expand(x: QuantizedTensor<B>, shape: Shape) -> QuantizedTensor<B>;
        q_permute(x: QuantizedTensor<B>, axes: &[usize]) -> QuantizedTensor<B>;
        q_swap_dims(x: QuantizedTensor<B>, dim1: usize, dim2: usize) -> QuantizedTensor<B>;
        q_flip(x: QuantizedTensor<B>, axes: &[usize]) -> QuantizedTensor<B>;
        q_slice(x: QuantizedTensor<B>, slices: &[Slice]) -> QuantizedTensor<B>;
    }

    async fn q_into_data(x: QuantizedTensor<B>) -> Result<TensorData, ExecutionError> {
        B::q_into_data(x).await
    }

    #[track_caller]
    fn quantize(
        x: F<B>,
        scheme: &QuantScheme,
        parameters: QuantizationParametersPrimitive<Self>,
    ) -> QuantizedTensor<B> {
        let scales = shared("quantize", parameters.scales);
        B::quantize(shared("quantize", x), scheme, QuantizationParametersPrimitive { scales })
    }

    #[track_caller]
    fn quantize_dynamic(x: F<B>, scheme: &QuantScheme) -> QuantizedTensor<B> {
        B::quantize_dynamic(shared("quantize_dynamic", x), scheme)
    }

    fn dequantize(x: QuantizedTensor<B>, dtype: FloatDType) -> F<B> {
        VmapTensor::shared(B::dequantize(x, dtype))
    }

    #[track_caller]
    fn q_select(x: QuantizedTensor<B>, dim: usize, indices: I<B>) -> QuantizedTensor<B> {
        B::q_select(x, dim, shared("q_select", indices))
    }

    #[track_caller]
    fn q_gather(dim: usize, x: QuantizedTensor<B>, indices: I<B>) -> QuantizedTensor<B> {
        B::q_gather(dim, x, shared("q_gather", indices))
    }

    fn q_argmax(x: QuantizedTensor<B>, dim: usize, dtype: IntDType) -> I<B> {
        VmapTensor::shared(B::q_argmax(x, dim, dtype))
    }

    fn q_argmin(x: QuantizedTensor<B>, dim: usize, dtype: IntDType) -> I<B> {
        VmapTensor::shared(B::q_argmin(x, dim, dtype))
    }
}
