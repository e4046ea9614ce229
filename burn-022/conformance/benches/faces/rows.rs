//! Measured operations, for both versions of Burn: the module that includes this file imports the version.

use std::hint::black_box;

use super::autodiff::Autodiff;
use super::backend::ops::{
    ActivationOps, AttentionModuleOptions, ConvOptions, FloatTensorOps, ModuleOps,
};
use super::backend::tensor::{Device, FloatTensor};
use super::backend::{AutodiffBackend, Backend, Scalar, Shape, Slice, TensorData, try_read_sync};

use crate::{Row, Run};

type Tape<B> = Autodiff<B>;

/// Fixed values in [−1, 1].
fn floats<B: Backend>(sizes: &[usize]) -> FloatTensor<B> {
    let value = |i: usize| {
        let bits = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        bits as f32 / (1u64 << 23) as f32 - 1.0
    };
    let data: Vec<f32> = (0..sizes.iter().product()).map(value).collect();
    let device = Device::<B>::default();
    // A computed tensor, as inside of a network, instead of memory of the caller.
    let x = B::float_from_data(TensorData::new(data, sizes.to_vec()), &device);
    B::float_add_scalar(x, Scalar::Float(0.0))
}

fn run<B: Backend>(mut f: impl FnMut() -> FloatTensor<B> + 'static) -> Run {
    Box::new(move |read| {
        let out = black_box(f());
        read.then(|| {
            let data = try_read_sync(B::float_into_data(out)).expect("at once").expect("data");
            data.iter::<f32>().collect()
        })
    })
}

fn reshape<B: Backend>(x: FloatTensor<B>, sizes: &[usize]) -> FloatTensor<B> {
    B::float_reshape(x, Shape::from(sizes.to_vec()))
}

/// Marks the tensor as a leaf of the tape.
fn leaf<B: Backend>(x: FloatTensor<B>) -> FloatTensor<Tape<B>> {
    <Tape<B> as FloatTensorOps<_>>::float_set_require_grad(Tape::<B>::from_inner(x), true)
}

/// Gradient of the sum of all elements with respect to a leaf.
fn pull<B: Backend>(x: &FloatTensor<Tape<B>>, y: FloatTensor<Tape<B>>) -> FloatTensor<B> {
    let gradients = Tape::<B>::backward(Tape::<B>::float_sum(y));
    Tape::<B>::grad(x, &gradients).expect("a leaf")
}

/// One step of gradient descent on leaves: the loss and the updated leaves.
fn descend<B: Backend>(
    leaves: &mut Vec<FloatTensor<Tape<B>>>,
    loss: impl FnOnce(&[FloatTensor<Tape<B>>]) -> FloatTensor<Tape<B>>,
) -> FloatTensor<B> {
    let loss = loss(leaves);
    let out = Tape::<B>::inner(loss.clone());
    let gradients = Tape::<B>::backward(loss);
    for x in leaves.iter_mut() {
        let g = Tape::<B>::grad(x, &gradients).expect("a leaf");
        let step = B::float_mul_scalar(g, Scalar::Float(1e-3));
        *x = leaf::<B>(B::float_sub(Tape::<B>::inner(x.clone()), step));
    }
    out
}

/// `x W + b` for each row.
fn linear<A: Backend>(x: FloatTensor<A>, w: &FloatTensor<A>, b: &FloatTensor<A>) -> FloatTensor<A> {
    A::float_add(A::float_matmul(x, w.clone()), b.clone())
}

/// −mean log-softmax of the first class.
fn loss<A: Backend>(logits: FloatTensor<A>) -> FloatTensor<A> {
    let p = A::log_softmax(logits, 1);
    let first = A::float_slice(p, &[Slice::full(), Slice::new(0, Some(1), 1)]);
    A::float_neg(A::float_mean(first))
}

fn normed<A: Backend>(x: FloatTensor<A>, gamma: &FloatTensor<A>) -> FloatTensor<A> {
    A::layer_norm(x, gamma.clone(), None, 1e-5)
}

const BATCH: usize = 8;
const LENGTH: usize = 64;
const WIDTH: usize = 128;
const HEADS: usize = 4;

/// Transformer block: attention and two linear layers, each after a norm.
fn block<A: Backend>(x: FloatTensor<A>, w: &[FloatTensor<A>]) -> FloatTensor<A> {
    let each = WIDTH / HEADS;
    let heads = |x: FloatTensor<A>| {
        A::float_swap_dims(reshape::<A>(x, &[BATCH, LENGTH, HEADS, each]), 1, 2)
    };
    let rows = |x: FloatTensor<A>| reshape::<A>(x, &[BATCH * LENGTH, WIDTH]);
    let n = normed::<A>(x.clone(), &w[0]);
    let [q, k, v] = [1, 2, 3].map(|i| heads(A::float_matmul(n.clone(), w[i].clone())));
    let scores = A::float_matmul(q, A::float_swap_dims(k, 2, 3));
    let scores = A::float_mul_scalar(scores, Scalar::Float((each as f64).powf(-0.5)));
    let y = A::float_matmul(A::softmax(scores, 3), v);
    let x = A::float_add(x, A::float_matmul(rows(A::float_swap_dims(y, 1, 2)), w[4].clone()));
    let n = normed::<A>(x.clone(), &w[5]);
    let y = A::float_matmul(A::gelu(A::float_matmul(n, w[6].clone())), w[7].clone());
    A::float_add(x, y)
}

fn block_weights<B: Backend>() -> Vec<FloatTensor<Tape<B>>> {
    let matrix =
        |m: usize, n: usize| B::float_mul_scalar(floats::<B>(&[m, n]), Scalar::Float(0.05));
    let one = || B::float_add_scalar(floats::<B>(&[WIDTH]), Scalar::Float(2.0));
    let square = || matrix(WIDTH, WIDTH);
    let all = vec![
        one(),
        square(),
        square(),
        square(),
        square(),
        one(),
        matrix(WIDTH, 4 * WIDTH),
        matrix(4 * WIDTH, WIDTH),
    ];
    all.into_iter().map(leaf::<B>).collect()
}

/// All rows on a backend: name, tolerance relative to the largest element, constructor.
pub(crate) fn rows<B: Backend>() -> Vec<Row> {
    let mut all = Vec::new();
    let mut row = |name: &str, tolerance: f64, make: fn() -> Run| {
        all.push(Row { name: name.to_string(), tolerance, make });
    };
    row("add 4×4", 1e-6, || {
        let x = floats::<B>(&[4, 4]);
        run::<B>(move || B::float_add(x.clone(), x.clone()))
    });
    row("add 1024²", 1e-6, || {
        let (x, y) = (floats::<B>(&[1024, 1024]), floats::<B>(&[1024, 1024]));
        run::<B>(move || B::float_add(x.clone(), y.clone()))
    });
    row("add 1024² transposed", 1e-6, || {
        let x = floats::<B>(&[1024, 1024]);
        let y = B::float_swap_dims(floats::<B>(&[1024, 1024]), 0, 1);
        run::<B>(move || B::float_add(x.clone(), y.clone()))
    });
    row("exp 1024²", 1e-5, || {
        let x = floats::<B>(&[1024, 1024]);
        run::<B>(move || B::float_exp(x.clone()))
    });
    row("sum 1024² rows", 1e-4, || {
        let x = floats::<B>(&[1024, 1024]);
        run::<B>(move || B::float_sum_dim(x.clone(), 1))
    });
    row("softmax 1024² rows", 1e-5, || {
        let x = floats::<B>(&[1024, 1024]);
        run::<B>(move || B::softmax(x.clone(), 1))
    });
    row("layer norm 1024²", 1e-4, || {
        let (x, gamma) = (floats::<B>(&[1024, 1024]), floats::<B>(&[1024]));
        run::<B>(move || normed::<B>(x.clone(), &gamma))
    });
    row("transpose copy 1024²", 0.0, || {
        let x = floats::<B>(&[1024, 1024]);
        run::<B>(move || reshape::<B>(B::float_swap_dims(x.clone(), 0, 1), &[1024 * 1024]))
    });
    row("cat 4 × 512×256", 0.0, || {
        let x = floats::<B>(&[512, 256]);
        run::<B>(move || B::float_cat(vec![x.clone(); 4], 1))
    });
    row("matmul 16", 1e-4, || {
        let x = floats::<B>(&[16, 16]);
        run::<B>(move || B::float_matmul(x.clone(), x.clone()))
    });
    row("matmul 512", 1e-4, || {
        let (x, y) = (floats::<B>(&[512, 512]), floats::<B>(&[512, 512]));
        run::<B>(move || B::float_matmul(x.clone(), y.clone()))
    });
    row("matmul 64×256×64 batch 32", 1e-4, || {
        let (x, y) = (floats::<B>(&[32, 64, 256]), floats::<B>(&[32, 256, 64]));
        run::<B>(move || B::float_matmul(x.clone(), y.clone()))
    });
    row("conv2d 4×32×28×28 64 3×3", 1e-4, || {
        let (x, w) = (floats::<B>(&[4, 32, 28, 28]), floats::<B>(&[64, 32, 3, 3]));
        let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        run::<B>(move || B::conv2d(x.clone(), w.clone(), None, options()))
    });
    row("max pool 2×2 8×32×56×56", 0.0, || {
        let x = floats::<B>(&[8, 32, 56, 56]);
        run::<B>(move || B::max_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false))
    });
    row("attention 4×8×128×64", 1e-4, || {
        let x = floats::<B>(&[4, 8, 128, 64]);
        let options = AttentionModuleOptions::default;
        run::<B>(move || B::attention(x.clone(), x.clone(), x.clone(), None, None, options()))
    });
    row("softmax fwd+bwd 1024²", 1e-4, || {
        let x = leaf::<B>(floats::<B>(&[1024, 1024]));
        run::<B>(move || {
            let y = Tape::<B>::softmax(x.clone(), 1);
            pull::<B>(&x, Tape::<B>::float_mul(y.clone(), y))
        })
    });
    row("conv2d fwd+bwd 4×32×28×28 64 3×3", 1e-4, || {
        let x = leaf::<B>(floats::<B>(&[4, 32, 28, 28]));
        let w = leaf::<B>(floats::<B>(&[64, 32, 3, 3]));
        let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        run::<B>(move || {
            let y = Tape::<B>::conv2d(x.clone(), w.clone(), None, options());
            pull::<B>(&w, Tape::<B>::float_mul(y.clone(), y))
        })
    });
    row("MLP step b64 h512", 1e-3, || mlp::<B>(64, 512));
    row("MLP step b8 h32", 1e-3, || mlp::<B>(8, 32));
    row("transformer block step d128 b8 s64", 1e-3, || {
        let x = Tape::<B>::from_inner(floats::<B>(&[BATCH * LENGTH, WIDTH]));
        let mut w = block_weights::<B>();
        run::<B>(move || descend::<B>(&mut w, |w| loss::<Tape<B>>(block::<Tape<B>>(x.clone(), w))))
    });
    all
}

/// Training step of three layers.
fn mlp<B: Backend>(batch: usize, hidden: usize) -> Run {
    let sizes = [64, hidden, hidden, 10];
    let mut w = Vec::new();
    for pair in sizes.windows(2) {
        let scale = Scalar::Float((pair[0] as f64).powf(-0.5));
        w.push(leaf::<B>(B::float_mul_scalar(floats::<B>(pair), scale)));
        w.push(leaf::<B>(floats::<B>(&[1, pair[1]])));
    }
    let x = Tape::<B>::from_inner(floats::<B>(&[batch, 64]));
    run::<B>(move || {
        descend::<B>(&mut w, |w| {
            let mut y = x.clone();
            for (i, pair) in w.chunks(2).enumerate() {
                y = if i == 0 { y } else { Tape::<B>::relu(y) };
                y = linear::<Tape<B>>(y, &pair[0], &pair[1]);
            }
            loss::<Tape<B>>(y)
        })
    })
}
