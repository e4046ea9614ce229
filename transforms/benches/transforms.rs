//! Vectorised functions against hand-batched ones and loops, and tangents against values. Results are compared
//! before timing.
//!
//! ```text
//! T4A_NUM_THREADS=1 cargo bench -p burn-t4a-transforms --bench transforms [-- part]
//! ```
//!
//! Parts: batches, gradients, tangents. `peers/torch_per_example.py` measures the per-example gradients in PyTorch.

use std::hint::black_box;
use std::time::Instant;

use burn::backend::Autodiff;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLoss;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::activation::{gelu, relu, softmax};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Distribution, Int, Tensor, TensorData, Tolerance};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::jvp::{Jvp, jvp};
use burn_t4a_transforms::module::lift;
use burn_t4a_transforms::vmap::{Vmap, vmap};

type B = BurnT4a;
type V = Vmap<B>;

const BATCH: usize = 128;

/// Minimum time of a call in µs, over half a second of calls.
fn time(mut f: impl FnMut()) -> f64 {
    f();
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed().as_secs_f64() < 0.5 {
        let one = Instant::now();
        f();
        best = best.min(one.elapsed().as_secs_f64());
    }
    best * 1e6
}

fn random<const D: usize>(shape: [usize; D]) -> Tensor<B, D> {
    Tensor::random(shape, Distribution::Uniform(-1.0, 1.0), &T4aDevice)
}

fn close<const D: usize>(x: Tensor<B, D>, y: Tensor<B, D>) {
    let near = Tolerance::<f32>::rel_abs(1e-3, 1e-4);
    x.into_data().assert_approx_eq(&y.into_data(), near);
}

fn row(name: &str, [peer, own]: [f64; 2]) {
    println!("{name:<44} {peer:>10.1} {own:>10.1} {:>7.2}", peer / own);
}

#[derive(Module, Debug)]
struct Perceptron<B: Backend> {
    layers: Vec<Linear<B>>,
    norm: LayerNorm<B>,
}

impl<B: Backend<Device = T4aDevice>> Perceptron<B> {
    fn new() -> Self {
        let linear = |i, o| LinearConfig::new(i, o).init(&T4aDevice);
        let norm = LayerNormConfig::new(128).init(&T4aDevice);
        Self { layers: vec![linear(64, 128), linear(128, 128), linear(128, 10)], norm }
    }

    fn forward<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        let x = gelu(self.layers[0].forward(x));
        let x = gelu(self.layers[1].forward(self.norm.forward(x)));
        softmax(self.layers[2].forward(x), D - 1)
    }
}

/// A classifier of 8×8 images.
#[derive(Module, Debug)]
struct Convolutional<B: Backend> {
    convs: Vec<Conv2d<B>>,
    head: Linear<B>,
}

impl<B: Backend<Device = T4aDevice>> Convolutional<B> {
    fn new() -> Self {
        let conv = |i, o| {
            let padding = PaddingConfig2d::Explicit(1, 1, 1, 1);
            Conv2dConfig::new([i, o], [3, 3]).with_padding(padding).init(&T4aDevice)
        };
        let head = LinearConfig::new(16 * 64, 10).init(&T4aDevice);
        Self { convs: vec![conv(1, 8), conv(8, 16)], head }
    }

    fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 2> {
        let x = relu(self.convs[0].forward(x));
        let x = relu(self.convs[1].forward(x));
        self.head.forward(x.flatten(1, 3))
    }

    fn loss(&self, x: Tensor<B, 4>, labels: Tensor<B, 1, Int>) -> Tensor<B, 1> {
        CrossEntropyLoss::new(None, &T4aDevice).forward(self.forward(x), labels)
    }
}

type Gradients<B, const D: usize, const E: usize> = (Vec<Tensor<B, D>>, Tensor<B, E>);

/// Gradients of the kernels and of the output layer.
fn gradients<A: AutodiffBackend<Device = T4aDevice>>(
    net: &Convolutional<A>,
    x: Tensor<A, 4>,
    labels: Tensor<A, 1, Int>,
) -> Gradients<A::InnerBackend, 4, 2> {
    let all = net.loss(x, labels).backward();
    let kernels = net.convs.iter().map(|conv| conv.weight.grad(&all).expect("used")).collect();
    (kernels, net.head.weight.grad(&all).expect("used"))
}

fn batches() {
    let net = Perceptron::<B>::new();
    let mapped: Perceptron<V> = lift(&net, Perceptron::new()).expect("the same net");
    let x = random([BATCH, 64]);
    let own = || vmap(|x: Tensor<V, 1>| mapped.forward(x)).call(x.clone()).expect("one batch");
    close(own(), net.forward(x.clone()));
    let hand = time(|| drop(black_box(net.forward(x.clone()))));
    let own = time(|| drop(black_box(own())));
    row("perceptron, batch 128: by hand, vmap", [hand, own]);

    let net = Convolutional::<B>::new();
    let mapped: Convolutional<V> = lift(&net, Convolutional::new()).expect("the same net");
    let x = random([BATCH, 1, 8, 8]);
    let one = |x: Tensor<V, 3>| mapped.forward(x.unsqueeze()).squeeze_dim::<1>(0);
    let own = || vmap(one).call(x.clone()).expect("one batch");
    close(own(), net.forward(x.clone()));
    let hand = time(|| drop(black_box(net.forward(x.clone()))));
    let own = time(|| drop(black_box(own())));
    row("CNN, batch 128: by hand, vmap", [hand, own]);
}

fn per_example() {
    let net = Convolutional::<B>::new();
    let x = random([BATCH, 1, 8, 8]);
    let labels: Vec<i32> = (0..BATCH as i32).map(|i| i * 7 % 10).collect();
    let labels = Tensor::<B, 1, Int>::from_data(TensorData::new(labels, [BATCH]), &T4aDevice);
    let mapped: Convolutional<V> = lift(&net, Convolutional::new()).expect("the same net");
    let tape: Convolutional<Autodiff<V>> =
        lift(&mapped, Convolutional::new()).expect("the same net");
    let one = |(x, label): (Tensor<V, 3>, Tensor<V, 1, Int>)| {
        let x = Tensor::<Autodiff<V>, 3>::from_inner(x).unsqueeze();
        gradients(&tape, x, Tensor::from_inner(label))
    };
    let labels = labels.reshape([BATCH, 1]);
    let own = || -> Gradients<B, 5, 3> {
        vmap(one).call((x.clone(), labels.clone())).expect("one batch")
    };
    let plain: Convolutional<Autodiff<B>> = lift(&net, Convolutional::new()).expect("the same net");
    let of = |i: usize| {
        let x = Tensor::from_inner(x.clone().narrow(0, i, 1));
        gradients(&plain, x, Tensor::from_inner(labels.clone().slice(i..i + 1).reshape([1])))
    };
    let ((kernels, head), (one_kernels, one_head)) = (own(), of(3));
    close(head.slice(3..4).squeeze_dim::<2>(0), one_head);
    for (all, one) in kernels.into_iter().zip(one_kernels) {
        close(all.slice(3..4).squeeze_dim::<4>(0), one);
    }
    let looped = time(|| (0..BATCH).for_each(|i| drop(black_box(of(i)))));
    let vmapped = time(|| drop(black_box(own())));
    row("CNN, 128 gradients: loop, vmap", [looped, vmapped]);
    let whole = time(|| {
        let (x, y) = (Tensor::from_inner(x.clone()), labels.clone().reshape([BATCH]));
        drop(black_box(gradients(&plain, x, Tensor::from_inner(y))));
    });
    row("CNN, 128 gradients: their sum alone, vmap", [whole, vmapped]);
}

fn tangents() {
    type J = Jvp<B>;
    let net = Perceptron::<B>::new();
    let moved: Perceptron<J> = lift(&net, Perceptron::new()).expect("the same net");
    let (x, dx) = (random([BATCH, 64]), random([BATCH, 64]));
    let own = || jvp(|x: Tensor<J, 2>| moved.forward(x), x.clone(), dx.clone()).expect("fits");
    let (y, dy): (Tensor<B, 2>, Tensor<B, 2>) = own();
    close(y.clone(), net.forward(x.clone()));
    let step = 1e-2;
    let at = |h: f64| net.forward(x.clone() + dx.clone() * h);
    close(dy, (at(step) - at(-step)) / (2.0 * step));
    let value = time(|| drop(black_box(net.forward(x.clone()))));
    let both = time(|| drop(black_box(own())));
    row("perceptron, batch 128: value, jvp", [value, both]);

    let net = Convolutional::<B>::new();
    let moved: Convolutional<J> = lift(&net, Convolutional::new()).expect("the same net");
    let (x, dx) = (random([BATCH, 1, 8, 8]), random([BATCH, 1, 8, 8]));
    let own = || jvp(|x: Tensor<J, 4>| moved.forward(x), x.clone(), dx.clone()).expect("fits");
    let (y, _): (Tensor<B, 2>, Tensor<B, 2>) = own();
    close(y, net.forward(x.clone()));
    let value = time(|| drop(black_box(net.forward(x.clone()))));
    let both = time(|| drop(black_box(own())));
    row("CNN, batch 128: value, jvp", [value, both]);
}

fn main() {
    println!("{:<44} {:>10} {:>10} {:>7}  µs", "", "first", "second", "ratio");
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let parts: [(&str, fn()); 3] =
        [("batches", batches), ("gradients", per_example), ("tangents", tangents)];
    for (name, part) in parts {
        if filter.as_ref().is_none_or(|filter| filter == name) {
            part();
        }
    }
}
