//! The two networks.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use burn::tensor::backend::Backend;

/// Maps images `[n, 1, 8, 8]` to scores `[n, 10]`.
pub trait Classifier<B: Backend> {
    fn scores(&self, images: Tensor<B, 4>) -> Tensor<B, 2>;
}

/// Two convolutions, a pool, two linear layers with dropout between them.
#[derive(Module, Debug)]
pub struct ConvNet<B: Backend> {
    first: Conv2d<B>,
    second: Conv2d<B>,
    pool: MaxPool2d,
    hidden: Linear<B>,
    dropout: Dropout,
    output: Linear<B>,
}

impl<B: Backend> ConvNet<B> {
    pub fn new(device: &B::Device) -> Self {
        let conv = |from, to| {
            Conv2dConfig::new([from, to], [3, 3]).with_padding(PaddingConfig2d::Same).init(device)
        };
        Self {
            first: conv(1, 16),
            second: conv(16, 32),
            pool: MaxPool2dConfig::new([2, 2]).init(),
            hidden: LinearConfig::new(32 * 4 * 4, 64).init(device),
            dropout: DropoutConfig::new(0.3).init(),
            output: LinearConfig::new(64, 10).init(device),
        }
    }
}

impl<B: Backend> Classifier<B> for ConvNet<B> {
    fn scores(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let x = relu(self.first.forward(images));
        let x = self.pool.forward(relu(self.second.forward(x)));
        let x = relu(self.hidden.forward(x.flatten(1, 3)));
        self.output.forward(self.dropout.forward(x))
    }
}

/// Three linear layers with dropout between them.
#[derive(Module, Debug)]
pub struct Perceptron<B: Backend> {
    first: Linear<B>,
    second: Linear<B>,
    dropout: Dropout,
    output: Linear<B>,
}

impl<B: Backend> Perceptron<B> {
    pub fn new(device: &B::Device) -> Self {
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        Self {
            first: linear(64, 256),
            second: linear(256, 128),
            dropout: DropoutConfig::new(0.3).init(),
            output: linear(128, 10),
        }
    }
}

impl<B: Backend> Classifier<B> for Perceptron<B> {
    fn scores(&self, images: Tensor<B, 4>) -> Tensor<B, 2> {
        let x = self.dropout.forward(relu(self.first.forward(images.flatten(1, 3))));
        self.output.forward(self.dropout.forward(relu(self.second.forward(x))))
    }
}
