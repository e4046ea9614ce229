//! says: is no matrix of floats
//! says: a vector becomes a matrix by `unsqueeze_dim`
use burn::prelude::*;
use burn_t4a::BurnT4a;
use burn_t4a::ext::linalg::svd;

fn main() {
    let x = Tensor::<BurnT4a, 1>::zeros([2], &Default::default());
    let _ = svd(x);
}
