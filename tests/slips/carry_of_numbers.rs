//! says: `f32` is not a tree of tensors
//! says: a struct becomes a tree by `#[derive(Tree)]`
use burn::prelude::*;
use burn_t4a::BurnT4a;
use burn_t4a::ext::scan::{Options, scan};

fn main() {
    let device = Default::default();
    let xs = Tensor::<BurnT4a, 2>::zeros([2, 3], &device);
    let step = |(): (), c: f32, x: Tensor<BurnT4a, 1>| (c, x);
    let _: (f32, Tensor<BurnT4a, 2>) = scan(step, (), 0.0, xs, &Options::default()).unwrap();
}
