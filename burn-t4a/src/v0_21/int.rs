//! Int tensors: one line per method.

use std::ops::Range;

use burn_backend::ops::IntTensorOps;
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{
    BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};
use burn_flex::FlexDevice;

use t4a_tensor::any::Number;
use t4a_tensor::index::Reduction;

use super::flex::flex;
use super::movement::{cat, combine, full, slice, slice_assign};
use super::primitive::{T4aTensor, number};
use super::{BurnT4a, T4aDevice};
use crate::boundary::accept;

impl IntTensorOps<BurnT4a> for BurnT4a {
    fn int_from_data(data: TensorData, _device: &T4aDevice) -> T4aTensor {
        accept(T4aTensor::from_data(data))
    }

    async fn int_into_data(tensor: T4aTensor) -> Result<TensorData, ExecutionError> {
        Ok(accept(tensor.into_data()))
    }

    fn int_device(_tensor: &T4aTensor) -> T4aDevice {
        T4aDevice
    }

    fn int_to_device(tensor: T4aTensor, _device: &T4aDevice) -> T4aTensor {
        tensor
    }

    fn int_swap_dims(tensor: T4aTensor, dim1: usize, dim2: usize) -> T4aTensor {
        tensor.then(|x| x.swap_axes(dim1, dim2))
    }

    fn int_permute(tensor: T4aTensor, axes: &[usize]) -> T4aTensor {
        tensor.then(|x| x.permute(axes))
    }

    fn int_flip(tensor: T4aTensor, axes: &[usize]) -> T4aTensor {
        tensor.then(|x| x.flip(axes))
    }

    fn int_reshape(tensor: T4aTensor, shape: Shape) -> T4aTensor {
        tensor.then(|x| x.reshape(&shape))
    }

    fn int_slice(tensor: T4aTensor, slices: &[Slice]) -> T4aTensor {
        tensor.then(|x| slice(&x, slices))
    }

    fn int_expand(tensor: T4aTensor, shape: Shape) -> T4aTensor {
        tensor.then(|x| x.expand(&shape))
    }

    fn int_unfold(tensor: T4aTensor, dim: usize, size: usize, step: usize) -> T4aTensor {
        tensor.then(|x| x.unfold(dim, size, step))
    }

    fn int_empty(shape: Shape, _device: &T4aDevice, dtype: IntDType) -> T4aTensor {
        full(shape, Number::Int(0), dtype)
    }

    fn int_slice_assign(tensor: T4aTensor, slices: &[Slice], value: T4aTensor) -> T4aTensor {
        tensor.then(|x| slice_assign(x, slices, value.any()))
    }

    fn int_into_float(tensor: T4aTensor, out_dtype: FloatDType) -> T4aTensor {
        flex!(int_into_float(tensor.into(), out_dtype))
    }

    fn int_mask_where(tensor: T4aTensor, mask: T4aTensor, value: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.mask_where(mask.into_any(), value.into_any()))
    }

    fn int_mask_fill(tensor: T4aTensor, mask: T4aTensor, value: Scalar) -> T4aTensor {
        tensor.then(|x| x.mask_fill(mask.into_any(), number(value)))
    }

    fn int_gather(dim: usize, tensor: T4aTensor, indices: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.gather(dim, indices.any()))
    }

    fn int_scatter_add(
        dim: usize,
        tensor: T4aTensor,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| x.scatter(dim, indices.any(), value.any(), Reduction::Add))
    }

    fn int_scatter_nd(
        data: T4aTensor,
        indices: T4aTensor,
        values: T4aTensor,
        reduction: IndexingUpdateOp,
    ) -> T4aTensor {
        let reduction = combine(reduction);
        data.then(|x| x.scatter_nd(indices.any(), values.any(), reduction))
    }

    fn int_gather_nd(data: T4aTensor, indices: T4aTensor) -> T4aTensor {
        data.then(|x| x.gather_nd(indices.any()))
    }

    fn int_select(tensor: T4aTensor, dim: usize, indices: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.index_select(dim, indices.any()))
    }

    fn int_select_add(
        tensor: T4aTensor,
        dim: usize,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| x.index_scatter(dim, indices.any(), value.any(), Reduction::Add))
    }

    fn int_repeat_dim(tensor: T4aTensor, dim: usize, times: usize) -> T4aTensor {
        tensor.then(|x| x.repeat(dim, times))
    }

    fn int_cat(tensors: Vec<T4aTensor>, dim: usize) -> T4aTensor {
        cat(tensors, dim)
    }

    fn int_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_equal(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn int_not_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_not_equal(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn int_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_equal_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn int_not_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_not_equal_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn int_greater(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_greater(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn int_greater_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_greater_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn int_greater_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_greater_equal(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn int_greater_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_greater_equal_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn int_lower(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_lower(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn int_lower_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_lower_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn int_lower_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_lower_equal(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn int_lower_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_lower_equal_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn int_add(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(int_add(lhs.into(), rhs.into()))
    }

    fn int_add_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(int_add_scalar(lhs.into(), rhs))
    }

    fn int_powi(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(int_powi(lhs.into(), rhs.into()))
    }

    fn int_powi_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(int_powi_scalar(lhs.into(), rhs))
    }

    fn int_powi_scalar_impl(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(int_powi_scalar_impl(lhs.into(), rhs))
    }

    fn int_clamp_min(tensor: T4aTensor, min: Scalar) -> T4aTensor {
        flex!(int_clamp_min(tensor.into(), min))
    }

    fn int_clamp_max(tensor: T4aTensor, max: Scalar) -> T4aTensor {
        flex!(int_clamp_max(tensor.into(), max))
    }

    fn int_clamp(tensor: T4aTensor, min: Scalar, max: Scalar) -> T4aTensor {
        flex!(int_clamp(tensor.into(), min, max))
    }

    fn int_sub(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(int_sub(lhs.into(), rhs.into()))
    }

    fn int_sub_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(int_sub_scalar(lhs.into(), rhs))
    }

    fn int_mul(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(int_mul(lhs.into(), rhs.into()))
    }

    fn int_mul_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(int_mul_scalar(lhs.into(), rhs))
    }

    fn int_div(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(int_div(lhs.into(), rhs.into()))
    }

    fn int_div_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(int_div_scalar(lhs.into(), rhs))
    }

    fn int_remainder(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(int_remainder(lhs.into(), rhs.into()))
    }

    fn int_remainder_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(int_remainder_scalar(lhs.into(), rhs))
    }

    fn int_matmul(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(int_matmul(lhs.into(), rhs.into()))
    }

    fn int_neg(tensor: T4aTensor) -> T4aTensor {
        flex!(int_neg(tensor.into()))
    }

    fn int_zeros(shape: Shape, _device: &T4aDevice, dtype: IntDType) -> T4aTensor {
        full(shape, Number::Int(0), dtype)
    }

    fn int_ones(shape: Shape, _device: &T4aDevice, dtype: IntDType) -> T4aTensor {
        full(shape, Number::Int(1), dtype)
    }

    fn int_full(
        shape: Shape,
        fill_value: Scalar,
        _device: &T4aDevice,
        dtype: IntDType,
    ) -> T4aTensor {
        full(shape, number(fill_value), dtype)
    }

    fn int_sum(tensor: T4aTensor) -> T4aTensor {
        flex!(int_sum(tensor.into()))
    }

    fn int_sum_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_sum_dim(tensor.into(), dim))
    }

    fn int_prod(tensor: T4aTensor) -> T4aTensor {
        flex!(int_prod(tensor.into()))
    }

    fn int_prod_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_prod_dim(tensor.into(), dim))
    }

    fn int_mean(tensor: T4aTensor) -> T4aTensor {
        flex!(int_mean(tensor.into()))
    }

    fn int_mean_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_mean_dim(tensor.into(), dim))
    }

    fn int_cumsum(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_cumsum(tensor.into(), dim))
    }

    fn int_cumprod(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_cumprod(tensor.into(), dim))
    }

    fn int_cummin(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_cummin(tensor.into(), dim))
    }

    fn int_cummax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_cummax(tensor.into(), dim))
    }

    fn int_argmax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_argmax(tensor.into(), dim))
    }

    fn int_argmin(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_argmin(tensor.into(), dim))
    }

    fn int_max(tensor: T4aTensor) -> T4aTensor {
        flex!(int_max(tensor.into()))
    }

    fn int_max_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_max_dim(tensor.into(), dim))
    }

    fn int_max_dim_with_indices(tensor: T4aTensor, dim: usize) -> (T4aTensor, T4aTensor) {
        flex!(int_max_dim_with_indices(tensor.into(), dim))
    }

    fn int_max_abs(tensor: T4aTensor) -> T4aTensor {
        flex!(int_max_abs(tensor.into()))
    }

    fn int_max_abs_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_max_abs_dim(tensor.into(), dim))
    }

    fn int_min(tensor: T4aTensor) -> T4aTensor {
        flex!(int_min(tensor.into()))
    }

    fn int_min_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(int_min_dim(tensor.into(), dim))
    }

    fn int_min_dim_with_indices(tensor: T4aTensor, dim: usize) -> (T4aTensor, T4aTensor) {
        flex!(int_min_dim_with_indices(tensor.into(), dim))
    }

    fn int_abs(tensor: T4aTensor) -> T4aTensor {
        flex!(int_abs(tensor.into()))
    }

    fn int_random(
        shape: Shape,
        distribution: Distribution,
        _device: &T4aDevice,
        dtype: IntDType,
    ) -> T4aTensor {
        flex!(int_random(shape, distribution, &FlexDevice, dtype))
    }

    fn int_arange_step(
        range: Range<i64>,
        step: usize,
        _device: &T4aDevice,
        dtype: IntDType,
    ) -> T4aTensor {
        flex!(int_arange_step(range, step, &FlexDevice, dtype))
    }

    fn int_arange(range: Range<i64>, _device: &T4aDevice, dtype: IntDType) -> T4aTensor {
        flex!(int_arange(range, &FlexDevice, dtype))
    }

    fn int_any(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_any(tensor.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn int_any_dim(tensor: T4aTensor, dim: usize, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_any_dim(tensor.into(), dim, BoolDType::Native)).with_store(out_dtype)
    }

    fn int_all(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_all(tensor.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn int_all_dim(tensor: T4aTensor, dim: usize, out_dtype: BoolDType) -> T4aTensor {
        flex!(int_all_dim(tensor.into(), dim, BoolDType::Native)).with_store(out_dtype)
    }

    fn int_sign(tensor: T4aTensor) -> T4aTensor {
        flex!(int_sign(tensor.into()))
    }

    fn int_sort(tensor: T4aTensor, dim: usize, descending: bool) -> T4aTensor {
        flex!(int_sort(tensor.into(), dim, descending))
    }

    fn int_sort_with_indices(
        tensor: T4aTensor,
        dim: usize,
        descending: bool,
    ) -> (T4aTensor, T4aTensor) {
        flex!(int_sort_with_indices(tensor.into(), dim, descending))
    }

    fn int_argsort(tensor: T4aTensor, dim: usize, descending: bool) -> T4aTensor {
        flex!(int_argsort(tensor.into(), dim, descending))
    }

    fn bitwise_and(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(bitwise_and(lhs.into(), rhs.into()))
    }

    fn bitwise_and_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(bitwise_and_scalar(lhs.into(), rhs))
    }

    fn bitwise_or(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(bitwise_or(lhs.into(), rhs.into()))
    }

    fn bitwise_or_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(bitwise_or_scalar(lhs.into(), rhs))
    }

    fn bitwise_xor(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(bitwise_xor(lhs.into(), rhs.into()))
    }

    fn bitwise_xor_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(bitwise_xor_scalar(lhs.into(), rhs))
    }

    fn bitwise_not(tensor: T4aTensor) -> T4aTensor {
        flex!(bitwise_not(tensor.into()))
    }

    fn bitwise_left_shift(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(bitwise_left_shift(lhs.into(), rhs.into()))
    }

    fn bitwise_left_shift_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(bitwise_left_shift_scalar(lhs.into(), rhs))
    }

    fn bitwise_right_shift(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(bitwise_right_shift(lhs.into(), rhs.into()))
    }

    fn bitwise_right_shift_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(bitwise_right_shift_scalar(lhs.into(), rhs))
    }

    fn int_cast(tensor: T4aTensor, dtype: IntDType) -> T4aTensor {
        flex!(int_cast(tensor.into(), dtype))
    }

    fn int_argtopk(tensor: T4aTensor, dim: usize, k: usize) -> T4aTensor {
        Self::int_argsort(tensor, dim, true).then(|x| x.slice_axis(dim, 0, k, 1))
    }

    fn int_topk(tensor: T4aTensor, dim: usize, k: usize) -> T4aTensor {
        Self::int_sort(tensor, dim, true).then(|x| x.slice_axis(dim, 0, k, 1))
    }
}
