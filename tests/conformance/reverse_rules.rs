//! Reverse rules of Burn 0.21 that are wrong on every backend, and equivalent calls with correct derivatives.
//!
//! The README lists them. If a row fails because Burn is fixed, remove it from the list.

use burn::backend::Autodiff;
use burn::tensor::activation::{celu, hard_sigmoid, softplus};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::scan::fused::{Running, cumulative};
use burn_t4a_transforms::jvp::{Jvp, jvp};

use crate::material::caught;

fn tensor<B: Backend>(x: &[f64]) -> Tensor<B, 1> {
    Tensor::from_data(TensorData::new(x.to_vec(), [x.len()]), (&Default::default(), DType::F64))
}

fn read<B: Backend>(x: Tensor<B, 1>) -> Vec<f64> {
    x.into_data().to_vec().unwrap()
}

/// Gradient of `Σ f(x)` by Burn's reverse pass.
fn reverse<B: Backend>(
    f: impl FnOnce(Tensor<Autodiff<B>, 1>) -> Tensor<Autodiff<B>, 1>,
    x: &[f64],
) -> Vec<f64> {
    let x = tensor::<Autodiff<B>>(x).require_grad();
    read(x.grad(&f(x.clone()).sum().backward()).unwrap())
}

/// The same gradient in forward mode, one direction at a time.
fn forward(f: impl Fn(Tensor<Jvp<BurnT4a>, 1>) -> Tensor<Jvp<BurnT4a>, 1>, x: &[f64]) -> Vec<f64> {
    let along = |i: usize| {
        let unit: Vec<f64> = (0..x.len()).map(|j| f64::from(i == j)).collect();
        let (_, dy) = jvp(&f, tensor::<BurnT4a>(x), tensor(&unit)).unwrap();
        read(dy.sum())[0]
    };
    (0..x.len()).map(along).collect()
}

fn right(found: &[f64], wanted: &[f64]) -> bool {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14 * b.abs().max(1.0);
    found.len() == wanted.len() && found.iter().zip(wanted).all(near)
}

/// A function whose reverse pass is wrong, its correct gradient, and an equivalent expression.
macro_rules! wrong {
    ($($(#[$doc:meta])* $name:ident: $at:expr, $gradient:expr,
        |$x:ident| $f:expr, instead |$y:ident| $g:expr;)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            let (at, wanted): (Vec<f64>, Vec<f64>) = ($at.to_vec(), $gradient.to_vec());
            let ours = caught(|| reverse::<BurnT4a>(|$x| $f, &at));
            let theirs = caught(|| reverse::<Flex>(|$x| $f, &at));
            for found in [ours, theirs] {
                assert!(!found.as_ref().is_ok_and(|found| right(found, &wanted)), "{found:?}");
            }
            let found = forward(|$x| $f, &at);
            assert!(right(&found, &wanted), "jvp: {found:?}, not {wanted:?}");
            let found = reverse::<BurnT4a>(|$y| $g, &at);
            assert!(right(&found, &wanted), "instead: {found:?}, not {wanted:?}");
        }
    )*};
}

wrong! {
    repeat_dim: [2.0, 3.0], [4.0, 6.0],
        |x| { let y = x.repeat_dim(0, 2); let w = Tensor::from_data([1.0f64, 2.0, 3.0, 4.0], (&y.device(), DType::F64)); y * w },
        instead |x| { let y = Tensor::cat(vec![x.clone(), x], 0); let w = Tensor::from_data([1.0f64, 2.0, 3.0, 4.0], (&y.device(), DType::F64)); y * w };
    /// NaN for negative factors.
    prod: [-2.0, 3.0, 4.0], [12.0, -8.0, -6.0],
        |x| x.prod(),
        instead |x| cumulative(Running::Product, x, 0, false).unwrap().narrow(0, 2, 1);
    prod_dim: [-2.0, 3.0, 4.0], [12.0, -8.0, -6.0],
        |x| x.prod_dim(0),
        instead |x| cumulative(Running::Product, x, 0, false).unwrap().narrow(0, 2, 1);
    cumprod_of_zeros: [2.0, 0.0, 5.0], [1.0, 12.0, 0.0],
        |x| x.cumprod(0),
        instead |x| cumulative(Running::Product, x, 0, false).unwrap();
    /// Of `f64`, as accurate as `f32`; so are the next four.
    div_scalar: [2.0], [1.0 / 3.0], |x| x.div_scalar(3.0), instead |x| x.mul_scalar(1.0 / 3.0);
    var: [1.0, 2.0, 4.0, 9.0], [-2.0, -4.0 / 3.0, 0.0, 10.0 / 3.0],
        |x| x.var(0),
        instead |x| (x.clone() - x.mean()).powi_scalar(2).sum().mul_scalar(1.0 / 3.0);
    softplus_of_another_slope: [0.3], [1.0 / (1.0 + (-0.9f64).exp())],
        |x| softplus(x, 3.0),
        instead |x| softplus(x.mul_scalar(3.0), 1.0).mul_scalar(1.0 / 3.0);
    celu_of_another_slope: [-0.7], [(-0.7f64 / 3.0).exp()],
        |x| celu(x, 3.0),
        instead |x| (x.mul_scalar(1.0 / 3.0).exp() - 1.0).mul_scalar(3.0);
    hard_sigmoid_of_thirds: [0.3], [1.0 / 3.0],
        |x| hard_sigmoid(x, 1.0 / 3.0, 0.5),
        instead |x| (x.mul_scalar(1.0 / 3.0) + 0.5).clamp(0.0, 1.0);
    /// Not implemented: panics.
    topk: [3.0, 1.0, 2.0], [1.0, 0.0, 1.0], |x| x.topk(2, 0), instead |x| x.topk_with_indices(2, 0).0;
}
