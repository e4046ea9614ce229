//! says: is no tree of float tensors
//! says: what is no float tensor can be captured by the body
use burn::prelude::*;
use burn_t4a::BurnT4a;
use burn_t4a::ext::scan::{Options, scan};

fn main() {
    let device = Default::default();
    let zero = Tensor::<BurnT4a, 1, Int>::zeros([3], &device);
    let xs = Tensor::<BurnT4a, 2>::zeros([2, 3], &device);
    let step = |(): (), c: Tensor<BurnT4a, 1, Int>, x: Tensor<BurnT4a, 1>| (c, x);
    let _ = scan(step, (), zero, xs, &Options::default());
}
