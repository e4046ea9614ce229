//! A matrix product state between two layers of a neural net: a net encodes the rows of a handwritten digit, the state
//! joins the rows, a linear layer scores the digits, and all are trained together to 95 % of a test set.
//! `cargo run --release --example mps_classifier [-- --quick]`

#[path = "digits/src/data.rs"]
mod data;

use burn::backend::Autodiff;
use burn::module::{AutodiffModule, Module};
use burn::nn::{Linear, LinearConfig, loss::CrossEntropyLossConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::{Tensor, activation::tanh, backend::Backend};
use burn_t4a::{BurnT4a, ext::networks::MpsLayer, ext::operation::Operations};
use indicatif::ProgressBar;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[derive(Module, Debug)]
struct Classifier<B: Backend> {
    encoder: Linear<B>,
    state: MpsLayer<B>,
    scores: Linear<B>,
}

impl<B: Operations> Classifier<B> {
    fn forward(&self, images: Tensor<B, 4>) -> Result<Tensor<B, 2>> {
        let rows = tanh(self.encoder.forward(images.squeeze_dim::<3>(1)));
        let one = Tensor::ones([rows.dims()[0], 8, 1], &rows.device());
        Ok(self.scores.forward(self.state.forward(Tensor::cat(vec![one, rows], 2))?))
    }
}

fn main() -> Result<()> {
    type B = Autodiff<BurnT4a>;
    let epochs = if std::env::args().any(|arg| arg == "--quick") { 2 } else { 30 };
    let (device, digits) = (Default::default(), data::Digits::load(7)?);
    B::seed(&device, 7);
    let linear = |input, output| LinearConfig::new(input, output).init(&device);
    let state = MpsLayer::new(8, 12, 20, 0.1, &device)?;
    let mut model = Classifier::<B> { encoder: linear(8, 11), state, scores: linear(20, 10) };
    let (mut adam, loss) = (AdamConfig::new().init(), CrossEntropyLossConfig::new().init(&device));
    let (mut order, mut test): (Vec<_>, _) = ((0..digits.train.len()).collect(), 0.0);
    let (bar, all): (_, Vec<_>) = (ProgressBar::new(epochs), (0..digits.test.len()).collect());
    for epoch in 0..epochs {
        data::shuffle(&mut order, epoch);
        let rate = 4e-3 * (1.0 + (std::f64::consts::PI * epoch as f64 / epochs as f64).cos());
        for batch in order.chunks(64) {
            let (images, labels) = digits.train.batch::<B>(batch);
            let error = loss.forward(model.forward(images)?, labels);
            let gradients = GradientsParams::from_grads(error.backward(), &model);
            model = adam.step(rate, model, gradients);
        }
        let (images, labels) = digits.test.batch::<BurnT4a>(&all);
        let found = model.valid().forward(images)?.argmax(1).squeeze_dim::<1>(1);
        test = found.equal(labels).float().mean().into_data().iter::<f64>().sum();
        bar.suspend(|| println!("epoch {epoch:>2}   test accuracy {:.2} %", 100.0 * test));
        bar.inc(1);
    }
    if epochs < 30 || test >= 0.95 { Ok(()) } else { Err("the accuracy is below 95 %".into()) }
}
