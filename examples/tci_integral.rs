//! An oscillating integral over ten variables by cross interpolation:
//! `10³ ∫ cos(10 Σ xᵢ²) exp(−10⁻³ (Σ xᵢ)⁴) d¹⁰x` over `[−1, 1]¹⁰`, to nine digits behind the point, from about one of 10⁹
//! nodes of the product rule. The cores of the train then enter Burn as tensors, on a tape: the derivative of the
//! integral in the first core.
//!
//! The integral is that of Y. Núñez Fernández et al., SciPost Phys. 18, 104 (2025).
//!
//! `cargo run --release --example tci_integral`

use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::tensor::Tensor;
use burn_t4a::ext::networks::cross::{CrossOptions, Rule, integrate};
use burn_t4a::ext::networks::{contract_features, train_to_tensors};
use burn_t4a::{BurnT4a, T4aDevice};
use indicatif::ProgressBar;

type B = Autodiff<BurnT4a>;

const EXACT: f64 = -5.4960415218049;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let f = |x: &[f64]| {
        let (sum, squares) = x.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        1000.0 * (10.0 * squares).cos() * (-0.001 * f64::powi(sum, 4)).exp()
    };
    let rules = vec![Rule::gauss_kronrod(20)?; 10];
    let (begin, bar) =
        (Instant::now(), ProgressBar::new_spinner().with_message("cross interpolation"));
    bar.enable_steady_tick(Duration::from_millis(100));
    let integral = integrate(&rules, f, &CrossOptions::new().tolerance(1e-10))?;
    bar.finish_and_clear();
    let (evaluations, nodes) =
        (integral.report.evaluations, (rules[0].nodes().len() as f64).powi(10));
    println!("integral      {:.12}   error {:.1e}", integral.value, (integral.value - EXACT).abs());
    println!(
        "evaluations   {evaluations} of {nodes:.1e} nodes, bonds up to {}",
        integral.train.max_bond()
    );
    println!("time          {:.2} s", begin.elapsed().as_secs_f64());
    assert!((integral.value - EXACT).abs() < 1e-9);

    let mut cores: Vec<Tensor<B, 3>> = train_to_tensors(&integral.train, &T4aDevice)?;
    cores[0] = cores[0].clone().require_grad();
    let ones: Vec<_> =
        cores.iter().map(|x| Tensor::ones([1, x.dims()[1]], (&T4aDevice, x.dtype()))).collect();
    let (sign, ln) = contract_features(&cores, &ones)?;
    let sum = sign * ln.exp();
    let gradient = cores[0].grad(&sum.clone().backward()).ok_or("no gradient")?;
    // The integral is linear in each core: Euler's identity.
    let euler: f64 = (gradient * cores[0].clone().inner()).sum().into_data().iter::<f64>().sum();
    let sum: f64 = sum.into_data().iter::<f64>().sum();
    println!("on the tape   {sum:.12}   gradient · core {euler:.12}");
    assert!((sum - integral.value).abs() < 1e-9 && (euler - sum).abs() < 1e-9);
    Ok(())
}
