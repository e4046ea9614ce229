//! Float tensors: one line per method.

use burn_backend::ops::{FloatTensorOps, GridSampleOptions};
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

impl FloatTensorOps<BurnT4a> for BurnT4a {
    fn float_from_data(data: TensorData, _device: &T4aDevice) -> T4aTensor {
        accept(T4aTensor::from_data(data))
    }

    async fn float_into_data(tensor: T4aTensor) -> Result<TensorData, ExecutionError> {
        Ok(accept(tensor.into_data()))
    }

    fn float_device(_tensor: &T4aTensor) -> T4aDevice {
        T4aDevice
    }

    fn float_to_device(tensor: T4aTensor, _device: &T4aDevice) -> T4aTensor {
        tensor
    }

    fn float_swap_dims(tensor: T4aTensor, dim1: usize, dim2: usize) -> T4aTensor {
        tensor.then(|x| x.swap_axes(dim1, dim2))
    }

    fn float_permute(tensor: T4aTensor, axes: &[usize]) -> T4aTensor {
        tensor.then(|x| x.permute(axes))
    }

    fn float_flip(tensor: T4aTensor, axes: &[usize]) -> T4aTensor {
        tensor.then(|x| x.flip(axes))
    }

    fn float_reshape(tensor: T4aTensor, shape: Shape) -> T4aTensor {
        tensor.then(|x| x.reshape(&shape))
    }

    fn float_slice(tensor: T4aTensor, slices: &[Slice]) -> T4aTensor {
        tensor.then(|x| slice(&x, slices))
    }

    fn float_expand(tensor: T4aTensor, shape: Shape) -> T4aTensor {
        tensor.then(|x| x.expand(&shape))
    }

    fn float_unfold(tensor: T4aTensor, dim: usize, size: usize, step: usize) -> T4aTensor {
        tensor.then(|x| x.unfold(dim, size, step))
    }

    fn float_random(
        shape: Shape,
        distribution: Distribution,
        _device: &T4aDevice,
        dtype: FloatDType,
    ) -> T4aTensor {
        flex!(float_random(shape, distribution, &FlexDevice, dtype))
    }

    fn float_zeros(shape: Shape, _device: &T4aDevice, dtype: FloatDType) -> T4aTensor {
        full(shape, Number::Int(0), dtype)
    }

    fn float_ones(shape: Shape, _device: &T4aDevice, dtype: FloatDType) -> T4aTensor {
        full(shape, Number::Int(1), dtype)
    }

    fn float_full(
        shape: Shape,
        fill_value: Scalar,
        _device: &T4aDevice,
        dtype: FloatDType,
    ) -> T4aTensor {
        full(shape, number(fill_value), dtype)
    }

    fn float_into_int(tensor: T4aTensor, out_dtype: IntDType) -> T4aTensor {
        flex!(float_into_int(tensor.into(), out_dtype))
    }

    fn float_empty(shape: Shape, _device: &T4aDevice, dtype: FloatDType) -> T4aTensor {
        full(shape, Number::Int(0), dtype)
    }

    fn float_repeat_dim(tensor: T4aTensor, dim: usize, times: usize) -> T4aTensor {
        tensor.then(|x| x.repeat(dim, times))
    }

    fn float_add(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_add(lhs.into(), rhs.into()))
    }

    fn float_add_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(float_add_scalar(lhs.into(), rhs))
    }

    fn float_clamp_min(tensor: T4aTensor, min: Scalar) -> T4aTensor {
        flex!(float_clamp_min(tensor.into(), min))
    }

    fn float_clamp_max(tensor: T4aTensor, max: Scalar) -> T4aTensor {
        flex!(float_clamp_max(tensor.into(), max))
    }

    fn float_clamp(tensor: T4aTensor, min: Scalar, max: Scalar) -> T4aTensor {
        flex!(float_clamp(tensor.into(), min, max))
    }

    fn float_sub(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_sub(lhs.into(), rhs.into()))
    }

    fn float_sub_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(float_sub_scalar(lhs.into(), rhs))
    }

    fn float_mul(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_mul(lhs.into(), rhs.into()))
    }

    fn float_mul_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(float_mul_scalar(lhs.into(), rhs))
    }

    fn float_div(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_div(lhs.into(), rhs.into()))
    }

    fn float_div_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(float_div_scalar(lhs.into(), rhs))
    }

    fn float_remainder(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_remainder(lhs.into(), rhs.into()))
    }

    fn float_remainder_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(float_remainder_scalar(lhs.into(), rhs))
    }

    fn float_matmul(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_matmul(lhs.into(), rhs.into()))
    }

    fn float_cross(lhs: T4aTensor, rhs: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_cross(lhs.into(), rhs.into(), dim))
    }

    fn float_neg(tensor: T4aTensor) -> T4aTensor {
        flex!(float_neg(tensor.into()))
    }

    fn float_recip(tensor: T4aTensor) -> T4aTensor {
        flex!(float_recip(tensor.into()))
    }

    fn float_gather(dim: usize, tensor: T4aTensor, indices: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.gather(dim, indices.any()))
    }

    fn float_scatter_add(
        dim: usize,
        tensor: T4aTensor,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| x.scatter(dim, indices.any(), value.any(), Reduction::Add))
    }

    fn float_scatter_nd(
        data: T4aTensor,
        indices: T4aTensor,
        values: T4aTensor,
        reduction: IndexingUpdateOp,
    ) -> T4aTensor {
        let reduction = combine(reduction);
        data.then(|x| x.scatter_nd(indices.any(), values.any(), reduction))
    }

    fn float_gather_nd(data: T4aTensor, indices: T4aTensor) -> T4aTensor {
        data.then(|x| x.gather_nd(indices.any()))
    }

    fn float_select(tensor: T4aTensor, dim: usize, indices: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.index_select(dim, indices.any()))
    }

    fn float_select_add(
        tensor: T4aTensor,
        dim: usize,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| x.index_scatter(dim, indices.any(), value.any(), Reduction::Add))
    }

    fn float_slice_assign(tensor: T4aTensor, slices: &[Slice], value: T4aTensor) -> T4aTensor {
        tensor.then(|x| slice_assign(x, slices, value.any()))
    }

    fn float_mask_where(tensor: T4aTensor, mask: T4aTensor, value: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.mask_where(mask.into_any(), value.into_any()))
    }

    fn float_mask_fill(tensor: T4aTensor, mask: T4aTensor, value: Scalar) -> T4aTensor {
        tensor.then(|x| x.mask_fill(mask.into_any(), number(value)))
    }

    fn float_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_equal(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_not_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_not_equal(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_equal_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn float_not_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_not_equal_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn float_greater(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_greater(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_greater_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_greater_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn float_greater_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_greater_equal(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_greater_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_greater_equal_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn float_lower(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_lower(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_lower_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_lower_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn float_lower_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_lower_equal(lhs.into(), rhs.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_lower_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_lower_equal_elem(lhs.into(), rhs, BoolDType::Native)).with_store(out_dtype)
    }

    fn float_sum(tensor: T4aTensor) -> T4aTensor {
        flex!(float_sum(tensor.into()))
    }

    fn float_sum_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_sum_dim(tensor.into(), dim))
    }

    fn float_prod(tensor: T4aTensor) -> T4aTensor {
        flex!(float_prod(tensor.into()))
    }

    fn float_prod_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_prod_dim(tensor.into(), dim))
    }

    fn float_mean(tensor: T4aTensor) -> T4aTensor {
        flex!(float_mean(tensor.into()))
    }

    fn float_mean_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_mean_dim(tensor.into(), dim))
    }

    fn float_cumsum(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_cumsum(tensor.into(), dim))
    }

    fn float_cumprod(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_cumprod(tensor.into(), dim))
    }

    fn float_cummin(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_cummin(tensor.into(), dim))
    }

    fn float_cummax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_cummax(tensor.into(), dim))
    }

    fn float_cast(tensor: T4aTensor, dtype: FloatDType) -> T4aTensor {
        flex!(float_cast(tensor.into(), dtype))
    }

    fn float_exp(tensor: T4aTensor) -> T4aTensor {
        flex!(float_exp(tensor.into()))
    }

    fn float_log(tensor: T4aTensor) -> T4aTensor {
        flex!(float_log(tensor.into()))
    }

    fn float_log1p(tensor: T4aTensor) -> T4aTensor {
        flex!(float_log1p(tensor.into()))
    }

    fn float_powf(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_powf(lhs.into(), rhs.into()))
    }

    fn float_powi(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_powi(lhs.into(), rhs.into()))
    }

    fn float_powi_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        flex!(float_powi_scalar(lhs.into(), rhs))
    }

    fn float_powf_scalar(tensor: T4aTensor, value: Scalar) -> T4aTensor {
        flex!(float_powf_scalar(tensor.into(), value))
    }

    fn float_powf_scalar_impl(tensor: T4aTensor, value: Scalar) -> T4aTensor {
        flex!(float_powf_scalar_impl(tensor.into(), value))
    }

    fn float_sqrt(tensor: T4aTensor) -> T4aTensor {
        flex!(float_sqrt(tensor.into()))
    }

    fn float_abs(tensor: T4aTensor) -> T4aTensor {
        flex!(float_abs(tensor.into()))
    }

    fn float_cos(tensor: T4aTensor) -> T4aTensor {
        flex!(float_cos(tensor.into()))
    }

    fn float_sin(tensor: T4aTensor) -> T4aTensor {
        flex!(float_sin(tensor.into()))
    }

    fn float_tan(tensor: T4aTensor) -> T4aTensor {
        flex!(float_tan(tensor.into()))
    }

    fn float_cosh(tensor: T4aTensor) -> T4aTensor {
        flex!(float_cosh(tensor.into()))
    }

    fn float_sinh(tensor: T4aTensor) -> T4aTensor {
        flex!(float_sinh(tensor.into()))
    }

    fn float_tanh(tensor: T4aTensor) -> T4aTensor {
        flex!(float_tanh(tensor.into()))
    }

    fn float_acos(tensor: T4aTensor) -> T4aTensor {
        flex!(float_acos(tensor.into()))
    }

    fn float_acosh(tensor: T4aTensor) -> T4aTensor {
        flex!(float_acosh(tensor.into()))
    }

    fn float_asin(tensor: T4aTensor) -> T4aTensor {
        flex!(float_asin(tensor.into()))
    }

    fn float_asinh(tensor: T4aTensor) -> T4aTensor {
        flex!(float_asinh(tensor.into()))
    }

    fn float_atan(tensor: T4aTensor) -> T4aTensor {
        flex!(float_atan(tensor.into()))
    }

    fn float_atanh(tensor: T4aTensor) -> T4aTensor {
        flex!(float_atanh(tensor.into()))
    }

    fn float_atan2(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        flex!(float_atan2(lhs.into(), rhs.into()))
    }

    fn float_round(tensor: T4aTensor) -> T4aTensor {
        flex!(float_round(tensor.into()))
    }

    fn float_floor(tensor: T4aTensor) -> T4aTensor {
        flex!(float_floor(tensor.into()))
    }

    fn float_ceil(tensor: T4aTensor) -> T4aTensor {
        flex!(float_ceil(tensor.into()))
    }

    fn float_trunc(tensor: T4aTensor) -> T4aTensor {
        flex!(float_trunc(tensor.into()))
    }

    fn float_erf(tensor: T4aTensor) -> T4aTensor {
        flex!(float_erf(tensor.into()))
    }

    fn float_cat(tensors: Vec<T4aTensor>, dim: usize) -> T4aTensor {
        cat(tensors, dim)
    }

    fn float_argmax(tensor: T4aTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        flex!(float_argmax(tensor.into(), dim, out_dtype))
    }

    fn float_argmin(tensor: T4aTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        flex!(float_argmin(tensor.into(), dim, out_dtype))
    }

    fn float_max(tensor: T4aTensor) -> T4aTensor {
        flex!(float_max(tensor.into()))
    }

    fn float_max_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_max_dim(tensor.into(), dim))
    }

    fn float_max_dim_with_indices(
        tensor: T4aTensor,
        dim: usize,
        indices_dtype: IntDType,
    ) -> (T4aTensor, T4aTensor) {
        flex!(float_max_dim_with_indices(tensor.into(), dim, indices_dtype))
    }

    fn float_min(tensor: T4aTensor) -> T4aTensor {
        flex!(float_min(tensor.into()))
    }

    fn float_min_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_min_dim(tensor.into(), dim))
    }

    fn float_min_dim_with_indices(
        tensor: T4aTensor,
        dim: usize,
        indices_dtype: IntDType,
    ) -> (T4aTensor, T4aTensor) {
        flex!(float_min_dim_with_indices(tensor.into(), dim, indices_dtype))
    }

    fn float_max_abs(tensor: T4aTensor) -> T4aTensor {
        flex!(float_max_abs(tensor.into()))
    }

    fn float_max_abs_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        flex!(float_max_abs_dim(tensor.into(), dim))
    }

    fn float_any(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_any(tensor.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_any_dim(tensor: T4aTensor, dim: usize, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_any_dim(tensor.into(), dim, BoolDType::Native)).with_store(out_dtype)
    }

    fn float_all(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_all(tensor.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_all_dim(tensor: T4aTensor, dim: usize, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_all_dim(tensor.into(), dim, BoolDType::Native)).with_store(out_dtype)
    }

    fn float_sign(tensor: T4aTensor) -> T4aTensor {
        flex!(float_sign(tensor.into()))
    }

    fn float_sort(tensor: T4aTensor, dim: usize, descending: bool) -> T4aTensor {
        flex!(float_sort(tensor.into(), dim, descending))
    }

    fn float_sort_with_indices(
        tensor: T4aTensor,
        dim: usize,
        descending: bool,
        indices_dtype: IntDType,
    ) -> (T4aTensor, T4aTensor) {
        flex!(float_sort_with_indices(tensor.into(), dim, descending, indices_dtype))
    }

    fn float_argsort(
        tensor: T4aTensor,
        dim: usize,
        descending: bool,
        out_dtype: IntDType,
    ) -> T4aTensor {
        flex!(float_argsort(tensor.into(), dim, descending, out_dtype))
    }

    fn float_grid_sample_2d(
        tensor: T4aTensor,
        grid: T4aTensor,
        options: GridSampleOptions,
    ) -> T4aTensor {
        flex!(float_grid_sample_2d(tensor.into(), grid.into(), options))
    }

    fn float_is_nan(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_is_nan(tensor.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_is_inf(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        flex!(float_is_inf(tensor.into(), BoolDType::Native)).with_store(out_dtype)
    }

    fn float_argtopk(tensor: T4aTensor, dim: usize, k: usize, out_dtype: IntDType) -> T4aTensor {
        Self::float_argsort(tensor, dim, true, out_dtype).then(|x| x.slice_axis(dim, 0, k, 1))
    }

    fn float_topk(tensor: T4aTensor, dim: usize, k: usize) -> T4aTensor {
        Self::float_sort(tensor, dim, true).then(|x| x.slice_axis(dim, 0, k, 1))
    }
}
