//! Integer tensors.

use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{Backend, IntDType};
use burn_tensor::{Bool, ElementConversion, Int, Tensor};

use crate::rows::rows;

type Ints<B> = Vec<Tensor<B, 2, Int>>;
type Bools<B> = Vec<Tensor<B, 2, Bool>>;

rows! {
    unary(x: Tensor<B, 2, Int> = [2, 3]) -> Ints<B> {
        let x = x - 1;
        vec![
            x.clone().abs(), x.clone().neg(), x.clone().sign(), x.clone().bitwise_not(), x.clone().transpose(),
            x.clone().cast(IntDType::I64),
        ]
    }
    scalars(x: Tensor<B, 2, Int> = [2, 3]) -> Ints<B> {
        vec![
            x.clone() + 2, x.clone() - 2, x.clone() * 2, x.clone() / 2, x.clone().remainder_scalar(2),
            x.clone().powi_scalar(2), x.clone().bitwise_and_scalar(1.elem()), x.clone().bitwise_or_scalar(1.elem()),
            x.clone().bitwise_xor_scalar(1.elem()), x.clone().bitwise_left_shift_scalar(2.elem()),
            x.clone().bitwise_right_shift_scalar(1.elem()), x.clone().clamp(0, 1), x.clone().clamp_min(1),
            x.clone().clamp_max(1),
        ]
    }
    compared_with_scalars(x: Tensor<B, 2, Int> = [2, 3]) -> Bools<B> {
        vec![
            x.clone().equal_elem(1), x.clone().not_equal_elem(1), x.clone().greater_elem(1),
            x.clone().greater_equal_elem(1), x.clone().lower_elem(1), x.clone().lower_equal_elem(1),
        ]
    }
    binary(x: Tensor<B, 2, Int> = [2, 3], y: Tensor<B, 2, Int> = [1, 3]) -> Ints<B> {
        let z = y.clone() + 1;
        vec![
            x.clone() + y.clone(), x.clone() - y.clone(), x.clone() * y.clone(), x.clone() / z.clone(),
            x.clone().remainder(z), x.clone().powi(y.clone().expand([2, 3])), x.clone().bitwise_and(y.clone()),
            x.clone().bitwise_or(y.clone()), x.clone().bitwise_xor(y.clone()),
            x.clone().bitwise_left_shift(y.clone()), x.bitwise_right_shift(y),
        ]
    }
    compared(x: Tensor<B, 2, Int> = [2, 3], y: Tensor<B, 2, Int> = [2, 3]) -> Bools<B> {
        vec![
            x.clone().equal(y.clone()), x.clone().not_equal(y.clone()), x.clone().greater(y.clone()),
            x.clone().greater_equal(y.clone()), x.clone().lower(y.clone()), x.lower_equal(y),
        ]
    }
    converted(x: Tensor<B, 2, Int> = [2, 3]) -> (Tensor<B, 2>, Tensor<B, 2, Bool>) {
        (x.clone().float(), x.bool())
    }
    whole(x: Tensor<B, 2, Int> = [2, 3]) -> (Vec<Tensor<B, 1, Int>>, Vec<Tensor<B, 1, Bool>>) {
        let all = vec![x.clone().sum(), x.clone().mean(), x.clone().prod(), x.clone().max(), x.clone().min(), x.clone().max_abs()];
        (all, vec![x.clone().any(), x.all()])
    }
    along(x: Tensor<B, 2, Int> = [2, 3]) -> (Ints<B>, Bools<B>) {
        let (mut all, mut flags) = (Vec::new(), Vec::new());
        for dim in 0..2 {
            all.extend([
                x.clone().sum_dim(dim), x.clone().mean_dim(dim), x.clone().prod_dim(dim), x.clone().max_dim(dim),
                x.clone().min_dim(dim), x.clone().max_abs_dim(dim), x.clone().cumsum(dim), x.clone().cumprod(dim),
                x.clone().cummax(dim), x.clone().cummin(dim), x.clone().argmax(dim), x.clone().argmin(dim),
                x.clone().sort(dim), x.clone().topk(1, dim), x.clone().repeat_dim(dim, 2),
                x.clone().max_dim_with_indices(dim).1, x.clone().min_dim_with_indices(dim).1,
                x.clone().argsort(dim), x.clone().sort_with_indices(dim).0,
                Tensor::from_primitive(B::int_argtopk(x.clone().into_primitive(), dim, 2)),
            ]);
            flags.extend([x.clone().any_dim(dim), x.clone().all_dim(dim)]);
        }
        (all, flags)
    }
    moved(x: Tensor<B, 3, Int> = [2, 3, 4]) -> (Vec<Tensor<B, 3, Int>>, Tensor<B, 4, Int>) {
        let all = vec![
            x.clone().permute([2, 0, 1]), x.clone().swap_dims(0, 2), x.clone().flip([0, 2]),
            x.clone().reshape([4, 3, 2]), x.clone().slice([0..1, 1..3]),
        ];
        (all, x.unfold(2, 2, 1))
    }
    assigned(x: Tensor<B, 2, Int> = [4, 3], y: Tensor<B, 2, Int> = [2, 2]) -> Tensor<B, 2, Int> {
        x.slice_assign([1..3, 0..2], y)
    }
    joined(x: Tensor<B, 2, Int> = [2, 3], y: Tensor<B, 2, Int> = [2, 3]) -> Tensor<B, 2, Int> {
        Tensor::cat(vec![x, y], 1)
    }
    gathered(x: Tensor<B, 2, Int> = [3, 4], i: Tensor<B, 2, Int> = [3, 4]) -> Tensor<B, 2, Int> {
        x.gather(1, i)
    }
    scattered(
        x: Tensor<B, 2, Int> = [3, 4], i: Tensor<B, 2, Int> = [3, 4], y: Tensor<B, 2, Int> = [3, 4]
    ) -> Tensor<B, 2, Int> {
        x.scatter(1, i, y, IndexingUpdateOp::Add)
    }
    selected(x: Tensor<B, 2, Int> = [3, 4], i: Tensor<B, 1, Int> = [5]) -> Tensor<B, 2, Int> {
        x.select(0, i)
    }
    select_assigned(
        x: Tensor<B, 2, Int> = [3, 4], i: Tensor<B, 1, Int> = [5], y: Tensor<B, 2, Int> = [5, 4]
    ) -> Tensor<B, 2, Int> {
        x.select_assign(0, i, y, IndexingUpdateOp::Add)
    }
    masked(
        x: Tensor<B, 2, Int> = [2, 3], m: Tensor<B, 2, Bool> = [2, 3], y: Tensor<B, 2, Int> = [2, 3]
    ) -> (Tensor<B, 2, Int>, Tensor<B, 2, Int>) {
        (x.clone().mask_where(m.clone(), y), x.mask_fill(m, 9))
    }
    gathered_nd(x: Tensor<B, 3, Int> = [3, 3, 2], i: Tensor<B, 2, Int> = [4, 2]) -> Tensor<B, 2, Int> {
        Tensor::from_primitive(B::int_gather_nd(x.into_primitive(), i.into_primitive()))
    }
    scattered_nd(
        x: Tensor<B, 3, Int> = [3, 3, 2], i: Tensor<B, 2, Int> = [4, 2], y: Tensor<B, 2, Int> = [4, 2]
    ) -> Tensor<B, 3, Int> {
        let (x, i, y) = (x.into_primitive(), i.into_primitive(), y.into_primitive());
        Tensor::from_primitive(B::int_scatter_nd(x, i, y, IndexingUpdateOp::Add))
    }
    products(x: Tensor<B, 2, Int> = [2, 3], y: Tensor<B, 2, Int> = [3, 2]) -> Tensor<B, 2, Int> {
        x.matmul(y)
    }
    created(x: Tensor<B, 1, Int> = [4]) -> Tensor<B, 1, Int> {
        let device = x.device();
        x + Tensor::arange(0..4, &device) * Tensor::ones([4], &device)
    }
}
