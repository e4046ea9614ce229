//! Trains a convolutional network and a perceptron on 1,797 handwritten digits.
//!
//! ```text
//! cargo run --release -p digits                    on BurnT4a
//! cargo run --release -p digits --features flex    on BurnT4a and on Flex, side by side
//! cargo run --release -p digits -- --quick         two epochs, for a smoke test
//! ```
//!
//! The code below is generic over the backend: only the type argument of `run` names one. A full run asserts a test
//! accuracy of at least 97 %.

#![forbid(unsafe_code)]

mod data;
mod model;
mod report;
mod train;

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
use burn_t4a::BurnT4a;

use data::Digits;
use model::{ConvNet, Perceptron};
use train::{Plan, Trained, train};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let quick = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--quick" => true,
        _ => return Err("usage: digits [--quick]".into()),
    };
    let plan = Plan { epochs: if quick { 2 } else { 25 }, batch: 64, rate: 3e-3, seed: 7 };
    let digits = Digits::load(plan.seed)?;
    println!("{} images for training, {} for testing\n", digits.train.len(), digits.test.len());

    let nets = Vec::from(run::<Autodiff<BurnT4a>>("t4a", &digits, &plan)?);
    report::confusion(&digits.test, &nets[0].predictions);
    if !quick {
        for net in &nets {
            assert!(net.accuracy() >= 0.97, "{net}");
        }
    }
    #[cfg(feature = "flex")]
    let nets = with_flex(nets, &digits, &plan)?;
    println!("curves written to {}", report::curves(&nets)?.display());
    for net in &nets {
        println!("{net}");
    }
    Ok(())
}

/// Appends the networks trained on Flex.
#[cfg(feature = "flex")]
fn with_flex(mut nets: Vec<Trained>, digits: &Digits, plan: &Plan) -> Result<Vec<Trained>> {
    let theirs = run::<Autodiff<burn_flex::Flex>>("flex", digits, plan)?;
    println!("training time         t4a       flex    flex / t4a");
    for (a, b) in nets.iter().zip(&theirs) {
        let [ours, theirs] = [a, b].map(|net| net.time.as_secs_f64());
        println!("{:<14} {ours:>6.2} s {theirs:>8.2} s {:>10.2}", a.name, theirs / ours);
    }
    println!();
    nets.extend(theirs);
    Ok(nets)
}

/// Trains both networks on a backend.
fn run<B: AutodiffBackend>(
    backend: &'static str,
    digits: &Digits,
    plan: &Plan,
) -> Result<[Trained; 2]> {
    let device = B::Device::default();
    B::seed(&device, plan.seed);
    Ok([
        train::<B, _>(backend, "convolution", ConvNet::new(&device), digits, plan)?,
        train::<B, _>(backend, "perceptron", Perceptron::new(&device), digits, plan)?,
    ])
}
