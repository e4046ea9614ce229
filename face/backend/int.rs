//! Operations on integer tensors: each method of Burn's trait is one call of the engine.

use std::ops::Range;

use burn_backend::ops::IntTensorOps;
#[cfg(burn_line = "0.22")]
use burn_backend::ops::PadMode;
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{
    BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};

use t4a_tensor::any::Number;
use t4a_tensor::{AnyTensor, DType};

use super::movement::{cat, combine, full, of_all, random, slice, slice_assign};
#[cfg(burn_line = "0.22")]
use super::movement::{masked, pad};
use super::primitive::{T4aTensor, dtype as engine, number, with_indices, wrap};
use super::{BurnT4a, T4aDevice};
use crate::boundary::accept;

impl IntTensorOps<BurnT4a> for BurnT4a {
    fn int_from_data(data: TensorData, _device: &T4aDevice) -> T4aTensor {
        accept(T4aTensor::try_from_data(data))
    }

    async fn int_into_data(tensor: T4aTensor) -> Result<TensorData, ExecutionError> {
        Ok(accept(tensor.try_into_data()))
    }

    #[cfg(burn_line = "0.21")]
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
        tensor.then(|x| x.cast(engine(out_dtype)))
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

    #[cfg(burn_line = "0.21")]
    fn int_scatter_add(
        dim: usize,
        tensor: T4aTensor,
        indices: T4aTensor,
        value: T4aTensor,
    ) -> T4aTensor {
        tensor.then(|x| x.scatter(dim, indices.any(), value.any(), combine(IndexingUpdateOp::Add)))
    }

    #[cfg(burn_line = "0.22")]
    fn int_scatter(
        dim: usize,
        tensor: T4aTensor,
        indices: T4aTensor,
        value: T4aTensor,
        update: IndexingUpdateOp,
    ) -> T4aTensor {
        tensor.then(|x| x.scatter(dim, indices.any(), value.any(), combine(update)))
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

    #[cfg(burn_line = "0.21")]
    fn int_select_add(
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
    fn int_select_assign(
        tensor: T4aTensor,
        dim: usize,
        indices: T4aTensor,
        value: T4aTensor,
        update: IndexingUpdateOp,
    ) -> T4aTensor {
        tensor.then(|x| x.index_scatter(dim, indices.any(), value.any(), combine(update)))
    }

    fn int_repeat_dim(tensor: T4aTensor, dim: usize, times: usize) -> T4aTensor {
        tensor.then(|x| x.repeat(dim, times))
    }

    fn int_cat(tensors: Vec<T4aTensor>, dim: usize) -> T4aTensor {
        cat(tensors, dim)
    }

    fn int_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().equal(rhs.into_any())).with_store(out_dtype)
    }

    fn int_not_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().not_equal(rhs.into_any())).with_store(out_dtype)
    }

    fn int_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().equal_scalar(number(rhs))).with_store(out_dtype)
    }

    fn int_not_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().not_equal_scalar(number(rhs))).with_store(out_dtype)
    }

    fn int_greater(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().greater(rhs.into_any())).with_store(out_dtype)
    }

    fn int_greater_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().greater_scalar(number(rhs))).with_store(out_dtype)
    }

    fn int_greater_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().greater_equal(rhs.into_any())).with_store(out_dtype)
    }

    fn int_greater_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().greater_equal_scalar(number(rhs))).with_store(out_dtype)
    }

    fn int_lower(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().less(rhs.into_any())).with_store(out_dtype)
    }

    fn int_lower_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().less_scalar(number(rhs))).with_store(out_dtype)
    }

    fn int_lower_equal(lhs: T4aTensor, rhs: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().less_equal(rhs.into_any())).with_store(out_dtype)
    }

    fn int_lower_equal_elem(lhs: T4aTensor, rhs: Scalar, out_dtype: BoolDType) -> T4aTensor {
        wrap(lhs.into_any().less_equal_scalar(number(rhs))).with_store(out_dtype)
    }

    fn int_add(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.add(rhs.into_any()))
    }

    fn int_add_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.add_scalar(number(rhs)))
    }

    fn int_powi(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.int_pow(rhs.into_any()))
    }

    fn int_powi_scalar_impl(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.int_pow_scalar(number(rhs)))
    }

    fn int_clamp_min(tensor: T4aTensor, min: Scalar) -> T4aTensor {
        tensor.then(|x| x.maximum_scalar(number(min)))
    }

    fn int_clamp_max(tensor: T4aTensor, max: Scalar) -> T4aTensor {
        tensor.then(|x| x.minimum_scalar(number(max)))
    }

    fn int_clamp(tensor: T4aTensor, min: Scalar, max: Scalar) -> T4aTensor {
        tensor.then(|x| x.clamp(number(min), number(max)))
    }

    fn int_sub(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.sub(rhs.into_any()))
    }

    fn int_sub_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.sub_scalar(number(rhs)))
    }

    fn int_mul(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.mul(rhs.into_any()))
    }

    fn int_mul_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.mul_scalar(number(rhs)))
    }

    fn int_div(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.div(rhs.into_any()))
    }

    fn int_div_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.div_scalar(number(rhs)))
    }

    fn int_remainder(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.remainder(rhs.into_any()))
    }

    fn int_remainder_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.remainder_scalar(number(rhs)))
    }

    fn int_matmul(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.matmul(rhs.any()))
    }

    fn int_neg(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.neg())
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
        tensor.then(|x| of_all(&x, AnyTensor::sum))
    }

    fn int_sum_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.sum(&[dim]))
    }

    fn int_prod(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::prod))
    }

    fn int_prod_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.prod(&[dim]))
    }

    fn int_mean(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::mean))
    }

    fn int_mean_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.mean(&[dim]))
    }

    fn int_cumsum(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.cumsum(dim))
    }

    fn int_cumprod(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.cumprod(dim))
    }

    fn int_cummin(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.cummin(dim))
    }

    fn int_cummax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.cummax(dim))
    }

    fn int_argmax(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| Ok(x.max_with_index(dim)?.1))
    }

    fn int_argmin(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| Ok(x.min_with_index(dim)?.1))
    }

    fn int_max(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::max))
    }

    fn int_max_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.max(&[dim]))
    }

    fn int_max_dim_with_indices(tensor: T4aTensor, dim: usize) -> (T4aTensor, T4aTensor) {
        with_indices(tensor.any().max_with_index(dim), IntDType::I64)
    }

    fn int_max_abs(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::max_abs))
    }

    fn int_max_abs_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.max_abs(&[dim]))
    }

    fn int_min(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| of_all(&x, AnyTensor::min))
    }

    fn int_min_dim(tensor: T4aTensor, dim: usize) -> T4aTensor {
        tensor.then(|x| x.min(&[dim]))
    }

    fn int_min_dim_with_indices(tensor: T4aTensor, dim: usize) -> (T4aTensor, T4aTensor) {
        with_indices(tensor.any().min_with_index(dim), IntDType::I64)
    }

    fn int_abs(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.abs())
    }

    fn int_random(
        shape: Shape,
        distribution: Distribution,
        _device: &T4aDevice,
        dtype: IntDType,
    ) -> T4aTensor {
        random(shape, distribution, dtype)
    }

    fn int_arange_step(
        range: Range<i64>,
        step: usize,
        _device: &T4aDevice,
        dtype: IntDType,
    ) -> T4aTensor {
        let [start, end, step] = [range.start, range.end, step as i64].map(Number::Int);
        wrap(AnyTensor::arange(start, end, step, engine(dtype)))
    }

    fn int_any(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(of_all(tensor.any(), AnyTensor::any)).with_store(out_dtype)
    }

    fn int_any_dim(tensor: T4aTensor, dim: usize, out_dtype: BoolDType) -> T4aTensor {
        wrap(tensor.any().any(&[dim])).with_store(out_dtype)
    }

    fn int_all(tensor: T4aTensor, out_dtype: BoolDType) -> T4aTensor {
        wrap(of_all(tensor.any(), AnyTensor::all)).with_store(out_dtype)
    }

    fn int_all_dim(tensor: T4aTensor, dim: usize, out_dtype: BoolDType) -> T4aTensor {
        wrap(tensor.any().all(&[dim])).with_store(out_dtype)
    }

    fn int_sign(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.sign())
    }

    fn int_sort(tensor: T4aTensor, dim: usize, descending: bool) -> T4aTensor {
        tensor.then(|x| x.sort(dim, descending))
    }

    fn int_sort_with_indices(
        tensor: T4aTensor,
        dim: usize,
        descending: bool,
    ) -> (T4aTensor, T4aTensor) {
        let pair = tensor.any().sort_with_indices(dim, descending, DType::I64);
        with_indices(pair, IntDType::I64)
    }

    fn int_argsort(tensor: T4aTensor, dim: usize, descending: bool) -> T4aTensor {
        tensor.then(|x| x.argsort(dim, descending, DType::I64))
    }

    fn bitwise_and(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.bitwise_and(rhs.into_any()))
    }

    fn bitwise_and_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.bitwise_and_scalar(number(rhs)))
    }

    fn bitwise_or(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.bitwise_or(rhs.into_any()))
    }

    fn bitwise_or_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.bitwise_or_scalar(number(rhs)))
    }

    fn bitwise_xor(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.bitwise_xor(rhs.into_any()))
    }

    fn bitwise_xor_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.bitwise_xor_scalar(number(rhs)))
    }

    fn bitwise_not(tensor: T4aTensor) -> T4aTensor {
        tensor.then(|x| x.bitwise_not())
    }

    fn bitwise_left_shift(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.shift_left(rhs.into_any()))
    }

    fn bitwise_left_shift_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.shift_left_scalar(number(rhs)))
    }

    fn bitwise_right_shift(lhs: T4aTensor, rhs: T4aTensor) -> T4aTensor {
        lhs.then(|x| x.shift_right(rhs.into_any()))
    }

    fn bitwise_right_shift_scalar(lhs: T4aTensor, rhs: Scalar) -> T4aTensor {
        lhs.then(|x| x.shift_right_scalar(number(rhs)))
    }

    fn int_cast(tensor: T4aTensor, dtype: IntDType) -> T4aTensor {
        tensor.then(|x| x.cast(engine(dtype)))
    }

    fn int_argtopk(tensor: T4aTensor, dim: usize, k: usize) -> T4aTensor {
        tensor.then(|x| Ok(x.topk(dim, k, true, DType::I64)?.1))
    }

    fn int_topk(tensor: T4aTensor, dim: usize, k: usize) -> T4aTensor {
        tensor.then(|x| Ok(x.topk(dim, k, true, DType::I64)?.0))
    }

    #[cfg(burn_line = "0.22")]
    fn int_topk_with_indices(tensor: T4aTensor, dim: usize, k: usize) -> (T4aTensor, T4aTensor) {
        with_indices(tensor.any().topk(dim, k, true, DType::I64), IntDType::I64)
    }

    #[cfg(burn_line = "0.22")]
    fn int_pad(tensor: T4aTensor, padding: &[(usize, usize)], mode: PadMode) -> T4aTensor {
        tensor.then(|x| pad(&x, padding, mode))
    }

    #[cfg(burn_line = "0.22")]
    async fn int_mask_select(tensor: T4aTensor, mask: T4aTensor) -> T4aTensor {
        tensor.then(|x| masked(&x, mask.any()))
    }
}
