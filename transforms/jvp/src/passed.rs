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

type I<B> = IntTensor<B>;
type T<B> = BoolTensor<B>;
type Q<B> = QuantizedTensor<B>;

macro_rules! passed {
    ($(fn $name:ident($($arg:ident: $t:ty),*) -> $out:ty;)*) => {$(
        fn $name($($arg: $t),*) -> $out {
            B::$name($($arg),*)
        }
    )*};
}

impl<B: Backend> IntTensorOps<Self> for Jvp<B> {
    passed! {
        fn int_all(tensor: I<B>, out_dtype: BoolDType) -> T<B>;
        fn int_all_dim(tensor: I<B>, dim: usize, out_dtype: BoolDType) -> T<B>;
        fn int_any(tensor: I<B>, out_dtype: BoolDType) -> T<B>;
        fn int_any_dim(tensor: I<B>, dim: usize, out_dtype: BoolDType) -> T<B>;
        fn int_arange(range: Range<i64>, device: &Device<B>, dtype: IntDType) -> I<B>;
        fn int_arange_step(range: Range<i64>, step: usize, device: &Device<B>, dtype: IntDType) -> I<B>;
        fn int_argsort(tensor: I<B>, dim: usize, descending: bool) -> I<B>;
        fn int_cat(tensors: Vec<I<B>>, dim: usize) -> I<B>;
        fn int_clamp(tensor: I<B>, min: Scalar, max: Scalar) -> I<B>;
        fn int_clamp_max(tensor: I<B>, max: Scalar) -> I<B>;
        fn int_clamp_min(tensor: I<B>, min: Scalar) -> I<B>;
        fn int_full(shape: Shape, fill_value: Scalar, device: &Device<B>, dtype: IntDType) -> I<B>;
        fn int_gather_nd(data: I<B>, indices: I<B>) -> I<B>;
        fn int_max(tensor: I<B>) -> I<B>;
        fn int_max_abs(tensor: I<B>) -> I<B>;
        fn int_max_abs_dim(tensor: I<B>, dim: usize) -> I<B>;
        fn int_max_dim_with_indices(tensor: I<B>, dim: usize) -> (I<B>, I<B>);
        fn int_min_dim_with_indices(tensor: I<B>, dim: usize) -> (I<B>, I<B>);
        fn int_sort_with_indices(tensor: I<B>, dim: usize, descending: bool) -> (I<B>, I<B>);
        fn int_max_dim(tensor: I<B>, dim: usize) -> I<B>;
        fn int_mean(tensor: I<B>) -> I<B>;
        fn int_min(tensor: I<B>) -> I<B>;
        fn int_min_dim(tensor: I<B>, dim: usize) -> I<B>;
        fn int_neg(tensor: I<B>) -> I<B>;
        fn int_not_equal(lhs: I<B>, rhs: I<B>, out_dtype: BoolDType) -> T<B>;
        fn int_not_equal_elem(lhs: I<B>, rhs: Scalar, out_dtype: BoolDType) -> T<B>;
        fn int_ones(shape: Shape, device: &Device<B>, dtype: IntDType) -> I<B>;
        fn int_powi(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn int_powi_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn int_powi_scalar_impl(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn int_repeat_dim(tensor: I<B>, dim: usize, times: usize) -> I<B>;
        fn int_scatter_nd(data: I<B>, indices: I<B>, values: I<B>, reduction: IndexingUpdateOp) -> I<B>;
        fn int_sign(tensor: I<B>) -> I<B>;
        fn int_sort(tensor: I<B>, dim: usize, descending: bool) -> I<B>;
        fn int_topk(tensor: I<B>, dim: usize, k: usize) -> I<B>;
        fn int_transpose(tensor: I<B>) -> I<B>;
        fn int_zeros(shape: Shape, device: &Device<B>, dtype: IntDType) -> I<B>;
        fn bitwise_and(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn bitwise_and_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn bitwise_left_shift(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn bitwise_left_shift_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn bitwise_not(tensor: I<B>) -> I<B>;
        fn bitwise_or(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn bitwise_or_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn bitwise_right_shift(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn bitwise_right_shift_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn bitwise_xor(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn bitwise_xor_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn int_abs(tensor: I<B>) -> I<B>;
        fn int_add(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn int_add_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn int_argmax(tensor: I<B>, dim: usize) -> I<B>;
        fn int_argmin(tensor: I<B>, dim: usize) -> I<B>;
        fn int_argtopk(tensor: I<B>, dim: usize, k: usize) -> I<B>;
        fn int_cast(tensor: I<B>, dtype: IntDType) -> I<B>;
        fn int_cummax(tensor: I<B>, dim: usize) -> I<B>;
        fn int_cummin(tensor: I<B>, dim: usize) -> I<B>;
        fn int_cumprod(tensor: I<B>, dim: usize) -> I<B>;
        fn int_cumsum(tensor: I<B>, dim: usize) -> I<B>;
        fn int_device(tensor: &I<B>) -> Device<B>;
        fn int_div(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn int_div_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn int_empty(shape: Shape, device: &Device<B>, dtype: IntDType) -> I<B>;
        fn int_equal(lhs: I<B>, rhs: I<B>, out_dtype: BoolDType) -> T<B>;
        fn int_equal_elem(lhs: I<B>, rhs: Scalar, out_dtype: BoolDType) -> T<B>;
        fn int_expand(tensor: I<B>, shape: Shape) -> I<B>;
        fn int_flip(tensor: I<B>, axes: &[usize]) -> I<B>;
        fn int_from_data(data: TensorData, device: &Device<B>) -> I<B>;
        fn int_gather(dim: usize, tensor: I<B>, indices: I<B>) -> I<B>;
        fn int_greater(lhs: I<B>, rhs: I<B>, out_dtype: BoolDType) -> T<B>;
        fn int_greater_elem(lhs: I<B>, rhs: Scalar, out_dtype: BoolDType) -> T<B>;
        fn int_greater_equal(lhs: I<B>, rhs: I<B>, out_dtype: BoolDType) -> T<B>;
        fn int_greater_equal_elem(lhs: I<B>, rhs: Scalar, out_dtype: BoolDType) -> T<B>;
        fn int_lower(lhs: I<B>, rhs: I<B>, out_dtype: BoolDType) -> T<B>;
        fn int_lower_elem(lhs: I<B>, rhs: Scalar, out_dtype: BoolDType) -> T<B>;
        fn int_lower_equal(lhs: I<B>, rhs: I<B>, out_dtype: BoolDType) -> T<B>;
        fn int_lower_equal_elem(lhs: I<B>, rhs: Scalar, out_dtype: BoolDType) -> T<B>;
        fn int_mask_fill(tensor: I<B>, mask: T<B>, value: Scalar) -> I<B>;
        fn int_mask_where(tensor: I<B>, mask: T<B>, value: I<B>) -> I<B>;
        fn int_matmul(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn int_mean_dim(tensor: I<B>, dim: usize) -> I<B>;
        fn int_mul(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn int_mul_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn int_permute(tensor: I<B>, axes: &[usize]) -> I<B>;
        fn int_prod(tensor: I<B>) -> I<B>;
        fn int_prod_dim(tensor: I<B>, dim: usize) -> I<B>;
        fn int_random(shape: Shape, distribution: Distribution, device: &Device<B>, dtype: IntDType) -> I<B>;
        fn int_remainder(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn int_remainder_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn int_reshape(tensor: I<B>, shape: Shape) -> I<B>;
        fn int_scatter_add(dim: usize, tensor: I<B>, indices: I<B>, value: I<B>) -> I<B>;
        fn int_select(tensor: I<B>, dim: usize, indices: I<B>) -> I<B>;
        fn int_select_add(tensor: I<B>, dim: usize, indices: I<B>, value: I<B>) -> I<B>;
        fn int_slice(tensor: I<B>, slices: &[Slice]) -> I<B>;
        fn int_slice_assign(tensor: I<B>, slices: &[Slice], value: I<B>) -> I<B>;
        fn int_sub(lhs: I<B>, rhs: I<B>) -> I<B>;
        fn int_sub_scalar(lhs: I<B>, rhs: Scalar) -> I<B>;
        fn int_sum(tensor: I<B>) -> I<B>;
        fn int_sum_dim(tensor: I<B>, dim: usize) -> I<B>;
        fn int_swap_dims(tensor: I<B>, dim1: usize, dim2: usize) -> I<B>;
        fn int_to_device(tensor: I<B>, device: &Device<B>) -> I<B>;
        fn int_unfold(tensor: I<B>, dim: usize, size: usize, step: usize) -> I<B>;
    }

    async fn int_into_data(tensor: I<B>) -> Result<TensorData, ExecutionError> {
        B::int_into_data(tensor).await
    }

    fn int_into_float(tensor: I<B>, out_dtype: FloatDType) -> FloatTensor<Self> {
        JvpTensor::constant(B::int_into_float(tensor, out_dtype))
    }
}

impl<B: Backend> BoolTensorOps<Self> for Jvp<B> {
    passed! {
        fn bool_all(tensor: T<B>) -> T<B>;
        fn bool_all_dim(tensor: T<B>, dim: usize) -> T<B>;
        fn bool_any(tensor: T<B>) -> T<B>;
        fn bool_any_dim(tensor: T<B>, dim: usize) -> T<B>;
        fn bool_cat(tensors: Vec<T<B>>, dim: usize) -> T<B>;
        fn bool_not_equal(lhs: T<B>, rhs: T<B>) -> T<B>;
        fn bool_not_equal_elem(lhs: T<B>, rhs: Scalar) -> T<B>;
        fn bool_repeat_dim(tensor: T<B>, dim: usize, times: usize) -> T<B>;
        fn bool_transpose(tensor: T<B>) -> T<B>;
        fn bool_xor(lhs: T<B>, rhs: T<B>) -> T<B>;
        fn bool_and(lhs: T<B>, rhs: T<B>) -> T<B>;
        fn bool_device(tensor: &T<B>) -> Device<B>;
        fn bool_empty(shape: Shape, device: &Device<B>, dtype: BoolDType) -> T<B>;
        fn bool_equal(lhs: T<B>, rhs: T<B>) -> T<B>;
        fn bool_equal_elem(lhs: T<B>, rhs: Scalar) -> T<B>;
        fn bool_expand(tensor: T<B>, shape: Shape) -> T<B>;
        fn bool_flip(tensor: T<B>, axes: &[usize]) -> T<B>;
        fn bool_from_data(data: TensorData, device: &Device<B>) -> T<B>;
        fn bool_gather(dim: usize, tensor: T<B>, indices: I<B>) -> T<B>;
        fn bool_into_int(tensor: T<B>, out_dtype: IntDType) -> I<B>;
        fn bool_mask_fill(tensor: T<B>, mask: T<B>, value: Scalar) -> T<B>;
        fn bool_mask_where(tensor: T<B>, mask: T<B>, value: T<B>) -> T<B>;
        fn bool_not(tensor: T<B>) -> T<B>;
        fn bool_ones(shape: Shape, device: &Device<B>, dtype: BoolDType) -> T<B>;
        fn bool_or(lhs: T<B>, rhs: T<B>) -> T<B>;
        fn bool_permute(tensor: T<B>, axes: &[usize]) -> T<B>;
        fn bool_reshape(tensor: T<B>, shape: Shape) -> T<B>;
        fn bool_scatter_or(dim: usize, tensor: T<B>, indices: I<B>, value: T<B>) -> T<B>;
        fn bool_select(tensor: T<B>, dim: usize, indices: I<B>) -> T<B>;
        fn bool_select_or(tensor: T<B>, dim: usize, indices: I<B>, value: T<B>) -> T<B>;
        fn bool_slice(tensor: T<B>, slices: &[Slice]) -> T<B>;
        fn bool_slice_assign(tensor: T<B>, slices: &[Slice], value: T<B>) -> T<B>;
        fn bool_swap_dims(tensor: T<B>, dim1: usize, dim2: usize) -> T<B>;
        fn bool_to_device(tensor: T<B>, device: &Device<B>) -> T<B>;
        fn bool_unfold(tensor: T<B>, dim: usize, size: usize, step: usize) -> T<B>;
        fn bool_zeros(shape: Shape, device: &Device<B>, dtype: BoolDType) -> T<B>;
    }

    async fn bool_into_data(tensor: T<B>) -> Result<TensorData, ExecutionError> {
        B::bool_into_data(tensor).await
    }

    async fn bool_argwhere(tensor: T<B>, out_dtype: IntDType) -> I<B> {
        B::bool_argwhere(tensor, out_dtype).await
    }

    fn bool_into_float(tensor: T<B>, out_dtype: FloatDType) -> FloatTensor<Self> {
        JvpTensor::constant(B::bool_into_float(tensor, out_dtype))
    }
}

/// Quantization is piecewise constant: its derivative is zero.
impl<B: Backend> QTensorOps<Self> for Jvp<B> {
    passed! {
        fn q_from_data(data: TensorData, device: &Device<B>) -> Q<B>;
        fn q_device(tensor: &Q<B>) -> Device<B>;
        fn q_to_device(tensor: Q<B>, device: &Device<B>) -> Q<B>;
        fn q_reshape(tensor: Q<B>, shape: Shape) -> Q<B>;
        fn q_expand(tensor: Q<B>, shape: Shape) -> Q<B>;
        fn q_swap_dims(tensor: Q<B>, dim1: usize, dim2: usize) -> Q<B>;
        fn q_permute(tensor: Q<B>, axes: &[usize]) -> Q<B>;
        fn q_flip(tensor: Q<B>, axes: &[usize]) -> Q<B>;
        fn q_select(tensor: Q<B>, dim: usize, indices: I<B>) -> Q<B>;
        fn q_gather(dim: usize, tensor: Q<B>, indices: I<B>) -> Q<B>;
        fn q_slice(tensor: Q<B>, slices: &[Slice]) -> Q<B>;
        fn q_argmax(tensor: Q<B>, dim: usize, out_dtype: IntDType) -> I<B>;
        fn q_argmin(tensor: Q<B>, dim: usize, out_dtype: IntDType) -> I<B>;
    }

    fn quantize(
        tensor: FloatTensor<Self>,
        scheme: &QuantScheme,
        qparams: QuantizationParametersPrimitive<Self>,
    ) -> Q<B> {
        let qparams = QuantizationParametersPrimitive { scales: qparams.scales.primal };
        B::quantize(tensor.primal, scheme, qparams)
    }

    fn quantize_dynamic(tensor: FloatTensor<Self>, scheme: &QuantScheme) -> Q<B> {
        B::quantize_dynamic(tensor.primal, scheme)
    }

    fn dequantize(tensor: Q<B>, dtype: FloatDType) -> FloatTensor<Self> {
        JvpTensor::constant(B::dequantize(tensor, dtype))
    }

    async fn q_into_data(tensor: Q<B>) -> Result<TensorData, ExecutionError> {
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
