//! says: does not say what is summed over what
//! says: expected text such as "ij,jk->ik", `Subscripts` or an `Einsum`
use burn::prelude::*;
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::einsum;

fn main() {
    let x = Tensor::<BurnT4a, 2>::zeros([2, 2], &Default::default());
    let _: Tensor<BurnT4a, 2> = einsum([[0, 1], [1, 2]], [&x, &x]).unwrap();
}
