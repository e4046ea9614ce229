//! Integer, boolean and quantized tensors, which have no tangents: each method calls the inner backend.

use burn_backend::ops::{
    BoolTensorOps, IntTensorOps, QTensorOps, TransactionOps, TransactionPrimitive,
    TransactionPrimitiveData,
};
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::tensor::{
    BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor, QuantizedTensor,
};
use burn_backend::{
    Backend, BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice,
    TensorData,
};
use std::ops::Range;

use crate::backend::Jvp;
use crate::primitive::JvpTensor;

type IntArg<B> = IntTensor<B>;
type BoolArg<B> = BoolTensor<B>;
type QuantizedArg<B> = QuantizedTensor<B>;

macro_rules! passed {
    ($(fn $name:ident($($arg:ident: $t:ty),*) -> $out:ty;)*) => {$(
        fn $name($($arg: $t),*) -> $out {
            B::$name($($arg),*)
        }
    )*};
}

impl<B: Backend> IntTensorOps<Self> for Jvp<B> {
    passed! {
        fn int_all(tensor: IntArg<B>, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_all_dim(tensor: IntArg<B>, dim: usize, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_any(tensor: IntArg<B>, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_any_dim(tensor: IntArg<B>, dim: usize, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_arange(range: Range<i64>, device: &Device<B>, dtype: IntDType) -> IntArg<B>;
        fn int_arange_step(range: Range<i64>, step: usize, device: &Device<B>, dtype: IntDType) -> IntArg<B>;
        fn int_argsort(tensor: IntArg<B>, dim: usize, descending: bool) -> IntArg<B>;
        fn int_cat(tensors: Vec<IntArg<B>>, dim: usize) -> IntArg<B>;
        fn int_clamp(tensor: IntArg<B>, min: Scalar, max: Scalar) -> IntArg<B>;
        fn int_clamp_max(tensor: IntArg<B>, max: Scalar) -> IntArg<B>;
        fn int_clamp_min(tensor: IntArg<B>, min: Scalar) -> IntArg<B>;
        fn int_full(shape: Shape, fill_value: Scalar, device: &Device<B>, dtype: IntDType) -> IntArg<B>;
        fn int_gather_nd(data: IntArg<B>, indices: IntArg<B>) -> IntArg<B>;
        fn int_max(tensor: IntArg<B>) -> IntArg<B>;
        fn int_max_abs(tensor: IntArg<B>) -> IntArg<B>;
        fn int_max_abs_dim(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_max_dim_with_indices(tensor: IntArg<B>, dim: usize) -> (IntArg<B>, IntArg<B>);
        fn int_min_dim_with_indices(tensor: IntArg<B>, dim: usize) -> (IntArg<B>, IntArg<B>);
        fn int_sort_with_indices(tensor: IntArg<B>, dim: usize, descending: bool) -> (IntArg<B>, IntArg<B>);
        fn int_max_dim(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_mean(tensor: IntArg<B>) -> IntArg<B>;
        fn int_min(tensor: IntArg<B>) -> IntArg<B>;
        fn int_min_dim(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_neg(tensor: IntArg<B>) -> IntArg<B>;
        fn int_not_equal(lhs: IntArg<B>, rhs: IntArg<B>, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_not_equal_elem(lhs: IntArg<B>, rhs: Scalar, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_ones(shape: Shape, device: &Device<B>, dtype: IntDType) -> IntArg<B>;
        fn int_powi(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn int_powi_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn int_powi_scalar_impl(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn int_repeat_dim(tensor: IntArg<B>, dim: usize, times: usize) -> IntArg<B>;
        fn int_scatter_nd(data: IntArg<B>, indices: IntArg<B>, values: IntArg<B>, reduction: IndexingUpdateOp) -> IntArg<B>;
        fn int_sign(tensor: IntArg<B>) -> IntArg<B>;
        fn int_sort(tensor: IntArg<B>, dim: usize, descending: bool) -> IntArg<B>;
        fn int_topk(tensor: IntArg<B>, dim: usize, k: usize) -> IntArg<B>;
        fn int_transpose(tensor: IntArg<B>) -> IntArg<B>;
        fn int_zeros(shape: Shape, device: &Device<B>, dtype: IntDType) -> IntArg<B>;
        fn bitwise_and(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn bitwise_and_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn bitwise_left_shift(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn bitwise_left_shift_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn bitwise_not(tensor: IntArg<B>) -> IntArg<B>;
        fn bitwise_or(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn bitwise_or_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn bitwise_right_shift(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn bitwise_right_shift_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn bitwise_xor(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn bitwise_xor_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn int_abs(tensor: IntArg<B>) -> IntArg<B>;
        fn int_add(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn int_add_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn int_argmax(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_argmin(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_argtopk(tensor: IntArg<B>, dim: usize, k: usize) -> IntArg<B>;
        fn int_cast(tensor: IntArg<B>, dtype: IntDType) -> IntArg<B>;
        fn int_cummax(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_cummin(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_cumprod(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_cumsum(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_device(tensor: &IntArg<B>) -> Device<B>;
        fn int_div(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn int_div_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn int_empty(shape: Shape, device: &Device<B>, dtype: IntDType) -> IntArg<B>;
        fn int_equal(lhs: IntArg<B>, rhs: IntArg<B>, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_equal_elem(lhs: IntArg<B>, rhs: Scalar, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_expand(tensor: IntArg<B>, shape: Shape) -> IntArg<B>;
        fn int_flip(tensor: IntArg<B>, axes: &[usize]) -> IntArg<B>;
        fn int_from_data(data: TensorData, device: &Device<B>) -> IntArg<B>;
        fn int_gather(dim: usize, tensor: IntArg<B>, indices: IntArg<B>) -> IntArg<B>;
        fn int_greater(lhs: IntArg<B>, rhs: IntArg<B>, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_greater_elem(lhs: IntArg<B>, rhs: Scalar, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_greater_equal(lhs: IntArg<B>, rhs: IntArg<B>, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_greater_equal_elem(lhs: IntArg<B>, rhs: Scalar, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_lower(lhs: IntArg<B>, rhs: IntArg<B>, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_lower_elem(lhs: IntArg<B>, rhs: Scalar, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_lower_equal(lhs: IntArg<B>, rhs: IntArg<B>, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_lower_equal_elem(lhs: IntArg<B>, rhs: Scalar, out_dtype: BoolDType) -> BoolArg<B>;
        fn int_mask_fill(tensor: IntArg<B>, mask: BoolArg<B>, value: Scalar) -> IntArg<B>;
        fn int_mask_where(tensor: IntArg<B>, mask: BoolArg<B>, value: IntArg<B>) -> IntArg<B>;
        fn int_matmul(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn int_mean_dim(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_mul(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn int_mul_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn int_permute(tensor: IntArg<B>, axes: &[usize]) -> IntArg<B>;
        fn int_prod(tensor: IntArg<B>) -> IntArg<B>;
        fn int_prod_dim(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_random(shape: Shape, distribution: Distribution, device: &Device<B>, dtype: IntDType) -> IntArg<B>;
        fn int_remainder(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn int_remainder_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn int_reshape(tensor: IntArg<B>, shape: Shape) -> IntArg<B>;
        fn int_scatter_add(dim: usize, tensor: IntArg<B>, indices: IntArg<B>, value: IntArg<B>) -> IntArg<B>;
        fn int_select(tensor: IntArg<B>, dim: usize, indices: IntArg<B>) -> IntArg<B>;
        fn int_select_add(tensor: IntArg<B>, dim: usize, indices: IntArg<B>, value: IntArg<B>) -> IntArg<B>;
        fn int_slice(tensor: IntArg<B>, slices: &[Slice]) -> IntArg<B>;
        fn int_slice_assign(tensor: IntArg<B>, slices: &[Slice], value: IntArg<B>) -> IntArg<B>;
        fn int_sub(lhs: IntArg<B>, rhs: IntArg<B>) -> IntArg<B>;
        fn int_sub_scalar(lhs: IntArg<B>, rhs: Scalar) -> IntArg<B>;
        fn int_sum(tensor: IntArg<B>) -> IntArg<B>;
        fn int_sum_dim(tensor: IntArg<B>, dim: usize) -> IntArg<B>;
        fn int_swap_dims(tensor: IntArg<B>, dim1: usize, dim2: usize) -> IntArg<B>;
        fn int_to_device(tensor: IntArg<B>, device: &Device<B>) -> IntArg<B>;
        fn int_unfold(tensor: IntArg<B>, dim: usize, size: usize, step: usize) -> IntArg<B>;
    }

    async fn int_into_data(tensor: IntArg<B>) -> Result<TensorData, ExecutionError> {
        B::int_into_data(tensor).await
    }

    fn int_into_float(tensor: IntArg<B>, out_dtype: FloatDType) -> FloatTensor<Self> {
        JvpTensor::constant(B::int_into_float(tensor, out_dtype))
    }
}

impl<B: Backend> BoolTensorOps<Self> for Jvp<B> {
    passed! {
        fn bool_all(tensor: BoolArg<B>) -> BoolArg<B>;
        fn bool_all_dim(tensor: BoolArg<B>, dim: usize) -> BoolArg<B>;
        fn bool_any(tensor: BoolArg<B>) -> BoolArg<B>;
        fn bool_any_dim(tensor: BoolArg<B>, dim: usize) -> BoolArg<B>;
        fn bool_cat(tensors: Vec<BoolArg<B>>, dim: usize) -> BoolArg<B>;
        fn bool_not_equal(lhs: BoolArg<B>, rhs: BoolArg<B>) -> BoolArg<B>;
        fn bool_not_equal_elem(lhs: BoolArg<B>, rhs: Scalar) -> BoolArg<B>;
        fn bool_repeat_dim(tensor: BoolArg<B>, dim: usize, times: usize) -> BoolArg<B>;
        fn bool_transpose(tensor: BoolArg<B>) -> BoolArg<B>;
        fn bool_xor(lhs: BoolArg<B>, rhs: BoolArg<B>) -> BoolArg<B>;
        fn bool_and(lhs: BoolArg<B>, rhs: BoolArg<B>) -> BoolArg<B>;
        fn bool_device(tensor: &BoolArg<B>) -> Device<B>;
        fn bool_empty(shape: Shape, device: &Device<B>, dtype: BoolDType) -> BoolArg<B>;
        fn bool_equal(lhs: BoolArg<B>, rhs: BoolArg<B>) -> BoolArg<B>;
        fn bool_equal_elem(lhs: BoolArg<B>, rhs: Scalar) -> BoolArg<B>;
        fn bool_expand(tensor: BoolArg<B>, shape: Shape) -> BoolArg<B>;
        fn bool_flip(tensor: BoolArg<B>, axes: &[usize]) -> BoolArg<B>;
        fn bool_from_data(data: TensorData, device: &Device<B>) -> BoolArg<B>;
        fn bool_gather(dim: usize, tensor: BoolArg<B>, indices: IntArg<B>) -> BoolArg<B>;
        fn bool_into_int(tensor: BoolArg<B>, out_dtype: IntDType) -> IntArg<B>;
        fn bool_mask_fill(tensor: BoolArg<B>, mask: BoolArg<B>, value: Scalar) -> BoolArg<B>;
        fn bool_mask_where(tensor: BoolArg<B>, mask: BoolArg<B>, value: BoolArg<B>) -> BoolArg<B>;
        fn bool_not(tensor: BoolArg<B>) -> BoolArg<B>;
        fn bool_ones(shape: Shape, device: &Device<B>, dtype: BoolDType) -> BoolArg<B>;
        fn bool_or(lhs: BoolArg<B>, rhs: BoolArg<B>) -> BoolArg<B>;
        fn bool_permute(tensor: BoolArg<B>, axes: &[usize]) -> BoolArg<B>;
        fn bool_reshape(tensor: BoolArg<B>, shape: Shape) -> BoolArg<B>;
        fn bool_scatter_or(dim: usize, tensor: BoolArg<B>, indices: IntArg<B>, value: BoolArg<B>) -> BoolArg<B>;
        fn bool_select(tensor: BoolArg<B>, dim: usize, indices: IntArg<B>) -> BoolArg<B>;
        fn bool_select_or(tensor: BoolArg<B>, dim: usize, indices: IntArg<B>, value: BoolArg<B>) -> BoolArg<B>;
        fn bool_slice(tensor: BoolArg<B>, slices: &[Slice]) -> BoolArg<B>;
        fn bool_slice_assign(tensor: BoolArg<B>, slices: &[Slice], value: BoolArg<B>) -> BoolArg<B>;
        fn bool_swap_dims(tensor: BoolArg<B>, dim1: usize, dim2: usize) -> BoolArg<B>;
        fn bool_to_device(tensor: BoolArg<B>, device: &Device<B>) -> BoolArg<B>;
        fn bool_unfold(tensor: BoolArg<B>, dim: usize, size: usize, step: usize) -> BoolArg<B>;
        fn bool_zeros(shape: Shape, device: &Device<B>, dtype: BoolDType) -> BoolArg<B>;
    }

    async fn bool_into_data(tensor: BoolArg<B>) -> Result<TensorData, ExecutionError> {
        B::bool_into_data(tensor).await
    }

    async fn bool_argwhere(tensor: BoolArg<B>, out_dtype: IntDType) -> IntArg<B> {
        B::bool_argwhere(tensor, out_dtype).await
    }

    fn bool_into_float(tensor: BoolArg<B>, out_dtype: FloatDType) -> FloatTensor<Self> {
        JvpTensor::constant(B::bool_into_float(tensor, out_dtype))
    }
}

/// Quantization is piecewise constant: its derivative is zero.
impl<B: Backend> QTensorOps<Self> for Jvp<B> {
    passed! {
        fn q_from_data(data: TensorData, device: &Device<B>) -> QuantizedArg<B>;
        fn q_device(tensor: &QuantizedArg<B>) -> Device<B>;
        fn q_to_device(tensor: QuantizedArg<B>, device: &Device<B>) -> QuantizedArg<B>;
        fn q_reshape(tensor: QuantizedArg<B>, shape: Shape) -> QuantizedArg<B>;
        fn q_expand(tensor: QuantizedArg<B>, shape: Shape) -> QuantizedArg<B>;
        fn q_swap_dims(tensor: QuantizedArg<B>, dim1: usize, dim2: usize) -> QuantizedArg<B>;
        fn q_permute(tensor: QuantizedArg<B>, axes: &[usize]) -> QuantizedArg<B>;
        fn q_flip(tensor: QuantizedArg<B>, axes: &[usize]) -> QuantizedArg<B>;
        fn q_select(tensor: QuantizedArg<B>, dim: usize, indices: IntArg<B>) -> QuantizedArg<B>;
        fn q_gather(dim: usize, tensor: QuantizedArg<B>, indices: IntArg<B>) -> QuantizedArg<B>;
        fn q_slice(tensor: QuantizedArg<B>, slices: &[Slice]) -> QuantizedArg<B>;
        fn q_argmax(tensor: QuantizedArg<B>, dim: usize, out_dtype: IntDType) -> IntArg<B>;
        fn q_argmin(tensor: QuantizedArg<B>, dim: usize, out_dtype: IntDType) -> IntArg<B>;
    }

    fn quantize(
        tensor: FloatTensor<Self>,
        scheme: &QuantScheme,
        qparams: QuantizationParametersPrimitive<Self>,
    ) -> QuantizedArg<B> {
        let qparams = QuantizationParametersPrimitive { scales: qparams.scales.primal };
        B::quantize(tensor.primal, scheme, qparams)
    }

    fn quantize_dynamic(tensor: FloatTensor<Self>, scheme: &QuantScheme) -> QuantizedArg<B> {
        B::quantize_dynamic(tensor.primal, scheme)
    }

    fn dequantize(tensor: QuantizedArg<B>, dtype: FloatDType) -> FloatTensor<Self> {
        JvpTensor::constant(B::dequantize(tensor, dtype))
    }

    async fn q_into_data(tensor: QuantizedArg<B>) -> Result<TensorData, ExecutionError> {
        B::q_into_data(tensor).await
    }
}

impl<B: Backend> TransactionOps<Self> for Jvp<B> {
    async fn tr_execute(
        transaction: TransactionPrimitive<Self>,
    ) -> Result<TransactionPrimitiveData, ExecutionError> {
        let TransactionPrimitive { read_floats, read_qfloats, read_ints, read_bools, .. } =
            transaction;
        let read_floats = read_floats.into_iter().map(|x| x.primal).collect();
        B::tr_execute(TransactionPrimitive::new(read_floats, read_qfloats, read_ints, read_bools))
            .await
    }
}
