//! Recovering a matrix of rank 3 from 60 % of its entries, by gradient descent through its
//! singular values.
//!
//! The loss is the misfit on the observed entries plus the energy of all singular values beyond the third, `Σ_{i>3}
//! sᵢ²`. Its gradient is propagated through `svdvals`, and remains well-defined for the degenerate values near zero at
//! the end of the optimisation, where singular vectors are arbitrary.
//!
//! `cargo run --example svd_gradient`

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::linalg::{LinalgError, svdvals};
use burn_t4a::{BurnT4a, T4aDevice};

type B = Autodiff<BurnT4a>;

const SIZE: usize = 24;
const RANK: usize = 3;
const STEPS: usize = 200;
const RATE: f64 = 0.3;
const MOMENTUM: f64 = 0.8;

/// Deterministic pseudo-random numbers in 0…1.
fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let unit = |i: u64| {
        let hash = (seed + i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((hash ^ (hash >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 * 0.5f64.powi(53)
    };
    (0..count as u64).map(unit).collect()
}

fn matrix(values: Vec<f64>, shape: [usize; 2]) -> Tensor<B, 2> {
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, DType::F64))
}

fn number(x: Tensor<B, 1>) -> f64 {
    x.into_data().iter::<f64>().sum()
}

fn norm(x: Tensor<B, 2>) -> f64 {
    number((x.clone() * x).sum()).sqrt()
}

/// Bar chart of the singular values on a logarithmic scale over eight decades.
fn bars(x: Tensor<B, 2>) -> Result<String, LinalgError> {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let values: Vec<f64> = svdvals(x)?.into_data().iter::<f64>().collect();
    let level = |s: &f64| (8.0 + (s / values[0]).log10()).clamp(0.0, 7.0) as usize;
    Ok(values.iter().map(|s| LEVELS[level(s)]).collect())
}

fn main() -> Result<(), LinalgError> {
    let factor = |seed, shape: [usize; 2]| matrix(numbers(seed, SIZE * RANK), shape) * 2.0 - 1.0;
    let truth = factor(1, [SIZE, RANK]).matmul(factor(1000, [RANK, SIZE]));
    let seen = numbers(2000, SIZE * SIZE).iter().map(|x| (*x < 0.6) as u8 as f64).collect();
    let seen = matrix(seen, [SIZE, SIZE]);
    let size = norm(truth.clone());

    println!("step   relative error   24 singular values, eight decades");
    let mut x = truth.clone() * seen.clone();
    let mut velocity = x.zeros_like();
    for step in 0..=STEPS {
        if step % 20 == 0 {
            let error = norm(x.clone() - truth.clone()) / size;
            println!("{step:>4}   {error:>14.2e}   {}", bars(x.clone())?);
        }
        let leaf = x.clone().require_grad();
        let misfit = (leaf.clone() - truth.clone()) * seen.clone();
        let tail = svdvals(leaf.clone())?.narrow(0, RANK, SIZE - RANK);
        let loss = (misfit.clone() * misfit).sum() + (tail.clone() * tail).sum();
        let gradients = loss.backward();
        let gradient = leaf.grad(&gradients).map(Tensor::from_inner);
        let gradient = gradient.unwrap_or_else(|| x.zeros_like());
        velocity = velocity * MOMENTUM - gradient * RATE;
        x = (x + velocity.clone()).detach();
    }
    let error = norm(x.clone() - truth) / size;
    let tail = number(svdvals(x)?.narrow(0, RANK, SIZE - RANK).sum());
    println!(
        "\nthe 40 % never seen are recovered to {error:.1e}; what is left beyond rank 3: {tail:.1e}"
    );
    assert!(error < 1e-6 && tail < 1e-5);
    Ok(())
}
