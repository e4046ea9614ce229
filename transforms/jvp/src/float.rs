//! Forward-mode rules of float tensors, one row per method.
//!
//! At kinks the derivative is that of Burn's `Autodiff`: sign(0) = 0 for the absolute value, 1 at the ends of a clamp,
//! the element at the index for extrema. Three cases differ because Burn's rule returns NaN: products with zeros or
//! negative numbers, cumulative products with zeros, and `0^y` with respect to y, whose derivative is 0.

use burn_backend::ops::grid_sample::float_grid_sample_2d_ref;
use burn_backend::ops::{FloatTensorOps, GridSampleOptions};
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{
    Backend, BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice,
    TensorData, TensorMetadata,
};

use crate::backend::Jvp;
use crate::primitive::{JvpTensor, zeros_like};
use crate::real::InnerFloat;
use crate::rows::{constant, dropped, linear, still, unary};
use crate::{cumulative, extrema, indexed, powers};

/// 2/√π · exp(−x²), the derivative of erf.
fn bell<B: Backend>(x: InnerFloat<B>) -> InnerFloat<B> {
    (-x.square()).map(B::float_exp) * std::f64::consts::FRAC_2_SQRT_PI
}

impl<B: Backend> FloatTensorOps<Self> for Jvp<B> {
    constant! {
        fn float_from_data(data: TensorData, device: &Device<B>);
        fn float_random(shape: Shape, distribution: Distribution, device: &Device<B>, dtype: FloatDType);
        fn float_zeros(shape: Shape, device: &Device<B>, dtype: FloatDType);
        fn float_ones(shape: Shape, device: &Device<B>, dtype: FloatDType);
        fn float_full(shape: Shape, fill_value: Scalar, device: &Device<B>, dtype: FloatDType);
        fn float_empty(shape: Shape, device: &Device<B>, dtype: FloatDType);
    }

    dropped! {
        fn float_into_int(x; out_dtype: IntDType) -> IntTensor<Self>;
        fn float_equal(x, y; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_not_equal(x, y; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_greater(x, y; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_greater_equal(x, y; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_lower(x, y; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_lower_equal(x, y; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_equal_elem(x; c: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_not_equal_elem(x; c: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_greater_elem(x; c: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_greater_equal_elem(x; c: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_lower_elem(x; c: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_lower_equal_elem(x; c: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_is_nan(x; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_is_inf(x; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_any(x; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_all(x; out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_any_dim(x; dim: usize, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_all_dim(x; dim: usize, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_argmax(x; dim: usize, out_dtype: IntDType) -> IntTensor<Self>;
        fn float_argmin(x; dim: usize, out_dtype: IntDType) -> IntTensor<Self>;
        fn float_argtopk(x; dim: usize, k: usize, out_dtype: IntDType) -> IntTensor<Self>;
        fn float_argsort(x; dim: usize, descending: bool, out_dtype: IntDType) -> IntTensor<Self>;
    }

    linear! {
        fn float_to_device(x, device: &Device<B>);
        fn float_cast(x, dtype: FloatDType);
        fn float_mul_scalar(x, c: Scalar);
        fn float_div_scalar(x, c: Scalar);
        fn float_neg(x);
        fn float_swap_dims(x, dim1: usize, dim2: usize);
        fn float_permute(x, axes: &[usize]);
        fn float_flip(x, axes: &[usize]);
        fn float_transpose(x);
        fn float_reshape(x, shape: Shape);
        fn float_expand(x, shape: Shape);
        fn float_repeat_dim(x, dim: usize, times: usize);
        fn float_unfold(x, dim: usize, size: usize, step: usize);
        fn float_slice(x, slices: &[Slice]);
        fn float_select(x, dim: usize, indices: IntTensor<Self>);
        fn float_gather_nd(x, indices: IntTensor<Self>);
        fn float_sum(x);
        fn float_sum_dim(x, dim: usize);
        fn float_mean(x);
        fn float_mean_dim(x, dim: usize);
        fn float_cumsum(x, dim: usize);
    }

    still! {
        fn float_sign;
        fn float_floor;
        fn float_ceil;
        fn float_round;
        fn float_trunc;
        fn float_detach;
    }

    unary! {
        fn float_exp: |t, _, y| t * y;
        fn float_log: |t, x, _| t / x;
        fn float_log1p: |t, x, _| t / (x + 1.0);
        fn float_sqrt: |t, _, y| t / y / 2.0;
        fn float_abs: |t, x, _| t * x.map(B::float_sign);
        fn float_recip: |t, _, y| -(t * y.square());
        fn float_sin: |t, x, _| t * x.map(B::float_cos);
        fn float_cos: |t, x, _| -(t * x.map(B::float_sin));
        fn float_tan: |t, _, y| t * (y.square() + 1.0);
        fn float_sinh: |t, x, _| t * x.map(B::float_cosh);
        fn float_cosh: |t, x, _| t * x.map(B::float_sinh);
        fn float_tanh: |t, _, y| t * (-y.square() + 1.0);
        fn float_asin: |t, x, _| t / (-x.square() + 1.0).map(B::float_sqrt);
        fn float_acos: |t, x, _| -(t / (-x.square() + 1.0).map(B::float_sqrt));
        fn float_atan: |t, x, _| t / (x.square() + 1.0);
        fn float_asinh: |t, x, _| t / (x.square() + 1.0).map(B::float_sqrt);
        fn float_acosh: |t, x, _| t / (x.square() - 1.0).map(B::float_sqrt);
        fn float_atanh: |t, x, _| t / (-x.square() + 1.0);
        fn float_erf: |t, x, _| t * bell(x);
    }

    async fn float_into_data(x: FloatTensor<Self>) -> Result<TensorData, ExecutionError> {
        B::float_into_data(x.primal).await
    }

    fn float_device(x: &FloatTensor<Self>) -> Device<Self> {
        B::float_device(&x.primal)
    }

    fn float_set_require_grad(x: FloatTensor<Self>, require_grad: bool) -> FloatTensor<Self> {
        JvpTensor { primal: B::float_set_require_grad(x.primal, require_grad), ..x }
    }

    fn float_is_require_grad(x: &FloatTensor<Self>) -> bool {
        B::float_is_require_grad(&x.primal)
    }

    fn float_add(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        JvpTensor::joined(B::float_add(x.primal, y.primal), x.tangent, y.tangent)
    }

    fn float_sub(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        let primal = B::float_sub(x.primal, y.primal);
        match (x.tangent, y.tangent) {
            (Some(a), Some(b)) => JvpTensor { primal, tangent: Some(B::float_sub(a, b)) },
            (a, b) => JvpTensor::joined(primal, a, b.map(B::float_neg)),
        }
    }

    fn float_mul(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        x.bilinear(y, B::float_mul)
    }

    fn float_matmul(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        x.bilinear(y, B::float_matmul)
    }

    fn float_cross(x: FloatTensor<Self>, y: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        x.bilinear(y, |x, y| B::float_cross(x, y, dim))
    }

    fn float_div(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        let z = B::float_div(x.primal, y.primal.clone());
        let left = x.tangent.map(|t| B::float_div(t, y.primal.clone()));
        let right = y
            .tangent
            .map(|t| (-(InnerFloat::<B>(z.clone()) * InnerFloat(t) / InnerFloat(y.primal))).0);
        JvpTensor::joined(z, left, right)
    }

    /// x − ⌊x/y⌋ y.
    fn float_remainder(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        let right = y.tangent.map(|t| {
            let quotient = InnerFloat::<B>(x.primal.clone()) / InnerFloat(y.primal.clone());
            (-(quotient.map(B::float_floor) * InnerFloat(t))).0
        });
        JvpTensor::joined(B::float_remainder(x.primal, y.primal), x.tangent, right)
    }

    fn float_add_scalar(x: FloatTensor<Self>, c: Scalar) -> FloatTensor<Self> {
        JvpTensor { primal: B::float_add_scalar(x.primal, c), ..x }
    }

    fn float_sub_scalar(x: FloatTensor<Self>, c: Scalar) -> FloatTensor<Self> {
        JvpTensor { primal: B::float_sub_scalar(x.primal, c), ..x }
    }

    fn float_remainder_scalar(x: FloatTensor<Self>, c: Scalar) -> FloatTensor<Self> {
        JvpTensor { primal: B::float_remainder_scalar(x.primal, c), ..x }
    }

    /// Angle of (x, y): (x ẏ − y ẋ)/(x² + y²).
    fn float_atan2(y: FloatTensor<Self>, x: FloatTensor<Self>) -> FloatTensor<Self> {
        let (a, b) = (InnerFloat::<B>(y.primal.clone()), InnerFloat::<B>(x.primal.clone()));
        let angle = B::float_atan2(y.primal, x.primal);
        if y.tangent.is_none() && x.tangent.is_none() {
            return JvpTensor::constant(angle);
        }
        let norm = a.clone().square() + b.clone().square();
        let left = y.tangent.map(|t| (InnerFloat(t) * b / norm.clone()).0);
        let right = x.tangent.map(|t| (-(InnerFloat(t) * a / norm)).0);
        JvpTensor::joined(angle, left, right)
    }

    fn float_powf(x: FloatTensor<Self>, y: FloatTensor<Self>) -> FloatTensor<Self> {
        powers::float(x, y)
    }

    fn float_powi(x: FloatTensor<Self>, n: IntTensor<Self>) -> FloatTensor<Self> {
        powers::int(x, n)
    }

    fn float_powi_scalar(x: FloatTensor<Self>, c: Scalar) -> FloatTensor<Self> {
        powers::scalar(x, c, B::float_powi_scalar)
    }

    fn float_powi_scalar_impl(x: FloatTensor<Self>, c: Scalar) -> FloatTensor<Self> {
        powers::scalar(x, c, B::float_powi_scalar_impl)
    }

    fn float_powf_scalar(x: FloatTensor<Self>, c: Scalar) -> FloatTensor<Self> {
        powers::scalar(x, c, B::float_powf_scalar)
    }

    fn float_powf_scalar_impl(x: FloatTensor<Self>, c: Scalar) -> FloatTensor<Self> {
        powers::scalar(x, c, B::float_powf_scalar_impl)
    }

    fn float_clamp(x: FloatTensor<Self>, min: Scalar, max: Scalar) -> FloatTensor<Self> {
        x.chain(
            |x| B::float_clamp(x, min, max),
            |t, x, _| t.without(x.above(max)).without(x.below(min)),
        )
    }

    fn float_clamp_min(x: FloatTensor<Self>, min: Scalar) -> FloatTensor<Self> {
        x.chain(|x| B::float_clamp_min(x, min), |t, x, _| t.without(x.below(min)))
    }

    fn float_clamp_max(x: FloatTensor<Self>, max: Scalar) -> FloatTensor<Self> {
        x.chain(|x| B::float_clamp_max(x, max), |t, x, _| t.without(x.above(max)))
    }

    fn float_gather(
        dim: usize,
        x: FloatTensor<Self>,
        indices: IntTensor<Self>,
    ) -> FloatTensor<Self> {
        x.linear(|x| B::float_gather(dim, x, indices.clone()))
    }

    fn float_scatter_add(
        dim: usize,
        x: FloatTensor<Self>,
        indices: IntTensor<Self>,
        y: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        x.accumulated(y, |x, y| B::float_scatter_add(dim, x, indices.clone(), y))
    }

    fn float_select_add(
        x: FloatTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
        y: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        x.accumulated(y, |x, y| B::float_select_add(x, dim, indices.clone(), y))
    }

    fn float_scatter_nd(
        x: FloatTensor<Self>,
        indices: IntTensor<Self>,
        y: FloatTensor<Self>,
        reduction: IndexingUpdateOp,
    ) -> FloatTensor<Self> {
        indexed::scatter_nd(x, indices, y, reduction)
    }

    fn float_slice_assign(
        x: FloatTensor<Self>,
        slices: &[Slice],
        y: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        x.together(y, |x, y| B::float_slice_assign(x, slices, y))
    }

    fn float_mask_where(
        x: FloatTensor<Self>,
        mask: BoolTensor<Self>,
        y: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        indexed::mask_where(x, mask, y)
    }

    fn float_mask_fill(
        x: FloatTensor<Self>,
        mask: BoolTensor<Self>,
        c: Scalar,
    ) -> FloatTensor<Self> {
        indexed::mask_fill(x, mask, c)
    }

    fn float_cat(all: Vec<FloatTensor<Self>>, dim: usize) -> FloatTensor<Self> {
        let moves = all.iter().any(JvpTensor::moves);
        let tangents = moves.then(|| {
            let filled =
                |x: &JvpTensor<B>| x.tangent.clone().unwrap_or_else(|| zeros_like::<B>(&x.primal));
            B::float_cat(all.iter().map(filled).collect(), dim)
        });
        let primals = all.into_iter().map(|x| x.primal).collect();
        JvpTensor { primal: B::float_cat(primals, dim), tangent: tangents }
    }

    fn float_prod(x: FloatTensor<Self>) -> FloatTensor<Self> {
        x.chain(B::float_prod, |t, x, _| {
            let flat = |x: InnerFloat<B>| {
                let n = x.0.shape().num_elements();
                x.map(|x| B::float_reshape(x, Shape::new([n])))
            };
            cumulative::product_tangent(flat(t), flat(x), 0)
        })
    }

    fn float_prod_dim(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        x.chain(|x| B::float_prod_dim(x, dim), |t, x, _| cumulative::product_tangent(t, x, dim))
    }

    fn float_cumprod(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        x.chain(|x| B::float_cumprod(x, dim), |t, x, _| cumulative::cumprod_tangent(t, x, dim))
    }

    fn float_cummax(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        x.chain(|x| B::float_cummax(x, dim), |t, x, y| cumulative::extremum_tangent(t, x, y, dim))
    }

    fn float_cummin(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        x.chain(|x| B::float_cummin(x, dim), |t, x, y| cumulative::extremum_tangent(t, x, y, dim))
    }

    fn float_max(x: FloatTensor<Self>) -> FloatTensor<Self> {
        extrema::over_all(x, B::float_max, Self::float_max_dim)
    }

    fn float_min(x: FloatTensor<Self>) -> FloatTensor<Self> {
        extrema::over_all(x, B::float_min, Self::float_min_dim)
    }

    fn float_max_dim(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        extrema::along(x, dim, B::float_max_dim, B::float_max_dim_with_indices)
    }

    fn float_min_dim(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        extrema::along(x, dim, B::float_min_dim, B::float_min_dim_with_indices)
    }

    fn float_max_dim_with_indices(
        x: FloatTensor<Self>,
        dim: usize,
        indices_dtype: IntDType,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        extrema::picked(x, dim, |x| B::float_max_dim_with_indices(x, dim, indices_dtype))
    }

    fn float_min_dim_with_indices(
        x: FloatTensor<Self>,
        dim: usize,
        indices_dtype: IntDType,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        extrema::picked(x, dim, |x| B::float_min_dim_with_indices(x, dim, indices_dtype))
    }

    fn float_max_abs(x: FloatTensor<Self>) -> FloatTensor<Self> {
        match x.moves() {
            true => Self::float_max(Self::float_abs(x)),
            false => JvpTensor::constant(B::float_max_abs(x.primal)),
        }
    }

    fn float_max_abs_dim(x: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        match x.moves() {
            true => Self::float_max_dim(Self::float_abs(x), dim),
            false => JvpTensor::constant(B::float_max_abs_dim(x.primal, dim)),
        }
    }

    fn float_sort(x: FloatTensor<Self>, dim: usize, descending: bool) -> FloatTensor<Self> {
        extrema::along(
            x,
            dim,
            |x, dim| B::float_sort(x, dim, descending),
            |x, dim, ints| B::float_sort_with_indices(x, dim, descending, ints),
        )
    }

    fn float_sort_with_indices(
        x: FloatTensor<Self>,
        dim: usize,
        descending: bool,
        indices_dtype: IntDType,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        extrema::picked(x, dim, |x| B::float_sort_with_indices(x, dim, descending, indices_dtype))
    }

    fn float_topk(x: FloatTensor<Self>, dim: usize, k: usize) -> FloatTensor<Self> {
        if !x.moves() {
            return JvpTensor::constant(B::float_topk(x.primal, dim, k));
        }
        let mut slices = vec![Slice::full(); dim + 1];
        slices[dim] = Slice::new(0, Some(k as isize), 1);
        Self::float_slice(Self::float_sort(x, dim, true), &slices)
    }

    fn float_grid_sample_2d(
        x: FloatTensor<Self>,
        grid: FloatTensor<Self>,
        options: GridSampleOptions,
    ) -> FloatTensor<Self> {
        match x.moves() || grid.moves() {
            true => float_grid_sample_2d_ref::<Self>(x, grid, options),
            false => JvpTensor::constant(B::float_grid_sample_2d(x.primal, grid.primal, options)),
        }
    }
}
