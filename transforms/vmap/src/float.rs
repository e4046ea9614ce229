//! Float tensors.

use burn_backend::ops::{FloatTensorOps, GridSampleOptions};
use burn_backend::tensor::{Device, Float, IndexingUpdateOp};
use burn_backend::{
    Backend, BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice,
    TensorData,
};

use crate::backend::{Vmap, unreadable};
use crate::module::fold::{fold, unfold};
use crate::movement::{self, numbered, raise};
use crate::random::draw;
use crate::rows::{F, I, T, along, create, map, moves, whole, zip};
use crate::tensor::{VmapTensor, common};

impl<B: Backend> FloatTensorOps<Self> for Vmap<B> {
    create! { F:
        float_from_data(data: TensorData, device: &Device<B>)
        float_zeros(shape: Shape, device: &Device<B>, dtype: FloatDType)
        float_ones(shape: Shape, device: &Device<B>, dtype: FloatDType)
        float_full(shape: Shape, value: Scalar, device: &Device<B>, dtype: FloatDType)
        float_empty(shape: Shape, device: &Device<B>, dtype: FloatDType)
    }
    map! { F => F:
        float_to_device(device: &Device<B>) float_detach() float_set_require_grad(require: bool)
        float_cast(dtype: FloatDType) float_transpose()
        float_abs() float_acos() float_acosh() float_asin() float_asinh() float_atan() float_atanh()
        float_ceil() float_cos() float_cosh() float_erf() float_exp() float_floor() float_log()
        float_log1p() float_neg() float_recip() float_round() float_sign() float_sin() float_sinh()
        float_sqrt() float_tan() float_tanh() float_trunc()
        float_add_scalar(y: Scalar) float_sub_scalar(y: Scalar) float_mul_scalar(y: Scalar)
        float_div_scalar(y: Scalar) float_remainder_scalar(y: Scalar)
        float_powf_scalar(y: Scalar) float_powf_scalar_impl(y: Scalar)
        float_powi_scalar(y: Scalar) float_powi_scalar_impl(y: Scalar)
        float_clamp(min: Scalar, max: Scalar) float_clamp_min(min: Scalar) float_clamp_max(max: Scalar)
    }
    map! { F => I: float_into_int(dtype: IntDType) }
    map! { F => T:
        float_equal_elem(y: Scalar, dtype: BoolDType) float_not_equal_elem(y: Scalar, dtype: BoolDType)
        float_greater_elem(y: Scalar, dtype: BoolDType) float_greater_equal_elem(y: Scalar, dtype: BoolDType)
        float_lower_elem(y: Scalar, dtype: BoolDType) float_lower_equal_elem(y: Scalar, dtype: BoolDType)
        float_is_nan(dtype: BoolDType) float_is_inf(dtype: BoolDType)
    }
    zip! { F: Float, F: Float => F:
        float_add() float_sub() float_mul() float_div() float_remainder() float_powf() float_atan2()
    }
    zip! { F: Float, I: Int => F: float_powi() }
    zip! { F: Float, F: Float => T:
        float_equal(dtype: BoolDType) float_not_equal(dtype: BoolDType)
        float_greater(dtype: BoolDType) float_greater_equal(dtype: BoolDType)
        float_lower(dtype: BoolDType) float_lower_equal(dtype: BoolDType)
    }
    zip! { F: Float, T: Bool => F: float_mask_fill(value: Scalar) }
    along! { F => F:
        float_sum_dim() float_mean_dim() float_prod_dim() float_max_dim() float_min_dim()
        float_max_abs_dim() float_cumsum() float_cumprod() float_cummax() float_cummin()
        float_sort(descending: bool) float_topk(k: usize) float_repeat_dim(times: usize)
        float_unfold(size: usize, step: usize)
    }
    along! { F => I:
        float_argmax(dtype: IntDType) float_argmin(dtype: IntDType)
        float_argsort(descending: bool, dtype: IntDType) float_argtopk(k: usize, dtype: IntDType)
    }
    along! { F => T: float_any_dim(dtype: BoolDType) float_all_dim(dtype: BoolDType) }
    along! { F => (F, I):
        float_max_dim_with_indices(dtype: IntDType) float_min_dim_with_indices(dtype: IntDType)
        float_sort_with_indices(descending: bool, dtype: IntDType)
    }
    whole! { F: Float => F:
        float_sum, float_sum_dim() float_mean, float_mean_dim() float_prod, float_prod_dim()
        float_max, float_max_dim() float_min, float_min_dim() float_max_abs, float_max_abs_dim()
    }
    whole! { F: Float => T:
        float_any, float_any_dim(dtype: BoolDType) float_all, float_all_dim(dtype: BoolDType)
    }
    moves! { F: Float: float_reshape float_expand float_permute float_swap_dims float_flip float_slice
        float_slice_assign float_gather float_scatter_add float_select float_select_add float_cat
        float_mask_where
    }

    async fn float_into_data(x: F<B>) -> Result<TensorData, ExecutionError> {
        if x.is_batched() {
            return Err(unreadable("float_into_data", &x));
        }
        B::float_into_data(x.into_inner().0).await
    }

    fn float_device(x: &F<B>) -> Device<B> {
        B::float_device(x.inner())
    }

    fn float_is_require_grad(x: &F<B>) -> bool {
        B::float_is_require_grad(x.inner())
    }

    #[track_caller]
    fn float_random(
        shape: Shape,
        distribution: Distribution,
        device: &Device<B>,
        dtype: FloatDType,
    ) -> F<B> {
        draw::<B, Float>("float_random", shape, |shape| {
            B::float_random(shape, distribution, device, dtype)
        })
    }

    #[track_caller]
    fn float_matmul(x: F<B>, y: F<B>) -> F<B> {
        movement::matmul::<B, Float>(x, y, B::float_matmul)
    }

    #[track_caller]
    fn float_cross(x: F<B>, y: F<B>, dim: usize) -> F<B> {
        let size = common("float_cross", [x.size(), y.size()]);
        let (x, y) = (raise::<B, Float>(x, size), raise::<B, Float>(y, size));
        VmapTensor::new(B::float_cross(x, y, dim + size.is_some() as usize), size)
    }

    #[track_caller]
    fn float_gather_nd(x: F<B>, indices: I<B>) -> F<B> {
        match common("float_gather_nd", [x.size(), indices.size()]) {
            Some(size) if x.is_batched() => {
                let (x, _) = x.into_inner();
                VmapTensor::batched(B::float_gather_nd(x, numbered::<B>(indices, size)))
            }
            size => {
                let y = B::float_gather_nd(x.into_inner().0, indices.into_inner().0);
                VmapTensor::new(y, size)
            }
        }
    }

    #[track_caller]
    fn float_scatter_nd(x: F<B>, indices: I<B>, value: F<B>, how: IndexingUpdateOp) -> F<B> {
        let Some(size) = common("float_scatter_nd", [x.size(), indices.size(), value.size()])
        else {
            let (indices, value) = (indices.into_inner().0, value.into_inner().0);
            return x.map(|x| B::float_scatter_nd(x, indices, value, how));
        };
        let (x, y) = (raise::<B, Float>(x, Some(size)), raise::<B, Float>(value, Some(size)));
        VmapTensor::batched(B::float_scatter_nd(x, numbered::<B>(indices, size), y, how))
    }

    #[track_caller]
    fn float_grid_sample_2d(x: F<B>, grid: F<B>, options: GridSampleOptions) -> F<B> {
        let size = common("float_grid_sample_2d", [x.size(), grid.size()]);
        let (x, grid) = (fold::<B, Float>(x, size), fold::<B, Float>(grid, size));
        unfold::<B, Float>(B::float_grid_sample_2d(x, grid, options), size)
    }
}
