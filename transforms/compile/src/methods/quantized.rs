//! Quantized tensors: methods that are not listed use Burn's defaults, which dequantise.

use burn_backend::ops::QTensorOps;
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::tensor::{Device, FloatTensor, IntTensor, QuantizedTensor};
use burn_backend::{Backend, ExecutionError, FloatDType, IntDType, Shape, Slice, TensorData};

use super::{methods, unrecorded};
use crate::backend::Traced;
use crate::call::Call;
use crate::tensor::{QuantizedKind, TracedTensor};
use crate::words::EncodedDevice;

methods! {
    impl QTensorOps, quantized {
        fn q_from_data(data: TensorData, device: &Device<Self>) -> QuantizedTensor<Self> {
            TracedTensor::constant(B::q_from_data(data, device))
        }

        fn q_into_data(
            tensor: QuantizedTensor<Self>,
        ) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
            B::q_into_data(unrecorded("q_into_data", tensor))
        }

        fn q_device(tensor: &QuantizedTensor<Self>) -> Device<Self> {
            B::q_device(&tensor.primitive)
        }

        fn q_to_device(tensor: QuantizedTensor<Self>, device: &Device<Self>) -> QuantizedTensor<Self> {
            let mut call = Call::new("q_to_device");
            let at = call.take(tensor);
            call.run(
                (at, EncodedDevice(device.clone())),
                |(at, device), frame| B::q_to_device(frame.take::<QuantizedKind>(*at), &device.0),
                |_| None,
            )
        }

        fn q_is_require_grad(tensor: &QuantizedTensor<Self>) -> bool {
            B::q_is_require_grad(&tensor.primitive)
        }
    }

    [SwapDims]
    fn q_swap_dims(tensor: QuantizedTensor<Self>, dim1: usize, dim2: usize) -> QuantizedTensor<Self>;

    [Permute]
    fn q_permute(tensor: QuantizedTensor<Self>, axes: &[usize]) -> QuantizedTensor<Self>;

    [Reshape]
    fn q_reshape(tensor: QuantizedTensor<Self>, shape: Shape) -> QuantizedTensor<Self>;

    [Expand]
    fn q_expand(tensor: QuantizedTensor<Self>, shape: Shape) -> QuantizedTensor<Self>;

    [Slice]
    fn q_slice(tensor: QuantizedTensor<Self>, slices: &[Slice]) -> QuantizedTensor<Self>;

    [Flip]
    fn q_flip(tensor: QuantizedTensor<Self>, axes: &[usize]) -> QuantizedTensor<Self>;

    [Select]
    fn q_select(tensor: QuantizedTensor<Self>, dim: usize, indices: IntTensor<Self>) -> QuantizedTensor<Self>;

    [GatherAxis]
    fn q_gather(dim: usize, tensor: QuantizedTensor<Self>, indices: IntTensor<Self>) -> QuantizedTensor<Self>;

    [General]
    fn dequantize(tensor: QuantizedTensor<Self>, dtype: FloatDType) -> FloatTensor<Self>;
    fn q_argmax(tensor: QuantizedTensor<Self>, dim: usize, out_dtype: IntDType) -> IntTensor<Self>;
    fn q_argmin(tensor: QuantizedTensor<Self>, dim: usize, out_dtype: IntDType) -> IntTensor<Self>;
    fn q_detach(tensor: QuantizedTensor<Self>) -> QuantizedTensor<Self>;
    fn quantize(tensor: FloatTensor<Self>, scheme: &QuantScheme, qparams: QuantizationParametersPrimitive<Self>) -> QuantizedTensor<Self>;
    fn quantize_dynamic(tensor: FloatTensor<Self>, scheme: &QuantScheme) -> QuantizedTensor<Self>;
}
