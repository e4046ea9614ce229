//! Quantized tensors: stored and converted by Flex; what is not listed here dequantises and
//! computes in floats.

use burn_backend::ops::QTensorOps;
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::{ExecutionError, FloatDType, IntDType, Shape, Slice, TensorData};
use burn_flex::{Flex, FlexDevice, FlexQTensor};

use super::flex::flex;
use super::primitive::T4aTensor;
use super::{BurnT4a, T4aDevice};

impl QTensorOps<BurnT4a> for BurnT4a {
    fn q_from_data(data: TensorData, _device: &T4aDevice) -> FlexQTensor {
        flex!(q_from_data(data, &FlexDevice))
    }

    async fn q_into_data(tensor: FlexQTensor) -> Result<TensorData, ExecutionError> {
        Flex::q_into_data(tensor).await
    }

    fn q_device(_tensor: &FlexQTensor) -> T4aDevice {
        T4aDevice
    }

    fn q_to_device(tensor: FlexQTensor, _device: &T4aDevice) -> FlexQTensor {
        tensor
    }

    fn q_reshape(tensor: FlexQTensor, shape: Shape) -> FlexQTensor {
        flex!(q_reshape(tensor, shape))
    }

    fn q_expand(tensor: FlexQTensor, shape: Shape) -> FlexQTensor {
        flex!(q_expand(tensor, shape))
    }

    fn q_swap_dims(tensor: FlexQTensor, dim1: usize, dim2: usize) -> FlexQTensor {
        flex!(q_swap_dims(tensor, dim1, dim2))
    }

    fn q_permute(tensor: FlexQTensor, axes: &[usize]) -> FlexQTensor {
        flex!(q_permute(tensor, axes))
    }

    fn q_flip(tensor: FlexQTensor, axes: &[usize]) -> FlexQTensor {
        flex!(q_flip(tensor, axes))
    }

    fn q_slice(tensor: FlexQTensor, slices: &[Slice]) -> FlexQTensor {
        flex!(q_slice(tensor, slices))
    }

    fn quantize(
        tensor: T4aTensor,
        scheme: &QuantScheme,
        parameters: QuantizationParametersPrimitive<BurnT4a>,
    ) -> FlexQTensor {
        let scales = parameters.scales.into();
        flex!(quantize(tensor.into(), scheme, QuantizationParametersPrimitive { scales }))
    }

    fn quantize_dynamic(tensor: T4aTensor, scheme: &QuantScheme) -> FlexQTensor {
        flex!(quantize_dynamic(tensor.into(), scheme))
    }

    fn dequantize(tensor: FlexQTensor, dtype: FloatDType) -> T4aTensor {
        flex!(dequantize(tensor, dtype))
    }

    fn q_select(tensor: FlexQTensor, dim: usize, indices: T4aTensor) -> FlexQTensor {
        flex!(q_select(tensor, dim, indices.into()))
    }

    fn q_gather(dim: usize, tensor: FlexQTensor, indices: T4aTensor) -> FlexQTensor {
        flex!(q_gather(dim, tensor, indices.into()))
    }

    fn q_argmax(tensor: FlexQTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        flex!(q_argmax(tensor, dim, out_dtype))
    }

    fn q_argmin(tensor: FlexQTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        flex!(q_argmin(tensor, dim, out_dtype))
    }
}
