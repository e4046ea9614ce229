//! Fused functions against Burn's own operations: values and gradients.

use burn_backend::ops::AttentionModuleOptions;
use burn_tensor::{Int, TensorData, activation};

use super::ext::nn;
use super::{Tensor, device};

fn values<const D: usize>(shape: [usize; D], salt: usize) -> TensorData {
    let value = |i: usize| ((i * 7919 + salt * 104_729) % 1000) as f32 / 500.0 - 1.0;
    TensorData::new((0..shape.iter().product()).map(value).collect::<Vec<f32>>(), shape)
}

fn leaf<const D: usize>(shape: [usize; D], salt: usize) -> Tensor<D> {
    Tensor::from_data(values(shape, salt), &device()).require_grad()
}

fn close(a: &[f64], b: &[f64], context: &str) {
    assert_eq!(a.len(), b.len(), "{context}");
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= 2e-5 * (1.0 + y.abs()), "{context}: {x} and {y}");
    }
}

/// Layer norm by its formula.
fn plain_norm(x: Tensor<3>, gamma: Tensor<1>, beta: Option<Tensor<1>>, epsilon: f64) -> Tensor<3> {
    let centred = x.clone() - x.mean_dim(2);
    let variance = (centred.clone() * centred.clone()).mean_dim(2);
    let y = centred / variance.add_scalar(epsilon).sqrt() * gamma.reshape([1, 1, 5]);
    match beta {
        Some(beta) => y + beta.reshape([1, 1, 5]),
        None => y,
    }
}

/// The result of a function of four operands and the gradients of `Σ y·g`.
fn run<const D: usize>(
    shapes: [&[usize]; 4],
    f: impl Fn([Tensor<1>; 4]) -> Tensor<D>,
) -> Vec<Vec<f64>> {
    let leaves: [Tensor<1>; 4] = std::array::from_fn(|i| leaf([shapes[i].iter().product()], i + 1));
    let y = f(leaves.clone());
    let g = Tensor::from_data(values(y.dims(), 9), &device());
    let grads = (y.clone() * g).sum().backward();
    let mut out = vec![y.into_data().iter().collect()];
    for leaf in leaves {
        out.extend(leaf.grad(&grads).map(|g| g.into_data().iter().collect()));
    }
    out
}

/// Compares a fused function with Burn's own operations.
macro_rules! agree {
    ($name:ident, $d:literal, $shapes:expr, |$x:ident| $fused:expr, $plain:expr) => {
        #[test]
        fn $name() {
            let got = run::<$d>($shapes, |$x| $fused);
            let want = run::<$d>($shapes, |$x| $plain);
            assert_eq!(got.len(), want.len());
            for (i, (a, b)) in got.iter().zip(&want).enumerate() {
                close(a, b, &format!("tensor {i}"));
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
        nn::softmax(x.clone(), 2) + nn::softmax(x, 1)
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
        nn::log_softmax(x.clone(), 2) + nn::log_softmax(x, 0)
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
        nn::layer_norm(x.clone(), gamma.clone(), Some(beta), 1e-5)
            + nn::layer_norm(x, gamma, None, 1e-3)
    },
    {
        let [x, gamma, beta, _] = x;
        let x = x.reshape([3, 4, 5]);
        plain_norm(x.clone(), gamma.clone(), Some(beta), 1e-5) + plain_norm(x, gamma, None, 1e-3)
    }
);

agree!(
    root_mean_square_norms,
    3,
    PLAIN,
    |x| {
        let [x, gamma, ..] = x;
        nn::rms_norm(x.reshape([3, 4, 5]), gamma, 1e-5)
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
        nn::attention(q.clone(), k.clone(), v.clone(), Some(mask), Some(bias), all)
            + nn::attention(q, k, v, None, None, plain)
    },
    {
        let [q, k, v, bias] = x;
        let (q, k, v) = (q.reshape([2, 3, 5, 4]), k.reshape([2, 3, 6, 4]), v.reshape([2, 3, 6, 7]));
        let bias = bias.reshape([1, 3, 1, 6]);
        let mask = bias.clone().greater_elem(0.75).expand([2, 3, 5, 6]);
        let s = q.clone().matmul(k.clone().transpose());
        let capped = (s.clone() * 0.35).tanh() * 2.0;
        let after = Tensor::<2>::ones([5, 6], &device()).triu(2).greater_elem(0.5);
        let hidden = mask.bool_or(after.reshape([1, 1, 5, 6]).expand([2, 3, 5, 6]));
        let first = activation::softmax(capped.mask_fill(hidden, f32::NEG_INFINITY) + bias, 3);
        first.matmul(v.clone()) + activation::softmax(s * 0.5, 3).matmul(v)
    }
);

#[test]
fn cross_entropy_of_classes() {
    let run = |f: fn(Tensor<2>) -> Tensor<1>| {
        let x = leaf([4, 6], 1);
        let y = f(x.clone());
        let gradient = x.grad(&y.backward()).unwrap();
        [y.into_data().iter().collect(), gradient.into_data().iter().collect::<Vec<f64>>()]
    };
    let got = run(|x| nn::cross_entropy(x, Tensor::<1, Int>::from_ints([5, 0, 3, 3], &device())));
    let want = run(|x| {
        let t = Tensor::<2, Int>::from_ints([[5], [0], [3], [3]], &device());
        activation::log_softmax(x, 1).gather(1, t).mean().neg()
    });
    for (a, b) in got.iter().zip(&want) {
        close(a, b, "cross-entropy");
    }
}
