//! Float tensors.

use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{Backend, FloatDType, IntDType, Scalar};
use burn_tensor::{Bool, Int, Tensor};

use crate::rows::{p, rows, t};

type Bools<B> = Vec<Tensor<B, 2, Bool>>;

rows! {
    unary(x: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 2>> {
        let positive = x.clone().abs() + 0.1;
        let small = x.clone() * 0.4;
        vec![
            x.clone().abs(), small.clone().acos(), (positive.clone() + 1.0).acosh(), small.clone().asin(),
            x.clone().asinh(), x.clone().atan(), small.clone().atanh(), x.clone().ceil(), x.clone().cos(),
            x.clone().cosh(), x.clone().erf(), x.clone().exp(), x.clone().floor(), positive.clone().log(),
            positive.clone().log1p(), x.clone().neg(), positive.clone().recip(), x.clone().round(),
            x.clone().sign(), x.clone().sin(), x.clone().sinh(), positive.clone().sqrt(), x.clone().tan(),
            x.clone().tanh(), x.clone().trunc(), x.clone().detach(), x.clone().transpose(),
        ]
    }
    scalars(x: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 2>> {
        vec![
            x.clone() + 1.5, x.clone() - 1.5, x.clone() * 1.5, x.clone() / 1.5,
            x.clone().remainder_scalar(0.7), x.clone().abs().powf_scalar(1.3), x.clone().powi_scalar(3),
            x.clone().powf_scalar(2.0), x.clone().clamp(-0.5, 0.5), x.clone().clamp_min(0.1),
            x.clone().clamp_max(0.1),
        ]
    }
    compared_with_scalars(x: Tensor<B, 2> = [2, 3]) -> Bools<B> {
        let x = x.round();
        vec![
            x.clone().equal_elem(1.0), x.clone().not_equal_elem(1.0), x.clone().greater_elem(0.0),
            x.clone().greater_equal_elem(0.0), x.clone().lower_elem(0.0), x.clone().lower_equal_elem(0.0),
            x.clone().log().is_nan(), x.clone().recip().is_inf(),
        ]
    }
    converted(x: Tensor<B, 2> = [2, 3]) -> (Tensor<B, 2, Int>, Tensor<B, 2>, Tensor<B, 2, Bool>) {
        (x.clone().int(), x.clone().cast(FloatDType::F64), x.bool())
    }
    binary(x: Tensor<B, 2> = [2, 3], y: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 2>> {
        let positive = x.clone().abs() + 0.1;
        vec![
            x.clone() + y.clone(), x.clone() - y.clone(), x.clone() * y.clone(), x.clone() / y.clone(),
            x.clone().remainder(y.clone().abs() + 0.3), positive.powf(y.clone()), x.clone().atan2(y),
        ]
    }
    broadcast(x: Tensor<B, 3> = [2, 1, 3], y: Tensor<B, 3> = [1, 4, 3]) -> Tensor<B, 3> {
        x.clone() * y + x
    }
    powers(x: Tensor<B, 2> = [2, 3], k: Tensor<B, 2, Int> = [2, 3]) -> Tensor<B, 2> {
        t(B::float_powi(p(x), k.into_primitive()))
    }
    compared(x: Tensor<B, 2> = [2, 3], y: Tensor<B, 2> = [2, 3]) -> Bools<B> {
        let (x, y) = (x.round(), y.round());
        vec![
            x.clone().equal(y.clone()), x.clone().not_equal(y.clone()), x.clone().greater(y.clone()),
            x.clone().greater_equal(y.clone()), x.clone().lower(y.clone()), x.lower_equal(y),
        ]
    }
    whole(x: Tensor<B, 3> = [2, 3, 2]) -> Vec<Tensor<B, 1>> {
        vec![
            x.clone().sum(), x.clone().mean(), x.clone().prod(), x.clone().max(), x.clone().min(),
            x.clone().max_abs(), x.swap_dims(0, 1).sum(),
        ]
    }
    whole_flags(x: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 1, Bool>> {
        let x = x.clone().mask_fill(x.clone().lower_elem(-0.5), 0.0);
        vec![x.clone().any(), x.clone().all(), (x * 0.0).any()]
    }
    along(x: Tensor<B, 3> = [2, 3, 2]) -> Vec<Tensor<B, 3>> {
        let mut all = Vec::new();
        for dim in 0..3 {
            all.extend([
                x.clone().sum_dim(dim), x.clone().mean_dim(dim), x.clone().prod_dim(dim), x.clone().max_dim(dim),
                x.clone().min_dim(dim), x.clone().max_abs_dim(dim), x.clone().cumsum(dim), x.clone().cumprod(dim),
                x.clone().cummax(dim), x.clone().cummin(dim), x.clone().sort(dim),
                x.clone().sort_descending(dim), x.clone().topk(1, dim), x.clone().repeat_dim(dim, 2),
                x.clone().flip([dim as isize]),
            ]);
        }
        all
    }
    along_flags(x: Tensor<B, 2> = [2, 3]) -> Bools<B> {
        let x = x.clone().mask_fill(x.lower_elem(0.5), 0.0);
        vec![x.clone().any_dim(0), x.clone().any_dim(1), x.clone().all_dim(0), x.all_dim(1)]
    }
    places(x: Tensor<B, 3> = [2, 3, 2]) -> Vec<Tensor<B, 3, Int>> {
        let k = p(x.clone());
        let dtype = IntDType::I32;
        vec![
            x.clone().argmax(1), x.clone().argmin(2), x.clone().argsort(0), x.clone().argsort_descending(1),
            x.clone().max_dim_with_indices(1).1, x.clone().min_dim_with_indices(2).1,
            x.clone().sort_with_indices(1).1, Tensor::from_primitive(B::float_argtopk(k, 1, 2, dtype)),
        ]
    }
    unfolded(x: Tensor<B, 2> = [2, 5]) -> (Tensor<B, 3>, Tensor<B, 3>) {
        (x.clone().unfold(1, 3, 2), x.unfold(0, 2, 1))
    }
    moved(x: Tensor<B, 3> = [2, 3, 4]) -> (Vec<Tensor<B, 3>>, Tensor<B, 2>, Tensor<B, 4>) {
        let all = vec![
            x.clone().permute([2, 0, 1]), x.clone().swap_dims(0, 2), x.clone().flip([0, 2]),
            x.clone().reshape([4, 3, 2]), x.clone().slice([0..1, 1..3]), x.clone().swap_dims(0, 1).reshape([2, 3, 4]),
            x.clone().slice(burn_tensor::s![.., ..;2, 1..4;-1]), x.clone().sum_dim(1).expand([2, 5, 4]),
        ];
        (all, x.clone().reshape([6, 4]), x.expand([5, 2, 3, 4]))
    }
    assigned(x: Tensor<B, 2> = [4, 3], y: Tensor<B, 2> = [2, 2]) -> (Tensor<B, 2>, Tensor<B, 2>) {
        (x.clone().slice_assign([1..3, 0..2], y), x.slice_fill([0..2, 1..3], 7.0))
    }
    joined(x: Tensor<B, 2> = [2, 3], y: Tensor<B, 2> = [2, 3]) -> (Vec<Tensor<B, 2>>, Tensor<B, 3>) {
        let all = vec![Tensor::cat(vec![x.clone(), y.clone()], 0), Tensor::cat(vec![y.clone(), x.clone()], 1)];
        (all, Tensor::stack(vec![x, y], 1))
    }
    gathered(x: Tensor<B, 2> = [3, 4], i: Tensor<B, 2, Int> = [3, 4]) -> (Tensor<B, 2>, Tensor<B, 2>) {
        (x.clone().gather(0, i.clone()), x.gather(1, i))
    }
    scattered(
        x: Tensor<B, 2> = [3, 4], i: Tensor<B, 2, Int> = [3, 4], y: Tensor<B, 2> = [3, 4]
    ) -> (Tensor<B, 2>, Tensor<B, 2>) {
        (
            x.clone().scatter(0, i.clone(), y.clone(), IndexingUpdateOp::Add),
            x.scatter(1, i, y, IndexingUpdateOp::Add),
        )
    }
    selected(x: Tensor<B, 3> = [3, 4, 3], i: Tensor<B, 1, Int> = [5]) -> Vec<Tensor<B, 3>> {
        vec![x.clone().select(0, i.clone()), x.clone().select(1, i.clone()), x.select(2, i)]
    }
    select_assigned(
        x: Tensor<B, 2> = [3, 4], i: Tensor<B, 1, Int> = [5], y: Tensor<B, 2> = [5, 4]
    ) -> Tensor<B, 2> {
        x.select_assign(0, i, y, IndexingUpdateOp::Add)
    }
    select_assigned_inside(
        x: Tensor<B, 2> = [2, 3], i: Tensor<B, 1, Int> = [4], y: Tensor<B, 2> = [2, 4]
    ) -> Tensor<B, 2> {
        x.select_assign(1, i, y, IndexingUpdateOp::Add)
    }
    masked(
        x: Tensor<B, 2> = [2, 3], m: Tensor<B, 2, Bool> = [2, 3], y: Tensor<B, 2> = [2, 3]
    ) -> (Tensor<B, 2>, Tensor<B, 2>) {
        (x.clone().mask_where(m.clone(), y), x.mask_fill(m, 9.0))
    }
    gathered_nd(x: Tensor<B, 3> = [3, 3, 2], i: Tensor<B, 2, Int> = [4, 2]) -> Tensor<B, 2> {
        t(B::float_gather_nd(p(x), i.into_primitive()))
    }
    scattered_nd(
        x: Tensor<B, 3> = [3, 3, 2], i: Tensor<B, 2, Int> = [4, 2], y: Tensor<B, 2> = [4, 2]
    ) -> Tensor<B, 3> {
        t(B::float_scatter_nd(p(x), i.into_primitive(), p(y), IndexingUpdateOp::Add))
    }
    matrix_products(x: Tensor<B, 2> = [2, 3], y: Tensor<B, 2> = [3, 4]) -> Tensor<B, 2> {
        x.matmul(y)
    }
    transposed_products(x: Tensor<B, 2> = [3, 2], y: Tensor<B, 2> = [4, 3]) -> Tensor<B, 2> {
        x.transpose().matmul(y.transpose())
    }
    columns(x: Tensor<B, 2> = [2, 3], y: Tensor<B, 2> = [3, 1]) -> Tensor<B, 2> {
        x.matmul(y)
    }
    batches_of_products(x: Tensor<B, 3> = [2, 3, 2], y: Tensor<B, 3> = [2, 2, 3]) -> Tensor<B, 3> {
        x.matmul(y)
    }
    products_that_broadcast(
        x: Tensor<B, 4> = [2, 1, 3, 2], y: Tensor<B, 4> = [1, 3, 2, 2]
    ) -> Tensor<B, 4> {
        x.matmul(y)
    }
    one_matrix_for_all(x: Tensor<B, 3> = [4, 2, 3], y: Tensor<B, 3> = [1, 3, 2]) -> Tensor<B, 3> {
        x.matmul(y)
    }
    cross_products(x: Tensor<B, 2> = [3, 2], y: Tensor<B, 2> = [3, 2]) -> Tensor<B, 2> {
        x.cross(y, 0)
    }
    created(x: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 2>> {
        let device = x.device();
        let zero = Tensor::zeros([2, 3], &device);
        let elements = B::float_full([2, 3].into(), Scalar::Float(2.0), &device, FloatDType::F32);
        vec![x.clone() + Tensor::ones([2, 3], &device), zero.clone(), zero + x, t(elements)]
    }
    activations(x: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 2>> {
        use burn_tensor::activation::*;
        vec![
            relu(x.clone()), gelu(x.clone()), sigmoid(x.clone()), log_sigmoid(x.clone()),
            leaky_relu(x.clone(), 0.1), hard_sigmoid(x.clone(), 0.2, 0.5), softmax(x.clone(), 0),
            softmax(x.clone(), 1), log_softmax(x.clone(), 1), softmin(x.clone(), 0), softplus(x, 1.0),
        ]
    }
    activations_backward(x: Tensor<B, 2> = [2, 3], y: Tensor<B, 2> = [2, 3]) -> Vec<Tensor<B, 2>> {
        let both = || (p(x.clone()), p(y.clone()));
        let of = |f: fn(_, _) -> _| {
            let (x, y) = both();
            t(f(x, y))
        };
        vec![
            of(B::relu_backward), of(B::gelu_backward), of(B::sigmoid_backward), of(B::log_sigmoid_backward),
            of(B::prelu),
        ]
    }
}
