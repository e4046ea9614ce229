//! Boolean tensors: one row per method.

use burn_backend::ops::BoolTensorOps;
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IntTensor};
use burn_backend::{
    Backend, BoolDType, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};

use super::{methods, unrecorded};
use crate::backend::Traced;
use crate::call::Call;
use crate::fuse::Elementwise;
use crate::tensor::{BoolKind, TracedTensor};
use crate::words::EncodedDevice;

methods! {
    impl BoolTensorOps, bools {
        fn bool_from_data(data: TensorData, device: &Device<Self>) -> BoolTensor<Self> {
            TracedTensor::constant(B::bool_from_data(data, device))
        }

        fn bool_into_data(
            tensor: BoolTensor<Self>,
        ) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
            B::bool_into_data(unrecorded("bool_into_data", tensor))
        }

        fn bool_device(tensor: &BoolTensor<Self>) -> Device<Self> {
            B::bool_device(&tensor.primitive)
        }

        fn bool_to_device(tensor: BoolTensor<Self>, device: &Device<Self>) -> BoolTensor<Self> {
            let mut call = Call::new("bool_to_device");
            let at = call.take(tensor);
            call.run(
                (at, EncodedDevice(device.clone())),
                |(at, device), frame| B::bool_to_device(frame.take::<BoolKind>(*at), &device.0),
                |_| None,
            )
        }

        fn bool_empty(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self> {
            TracedTensor::constant(B::bool_empty(shape, device, dtype))
        }

        fn bool_zeros(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self> {
            TracedTensor::constant(B::bool_zeros(shape, device, dtype))
        }

        fn bool_ones(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self> {
            TracedTensor::constant(B::bool_ones(shape, device, dtype))
        }

        /// The shape of the result depends on the data, which a recording cannot represent.
        async fn bool_argwhere(tensor: BoolTensor<Self>, out_dtype: IntDType) -> IntTensor<Self> {
            let tensor = unrecorded("bool_argwhere", tensor);
            TracedTensor::constant(B::bool_argwhere(tensor, out_dtype).await)
        }
    }

    [Elementwise]
    fn bool_and(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
    fn bool_equal(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
    fn bool_equal_elem(lhs: BoolTensor<Self>, rhs: Scalar) -> BoolTensor<Self>;
    fn bool_into_float(tensor: BoolTensor<Self>, out_dtype: FloatDType) -> FloatTensor<Self> => Elementwise::Indicator;
    fn bool_into_int(tensor: BoolTensor<Self>, out_dtype: IntDType) -> IntTensor<Self>;
    fn bool_mask_fill(tensor: BoolTensor<Self>, mask: BoolTensor<Self>, value: Scalar) -> BoolTensor<Self>;
    fn bool_mask_where(tensor: BoolTensor<Self>, mask: BoolTensor<Self>, value: BoolTensor<Self>) -> BoolTensor<Self>;
    fn bool_not(tensor: BoolTensor<Self>) -> BoolTensor<Self>;
    fn bool_not_equal(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
    fn bool_not_equal_elem(lhs: BoolTensor<Self>, rhs: Scalar) -> BoolTensor<Self>;
    fn bool_or(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
    fn bool_xor(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;

    [AlongAxis]
    fn bool_all_dim(tensor: BoolTensor<Self>, dim: usize) -> BoolTensor<Self>;
    fn bool_any_dim(tensor: BoolTensor<Self>, dim: usize) -> BoolTensor<Self>;
    fn bool_repeat_dim(tensor: BoolTensor<Self>, dim: usize, times: usize) -> BoolTensor<Self>;

    [Transpose]
    fn bool_transpose(tensor: BoolTensor<Self>) -> BoolTensor<Self>;

    [SwapDims]
    fn bool_swap_dims(tensor: BoolTensor<Self>, dim1: usize, dim2: usize) -> BoolTensor<Self>;

    [Permute]
    fn bool_permute(tensor: BoolTensor<Self>, axes: &[usize]) -> BoolTensor<Self>;

    [Reshape]
    fn bool_reshape(tensor: BoolTensor<Self>, shape: Shape) -> BoolTensor<Self>;

    [Expand]
    fn bool_expand(tensor: BoolTensor<Self>, shape: Shape) -> BoolTensor<Self>;

    [Slice]
    fn bool_slice(tensor: BoolTensor<Self>, slices: &[Slice]) -> BoolTensor<Self>;

    [SliceAssign]
    fn bool_slice_assign(tensor: BoolTensor<Self>, slices: &[Slice], value: BoolTensor<Self>) -> BoolTensor<Self>;

    [Flip]
    fn bool_flip(tensor: BoolTensor<Self>, axes: &[usize]) -> BoolTensor<Self>;

    [Concatenate]
    fn bool_cat(tensors: Vec<BoolTensor<Self>>, dim: usize) -> BoolTensor<Self>;

    [Select]
    fn bool_select(tensor: BoolTensor<Self>, dim: usize, indices: IntTensor<Self>) -> BoolTensor<Self>;

    [GatherAxis]
    fn bool_gather(dim: usize, tensor: BoolTensor<Self>, indices: IntTensor<Self>) -> BoolTensor<Self>;
    fn bool_scatter_or(dim: usize, tensor: BoolTensor<Self>, indices: IntTensor<Self>, value: BoolTensor<Self>) -> BoolTensor<Self>;

    [Unfold]
    fn bool_unfold(tensor: BoolTensor<Self>, dim: usize, size: usize, step: usize) -> BoolTensor<Self>;

    [General]
    fn bool_all(tensor: BoolTensor<Self>) -> BoolTensor<Self>;
    fn bool_any(tensor: BoolTensor<Self>) -> BoolTensor<Self>;
    fn bool_select_or(tensor: BoolTensor<Self>, dim: usize, indices: IntTensor<Self>, value: BoolTensor<Self>) -> BoolTensor<Self>;
}
