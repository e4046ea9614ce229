//! says: `B` does not say how it runs burn-t4a's operations
//! says: `B: Operations` in the place of `B: Backend`
use burn::prelude::*;
use burn_t4a::ext::einsum::{LogSumExp, semiring_einsum};

fn log_z<B: Backend>(scores: Tensor<B, 2>) -> Tensor<B, 1> {
    semiring_einsum::<LogSumExp, _, _>("ij,jk->", [&scores, &scores]).unwrap()
}

fn main() {
    log_z(Tensor::<burn_t4a::BurnT4a, 2>::zeros([2, 2], &Default::default()));
}
