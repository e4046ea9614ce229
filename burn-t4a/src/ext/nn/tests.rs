//! Fused functions against Burn's own under `Autodiff`: values, gradients, second derivatives, and
//! the portable defaults on Flex.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn_backend::ops::AttentionModuleOptions;
use burn_backend::{AutodiffBackend, Backend, TensorData};
use burn_flex::Flex;
use burn_tensor::{Int, Tensor, TensorPrimitive, activation};

use super::*;
use crate::BurnT4a;

type A = Autodiff<BurnT4a>;

fn values<const D: usize>(shape: [usize; D], salt: usize) -> TensorData {
    let value = |i: usize| ((i * 7919 + salt * 104_729) % 1000) as f32 / 500.0 - 1.0;
    TensorData::new((0..shape.iter().product()).map(value).collect::<Vec<f32>>(), shape)
}

fn leaf<B: AutodiffBackend, const D: usize>(shape: [usize; D], salt: usize) -> Tensor<B, D> {
    Tensor::from_data(values(shape, salt), &Default::default()).require_grad()
}

fn close(a: TensorData, b: TensorData, context: &str) {
    assert_eq!(a.shape, b.shape, "{context}");
    for (x, y) in a.iter::<f64>().zip(b.iter::<f64>()) {
        assert!((x - y).abs() <= 2e-5 * (1.0 + y.abs()), "{context}: {x} and {y}");
    }
}

/// What `burn_nn::LayerNorm` calls.
fn burns_norm<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    gamma: Tensor<B, 1>,
    beta: Option<Tensor<B, 1>>,
    epsilon: f64,
) -> Tensor<B, D> {
    let float = |x: TensorPrimitive<B>| x.tensor();
    let (x, gamma) = (float(x.into_primitive()), float(gamma.into_primitive()));
    let beta = beta.map(|beta| float(beta.into_primitive()));
    Tensor::from_primitive(TensorPrimitive::Float(B::layer_norm(x, gamma, beta, epsilon)))
}

/// The result of a function of four operands and the gradients of `Σ y·g`.
fn run<B: AutodiffBackend, const D: usize>(
    shapes: [&[usize]; 4],
    f: impl Fn([Tensor<B, 1>; 4]) -> Tensor<B, D>,
) -> Vec<TensorData> {
    let leaves: [Tensor<B, 1>; 4] =
        std::array::from_fn(|i| leaf([shapes[i].iter().product()], i + 1));
    let y = f(leaves.clone());
    let g = Tensor::from_data(values(y.dims(), 9), &Default::default());
    let grads = (y.clone() * g).sum().backward();
    let mut out = vec![y.into_data()];
    for leaf in leaves {
        out.extend(leaf.grad(&grads).map(|g| g.into_data()));
    }
    out
}

/// Compares the fused function on every backend with Burn's own on `BurnT4a`.
macro_rules! agree {
    ($name:ident, $d:literal, $shapes:expr, |$x:ident| $fused:expr, $plain:expr) => {
        #[test]
        fn $name() {
            fn fused<B: Operations + AutodiffBackend>() -> Vec<TensorData> {
                run::<B, $d>($shapes, |$x| $fused)
            }
            let want = run::<A, $d>($shapes, |$x| $plain);
            for (i, got) in [
                fused::<A>(),
                fused::<Autodiff<BurnT4a, BalancedCheckpointing>>(),
                fused::<Autodiff<Flex>>(),
            ]
            .into_iter()
            .enumerate()
            {
                assert_eq!(got.len(), want.len());
                for (j, (a, b)) in got.into_iter().zip(&want).enumerate() {
                    close(a, b.clone(), &format!("backend {i}, tensor {j}"));
                }
            }
        }
    };
}

const PLAIN: [&[usize]; 4] = [&[3, 4, 5], &[5], &[5], &[1]];

agree!(
    softmax_along_any_axis,
    3,
    PLAIN,
    |x| {
        let [x, ..] = x;
        let x = x.reshape([3, 4, 5]);
        softmax(x.clone(), 2) + softmax(x, 1)
    },
    {
        let [x, ..] = x;
        let x = x.reshape([3, 4, 5]);
        activation::softmax(x.clone(), 2) + activation::softmax(x, 1)
    }
);

agree!(
    log_softmax_along_any_axis,
    3,
    PLAIN,
    |x| {
        let [x, ..] = x;
        let x = x.reshape([3, 4, 5]);
        log_softmax(x.clone(), 2) + log_softmax(x, 0)
    },
    {
        let [x, ..] = x;
        let x = x.reshape([3, 4, 5]);
        activation::log_softmax(x.clone(), 2) + activation::log_softmax(x, 0)
    }
);

agree!(
    layer_norms,
    3,
    PLAIN,
    |x| {
        let [x, gamma, beta, _] = x;
        let x = x.reshape([3, 4, 5]);
        layer_norm(x.clone(), gamma.clone(), Some(beta), 1e-5) + layer_norm(x, gamma, None, 1e-3)
    },
    {
        let [x, gamma, beta, _] = x;
        let x = x.reshape([3, 4, 5]);
        burns_norm(x.clone(), gamma.clone(), Some(beta), 1e-5) + burns_norm(x, gamma, None, 1e-3)
    }
);

agree!(
    root_mean_square_norms,
    3,
    PLAIN,
    |x| {
        let [x, gamma, ..] = x;
        rms_norm(x.reshape([3, 4, 5]), gamma, 1e-5)
    },
    {
        let [x, gamma, ..] = x;
        let x = x.reshape([3, 4, 5]);
        let r = (x.clone() * x.clone()).mean_dim(2).add_scalar(1e-5).sqrt();
        x / r * gamma.reshape([1, 1, 5])
    }
);

const HEADS: [&[usize]; 4] = [&[2, 3, 5, 4], &[2, 3, 6, 4], &[2, 3, 6, 7], &[1, 3, 1, 6]];

agree!(
    attention_with_everything,
    4,
    HEADS,
    |x| {
        let [q, k, v, bias] = x;
        let (q, k, v) = (q.reshape([2, 3, 5, 4]), k.reshape([2, 3, 6, 4]), v.reshape([2, 3, 6, 7]));
        let bias = bias.reshape([1, 3, 1, 6]);
        let mask = bias.clone().greater_elem(0.75);
        let all = AttentionModuleOptions { scale: Some(0.7), softcap: Some(2.0), is_causal: true };
        let plain = AttentionModuleOptions::default();
        attention(q.clone(), k.clone(), v.clone(), Some(mask), Some(bias), all)
            + attention(q, k, v, None, None, plain)
    },
    {
        let [q, k, v, bias] = x;
        let (q, k, v) = (q.reshape([2, 3, 5, 4]), k.reshape([2, 3, 6, 4]), v.reshape([2, 3, 6, 7]));
        let bias = bias.reshape([1, 3, 1, 6]);
        let mask = bias.clone().greater_elem(0.75).expand([2, 3, 5, 6]);
        let s = q.clone().matmul(k.clone().transpose());
        let capped = (s.clone() * 0.35).tanh() * 2.0;
        let after = Tensor::<A, 2>::ones([5, 6], &Default::default()).triu(2).greater_elem(0.5);
        let hidden = mask.bool_or(after.reshape([1, 1, 5, 6]).expand([2, 3, 5, 6]));
        let first = activation::softmax(capped.mask_fill(hidden, f32::NEG_INFINITY) + bias, 3);
        first.matmul(v.clone()) + activation::softmax(s * 0.5, 3).matmul(v)
    }
);

#[test]
fn cross_entropy_of_classes() {
    fn fused<B: Operations + AutodiffBackend>() -> [TensorData; 2] {
        let x = leaf::<B, 2>([4, 6], 1);
        let t = Tensor::<B, 1, Int>::from_ints([5, 0, 3, 3], &Default::default());
        let y = cross_entropy(x.clone(), t);
        let grads = y.backward();
        [y.into_data(), x.grad(&grads).unwrap().into_data()]
    }
    let x = leaf::<A, 2>([4, 6], 1);
    let t = Tensor::<A, 2, Int>::from_ints([[5], [0], [3], [3]], &Default::default());
    let y = activation::log_softmax(x.clone(), 1).gather(1, t).mean().neg();
    let grads = y.backward();
    let want = [y.into_data(), x.grad(&grads).unwrap().into_data()];
    for got in [fused::<A>(), fused::<Autodiff<Flex>>()] {
        for (a, b) in got.into_iter().zip(&want) {
            close(a, b.clone(), "cross-entropy");
        }
    }
}

/// The derivative of `Σ (∂L/∂x)²`, through the tape of the tape.
#[test]
fn second_derivatives_go_through_the_portable_rules() {
    type AA = Autodiff<A>;
    let second = |f: &dyn Fn(Tensor<AA, 2>) -> Tensor<AA, 2>| {
        let x = leaf::<A, 2>([3, 5], 1);
        let lifted = Tensor::<AA, 2>::from_inner(x.clone()).require_grad();
        let g = Tensor::<AA, 2>::from_data(values([3, 5], 2), &Default::default());
        let grads = (f(lifted.clone()) * g).sum().backward();
        let first = lifted.grad(&grads).unwrap();
        let grads = (first.clone() * first).sum().backward();
        x.grad(&grads).unwrap().into_data()
    };
    let gamma = || Tensor::<AA, 1>::from_data(values([5], 3), &Default::default());
    close(second(&|x| softmax(x, 1)), second(&|x| activation::softmax(x, 1)), "softmax");
    close(second(&|x| log_softmax(x, 1)), second(&|x| activation::log_softmax(x, 1)), "log");
    close(
        second(&|x| layer_norm(x, gamma(), None, 1e-2)),
        second(&|x| burns_norm(x, gamma(), None, 1e-2)),
        "layer norm",
    );
}
