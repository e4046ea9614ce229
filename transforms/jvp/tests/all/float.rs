//! Rules of float tensors.

use burn::tensor::backend::Backend;
use burn::tensor::ops::{GridSampleOptions, InterpolateMode};
use burn::tensor::{
    Bool, IndexingUpdateOp, Int, Tensor, TensorData, TensorPrimitive, activation, s,
};

use crate::rows::{rows, tensor};

fn ints<B: Backend, const D: usize>(x: &[i64], shape: [usize; D]) -> Tensor<B, D, Int> {
    Tensor::from_data(TensorData::new(x.to_vec(), shape), &Default::default())
}

fn flags<B: Backend, const D: usize>(x: &[i64], shape: [usize; D]) -> Tensor<B, D, Bool> {
    ints(x, shape).equal_elem(1)
}

// Unary elementwise functions.
rows! {
    check exp(x: [2, 3] in (-1.0, 1.0)) => x.exp();
    check log(x: [2, 3] in (0.5, 2.0)) => x.log();
    check log1p(x: [2, 3] in (-0.5, 2.0)) => x.log1p();
    check sqrt(x: [2, 3] in (0.5, 2.0)) => x.sqrt();
    check abs(x: [2, 3] in (-1.0, 1.0)) => x.abs();
    check recip(x: [2, 3] in (0.5, 2.0)) => x.recip();
    check sin(x: [2, 3] in (-2.0, 2.0)) => x.sin();
    check cos(x: [2, 3] in (-2.0, 2.0)) => x.cos();
    check tan(x: [2, 3] in (-1.0, 1.0)) => x.tan();
    check sinh(x: [2, 3] in (-2.0, 2.0)) => x.sinh();
    check cosh(x: [2, 3] in (-2.0, 2.0)) => x.cosh();
    check tanh(x: [2, 3] in (-2.0, 2.0)) => x.tanh();
    check asin(x: [2, 3] in (-0.8, 0.8)) => x.asin();
    check acos(x: [2, 3] in (-0.8, 0.8)) => x.acos();
    check atan(x: [2, 3] in (-2.0, 2.0)) => x.atan();
    check asinh(x: [2, 3] in (-2.0, 2.0)) => x.asinh();
    check acosh(x: [2, 3] in (1.5, 3.0)) => x.acosh();
    check atanh(x: [2, 3] in (-0.8, 0.8)) => x.atanh();
    check erf(x: [2, 3] in (-2.0, 2.0)) => x.erf();
    check square(x: [2, 3] in (-2.0, 2.0)) => x.square();
    check neg(x: [2, 3] in (-2.0, 2.0)) => -x;
    check sign(x: [2, 3] in (-2.0, 2.0)) => x.clone().sign() * x;
    check floor(x: [2, 3] in (-2.0, 2.0)) => x.clone().floor() * x;
    check ceil(x: [2, 3] in (-2.0, 2.0)) => x.clone().ceil() * x;
    check round(x: [2, 3] in (-2.0, 2.0)) => x.clone().round() * x;
    check trunc(x: [2, 3] in (-2.0, 2.0)) => x.clone().trunc() * x;
    check clamp(x: [4, 3] in (-2.0, 2.0)) => x.clone().clamp(-0.5, 1.0) * x;
    check clamp_min(x: [4, 3] in (-2.0, 2.0)) => x.clone().clamp_min(-0.5) * x;
    check clamp_max(x: [4, 3] in (-2.0, 2.0)) => x.clone().clamp_max(0.5) * x;
    check powf_scalar(x: [2, 3] in (0.5, 2.0)) => x.powf_scalar(2.5);
    check powf_scalar_negative(x: [2, 3] in (0.5, 2.0)) => x.powf_scalar(-1.5);
    check powf_scalar_whole(x: [2, 3] in (-2.0, 2.0)) => x.powf_scalar(3.0);
    check powi_scalar(x: [2, 3] in (-2.0, 2.0)) => x.powi_scalar(3);
    check powi_scalar_one(x: [2, 3] in (-2.0, 2.0)) => x.powi_scalar(1);
    check powi_scalar_zero(x: [2, 3] in (-2.0, 2.0)) => x.clone().powi_scalar(0) * x;
    check powi_scalar_negative(x: [2, 3] in (0.5, 2.0)) => x.powi_scalar(-3);
    check remainder_scalar(x: [2, 3] in (0.1, 0.9)) => x.clone().remainder_scalar(0.95) * x;
    check scalars(x: [2, 3] in (-2.0, 2.0)) => ((x.clone() + 2.0) * 3.0 - 1.0) / 4.0 * x;
}

// Binary elementwise functions, with broadcasting.
rows! {
    check add(x: [2, 3] in (-1.0, 1.0), y: [1, 3] in (-1.0, 1.0)) => (x.clone() + y) * x;
    check add_both_broadcast(x: [2, 1] in (-1.0, 1.0), y: [1, 3] in (-1.0, 1.0)) => x + y;
    check sub(x: [2, 1] in (-1.0, 1.0), y: [2, 3] in (-1.0, 1.0)) => (x - y.clone()) * y;
    check mul(x: [2, 1] in (-1.0, 1.0), y: [1, 3] in (-1.0, 1.0)) => x * y;
    check div(x: [2, 1] in (-1.0, 1.0), y: [1, 3] in (0.5, 2.0)) => x / y;
    check remainder(x: [2, 3] in (3.1, 3.9), y: [2, 3] in (0.85, 0.95)) => x.remainder(y);
    check atan2(y: [2, 3] in (0.5, 2.0), x: [2, 3] in (-2.0, -0.5)) => y.atan2(x);
    check powf(x: [2, 3] in (0.5, 2.0), y: [2, 3] in (-2.0, 2.0)) => x.powf(y);
    check powf_broadcast(x: [2, 1] in (0.5, 2.0), y: [1, 3] in (-2.0, 2.0)) => x.powf(y);
    check powi(x: [2, 3] in (0.5, 2.0)) => {
        let n = ints::<Back, 2>(&[2, -1, 3, 1, 0, 4], [2, 3]).float().cast(burn::tensor::DType::F64);
        x.powi(n)
    };
    check powi_of_integers(x: [2, 3] in (0.5, 2.0)) => {
        let n = ints::<Back, 2>(&[2, -1, 3, 1, 0, 4], [2, 3]).into_primitive();
        let y = Back::float_powi(x.into_primitive().tensor(), n);
        Tensor::<Back, 2>::from_primitive(TensorPrimitive::Float(y))
    };
    check matmul(x: [2, 3] in (-1.0, 1.0), y: [3, 2] in (-1.0, 1.0)) => x.matmul(y);
    check matmul_broadcast(x: [2, 1, 2, 3] in (-1.0, 1.0), y: [1, 2, 3, 2] in (-1.0, 1.0)) => x.matmul(y);
    check cross(x: [2, 3] in (-1.0, 1.0), y: [2, 3] in (-1.0, 1.0)) => x.cross(y, 1);
}

// Selection and data movement.
rows! {
    check mask_where(x: [2, 3] in (-1.0, 1.0), y: [2, 3] in (-1.0, 1.0)) => {
        let flags = flags::<Back, 2>(&[1, 0, 0, 1, 1, 0], [2, 3]);
        x.clone().mask_where(flags, y.clone()) * x * y
    };
    check mask_where_broadcast(x: [2, 3] in (-1.0, 1.0), y: [1, 3] in (-1.0, 1.0)) => {
        x.mask_where(flags::<Back, 2>(&[1, 0, 0, 1, 1, 0], [2, 3]), y)
    };
    check mask_fill(x: [2, 3] in (-1.0, 1.0)) => {
        x.clone().mask_fill(flags::<Back, 2>(&[1, 0, 0, 1, 1, 0], [2, 3]), 0.5) * x
    };
    check gather(x: [2, 3] in (-1.0, 1.0)) => {
        let y = x.gather(1, ints(&[2, 0, 0, 1, 1, 1], [2, 3]));
        y.clone() * y
    };
    check scatter(x: [2, 3] in (-1.0, 1.0), y: [2, 2] in (-1.0, 1.0)) => {
        let z = x.scatter(1, ints(&[2, 2, 0, 1], [2, 2]), y, IndexingUpdateOp::Add);
        z.clone() * z
    };
    check select(x: [3, 2] in (-1.0, 1.0)) => x.clone().select(0, ints(&[2, 0, 2], [3])) * x;
    check select_assign(x: [3, 2] in (-1.0, 1.0), y: [2, 2] in (-1.0, 1.0)) => {
        let z = x.select_assign(0, ints(&[2, 2], [2]), y, IndexingUpdateOp::Add);
        z.clone() * z
    };
    check gather_nd(x: [2, 3] in (-1.0, 1.0)) => {
        let y: Tensor<Back, 1> = x.gather_nd(ints::<Back, 2>(&[0, 1, 1, 2, 0, 1], [3, 2]));
        y.clone() * y
    };
    check scatter_nd_add(x: [2, 3] in (-1.0, 1.0), y: [3] in (-1.0, 1.0)) => {
        let z = x.scatter_nd(ints::<Back, 2>(&[0, 1, 1, 2, 0, 1], [3, 2]), y, IndexingUpdateOp::Add);
        z.clone() * z
    };
    check scatter_nd_assign(x: [2, 3] in (-1.0, 1.0), y: [2] in (-1.0, 1.0)) => {
        let z = x.scatter_nd(ints::<Back, 2>(&[0, 1, 1, 2], [2, 2]), y, IndexingUpdateOp::Assign);
        z.clone() * z
    };
    check scatter_nd_mul(x: [2, 3] in (-1.0, 1.0), y: [2] in (-1.0, 1.0)) => {
        x.scatter_nd(ints::<Back, 2>(&[0, 1, 1, 2], [2, 2]), y, IndexingUpdateOp::Mul)
    };
    check scatter_nd_max(x: [2, 3] in (-1.0, 1.0), y: [3] in (-1.0, 1.0)) => {
        let z = x.scatter_nd(ints::<Back, 2>(&[0, 1, 1, 2, 0, 0], [3, 2]), y, IndexingUpdateOp::Max);
        z.clone() * z
    };
    check scatter_nd_min(x: [2, 3] in (-1.0, 1.0), y: [3] in (-1.0, 1.0)) => {
        let z = x.scatter_nd(ints::<Back, 2>(&[0, 1, 1, 2, 0, 0], [3, 2]), y, IndexingUpdateOp::Min);
        z.clone() * z
    };
    check slice(x: [3, 5] in (-1.0, 1.0)) => {
        let y = x.slice(s![1..3, 0..5;2]);
        y.clone() * y
    };
    check slice_backwards(x: [3, 5] in (-1.0, 1.0)) => {
        let y = x.slice(s![.., ..;-2]);
        y.clone() * y
    };
    check slice_assign(x: [3, 4] in (-1.0, 1.0), y: [2, 2] in (-1.0, 1.0)) => {
        let z = x.slice_assign(s![1..3, 0..4;2], y);
        z.clone() * z
    };
    check slice_fill(x: [3, 4] in (-1.0, 1.0)) => x.clone().slice_fill(s![1..3, 0..2], 2.0) * x;
    check cat(x: [2, 1] in (-1.0, 1.0), y: [2, 2] in (-1.0, 1.0)) => {
        let z = Tensor::cat(vec![x, y], 1);
        z.clone() * z
    };
    check stack(x: [2] in (-1.0, 1.0), y: [2] in (-1.0, 1.0)) => Tensor::stack::<2>(vec![x.clone(), y * x], 1);
    check repeat_dim(x: [2, 1] in (-1.0, 1.0)) => x.repeat_dim(1, 3).sin();
    // Burn's tape has a different gradient for axes longer than 1.
    check_forward repeat_longer_dim(x: [2, 2] in (-1.0, 1.0)) => x.repeat_dim(1, 2).sin();
    check expand(x: [2, 1] in (-1.0, 1.0)) => x.expand([2, 3]).sin();
    check reshape(x: [2, 3] in (-1.0, 1.0)) => x.reshape([3, 2]).sin();
    check permute(x: [2, 3, 1] in (-1.0, 1.0)) => x.permute([2, 0, 1]).sin();
    check swap_dims(x: [2, 3] in (-1.0, 1.0)) => x.swap_dims(0, 1).sin();
    check transpose(x: [2, 3] in (-1.0, 1.0)) => x.clone().transpose().matmul(x);
    check flip(x: [2, 3] in (-1.0, 1.0)) => x.clone().flip([0, 1]) * x;
    check unfold(x: [2, 5] in (-1.0, 1.0)) => {
        let y: Tensor<Back, 3> = x.unfold(1, 3, 1);
        y.sin()
    };
    check grid_sample(x: [1, 1, 4, 4] in (-1.0, 1.0), grid: [1, 2, 2, 2] in (-0.6, 0.6)) => {
        x.grid_sample_2d(grid, GridSampleOptions::new(InterpolateMode::Bilinear))
    };
}

// Reductions.
rows! {
    check sum(x: [2, 3] in (-1.0, 1.0)) => x.sin().sum();
    check sum_dim(x: [2, 3] in (-1.0, 1.0)) => x.sin().sum_dim(0);
    check mean(x: [2, 3] in (-1.0, 1.0)) => x.sin().mean();
    check mean_dim(x: [2, 3] in (-1.0, 1.0)) => x.sin().mean_dim(1);
    check prod_positive(x: [2, 3] in (0.5, 1.5)) => x.prod();
    check_forward prod(x: [7] in (-1.5, 1.5)) => x.prod();
    check_forward prod_zero(x: [5] in (-1.5, 1.5)) => (x * tensor(&[1.0, 0.0, 1.0, 1.0, 1.0])).prod();
    check_forward prod_dim(x: [3, 5] in (-1.5, 1.5)) => x.prod_dim(1);
    check_forward prod_dim_first(x: [4, 2] in (-1.5, 1.5)) => x.prod_dim(0);
    check var(x: [2, 4] in (-1.0, 1.0)) => x.var(1);
    check max(x: [2, 3] in (-1.0, 1.0)) => x.sin().max();
    check min(x: [2, 3] in (-1.0, 1.0)) => x.sin().min();
    check max_dim(x: [2, 3] in (-1.0, 1.0)) => x.sin().max_dim(1);
    check min_dim(x: [2, 3] in (-1.0, 1.0)) => x.sin().min_dim(0);
    check max_dim_with_indices(x: [2, 3] in (-1.0, 1.0)) => x.sin().max_dim_with_indices(1).0;
    check min_dim_with_indices(x: [2, 3] in (-1.0, 1.0)) => x.sin().min_dim_with_indices(1).0;
    check max_abs(x: [2, 3] in (-1.0, 1.0)) => x.sin().max_abs();
    check max_abs_dim(x: [2, 3] in (-1.0, 1.0)) => x.sin().max_abs_dim(1);
    check max_pair(x: [2, 3] in (-1.0, 1.0), y: [2, 3] in (-1.0, 1.0)) => x.sin().max_pair(y);
    check cumsum(x: [2, 3] in (-1.0, 1.0)) => x.sin().cumsum(1);
    check cumprod(x: [2, 5] in (0.5, 1.5)) => x.cumprod(1);
    check_forward cumprod_zero(x: [6] in (-1.5, 1.5)) => (x * tensor(&[1.0, 1.0, 0.0, 1.0, 0.0, 1.0])).cumprod(0);
    check cummax(x: [2, 6] in (-1.0, 1.0)) => x.sin().cummax(1);
    check cummin(x: [6, 2] in (-1.0, 1.0)) => x.sin().cummin(0);
    check sort(x: [2, 5] in (-1.0, 1.0)) => x.sin().sort(1);
    check sort_descending(x: [5, 2] in (-1.0, 1.0)) => x.sin().sort_descending(0);
    check sort_with_indices(x: [2, 5] in (-1.0, 1.0)) => x.sin().sort_with_indices(1).0;
    check_forward topk(x: [2, 5] in (-1.0, 1.0)) => x.sin().topk(2, 1);
}

// Activation functions.
rows! {
    check relu(x: [4, 3] in (-1.0, 1.0)) => activation::relu(x.clone()) * x;
    check gelu(x: [4, 3] in (-2.0, 2.0)) => activation::gelu(x);
    check gelu_approximate(x: [4, 3] in (-2.0, 2.0)) => activation::gelu_approximate(x);
    check leaky_relu(x: [4, 3] in (-1.0, 1.0)) => activation::leaky_relu(x.clone(), 0.1) * x;
    check prelu(x: [2, 3, 2] in (-1.0, 1.0), alpha: [3] in (0.1, 0.5)) => activation::prelu(x, alpha);
    check sigmoid(x: [4, 3] in (-3.0, 3.0)) => activation::sigmoid(x);
    check_forward hard_sigmoid(x: [4, 3] in (-4.0, 4.0)) => activation::hard_sigmoid(x.clone(), 0.2, 0.5) * x;
    check log_sigmoid(x: [4, 3] in (-3.0, 3.0)) => activation::log_sigmoid(x);
    check softmax(x: [4, 3] in (-2.0, 2.0)) => activation::softmax(x, 1);
    check softmax_first(x: [4, 3] in (-2.0, 2.0)) => activation::softmax(x, 0);
    check softmin(x: [4, 3] in (-2.0, 2.0)) => activation::softmin(x, 1);
    check quiet_softmax(x: [4, 3] in (-2.0, 2.0)) => activation::quiet_softmax(x, 1);
    check log_softmax(x: [4, 3] in (-2.0, 2.0)) => activation::log_softmax(x, 1);
    check silu(x: [4, 3] in (-2.0, 2.0)) => activation::silu(x);
    check softplus(x: [4, 3] in (-2.0, 2.0)) => activation::softplus(x, 2.0);
    check mish(x: [4, 3] in (-2.0, 2.0)) => activation::mish(x);
}
