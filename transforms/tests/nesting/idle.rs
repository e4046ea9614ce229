//! Methods on backends around the engine that have nothing to do.

use burn::tensor::activation::{
    gelu, leaky_relu, log_sigmoid, log_softmax, relu, sigmoid, softmax,
};
use burn::tensor::backend::Backend;
use burn::tensor::module::{
    adaptive_avg_pool2d, avg_pool2d, conv_transpose2d, conv1d, conv2d, embedding, interpolate,
    linear, max_pool2d, max_pool2d_with_indices, unfold4d,
};
use burn::tensor::ops::{
    ConvOptions, ConvTransposeOptions, InterpolateMode, InterpolateOptions, UnfoldOptions,
};
use burn::tensor::{Bool, DType, IndexingUpdateOp, Int, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a_transforms::compile::Traced;
use burn_t4a_transforms::jvp::Jvp;
use burn_t4a_transforms::vmap::Vmap;

type B = BurnT4a;

/// Results with their names.
struct Results(Vec<(String, TensorData)>);

impl Results {
    fn floats<A: Backend, const D: usize>(&mut self, family: &str, all: Vec<Tensor<A, D>>) {
        for (i, x) in all.into_iter().enumerate() {
            self.0.push((format!("{family} {i}"), x.into_data()));
        }
    }
    fn ints<A: Backend, const D: usize>(&mut self, family: &str, all: Vec<Tensor<A, D, Int>>) {
        for (i, x) in all.into_iter().enumerate() {
            self.0.push((format!("{family} {i}"), x.into_data()));
        }
    }
    fn bools<A: Backend, const D: usize>(&mut self, family: &str, all: Vec<Tensor<A, D, Bool>>) {
        for (i, x) in all.into_iter().enumerate() {
            self.0.push((format!("{family} {i}"), x.into_data()));
        }
    }
}

fn noise<A: Backend, const D: usize>(shape: [usize; D], seed: usize) -> Tensor<A, D> {
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 10_007) as f32 / 5003.0 - 1.0;
    let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), &A::Device::default())
}

fn elements<A: Backend>(all: &mut Results) {
    let (x, y) = (noise::<A, 2>([5, 6], 1), noise::<A, 2>([5, 6], 2));
    let positive = x.clone().abs() + 0.5;
    all.floats(
        "functions",
        vec![
            x.clone().exp(),
            positive.clone().log(),
            positive.clone().log1p(),
            positive.clone().sqrt(),
            positive.clone().recip(),
            -x.clone(),
            x.clone().sin(),
            x.clone().cos(),
            x.clone().tan(),
            x.clone().sinh(),
            x.clone().cosh(),
            x.clone().tanh(),
            x.clone().asin(),
            x.clone().acos(),
            x.clone().atan(),
            positive.clone().asinh(),
            x.clone().erf(),
            x.clone().floor(),
            x.clone().ceil(),
            x.clone().round(),
            x.clone().trunc(),
            x.clone().sign(),
            x.clone().clamp(-0.3, 0.4),
            x.clone().powi_scalar(3),
            positive.clone().powf_scalar(1.7),
            positive.powf(y.clone()),
            relu(x.clone()),
            gelu(x.clone()),
            sigmoid(x.clone()),
            log_sigmoid(x.clone()),
            leaky_relu(x.clone(), 0.1),
            softmax(x.clone(), 1),
            log_softmax(x.clone(), 0),
        ],
    );
    let row = y.clone().narrow(0, 1, 1);
    all.floats(
        "two",
        vec![
            x.clone() + row.clone(),
            x.clone() - y.clone(),
            x.clone() * row,
            x.clone() / y.clone(),
            x.clone() + 2.0,
            x.clone().remainder(y.clone()),
            x.clone().remainder_scalar(0.3),
            x.clone().max_pair(y.clone()),
            x.clone().min_pair(y.clone()),
            x.clone().mask_where(x.clone().greater(y.clone()), y.clone()),
            x.clone().mask_fill(y.clone().lower_elem(0.0), 2.0),
            x.clone().cast(DType::F64).cast(DType::F32),
            x.clone().cast(DType::F16).cast(DType::F32),
        ],
    );
    all.bools(
        "comparisons",
        vec![
            x.clone().equal(y.clone()),
            x.clone().not_equal(y.clone()),
            x.clone().greater_equal(y.clone()),
            x.clone().lower_equal(y.clone()),
            x.clone().greater_elem(0.1),
            x.clone().is_nan(),
            x.clone().is_inf(),
            x.clone().greater(y.clone()).bool_and(y.clone().lower_elem(0.0)),
            x.clone().lower(y.clone()).bool_not(),
            x.clone().greater(y.clone()).any_dim(1),
            x.clone().greater_elem(-2.0).all_dim(0),
        ],
    );
    let (a, b) = ((x * 10.0).int(), (y * 5.0).int() + 7);
    all.ints(
        "integers",
        vec![
            a.clone() + b.clone(),
            a.clone() - b.clone(),
            a.clone() * 3,
            a.clone().abs() / (b.clone().abs() + 1),
            a.clone().clamp(-3, 4),
            a.clone().sum_dim(0),
            a.clone().prod_dim(1),
            a.clone().max_pair(b.clone()),
            a.clone().argsort(1),
            a.clone().sort(0),
            a.clone().argmax(1),
            a.clone().bitwise_and(b.clone()),
            a.clone().cumsum(1),
            a.clone().mask_fill(b.clone().greater_elem(8), 1),
            a.clone().transpose(),
            a.gather(1, b.argsort(1)),
        ],
    );
}

fn moved<A: Backend>(all: &mut Results) {
    let (x, y) = (noise::<A, 2>([4, 6], 3), noise::<A, 2>([4, 6], 4));
    let some = Tensor::<A, 1, Int>::from_ints([2, 0, 2], &A::Device::default());
    let order = y.clone().argsort(1);
    all.floats(
        "movement",
        vec![
            x.clone().reshape([3, 8]),
            x.clone().transpose(),
            x.clone().slice([1..3, 2..5]),
            x.clone().flip([1]),
            x.clone().narrow(1, 0, 2).repeat_dim(1, 3),
            Tensor::cat(vec![x.clone(), y.clone()], 0),
            x.clone().slice_assign([0..2, 0..3], y.clone().slice([1..3, 2..5])),
            x.clone().roll(&[1, 2], &[0, 1]),
            x.clone().narrow(0, 0, 1).expand([5, 6]),
            x.clone().select(0, some.clone()),
            x.clone().gather(1, order.clone()),
            x.clone().scatter(1, order, y.clone(), IndexingUpdateOp::Add),
            x.clone().select_assign(0, some, y.clone().narrow(0, 0, 3), IndexingUpdateOp::Add),
            x.clone().sort(1),
            x.clone().topk(2, 1),
            x.clone().cumsum(1),
            x.clone().cumprod(0),
            x.clone().cummax(1),
        ],
    );
    all.ints("places", vec![x.clone().argsort(0), x.clone().argmax(1), x.clone().argmin(0)]);
    all.floats(
        "reductions",
        vec![
            x.clone().sum_dim(0),
            x.clone().mean_dim(1),
            x.clone().prod_dim(1),
            x.clone().max_dim(0),
            x.clone().min_dim(1),
            x.clone().max_abs_dim(1),
            x.clone().var(1),
            x.clone().max_dim_with_indices(1).0,
            x.clone().matmul(y.clone().transpose()),
            linear(x.clone(), y.clone().transpose(), None),
        ],
    );
    all.floats(
        "numbers",
        vec![
            x.clone().sum(),
            x.clone().mean(),
            x.clone().prod(),
            x.clone().max(),
            x.clone().min(),
            x.max_abs(),
        ],
    );
}

fn images<A: Backend>(all: &mut Results) {
    let x = noise::<A, 4>([2, 3, 6, 7], 5);
    let conv = |groups| ConvOptions::new([1, 1], [1, 1], [1, 1], groups);
    let bias = Some(noise::<A, 1>([4], 7));
    let up = |mode| InterpolateOptions::new(mode);
    all.floats(
        "images",
        vec![
            conv2d(x.clone(), noise([4, 3, 3, 3], 6), bias, conv(1)),
            conv2d(x.clone(), noise([3, 1, 3, 3], 6), None, conv(3)),
            conv_transpose2d(
                x.clone(),
                noise([3, 2, 3, 3], 8),
                None,
                ConvTransposeOptions::new([2, 2], [1, 1], [0, 0], [1, 1], 1),
            ),
            max_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false),
            max_pool2d_with_indices(x.clone(), [2, 2], [1, 1], [0, 0], [1, 1], false).0,
            avg_pool2d(x.clone(), [2, 3], [1, 1], [0, 1], true, false),
            adaptive_avg_pool2d(x.clone(), [2, 3]),
            interpolate(x.clone(), [9, 5], up(InterpolateMode::Bilinear)),
            interpolate(x.clone(), [9, 5], up(InterpolateMode::Nearest)),
            interpolate(x.clone(), [9, 5], up(InterpolateMode::Bicubic)),
        ],
    );
    let words = Tensor::<A, 2, Int>::from_ints([[0, 3], [2, 1]], &A::Device::default());
    all.floats(
        "sequences",
        vec![
            conv1d(
                noise([2, 3, 8], 1),
                noise([4, 3, 3], 2),
                None,
                ConvOptions::new([2], [1], [1], 1),
            ),
            embedding(noise([4, 5], 3), words),
            unfold4d(x, [2, 2], UnfoldOptions::new([1, 1], [0, 0], [1, 1])),
        ],
    );
}

fn every<A: Backend>() -> Vec<(String, TensorData)> {
    let mut all = Results(Vec::new());
    elements::<A>(&mut all);
    moved::<A>(&mut all);
    images::<A>(&mut all);
    all.0
}

#[test]
fn idle_transformations_change_nothing() {
    let wanted = every::<B>();
    assert!(wanted.len() > 100);
    for (name, got) in [
        ("vmap", every::<Vmap<B>>()),
        ("jvp", every::<Jvp<B>>()),
        ("compile", every::<Traced<B>>()),
    ] {
        for ((family, got), (_, want)) in got.iter().zip(&wanted) {
            // Bits: NaN is NaN.
            assert_eq!((got.dtype, &got.shape), (want.dtype, &want.shape), "{name}, {family}");
            assert_eq!(got.bytes, want.bytes, "{name}, {family}");
        }
    }
}
