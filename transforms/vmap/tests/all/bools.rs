//! Boolean tensors.

use burn_backend::Backend;
use burn_tensor::{Bool, Int, Tensor};

use crate::rows::rows;

type Bools<B> = Vec<Tensor<B, 2, Bool>>;

rows! {
    unary(x: Tensor<B, 2, Bool> = [2, 3]) -> (Bools<B>, Tensor<B, 2, Int>, Tensor<B, 2>) {
        let all = vec![x.clone().bool_not(), x.clone().transpose(), x.clone().equal_elem(true), x.clone().not_equal_elem(true)];
        (all, x.clone().int(), x.float())
    }
    binary(x: Tensor<B, 2, Bool> = [2, 3], y: Tensor<B, 2, Bool> = [2, 3]) -> Bools<B> {
        vec![
            x.clone().bool_and(y.clone()), x.clone().bool_or(y.clone()), x.clone().bool_xor(y.clone()),
            x.clone().equal(y.clone()), x.not_equal(y),
        ]
    }
    reduced(x: Tensor<B, 2, Bool> = [2, 3]) -> (Bools<B>, Vec<Tensor<B, 1, Bool>>) {
        let along = vec![x.clone().any_dim(0), x.clone().any_dim(1), x.clone().all_dim(0), x.clone().all_dim(1)];
        (along, vec![x.clone().any(), x.all()])
    }
    moved(x: Tensor<B, 2, Bool> = [2, 4]) -> (Bools<B>, Tensor<B, 3, Bool>) {
        let all = vec![
            x.clone().permute([1, 0]), x.clone().swap_dims(0, 1), x.clone().flip([0, 1]), x.clone().reshape([4, 2]),
            x.clone().slice([0..1, 1..3]), x.clone().repeat_dim(1, 2), x.clone().any_dim(0).expand([3, 4]),
        ];
        (all, x.unfold(1, 2, 1))
    }
    assigned(x: Tensor<B, 2, Bool> = [4, 3], y: Tensor<B, 2, Bool> = [2, 2]) -> Tensor<B, 2, Bool> {
        x.slice_assign([1..3, 0..2], y)
    }
    joined(x: Tensor<B, 2, Bool> = [2, 3], y: Tensor<B, 2, Bool> = [2, 3]) -> Tensor<B, 2, Bool> {
        Tensor::cat(vec![x, y], 0)
    }
    indexed(
        x: Tensor<B, 2, Bool> = [3, 4], i: Tensor<B, 2, Int> = [3, 4], k: Tensor<B, 1, Int> = [5]
    ) -> Bools<B> {
        vec![x.clone().gather(1, i), x.clone().select(0, k.clone()), x.select(1, k)]
    }
    scattered(
        x: Tensor<B, 2, Bool> = [3, 4], i: Tensor<B, 2, Int> = [3, 4], y: Tensor<B, 2, Bool> = [3, 4]
    ) -> Tensor<B, 2, Bool> {
        let (x, y) = (x.into_primitive(), y.into_primitive());
        Tensor::from_primitive(B::bool_scatter_or(1, x, i.into_primitive(), y))
    }
    select_assigned(
        x: Tensor<B, 2, Bool> = [3, 4], i: Tensor<B, 1, Int> = [5], y: Tensor<B, 2, Bool> = [5, 4]
    ) -> Tensor<B, 2, Bool> {
        let (x, y) = (x.into_primitive(), y.into_primitive());
        Tensor::from_primitive(B::bool_select_or(x, 0, i.into_primitive(), y))
    }
    masked(
        x: Tensor<B, 2, Bool> = [2, 3], m: Tensor<B, 2, Bool> = [2, 3], y: Tensor<B, 2, Bool> = [2, 3]
    ) -> (Tensor<B, 2, Bool>, Tensor<B, 2, Bool>) {
        (x.clone().mask_where(m.clone(), y), x.mask_fill(m, true))
    }
}
