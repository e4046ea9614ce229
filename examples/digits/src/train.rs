//! Training loop, and a round trip of the model through a file.

use std::fmt;
use std::time::{Duration, Instant};

use burn::module::{AutodiffModule, Module};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::record::{FullPrecisionSettings, NamedMpkFileRecorder};
use burn::tensor::ElementConversion;
use burn::tensor::backend::{AutodiffBackend, Backend};
use indicatif::{ProgressBar, ProgressStyle};

use crate::Result;
use crate::data::{Digits, Set, shuffle};
use crate::model::Classifier;

/// Training hyperparameters.
pub struct Plan {
    pub epochs: usize,
    pub batch: usize,
    /// Learning rate of the first step; it falls to zero along half a cosine.
    pub rate: f64,
    pub seed: u64,
}

impl Plan {
    /// Learning rate after a fraction `done` of the training.
    fn rate_at(&self, done: f64) -> f64 {
        0.5 * self.rate * (1.0 + (std::f64::consts::PI * done).cos())
    }
}

/// One epoch: mean training loss, accuracy on the training and on the test images.
#[derive(Clone, Copy)]
pub struct Epoch {
    pub loss: f64,
    pub train: f64,
    pub test: f64,
}

pub struct Trained {
    pub name: &'static str,
    pub backend: &'static str,
    pub history: Vec<Epoch>,
    pub predictions: Vec<i32>,
    pub time: Duration,
}

impl fmt::Display for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, backend, history, time, .. } = self;
        let (epochs, seconds) = (history.len(), time.as_secs_f64());
        write!(
            f,
            "{name} on {backend}: {:.2} % of the test images right",
            100.0 * self.accuracy()
        )?;
        write!(f, " after {epochs} epochs in {seconds:.2} s")
    }
}

impl Trained {
    pub fn accuracy(&self) -> f64 {
        self.history.last().map_or(0.0, |epoch| epoch.test)
    }
}

/// Trains a network, saves it, loads it, and checks that the loaded one makes equal predictions.
pub fn train<B, M>(
    backend: &'static str,
    name: &'static str,
    mut model: M,
    digits: &Digits,
    plan: &Plan,
) -> Result<Trained>
where
    B: AutodiffBackend,
    M: AutodiffModule<B> + Classifier<B>,
    M::InnerModule: Classifier<B::InnerBackend>,
{
    println!("{name} on {backend}: {} parameters", model.num_params());
    println!("epoch      loss  training      test");
    let device = B::Device::default();
    let blank = model.clone().valid();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut optimizer = AdamConfig::new().init();
    let mut order: Vec<usize> = (0..digits.train.len()).collect();
    let mut history = Vec::new();
    let mut time = Duration::ZERO;
    let bar = progress(plan.epochs * order.len().div_ceil(plan.batch));
    for epoch in 0..plan.epochs {
        shuffle(&mut order, plan.seed + epoch as u64);
        let begin = Instant::now();
        let (mut total, mut right) = (0.0, 0);
        for (step, at) in order.chunks(plan.batch).enumerate() {
            let done = epoch as f64 + (step * plan.batch) as f64 / order.len() as f64;
            let rate = plan.rate_at(done / plan.epochs as f64);
            let (images, labels) = digits.train.batch::<B>(at);
            let scores = model.scores(images);
            let error = loss.forward(scores.clone(), labels.clone());
            total += error.clone().into_scalar().elem::<f64>() * at.len() as f64;
            let hits = scores.argmax(1).flatten::<1>(0, 1).equal(labels).int().sum();
            right += hits.into_scalar().elem::<i64>();
            let grads = GradientsParams::from_grads(error.backward(), &model);
            model = optimizer.step(rate, model, grads);
            bar.inc(1);
        }
        time += begin.elapsed();
        let count = order.len() as f64;
        let test = accuracy(&digits.test, &predict(&model.valid(), &digits.test));
        let row = Epoch { loss: total / count, train: right as f64 / count, test };
        let (train, test) = (100.0 * row.train, 100.0 * row.test);
        let line = format!("{:>5} {:>9.4} {train:>7.2} % {test:>7.2} %", epoch + 1, row.loss);
        bar.suspend(|| println!("{line}"));
        bar.set_message(format!("loss {:.4}  test {test:.2} %", row.loss));
        history.push(row);
    }
    bar.finish_and_clear();
    let model = model.valid();
    let predictions = predict(&model, &digits.test);
    let recorder = NamedMpkFileRecorder::<FullPrecisionSettings>::new();
    let path = crate::report::target().join(format!("digits-{name}-{backend}"));
    model.save_file(&path, &recorder)?;
    let loaded = blank.load_file(&path, &recorder, &device)?;
    assert_eq!(predict(&loaded, &digits.test), predictions, "the loaded model predicts otherwise");
    println!("saved to {}.mpk and loaded again: same predictions", path.display());
    let trained = Trained { name, backend, history, predictions, time };
    println!("{trained}\n");
    Ok(trained)
}

fn predict<B: Backend>(model: &impl Classifier<B>, set: &Set) -> Vec<i32> {
    let all: Vec<usize> = (0..set.len()).collect();
    let scores = model.scores(set.batch::<B>(&all).0);
    scores.argmax(1).into_data().iter::<i32>().collect()
}

fn accuracy(set: &Set, predictions: &[i32]) -> f64 {
    let right = set.labels.iter().zip(predictions).filter(|(a, b)| a == b).count();
    right as f64 / set.len() as f64
}

/// One progress bar for all epochs; it is cleared at the end, and not drawn without a terminal.
fn progress(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = "{bar:32} {pos}/{len} steps  {per_sec}  {eta} left  {msg}";
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
