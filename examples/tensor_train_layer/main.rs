//! A linear layer whose matrix is a tensor train, trained on handwritten digits and compared with a dense one.
//!
//! ```text
//! cargo run --release --example tensor_train_layer
//! ```
//!
//! The 64 inputs are reshaped to 4 × 4 × 4 and the 256 outputs to 4 × 8 × 8. The matrix between them is a product of
//! three small cores (Novikov and others, *Tensorizing Neural Networks*, 2015):
//!
//! ```text
//! W[abc, ijk] = Σ G₁[a, i, r] G₂[r, b, j, s] G₃[s, c, k]
//! ```
//!
//! The layer never forms W: it is one einsum over the images and the cores.

#[allow(dead_code)]
#[path = "../digits/src/data.rs"]
mod data;
mod layer;

use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::module::{AutodiffModule, Module};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use burn::tensor::backend::Backend;
use burn_t4a::ext::operation::Operations;

use burn_t4a::{BurnT4a, T4aDevice};

use data::{Digits, Set, shuffle};
use layer::{TensorTrain, check_against_the_matrix};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
type AD = Autodiff<BurnT4a>;

const EPOCHS: u64 = 12;

/// The layer under comparison: 64 pixels to 256 hidden units.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)]
enum First<B: Backend> {
    Dense(Linear<B>),
    Train(TensorTrain<B>),
}

/// The layer under comparison, and a dense layer to 10 digits.
#[derive(Module, Debug)]
struct Net<B: Backend> {
    first: First<B>,
    output: Linear<B>,
}

impl<B: Operations> Net<B> {
    fn scores(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let x = images.flatten(1, 3);
        let hidden = match &self.first {
            First::Dense(layer) => layer.forward(x),
            First::Train(layer) => layer.forward(x),
        };
        self.output.forward(relu(hidden))
    }
}

/// Test accuracy after training, and training time.
fn train(first: First<AD>, digits: &Digits) -> (f64, Duration) {
    let output = LinearConfig::new(256, 10).init(&T4aDevice);
    let mut net = Net { first, output };
    let loss = CrossEntropyLossConfig::new().init(&T4aDevice);
    let mut optimizer = AdamConfig::new().init();
    let mut order: Vec<usize> = (0..digits.train.len()).collect();
    let begin = Instant::now();
    for epoch in 0..EPOCHS {
        shuffle(&mut order, epoch);
        for at in order.chunks(64) {
            let (images, labels) = digits.train.batch::<AD>(at);
            let error = loss.forward(net.scores(images), labels);
            let grads = GradientsParams::from_grads(error.backward(), &net);
            net = optimizer.step(3e-3, net, grads);
        }
    }
    (accuracy(&net.valid(), &digits.test), begin.elapsed())
}

fn accuracy(net: &Net<BurnT4a>, set: &Set) -> f64 {
    let all: Vec<usize> = (0..set.len()).collect();
    let scores = net.scores(set.batch::<BurnT4a>(&all).0);
    let guesses = scores.argmax(1).into_data();
    let right = guesses.iter::<i32>().zip(&set.labels).filter(|(guess, label)| guess == *label);
    right.count() as f64 / set.len() as f64
}

fn main() -> Result<()> {
    BurnT4a::seed(&T4aDevice, 42);
    check_against_the_matrix()?;
    let digits = Digits::load(42)?;
    println!("first layer        parameters   accuracy       time");
    let row = |name: &str, first: First<AD>| {
        let parameters = first.num_params();
        let (accuracy, time) = train(first, &digits);
        let (percent, seconds) = (100.0 * accuracy, time.as_secs_f64());
        println!("{name:<18} {parameters:>10} {percent:>8.2} % {seconds:>8.2} s");
        accuracy
    };
    let dense = row("dense", First::Dense(LinearConfig::new(64, 256).init(&T4aDevice)));
    assert!(dense > 0.95);
    for rank in [2, 4, 8] {
        let first = First::Train(TensorTrain::new(rank, &T4aDevice));
        let accuracy = row(&format!("train of rank {rank}"), first);
        assert!(accuracy > 0.9, "rank {rank}");
        if rank == 8 {
            assert!(accuracy > dense - 0.03);
        }
    }
    Ok(())
}
