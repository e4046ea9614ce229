//! Operations on float tensors: each method of Burn's trait is one call of the engine.

#[cfg(burn_line = "0.22")]
use burn_backend::ops::PadMode;
use burn_backend::ops::{FloatTensorOps, GridSampleOptions};
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{
    BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};

use t4a_tensor::any::Number;
use t4a_tensor::{AnyTensor, DType};

use super::image::sampled;
use super::movement::{cat, combine, cross, full, of_all, random, slice, slice_assign};
#[cfg(burn_line = "0.22")]
use super::movement::{masked, pad};
use super::primitive::{T4aTensor, dtype as engine, number, with_indices, wrap};
use super::saved::{product, product_key};
use super::{BurnT4a, T4aDevice};
use crate::boundary::accept;

impl FloatTensorOps<BurnT4a> for BurnT4a {
    fn float_from_data(data: TensorData, _device: &T4aDevice) -> T4aTensor {
        accept(T4aTensor::try_from_data(data))
    }

    async fn float_into_data(tensor: T4aTensor) -> Result<TensorData, ExecutionError> {
        Ok(accept(tensor.try_into_data()))
    }

    #[cfg(burn_line = "0.21")]
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
        random(shape, distribution, dtype)
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
        tensor.then(|x| x.cast(engine(out_dtype)))
    }

    fn float_empty(shape: Shape, _device: &T4aDevice, dtype: FloatDType) -> T4aTensor {
        full(shape, Number::Int(0), dtype)
    }

    fn float_repeat_dim(tensor: T4aTensor, dim: usize, times: usize) -> T4aTensor {
        tensor.then(|x| x.repeat(dim, times))
    }

    fn float_add(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.add(rhs.into_any()))
    }

    fn float_add_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.add_scalar(number(rhs)))
    }

    fn float_clamp_min(tensor: T4aTensor, min: Scalar) -> T4aTensor {
        tensor.then(|x| x.maximum_scalar(number(min)))
    }

    fn float_clamp_max(tensor: T4aTensor, max: Scalar) -> T4aTensor {
        tensor.then(|x| x.minimum_scalar(number(max)))
    }

    fn float_clamp(tensor: T4aTensor, min: Scalar, max: Scalar) -> T4aTensor {
        tensor.then(|x| x.clamp(number(min), number(max)))
    }

    fn float_sub(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.sub(rhs.into_any()))
    }

    fn float_sub_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.sub_scalar(number(rhs)))
    }

    fn float_mul(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.mul(rhs.into_any()))
    }

    fn float_mul_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.mul_scalar(number(rhs)))
    }

    fn float_div(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.div(rhs.into_any()))
    }

    fn float_div_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.div_scalar(number(rhs)))
    }

    fn float_remainder(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.remainder(rhs.into_any()))
    }

    fn float_remainder_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.remainder_scalar(number(rhs)))
    }

    fn float_matmul(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        let key = product_key(|| "matmul".to_owned(), [&lhs, &rhs]);
        product(key, || lhs.then(|x| x.matmul(rhs.any())))
    }

    fn float_cross(lhs: T4aTensor, rhs: T4aTensor, dim: usize) -> T4aTensor {
        lhs.then(|x| cross(&x, rhs.any(), dim))
    }

    fn float_neg(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.neg())
    }

    fn float_recip(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.recip())
    }

    fn float_gather(dim: usize, tensor: T4aTensor, indices: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.gather(dim, indices.any()))
    }

    #[cfg(burn_line = "0.21")]
    fn float_scatter_add(
        dim: usize,
        tensor: T4aTensor,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| x.scatter(dim, indices.any(), value.any(), combine(IndexingUpdateOp::Add)))
    }

    #[cfg(burn_line = "0.22")]
    fn float_scatter(
        dim: usize,
        tensor: T4aTensor,
        indices: T4aTensor,
        value: T4aTensor,
        update: IndexingUpdateOp,
    ) -> T4aTensor {
        tensor.then(|x| x.scatter(dim, indices.any(), value.any(), combine(update)))
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

    #[cfg(burn_line = "0.21")]
    fn float_select_add(
        tensor: T4aTensor,
        dim: usize,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| {
            x.index_scatter(dim, indices.any(), value.any(), combine(IndexingUpdateOp::Add))
        })
    }

    #[cfg(burn_line = "0.22")]
    fn float_select_assign(
        tensor: T4aTensor,
        dim: usize,
        indices: T4aTensor,
        value: T4aTensor,
        update: IndexingUpdateOp,
    ) -> T4aTensor {
        tensor.then(|x| x.index_scatter(dim, indices.any(), value.any(), combine(update)))
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
        wrap(lhs.into_any().equal(rhs.into_any())).with_store(out_dtype)
    }

    fn float_not_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().not_equal(rhs.into_any())).with_store(out_dtype)
    }

    fn float_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().equal_scalar(number(rhs))).with_store(out_dtype)
    }

    fn float_not_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().not_equal_scalar(number(rhs))).with_store(out_dtype)
    }

    fn float_greater(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().greater(rhs.into_any())).with_store(out_dtype)
    }

    fn float_greater_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().greater_scalar(number(rhs))).with_store(out_dtype)
    }

    fn float_greater_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().greater_equal(rhs.into_any())).with_store(out_dtype)
    }

    fn float_greater_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().greater_equal_scalar(number(rhs))).with_store(out_dtype)
    }

    fn float_lower(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().less(rhs.into_any())).with_store(out_dtype)
    }

    fn float_lower_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().less_scalar(number(rhs))).with_store(out_dtype)
    }

    fn float_lower_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().less_equal(rhs.into_any())).with_store(out_dtype)
    }

    fn float_lower_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().less_equal_scalar(number(rhs))).with_store(out_dtype)
    }

    fn float_sum(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::sum))
    }

    fn float_sum_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.sum(&[dim]))
    }

    #[cfg(burn_line = "0.22")]
    fn float_sum_dims(tensor: T4aTensor, dims: &[usize]) -> T4aTensor {
        tensor.then(|x| x.sum(dims))
    }

    fn float_prod(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::prod))
    }

    fn float_prod_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.prod(&[dim]))
    }

    fn float_mean(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::mean))
    }

    fn float_mean_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.mean(&[dim]))
    }

    fn float_cumsum(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.cumsum(dim))
    }

    fn float_cumprod(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.cumprod(dim))
    }

    fn float_cummin(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.cummin(dim))
    }

    fn float_cummax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.cummax(dim))
    }

    fn float_cast(tensor: T4aTensor, dtype: FloatDType) -> T4aTensor {
        tensor.then(|x| x.cast(engine(dtype)))
    }

    fn float_exp(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.exp())
    }

    fn float_log(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.log())
    }

    fn float_log1p(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.log1p())
    }

    fn float_powf(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.powf(rhs.into_any()))
    }

    fn float_powf_scalar_impl(tensor: T4aTensor, value: Scalar) -> T4aTensor {
        tensor.then(|x| x.powf_scalar(number(value)))
    }

    fn float_sqrt(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.sqrt())
    }

    fn float_abs(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.abs())
    }

    fn float_cos(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.cos())
    }

    fn float_sin(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.sin())
    }

    fn float_tan(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.tan())
    }

    fn float_cosh(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.cosh())
    }

    fn float_sinh(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.sinh())
    }

    fn float_tanh(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.tanh())
    }

    fn float_acos(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.acos())
    }

    fn float_acosh(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.acosh())
    }

    fn float_asin(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.asin())
    }

    fn float_asinh(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.asinh())
    }

    fn float_atan(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.atan())
    }

    fn float_atanh(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.atanh())
    }

    fn float_atan2(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.atan2(rhs.into_any()))
    }

    #[cfg(burn_line = "0.22")]
    fn float_hypot(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.hypot(rhs.into_any()))
    }

    fn float_round(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.round())
    }

    fn float_floor(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.floor())
    }

    fn float_ceil(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.ceil())
    }

    fn float_trunc(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.trunc())
    }

    fn float_erf(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.erf())
    }

    fn float_cat(tensors: Vec<T4aTensor>, dim: usize) -> T4aTensor {
        cat(tensors, dim)
    }

    fn float_argmax(tensor: T4aTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        tensor.then(|x| x.max_with_index(dim)?.1.cast(engine(out_dtype)))
    }

    fn float_argmin(tensor: T4aTensor, dim: usize, out_dtype: IntDType) -> T4aTensor {
        tensor.then(|x| x.min_with_index(dim)?.1.cast(engine(out_dtype)))
    }

    fn float_max(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::max))
    }

    fn float_max_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.max(&[dim]))
    }

    fn float_max_dim_with_indices(
        tensor: T4aTensor,
        dim: usize,
        indices_dtype: IntDType,
    ) -> (T4aTensor, T4aTensor) {
        with_indices(tensor.any().max_with_index(dim), indices_dtype)
    }

    fn float_min(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::min))
    }

    fn float_min_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.min(&[dim]))
    }

    fn float_min_dim_with_indices(
        tensor: T4aTensor,
        dim: usize,
        indices_dtype: IntDType,
    ) -> (T4aTensor, T4aTensor) {
        with_indices(tensor.any().min_with_index(dim), indices_dtype)
    }

    fn float_max_abs(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::max_abs))
    }

    fn float_max_abs_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.max_abs(&[dim]))
    }

    fn float_any(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(of_all(tensor.any(), AnyTensor::any)).with_store(out_dtype)
    }

    fn float_any_dim(tensor: T4aTensor, dim: usize, out_dtype: BoolDType) -> T4aTensor {
        wrap(tensor.any().any(&[dim])).with_store(out_dtype)
    }

    fn float_all(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(of_all(tensor.any(), AnyTensor::all)).with_store(out_dtype)
    }

    fn float_all_dim(tensor: T4aTensor, dim: usize, out_dtype: BoolDType) -> T4aTensor {
        wrap(tensor.any().all(&[dim])).with_store(out_dtype)
    }

    fn float_sign(tensor: T4aTensor) -> T4aTensor {
        // Burn 0.21 propagates NaN in `sign`.
        #[cfg(burn_line = "0.21")]
        return tensor.then(|x| x.sign());
        #[cfg(burn_line = "0.22")]
        tensor.then(|x| x.sign_or_zero())
    }

    fn float_sort(tensor: T4aTensor, dim: usize, descending: bool) -> T4aTensor {
        tensor.then(|x| x.sort(dim, descending))
    }

    fn float_sort_with_indices(
        tensor: T4aTensor,
        dim: usize,
        descending: bool,
        indices_dtype: IntDType,
    ) -> (T4aTensor, T4aTensor) {
        let pair = tensor.any().sort_with_indices(dim, descending, engine(indices_dtype));
        with_indices(pair, indices_dtype)
    }

    fn float_argsort(
        tensor: T4aTensor,
        dim: usize,
        descending: bool,
        out_dtype: IntDType,
    ) -> T4aTensor {
        tensor.then(|x| x.argsort(dim, descending, engine(out_dtype)))
    }

    fn float_grid_sample_2d(
        tensor: T4aTensor,
        grid: T4aTensor,
        options: GridSampleOptions,
    ) -> T4aTensor {
        tensor.then(|x| x.grid_sample(grid.any(), &sampled(options)?))
    }

    fn float_is_nan(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(tensor.into_any().is_nan()).with_store(out_dtype)
    }

    fn float_is_inf(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(tensor.into_any().is_inf()).with_store(out_dtype)
    }

    fn float_argtopk(tensor: T4aTensor, dim: usize, k: usize, out_dtype: IntDType) -> T4aTensor {
        tensor.then(|x| Ok(x.topk(dim, k, true, engine(out_dtype))?.1))
    }

    fn float_topk(tensor: T4aTensor, dim: usize, k: usize) -> T4aTensor {
        tensor.then(|x| Ok(x.topk(dim, k, true, DType::I64)?.0))
    }

    #[cfg(burn_line = "0.22")]
    fn float_topk_with_indices(
        tensor: T4aTensor,
        dim: usize,
        k: usize,
        out_dtype: IntDType,
    ) -> (T4aTensor, T4aTensor) {
        with_indices(tensor.any().topk(dim, k, true, engine(out_dtype)), out_dtype)
    }

    #[cfg(burn_line = "0.22")]
    fn float_pad(tensor: T4aTensor, padding: &[(usize, usize)], mode: PadMode) -> T4aTensor {
        tensor.then(|x| pad(&x, padding, mode))
    }

    #[cfg(burn_line = "0.22")]
    async fn float_mask_select(tensor: T4aTensor, mask: T4aTensor) -> T4aTensor {
        tensor.then(|x| masked(&x, mask.any()))
    }
}
