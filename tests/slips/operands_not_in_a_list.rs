//! says: is no list of operands
//! says: expected an array of tensors of one rank, or a tuple
use burn::prelude::*;
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::einsum;

fn main() {
    let x = Tensor::<BurnT4a, 2>::zeros([2, 2], &Default::default());
    let _: Tensor<BurnT4a, 1> = einsum("ii->i", &x).unwrap();
}
