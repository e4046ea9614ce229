//! Handwritten digits read pixel by pixel: a state-space layer compared with burn-nn's LSTM.
//!
//! ```text
//! cargo run --release --example ssm
//! ```
//!
//! The network receives a sequence of 64 pixels and predicts the digit. The recurrence of a state-space layer is linear
//! and diagonal, so all steps of all sequences are one fused operation; an LSTM computes its steps one by one. Both
//! have about the same number of parameters, the same optimiser, the same images in the same order, and are read out by
//! the mean of their outputs over time. In these few epochs the LSTM hardly learns long-range dependencies.

#[allow(dead_code)]
#[path = "../digits/src/data.rs"]
mod data;
mod layer;

use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::module::{AutodiffModule, Module};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig, Lstm, LstmConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn_t4a::ext::operation::Operations;
use burn_t4a::{BurnT4a, T4aDevice};

use data::{Digits, Set, shuffle};
use layer::StateSpace;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
type AD = Autodiff<BurnT4a>;

const EPOCHS: u64 = 12;

// There are only two values of this type.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
enum Layer<B: Backend> {
    StateSpace(StateSpace<B>),
    Lstm(Lstm<B>),
}

#[derive(Module, Debug)]
struct Net<B: Backend> {
    input: Linear<B>,
    layers: Vec<Layer<B>>,
    output: Linear<B>,
}

impl<B: Operations> Net<B> {
    /// Scores `[batch, 10]` of images `[batch, 1, 8, 8]`.
    fn scores(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let [batch, ..] = images.dims();
        let pixels = images.reshape([batch, 64, 1]).swap_dims(0, 1);
        let x = self.layers.iter().fold(self.input.forward(pixels), |x, layer| match layer {
            Layer::StateSpace(layer) => layer.forward(x),
            Layer::Lstm(layer) => layer.forward(x, None).0,
        });
        self.output.forward(x.mean_dim(0).squeeze_dim::<2>(0))
    }
}

/// Test accuracy after training, final loss, and training time.
fn train(mut net: Net<AD>, rate: f64, digits: &Digits) -> (f64, f32, Duration) {
    let loss = CrossEntropyLossConfig::new().init(&T4aDevice);
    let mut optimizer = AdamConfig::new().init();
    let mut order: Vec<usize> = (0..digits.train.len()).collect();
    let begin = Instant::now();
    let mut mean = 0.0;
    for epoch in 0..EPOCHS {
        shuffle(&mut order, epoch);
        mean = 0.0;
        // Cosine schedule from the full learning rate to a twentieth.
        let phase = std::f64::consts::PI * epoch as f64 / EPOCHS as f64;
        let rate = rate * (0.525 + 0.475 * phase.cos());
        for at in order.chunks(32) {
            let (images, labels) = digits.train.batch::<AD>(at);
            let error = loss.forward(net.scores(images), labels);
            mean += error.clone().into_scalar() * at.len() as f32 / digits.train.len() as f32;
            let grads = GradientsParams::from_grads(error.backward(), &net);
            net = optimizer.step(rate, net, grads);
        }
    }
    (accuracy(&net.valid(), &digits.test), mean, begin.elapsed())
}

fn accuracy(net: &Net<BurnT4a>, set: &Set) -> f64 {
    let all: Vec<usize> = (0..set.len()).collect();
    let guesses = net.scores(set.batch::<BurnT4a>(&all).0).argmax(1).into_data();
    let right = guesses.iter::<i32>().zip(&set.labels).filter(|(guess, label)| guess == *label);
    right.count() as f64 / set.len() as f64
}

fn main() -> Result<()> {
    BurnT4a::seed(&T4aDevice, 42);
    let digits = Digits::load(42)?;
    println!("layer            parameters   loss   accuracy       time");
    let row = |name: &str, layers: Vec<Layer<AD>>, width: usize, rate: f64| {
        let net = Net {
            input: LinearConfig::new(1, width).init(&T4aDevice),
            layers,
            output: LinearConfig::new(width, 10).init(&T4aDevice),
        };
        let parameters = net.num_params();
        let (accuracy, loss, time) = train(net, rate, &digits);
        let (percent, seconds) = (100.0 * accuracy, time.as_secs_f64());
        println!("{name:<16} {parameters:>10} {loss:>6.3} {percent:>8.2} % {seconds:>8.2} s");
        (accuracy, seconds)
    };
    let two = || (0..2).map(|_| Layer::StateSpace(StateSpace::new(32, 32, &T4aDevice))).collect();
    let ssm = row("state space × 2", two(), 32, 1e-2);
    let lstm = Layer::Lstm(LstmConfig::new(32, 32, true).init(&T4aDevice));
    let lstm = row("LSTM", vec![lstm], 32, 1e-2);
    assert!(ssm.0 > 0.9 && ssm.0 > lstm.0 && ssm.1 < lstm.1);
    Ok(())
}
