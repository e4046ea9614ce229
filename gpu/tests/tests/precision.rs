//! The precision of products of matrices, which is one of the process.

use burn::backend::Wgpu;
use burn::tensor::Tensor;
use burn_t4a::ext::cube::{Precision, set_precision};
use burn_t4a::ext::einsum::einsum;

#[test]
fn full_until_it_is_set() {
    let n = 64;
    let x: Vec<f32> = (0..n * n).map(|i| (i * 7919 % 101) as f32 / 101.0 - 0.5).collect();
    let exact = |i: usize| -> f64 {
        let (row, column) = (i / n, i % n);
        (0..n).map(|k| f64::from(x[row * n + k]) * f64::from(x[k * n + column])).sum()
    };
    let scale = (0..n * n).map(|i| exact(i).abs()).fold(0.0, f64::max);
    let error = || {
        let a = Tensor::<Wgpu, 1>::from_floats(&x[..], &Default::default()).reshape([n, n]);
        let c: Tensor<Wgpu, 2> = einsum("ij,jk->ik", [&a, &a]).unwrap();
        let c = c.into_data().to_vec::<f32>().unwrap();
        let error = |(i, &c): (usize, &f32)| (f64::from(c) - exact(i)).abs();
        c.iter().enumerate().map(error).fold(0.0, f64::max) / scale
    };
    assert!(error() < 1e-6);
    set_precision(Precision::Tf32);
    assert!(error() < 2e-3);
    set_precision(Precision::Full);
    assert!(error() < 1e-6);
}
