//! Training with differential privacy: the influence of a single image on the parameters is bounded.
//!
//! ```text
//! cargo run --release --example per_example_gradients
//! ```
//!
//! The gradient of every image is clipped to a norm, the gradients are summed, and noise is added (Abadi and others
//! 2016). This requires per-example gradients: `vmap` of an unmodified network under `Autodiff` computes them in one
//! call, which is compared with a loop over images and timed against it.

#[path = "digits/src/data.rs"]
mod data;

use std::time::Instant;

use burn::backend::Autodiff;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLoss;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::gelu;
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Device, Distribution, Int, Tensor};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::module::lift;
use burn_t4a_transforms::vmap::{Vmap, vmap};

use data::{Digits, Set, shuffle};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
type B = BurnT4a;

/// Maximum norm of the gradient of one image.
const BOUND: f32 = 1.0;
/// Standard deviation of the noise, in units of the bound.
const NOISE: f64 = 0.5;
const RATE: f32 = 0.5;
const BATCH: usize = 128;
const EPOCHS: usize = 12;

#[derive(Module, Debug)]
struct Net<B: Backend> {
    hidden: Linear<B>,
    output: Linear<B>,
}

impl<B: Backend> Net<B> {
    fn new(device: &Device<B>) -> Self {
        Self {
            hidden: LinearConfig::new(64, 48).init(device),
            output: LinearConfig::new(48, 10).init(device),
        }
    }

    fn forward(&self, images: Tensor<B, 2>) -> Tensor<B, 2> {
        self.output.forward(gelu(self.hidden.forward(images)))
    }

    fn loss(&self, images: Tensor<B, 2>, labels: Tensor<B, 1, Int>) -> Tensor<B, 1> {
        let scores = self.forward(images);
        CrossEntropyLoss::new(None, &scores.device()).forward(scores, labels)
    }

    /// Weights and biases.
    fn parameters(&self) -> Parameters<B, 2, 1> {
        let bias = |layer: &Linear<B>| layer.bias.as_ref().map(|x| x.val());
        let biases = [&self.hidden, &self.output].map(|layer| bias(layer).expect("a bias"));
        ([self.hidden.weight.val(), self.output.weight.val()], biases)
    }

    /// Every parameter minus its step.
    fn stepped(mut self, ([w, v], [b, c]): Parameters<B, 2, 1>) -> Self {
        self.hidden.weight = self.hidden.weight.map(|x| x - w);
        self.output.weight = self.output.weight.map(|x| x - v);
        self.hidden.bias = self.hidden.bias.map(|x| x.map(|x| x - b));
        self.output.bias = self.output.bias.map(|x| x.map(|x| x - c));
        self
    }
}

/// One tensor per parameter: matrices and vectors, or batches of them.
type Parameters<B, const D: usize, const E: usize> = ([Tensor<B, D>; 2], [Tensor<B, E>; 2]);

/// Gradient of the loss of these images.
fn gradient<B: AutodiffBackend>(
    net: &Net<B>,
    images: Tensor<B, 2>,
    labels: Tensor<B, 1, Int>,
) -> Parameters<B::InnerBackend, 2, 1> {
    let gradients = net.loss(images, labels).backward();
    let (weights, biases) = net.parameters();
    let missing = "the loss depends on every parameter";
    (
        weights.map(|x| x.grad(&gradients).expect(missing)),
        biases.map(|x| x.grad(&gradients).expect(missing)),
    )
}

/// Gradients of all images, stacked: one call for any number of images.
fn per_example(
    net: &Net<B>,
    images: Tensor<B, 2>,
    labels: Tensor<B, 1, Int>,
) -> Result<Parameters<B, 3, 2>> {
    type V = Vmap<B>;
    type A = Autodiff<V>;
    let mapped: Net<V> = lift(net, Net::new(&T4aDevice))?;
    let tape: Net<A> = lift(&mapped, Net::new(&T4aDevice))?;
    let one = |(image, label): (Tensor<V, 1>, Tensor<V, 1, Int>)| {
        let image = Tensor::<A, 1>::from_inner(image).unsqueeze();
        gradient(&tape, image, Tensor::from_inner(label))
    };
    Ok(vmap(one).call((images, labels))?)
}

/// The same in a loop over images.
fn loop_over(net: &Net<B>, images: &Tensor<B, 2>, labels: &Tensor<B, 1, Int>) -> Result<Vec<f32>> {
    type A = Autodiff<B>;
    let tape: Net<A> = lift(net, Net::new(&T4aDevice))?;
    let mut squares = Vec::new();
    for i in 0..images.dims()[0] {
        let image = Tensor::<A, 2>::from_inner(images.clone().narrow(0, i, 1));
        let label = Tensor::from_inner(labels.clone().narrow(0, i, 1));
        let (weights, biases) = gradient(&tape, image, label);
        let weights = weights.map(|x| x.powi_scalar(2).sum().into_scalar());
        let biases = biases.map(|x| x.powi_scalar(2).sum().into_scalar());
        squares.push(weights.iter().chain(&biases).sum());
    }
    Ok(squares)
}

/// Squared norm of the gradient of each image.
fn squares((weights, biases): &Parameters<B, 3, 2>) -> Tensor<B, 1> {
    let weights = weights.iter().map(|x| x.clone().flatten::<2>(1, 2));
    let all = weights.chain(biases.iter().cloned());
    let sums = all.map(|x| x.powi_scalar(2).sum_dim(1).squeeze_dim::<1>(1));
    sums.reduce(|a, b| a + b).expect("four parameters")
}

/// Mean of the clipped gradients, with noise.
fn private(gradients: Parameters<B, 3, 2>) -> Parameters<B, 2, 1> {
    let factor = (squares(&gradients).sqrt() + 1e-12).recip().mul_scalar(BOUND).clamp_max(1.0);
    let count = factor.dims()[0] as f32;
    let noise = |shape| {
        let deviation = NOISE * f64::from(BOUND);
        Tensor::<B, 1>::random(shape, Distribution::Normal(0.0, deviation), &T4aDevice)
    };
    let (weights, biases) = gradients;
    (
        weights.map(|x| {
            let sum = (x * factor.clone().reshape([-1, 1, 1])).sum_dim(0).squeeze_dim::<2>(0);
            let drawn = noise([sum.shape().num_elements()]).reshape(sum.shape());
            (sum + drawn) / count
        }),
        biases.map(|x| {
            let sum = (x * factor.clone().reshape([-1, 1])).sum_dim(0).squeeze_dim::<1>(0);
            let drawn = noise([sum.dims()[0]]);
            (sum + drawn) / count
        }),
    )
}

fn batch(set: &Set, at: &[usize]) -> (Tensor<B, 2>, Tensor<B, 1, Int>) {
    let (images, labels) = set.batch::<B>(at);
    (images.flatten(1, 3), labels)
}

fn accuracy(net: &Net<B>, set: &Set) -> f64 {
    let (images, labels) = batch(set, &(0..set.len()).collect::<Vec<_>>());
    let right = net.forward(images).argmax(1).flatten::<1>(0, 1).equal(labels).int().sum();
    f64::from(right.into_scalar()) / set.len() as f64
}

fn main() -> Result<()> {
    B::seed(&T4aDevice, 3);
    let digits = Digits::load(3)?;
    let mut net = Net::<B>::new(&T4aDevice);
    let mut order: Vec<usize> = (0..digits.train.len()).collect();

    // Comparison with the loop: equality and speed.
    let (images, labels) = batch(&digits.train, &order[..BATCH]);
    let gradients = per_example(&net, images.clone(), labels.clone())?;
    let at_once: Vec<f32> = squares(&gradients).into_data().iter().collect();
    for (i, (a, b)) in at_once.iter().zip(loop_over(&net, &images, &labels)?).enumerate() {
        assert!((a - b).abs() <= 1e-4 * b.abs(), "image {i}: {a} and {b}");
    }
    let begin = Instant::now();
    per_example(&net, images.clone(), labels.clone())?;
    let (mapped, begin) = (begin.elapsed(), Instant::now());
    loop_over(&net, &images, &labels)?;
    let looped = begin.elapsed();
    let ratio = looped.as_secs_f64() / mapped.as_secs_f64();
    println!(
        "gradients of {BATCH} images: {mapped:.1?}, in a loop {looped:.1?}, {ratio:.0} times\n"
    );

    for epoch in 0..EPOCHS {
        shuffle(&mut order, epoch as u64);
        for at in order.chunks(BATCH) {
            let (images, labels) = batch(&digits.train, at);
            let (weights, biases) = private(per_example(&net, images, labels)?);
            net = net.stepped((weights.map(|x| x * RATE), biases.map(|x| x * RATE)));
        }
        println!(
            "epoch {:>2}: {:.1} % of the test images",
            epoch + 1,
            100.0 * accuracy(&net, &digits.test)
        );
    }
    assert!(accuracy(&net, &digits.test) > 0.85, "training failed");
    Ok(())
}
