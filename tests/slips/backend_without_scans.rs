//! says: `B` does not say how it runs scans
//! says: `B: ScanBackend` in the place of `B: Backend`
use burn::prelude::*;
use burn_t4a::ext::scan::{Options, scan};

fn sums<B: Backend>(xs: Tensor<B, 2>) -> Tensor<B, 2> {
    let zero = Tensor::zeros([3], &xs.device());
    let step = |(): (), c: Tensor<B, 1>, x: Tensor<B, 1>| (c.clone() + x, c);
    let (_, all): (Tensor<B, 1>, _) = scan(step, (), zero, xs, &Options::default()).unwrap();
    all
}

fn main() {
    sums(Tensor::<burn_t4a::BurnT4a, 2>::zeros([2, 3], &Default::default()));
}
