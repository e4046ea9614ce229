//! A program for Burn 0.22.1 without a backend in its source: it trains a small convolutional network on images and
//! a small transformer on sentences, in explicit loops, and prints their losses. Data and initial weights are
//! formulas, because random numbers differ between backends. With `main` it is a complete program; tests of both
//! workspaces compile it unchanged.
//!
//! Dependencies: `burn` with the features `std`, `autodiff`, `flex`, `optim`.

use burn::module::{ModuleMapper, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::nn::{BatchNorm, BatchNormConfig, PaddingConfig2d};
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::TensorData;
use burn::tensor::activation::relu;

#[derive(Module, Debug)]
struct Pictures {
    conv: Conv2d,
    norm: BatchNorm,
    pool: MaxPool2d,
    hidden: Linear,
    output: Linear,
}

impl Pictures {
    fn new(device: &Device) -> Self {
        let conv = Conv2dConfig::new([1, 6], [3, 3]).with_padding(PaddingConfig2d::Same);
        Self {
            conv: conv.init(device),
            norm: BatchNormConfig::new(6).init(device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            hidden: LinearConfig::new(6 * 4 * 4, 24).init(device),
            output: LinearConfig::new(24, CLASSES).init(device),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(relu(self.norm.forward(self.conv.forward(x))));
        self.output.forward(relu(self.hidden.forward(x.flatten::<2>(1, 3))))
    }
}

#[derive(Module, Debug)]
struct Sentences {
    words: Embedding,
    places: Embedding,
    encoder: TransformerEncoder,
    output: Linear,
}

impl Sentences {
    fn new(device: &Device) -> Self {
        let encoder = TransformerEncoderConfig::new(16, 32, 2, 2).with_dropout(0.0);
        Self {
            words: EmbeddingConfig::new(WORDS, 16).init(device),
            places: EmbeddingConfig::new(LENGTH, 16).init(device),
            encoder: encoder.with_norm_first(true).init(device),
            output: LinearConfig::new(16, CLASSES).init(device),
        }
    }

    fn forward(&self, x: Tensor<2, Int>) -> Tensor<2> {
        let [batch, length] = x.dims();
        let places = Tensor::arange(0..length as i64, &x.device()).reshape([1, length]);
        let x = self.words.forward(x) + self.places.forward(places.repeat_dim(0, batch));
        let x = self.encoder.forward(TransformerEncoderInput::new(x));
        self.output.forward(x.mean_dim(1).squeeze_dim::<2>(1))
    }
}

const CLASSES: usize = 4;
const BATCH: usize = 16;
const WORDS: usize = 11;
const LENGTH: usize = 7;

/// Pseudo-random numbers in [−1, 1].
fn wave(i: usize, seed: usize) -> f32 {
    ((i as f64 * 12.9898 + seed as f64 * 78.233).sin() * 437.585).fract() as f32
}

/// Initial weights from a formula instead of random numbers.
struct Formula {
    seed: usize,
}

impl ModuleMapper for Formula {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.seed += 1;
        let seed = self.seed;
        param.map(|x| {
            let shape = x.shape();
            let width = (shape.num_elements() as f32).sqrt().max(2.0);
            let data: Vec<f32> =
                (0..shape.num_elements()).map(|i| wave(i, seed) * 1.5 / width.sqrt()).collect();
            Tensor::from_data(TensorData::new(data, shape), &x.device()).require_grad()
        })
    }
}

fn targets(device: &Device) -> Tensor<1, Int> {
    let classes: Vec<i64> = (0..BATCH).map(|i| (i % CLASSES) as i64).collect();
    Tensor::from_data(TensorData::new(classes, [BATCH]), device)
}

/// Stripes whose direction and width depend on the class, with noise.
fn pictures(step: usize, device: &Device) -> Tensor<4> {
    let pixel = |at: usize| {
        let (picture, y, x) = (at / 64, at / 8 % 8, at % 8);
        let class = picture % CLASSES;
        let along = if class.is_multiple_of(2) { x } else { y };
        let on = (along / (1 + class / 2)).is_multiple_of(2);
        f32::from(u8::from(on)) + 0.5 * wave(at, 100 + step)
    };
    let data: Vec<f32> = (0..BATCH * 64).map(pixel).collect();
    Tensor::from_data(TensorData::new(data, [BATCH, 1, 8, 8]), device)
}

/// Sentences in which words of the class are frequent.
fn sentences(step: usize, device: &Device) -> Tensor<2, Int> {
    let word = |at: usize| {
        let class = at / LENGTH % CLASSES;
        let any = ((wave(at, 200 + step) + 1.0) * 100.0) as usize;
        if any.is_multiple_of(3) { (any % WORDS) as i64 } else { (2 * class + any % 2) as i64 }
    };
    let data: Vec<i64> = (0..BATCH * LENGTH).map(word).collect();
    Tensor::from_data(TensorData::new(data, [BATCH, LENGTH]), device)
}

const STEPS: usize = 8;

/// Trains for some steps; returns the loss before each.
fn train<M: Module + Clone>(
    model: M,
    device: &Device,
    logits: impl Fn(&M, usize) -> Tensor<2>,
) -> Vec<f32> {
    let mut model = model.map(&mut Formula { seed: 0 });
    let mut optimizer = AdamConfig::new().init();
    let loss_of = CrossEntropyLossConfig::new().init(device);
    let mut losses = Vec::new();
    for step in 0..STEPS {
        let loss = loss_of.forward(logits(&model, step), targets(device));
        losses.push(loss.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(1e-2, model, gradients);
    }
    losses
}

/// Losses of both models.
pub(crate) fn losses() -> [Vec<f32>; 2] {
    let device = Device::flex().autodiff();
    let pictures = train(Pictures::new(&device), &device, |model, step| {
        model.forward(pictures(step, &device))
    });
    let sentences = train(Sentences::new(&device), &device, |model, step| {
        model.forward(sentences(step, &device))
    });
    [pictures, sentences]
}

fn main() {
    let [pictures, sentences] = losses();
    println!("step  pictures  sentences");
    for (step, (a, b)) in pictures.iter().zip(&sentences).enumerate() {
        println!("{step:4}  {a:.6}  {b:.6}");
    }
}
