//! Five networks trained at once: their parameters are one batch, so a step of the ensemble is a step of one network
//! with batched products. The disagreement of the members estimates the uncertainty. The picture has the function, the mean
//! of the members, and the mean plus and minus their spread.
//!
//! ```text
//! cargo run --release --example ensemble
//! ```

use burn::backend::Autodiff;
use burn::module::{AutodiffModule, Module};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::backend::Backend;
use burn::tensor::{Device, Tensor, TensorPrimitive};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::module::{lift, member, stack};
use burn_t4a_transforms::vmap::{Vmap, VmapTensor, vmap};
use indicatif::ProgressBar;

#[path = "picture/lines.rs"]
mod picture;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
type B = BurnT4a;
type V = Vmap<B>;
type A = Autodiff<V>;

const MEMBERS: usize = 5;

#[derive(Module, Debug)]
struct Net<B: Backend> {
    first: Linear<B>,
    second: Linear<B>,
    last: Linear<B>,
}

impl<B: Backend> Net<B> {
    fn new(device: &Device<B>) -> Self {
        Self {
            first: LinearConfig::new(1, 32).init(device),
            second: LinearConfig::new(32, 32).init(device),
            last: LinearConfig::new(32, 1).init(device),
        }
    }

    fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        let x = self.first.forward(x).tanh();
        self.last.forward(self.second.forward(x).tanh())
    }
}

fn grid(from: f32, to: f32, n: usize) -> Tensor<B, 2> {
    let x: Vec<f32> = (0..n).map(|i| from + (to - from) * i as f32 / (n - 1) as f32).collect();
    Tensor::<B, 1>::from_floats(&x[..], &T4aDevice).unsqueeze_dim(1)
}

/// A tensor shared by all members, as a constant on the tape.
fn shared(x: Tensor<B, 2>) -> Tensor<A, 2> {
    let x = VmapTensor::shared(x.into_primitive().tensor());
    Tensor::from_inner(Tensor::from_primitive(TensorPrimitive::Float(x)))
}

/// Predictions of all members, `[members, n]`.
fn predictions(ensemble: &Net<V>, x: Tensor<B, 2>) -> Result<Tensor<B, 2>> {
    let all = vmap(|x: Tensor<V, 2>| ensemble.forward(x).squeeze_dim::<1>(1));
    Ok(all.in_axes(None).size(MEMBERS).call(x)?)
}

fn main() -> Result<()> {
    B::seed(&T4aDevice, 1);
    // The function is observed between −2 and 0 and between 1 and 2.
    let x = Tensor::cat(vec![grid(-2.0, 0.0, 40), grid(1.0, 2.0, 20)], 0);
    let y = (x.clone() * 2.0).sin();

    let members: Vec<Net<B>> = (0..MEMBERS).map(|_| Net::new(&T4aDevice)).collect();
    let ensemble: Net<V> = stack(&members, Net::new(&T4aDevice))?;
    let mut net: Net<A> = lift(&ensemble, Net::new(&T4aDevice))?;
    let mut optimizer = AdamConfig::new().init();
    let (on_tape, truth) = (shared(x.clone()), shared(y.clone()));
    let bar = ProgressBar::new(800);
    for _ in 0..800 {
        // One loss per member. The members are independent, and so are their gradients.
        let losses = (net.forward(on_tape.clone()) - truth.clone()).powi_scalar(2).mean();
        let gradients = GradientsParams::from_grads(losses.backward(), &net);
        net = optimizer.step(5e-3, net, gradients);
        bar.inc(1);
    }
    bar.finish_and_clear();

    let trained = net.valid();
    let error = (predictions(&trained, x.clone())? - y.squeeze_dim::<1>(1).unsqueeze()).abs().max();
    let error = error.into_scalar();
    println!("\nlargest error of a member where the truth is known: {error:.3}");
    assert!(error < 0.15, "{error}");

    // Each member can be extracted as an ordinary network.
    let third: Net<B> = member(&trained, 2, Net::new(&T4aDevice))?;
    let alone = third.forward(x.clone()).squeeze_dim::<1>(1);
    let among: Tensor<B, 1> = predictions(&trained, x)?.narrow(0, 2, 1).squeeze_dim(0);
    assert!((alone - among).abs().max().into_scalar() < 1e-5);

    println!("\n     x     mean   spread");
    let spread = |x: Tensor<B, 2>| -> Result<(f32, f32)> {
        let all: Vec<f32> = predictions(&trained, x)?.into_data().iter().collect();
        let mean = all.iter().sum::<f32>() / MEMBERS as f32;
        let variance = all.iter().map(|y| (y - mean).powi(2)).sum::<f32>() / MEMBERS as f32;
        Ok((mean, variance.sqrt()))
    };
    for at in [-2.0, -1.0, 0.0, 0.5, 1.5, 2.0, 3.0, 4.0] {
        let (mean, spread) = spread(grid(at, at, 2).narrow(0, 0, 1))?;
        println!("{at:>6.1} {mean:>8.3} {spread:>8.3}");
    }
    let (_, known) = spread(grid(-1.0, -1.0, 2).narrow(0, 0, 1))?;
    let (_, unknown) = spread(grid(4.0, 4.0, 2).narrow(0, 0, 1))?;
    assert!(unknown > 5.0 * known, "{unknown} and {known}");
    let mut curves = vec![Vec::new(); 4];
    for k in 0..=60 {
        let at = -2.0 + 0.1 * k as f32;
        let (mean, spread) = spread(grid(at, at, 2).narrow(0, 0, 1))?;
        for (curve, y) in
            curves.iter_mut().zip([(2.0 * at).sin(), mean, mean - spread, mean + spread])
        {
            curve.push((f64::from(at), f64::from(y)));
        }
    }
    picture::lines("ensemble", "x", &curves)
}
