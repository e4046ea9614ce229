//! Integer tensors.

use std::ops::Range;

use burn_backend::ops::IntTensorOps;
use burn_backend::tensor::{Device, IndexingUpdateOp, Int};
use burn_backend::{
    Backend, BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice,
    TensorData,
};

use crate::backend::{Vmap, unreadable};
use crate::movement::{self, numbered, raise};
use crate::random::draw;
use crate::rows::{F, I, T, along, create, map, moves, whole, zip};
use crate::tensor::{VmapTensor, common};

impl<B: Backend> IntTensorOps<Self> for Vmap<B> {
    create! { I:
        int_from_data(data: TensorData, device: &Device<B>)
        int_zeros(shape: Shape, device: &Device<B>, dtype: IntDType)
        int_ones(shape: Shape, device: &Device<B>, dtype: IntDType)
        int_full(shape: Shape, value: Scalar, device: &Device<B>, dtype: IntDType)
        int_empty(shape: Shape, device: &Device<B>, dtype: IntDType)
        int_arange(range: Range<i64>, device: &Device<B>, dtype: IntDType)
        int_arange_step(range: Range<i64>, step: usize, device: &Device<B>, dtype: IntDType)
    }
    map! { I => I:
        int_to_device(device: &Device<B>) int_cast(dtype: IntDType) int_transpose()
        int_abs() int_neg() int_sign() bitwise_not()
        int_add_scalar(y: Scalar) int_sub_scalar(y: Scalar) int_mul_scalar(y: Scalar)
        int_div_scalar(y: Scalar) int_remainder_scalar(y: Scalar)
        int_powi_scalar(y: Scalar) int_powi_scalar_impl(y: Scalar)
        bitwise_and_scalar(y: Scalar) bitwise_or_scalar(y: Scalar) bitwise_xor_scalar(y: Scalar)
        bitwise_left_shift_scalar(y: Scalar) bitwise_right_shift_scalar(y: Scalar)
        int_clamp(min: Scalar, max: Scalar) int_clamp_min(min: Scalar) int_clamp_max(max: Scalar)
    }
    map! { I => F: int_into_float(dtype: FloatDType) }
    map! { I => T:
        int_equal_elem(y: Scalar, dtype: BoolDType) int_not_equal_elem(y: Scalar, dtype: BoolDType)
        int_greater_elem(y: Scalar, dtype: BoolDType) int_greater_equal_elem(y: Scalar, dtype: BoolDType)
        int_lower_elem(y: Scalar, dtype: BoolDType) int_lower_equal_elem(y: Scalar, dtype: BoolDType)
    }
    zip! { I: Int, I: Int => I:
        int_add() int_sub() int_mul() int_div() int_remainder() int_powi() bitwise_and() bitwise_or()
        bitwise_xor() bitwise_left_shift() bitwise_right_shift()
    }
    zip! { I: Int, I: Int => T:
        int_equal(dtype: BoolDType) int_not_equal(dtype: BoolDType)
        int_greater(dtype: BoolDType) int_greater_equal(dtype: BoolDType)
        int_lower(dtype: BoolDType) int_lower_equal(dtype: BoolDType)
    }
    zip! { I: Int, T: Bool => I: int_mask_fill(value: Scalar) }
    along! { I => I:
        int_sum_dim() int_mean_dim() int_prod_dim() int_max_dim() int_min_dim() int_max_abs_dim()
        int_cumsum() int_cumprod() int_cummax() int_cummin() int_argmax() int_argmin()
        int_sort(descending: bool) int_argsort(descending: bool) int_topk(k: usize) int_argtopk(k: usize)
        int_repeat_dim(times: usize) int_unfold(size: usize, step: usize)
    }
    along! { I => T: int_any_dim(dtype: BoolDType) int_all_dim(dtype: BoolDType) }
    along! { I => (I, I):
        int_max_dim_with_indices() int_min_dim_with_indices() int_sort_with_indices(descending: bool)
    }
    whole! { I: Int => I:
        int_sum, int_sum_dim() int_mean, int_mean_dim() int_prod, int_prod_dim()
        int_max, int_max_dim() int_min, int_min_dim() int_max_abs, int_max_abs_dim()
    }
    whole! { I: Int => T: int_any, int_any_dim(dtype: BoolDType) int_all, int_all_dim(dtype: BoolDType) }
    moves! { I: Int: int_reshape int_expand int_permute int_swap_dims int_flip int_slice int_slice_assign
        int_gather int_scatter_add int_select int_select_add int_cat int_mask_where
    }

    async fn int_into_data(x: I<B>) -> Result<TensorData, ExecutionError> {
        if x.is_batched() {
            return Err(unreadable("int_into_data", &x));
        }
        B::int_into_data(x.into_inner().0).await
    }

    fn int_device(x: &I<B>) -> Device<B> {
        B::int_device(x.inner())
    }

    #[track_caller]
    fn int_random(
        shape: Shape,
        distribution: Distribution,
        device: &Device<B>,
        dtype: IntDType,
    ) -> I<B> {
        draw::<B, Int>("int_random", shape, |shape| {
            B::int_random(shape, distribution, device, dtype)
        })
    }

    #[track_caller]
    fn int_matmul(x: I<B>, y: I<B>) -> I<B> {
        movement::matmul::<B, Int>(x, y, B::int_matmul)
    }

    #[track_caller]
    fn int_gather_nd(x: I<B>, indices: I<B>) -> I<B> {
        match common("int_gather_nd", [x.size(), indices.size()]) {
            Some(size) if x.is_batched() => {
                let (x, _) = x.into_inner();
                VmapTensor::batched(B::int_gather_nd(x, numbered::<B>(indices, size)))
            }
            size => {
                let y = B::int_gather_nd(x.into_inner().0, indices.into_inner().0);
                VmapTensor::new(y, size)
            }
        }
    }

    #[track_caller]
    fn int_scatter_nd(x: I<B>, indices: I<B>, value: I<B>, how: IndexingUpdateOp) -> I<B> {
        let Some(size) = common("int_scatter_nd", [x.size(), indices.size(), value.size()]) else {
            let (indices, value) = (indices.into_inner().0, value.into_inner().0);
            return x.map(|x| B::int_scatter_nd(x, indices, value, how));
        };
        let (x, y) = (raise::<B, Int>(x, Some(size)), raise::<B, Int>(value, Some(size)));
        VmapTensor::batched(B::int_scatter_nd(x, numbered::<B>(indices, size), y, how))
    }
}
