//! A matrix product state as a layer of a Burn module: it processes handwritten digits row by row and classifies them.
//!
//! ```text
//! cargo run --release --example mps_classifier [-- --quick]
//! ```
//!
//! Its tensors are graded by the parity under reflection of the image: for a mirrored image, odd features change sign
//! and even ones do not, exactly, before and after training. A full run asserts a test accuracy of at least 96 %.

#[path = "../digits/src/data.rs"]
mod data;
mod layer;

use burn::backend::Autodiff;
use burn::module::{AutodiffModule, Module};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use indicatif::ProgressBar;

use data::{Digits, Set, shuffle};
use layer::{EVEN, Rows};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const BATCH: usize = 64;

/// Features of the rows, then scores of the digits.
#[derive(Module, Debug)]
struct Classifier<B: Backend> {
    rows: Rows<B>,
    scores: Linear<B>,
}

impl<B: Operations> Classifier<B> {
    fn new(device: &B::Device) -> Result<Self> {
        let rows = Rows::new(device)?;
        Ok(Self { scores: LinearConfig::new(rows.features(), 10).init(device), rows })
    }

    fn forward(&self, images: Tensor<B, 4>) -> Result<Tensor<B, 2>> {
        Ok(self.scores.forward(self.rows.forward(images)?))
    }
}

fn accuracy<B: Operations>(model: &Classifier<B>, set: &Set) -> Result<f64> {
    let all: Vec<usize> = (0..set.len()).collect();
    let scores = model.forward(set.batch::<B>(&all).0)?.argmax(1).into_data();
    let right = scores.iter::<i32>().zip(&set.labels).filter(|(a, b)| a == *b).count();
    Ok(right as f64 / set.len() as f64)
}

/// Checks mirrored images: even features are equal, odd ones change sign.
fn mirrored<B: Operations>(model: &Classifier<B>, set: &Set) -> Result<()> {
    let (images, _) = set.batch::<B>(&[0, 1, 2, 3]);
    let features = model.rows.forward(images.clone())?;
    let mirrored = model.rows.forward(images.flip([3]))?;
    let odd = features.dims()[1] - EVEN;
    let [even, zero] = [
        features.clone().narrow(1, 0, EVEN) - mirrored.clone().narrow(1, 0, EVEN),
        features.narrow(1, EVEN, odd) + mirrored.narrow(1, EVEN, odd),
    ]
    .map(|x| x.abs().max().into_data().iter::<f64>().sum::<f64>());
    assert!(even < 1e-3 && zero < 1e-3, "{even} {zero}");
    Ok(())
}

fn main() -> Result<()> {
    type B = Autodiff<BurnT4a>;
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (epochs, device) = (if quick { 2 } else { 30 }, Default::default());
    let digits = Digits::load(7)?;
    B::seed(&device, 7);
    let mut model = Classifier::<B>::new(&device)?;
    println!("{model}\n");
    mirrored(&model, &digits.test)?;
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut optimizer = AdamConfig::new().init();
    let mut order: Vec<usize> = (0..digits.train.len()).collect();
    println!("epoch      loss      test");
    let mut test = 0.0;
    for epoch in 0..epochs {
        shuffle(&mut order, epoch);
        let bar = ProgressBar::new(order.len().div_ceil(BATCH) as u64);
        let mut total = 0.0;
        for (step, at) in order.chunks(BATCH).enumerate() {
            let done = (epoch as f64 + (step * BATCH) as f64 / order.len() as f64) / epochs as f64;
            let rate = 4e-3 * (1.0 + (std::f64::consts::PI * done).cos());
            let (images, labels) = digits.train.batch::<B>(at);
            let error = loss.forward(model.forward(images)?, labels);
            total += error.clone().into_data().iter::<f64>().sum::<f64>() * at.len() as f64;
            let gradients = GradientsParams::from_grads(error.backward(), &model);
            model = optimizer.step(rate, model, gradients);
            bar.inc(1);
        }
        bar.finish_and_clear();
        test = accuracy(&model.valid(), &digits.test)?;
        println!("{:>5} {:>9.4} {:>7.2} %", epoch + 1, total / order.len() as f64, 100.0 * test);
    }
    mirrored(&model, &digits.test)?;
    if !quick {
        assert!(test >= 0.96, "test accuracy {:.2} %", 100.0 * test);
    }
    Ok(())
}
