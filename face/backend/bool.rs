//! Operations on boolean tensors: each method of Burn's trait is one call of the engine.

use burn_backend::ops::BoolTensorOps;
use burn_backend::{
    BoolDType, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};

use t4a_tensor::AnyTensor;
use t4a_tensor::any::Number;
use t4a_tensor::index::Reduction;
use t4a_tensor::kernels::compare::Logic;

#[cfg(burn_line = "0.22")]
use super::movement::masked;
use super::movement::{cat, full, of_all, slice, slice_assign};
use super::primitive::{T4aTensor, dtype, number, wrap};
use super::{BurnT4a, T4aDevice};
use crate::boundary::accept;

impl BoolTensorOps<BurnT4a> for BurnT4a {
    fn bool_from_data(data: TensorData, _device: &T4aDevice) -> T4aTensor {
        accept(T4aTensor::try_from_data(data))
    }

    async fn bool_into_data(tensor: T4aTensor) -> Result<TensorData, ExecutionError> {
        Ok(accept(tensor.try_into_data()))
    }

    #[cfg(burn_line = "0.21")]
    fn bool_device(_tensor: &T4aTensor) -> T4aDevice {
        T4aDevice
    }

    fn bool_to_device(tensor: T4aTensor, _device: &T4aDevice) -> T4aTensor {
        tensor
    }

    fn bool_swap_dims(tensor: T4aTensor, dim1: usize, dim2: usize) -> T4aTensor {
        tensor.then(|x| x.swap_axes(dim1, dim2))
    }

    fn bool_permute(tensor: T4aTensor, axes: &[usize]) -> T4aTensor {
        tensor.then(|x| x.permute(axes))
    }

    fn bool_flip(tensor: T4aTensor, axes: &[usize]) -> T4aTensor {
        tensor.then(|x| x.flip(axes))
    }

    fn bool_reshape(tensor: T4aTensor, shape: Shape) -> T4aTensor {
        tensor.then(|x| x.reshape(&shape))
    }

    fn bool_slice(tensor: T4aTensor, slices: &[Slice]) -> T4aTensor {
        tensor.then(|x| slice(&x, slices))
    }

    fn bool_expand(tensor: T4aTensor, shape: Shape) -> T4aTensor {
        tensor.then(|x| x.expand(&shape))
    }

    fn bool_unfold(tensor: T4aTensor, dim: usize, size: usize, step: usize) -> T4aTensor {
        tensor.then(|x| x.unfold(dim, size, step))
    }

    fn bool_empty(shape: Shape, _device: &T4aDevice, dtype: BoolDType) -> T4aTensor {
        full(shape, Number::Bool(false), dtype)
    }

    fn bool_zeros(shape: Shape, _device: &T4aDevice, dtype: BoolDType) -> T4aTensor {
        full(shape, Number::Bool(false), dtype)
    }

    fn bool_ones(shape: Shape, _device: &T4aDevice, dtype: BoolDType) -> T4aTensor {
        full(shape, Number::Bool(true), dtype)
    }

    fn bool_into_int(tensor: T4aTensor, out_dtype: IntDType) -> T4aTensor {
        wrap(tensor.into_any().cast(dtype(out_dtype)))
    }

    fn bool_into_float(tensor: T4aTensor, out_dtype: FloatDType) -> T4aTensor {
        wrap(tensor.into_any().cast(dtype(out_dtype)))
    }

    fn bool_slice_assign(tensor: T4aTensor, slices: &[Slice], value: T4aTensor) -> T4aTensor {
        tensor.then(|x| slice_assign(x, slices, value.any()))
    }

    fn bool_mask_where(tensor: T4aTensor, mask: T4aTensor, value: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.mask_where(mask.into_any(), value.into_any()))
    }

    fn bool_mask_fill(tensor: T4aTensor, mask: T4aTensor, value: Scalar) -> T4aTensor {
        tensor.then(|x| x.mask_fill(mask.into_any(), number(value)))
    }

    fn bool_gather(dim: usize, tensor: T4aTensor, indices: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.gather(dim, indices.any()))
    }

    fn bool_scatter_or(
        dim: usize,
        tensor: T4aTensor,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| x.scatter(dim, indices.any(), value.any(), Reduction::Add))
    }

    fn bool_select(tensor: T4aTensor, dim: usize, indices: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.index_select(dim, indices.any()))
    }

    fn bool_select_or(
        tensor: T4aTensor,
        dim: usize,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| x.index_scatter(dim, indices.any(), value.any(), Reduction::Add))
    }

    fn bool_repeat_dim(tensor: T4aTensor, dim: usize, times: usize) -> T4aTensor {
        tensor.then(|x| x.repeat(dim, times))
    }

    fn bool_cat(tensors: Vec<T4aTensor>, dim: usize) -> T4aTensor {
        cat(tensors, dim)
    }

    fn bool_equal(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.equal(rhs.into_any()))
    }

    fn bool_not_equal(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.not_equal(rhs.into_any()))
    }

    fn bool_equal_elem(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.equal_scalar(number(rhs)))
    }

    fn bool_not_equal_elem(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.not_equal_scalar(number(rhs)))
    }

    fn bool_not(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.logical_not())
    }

    fn bool_and(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.logical(Logic::AND, rhs.into_any()))
    }

    fn bool_or(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.logical(Logic::OR, rhs.into_any()))
    }

    fn bool_xor(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.logical(Logic::XOR, rhs.into_any()))
    }

    fn bool_any(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::any))
    }

    fn bool_any_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.any(&[dim]))
    }

    fn bool_all(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::all))
    }

    fn bool_all_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.all(&[dim]))
    }

    async fn bool_argwhere(tensor: T4aTensor, out_dtype: IntDType) -> T4aTensor {
        wrap(tensor.any().nonzero(dtype(out_dtype)))
    }

    #[cfg(burn_line = "0.22")]
    async fn bool_mask_select(tensor: T4aTensor, mask: T4aTensor) -> T4aTensor {
        tensor.then(|x| masked(&x, mask.any()))
    }
}
