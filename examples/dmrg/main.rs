//! Ground states of spin chains by two-site DMRG on graded tensors: Heisenberg, XXZ, transverse-field Ising.
//!
//! ```text
//! cargo run --release --example dmrg
//! ```
//!
//! Each energy is asserted against exact diagonalisation, or against P. Pfeuty, *The one-dimensional Ising model with a
//! transverse field* (1970). The last table shows the decrease of the error with the number of states.

#[path = "../chain/lanczos.rs"]
mod lanczos;
#[path = "../chain/model.rs"]
mod model;
mod sweep;

use burn_t4a::ext::structured::{Result, Sector};
use indicatif::{ProgressBar, ProgressStyle};

use model::{Model, ising, xxz};
use sweep::Chain;

/// Ground-state energy of n critical Ising spins.
fn pfeuty(n: usize) -> f64 {
    1.0 - 1.0 / (std::f64::consts::PI / (2 * (2 * n + 1)) as f64).sin()
}

/// Sweeps until the energy has converged; prints a line per sweep.
fn ground<S: Sector>(
    name: &str,
    model: &Model<S>,
    states: &[usize],
    most: usize,
    exact: f64,
) -> Result<f64> {
    let mut chain = Chain::new(model, states)?;
    println!("{name}, {} sites, at most {most} states", states.len());
    println!("  sweep           energy         error  states  dropped");
    let mut before = f64::INFINITY;
    for sweep in 1..=20 {
        let bar = progress(2 * (states.len() - 1), sweep);
        let row = chain.sweep(most, || bar.inc(1))?;
        bar.finish_and_clear();
        let error = row.energy - exact;
        println!(
            "  {sweep:>5} {:>16.12} {error:>13.2e} {:>7} {:>8.1e}",
            row.energy, row.states, row.dropped
        );
        if (row.energy - before).abs() < 1e-12 {
            break;
        }
        before = row.energy;
    }
    println!();
    Ok(before)
}

fn progress(pairs: usize, sweep: usize) -> ProgressBar {
    let bar = ProgressBar::new(pairs as u64).with_message(format!("sweep {sweep}"));
    match ProgressStyle::with_template("{msg:>9} {bar:40} {pos}/{len}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn main() -> Result<()> {
    let neel = |n: usize| (0..n).map(|i| i % 2).collect::<Vec<_>>();
    let exact = [
        ("Heisenberg", 1.0, 8, -3.374932598688),
        ("Heisenberg", 1.0, 12, -5.142090632841),
        ("XXZ, Δ = 2", 2.0, 12, -7.056954786582),
    ];
    for (name, delta, n, exact) in exact {
        let energy = ground(name, &xxz(delta), &neel(n), 64, exact)?;
        assert!((energy - exact).abs() < 1e-9, "{name}: {energy}, exact {exact}");
    }
    assert!((pfeuty(10) + 12.381489999655).abs() < 1e-11);
    let energy = ground("critical Ising", &ising(), &[0; 10], 32, pfeuty(10))?;
    assert!((energy - pfeuty(10)).abs() < 1e-9, "Ising: {energy}");

    let (n, mut errors) = (32, Vec::new());
    for most in [2, 4, 8, 16] {
        errors.push(ground("critical Ising", &ising(), &[0; 32], most, pfeuty(n))? - pfeuty(n));
    }
    println!("critical Ising, {n} sites: states and error");
    for (most, error) in [2, 4, 8, 16].into_iter().zip(&errors) {
        // One star per factor of ten in accuracy.
        let stars = "*".repeat((-error.log10()).max(0.0) as usize);
        println!("  {most:>4} {error:>10.1e}  {stars}");
    }
    // The energy is an upper bound, which decreases with the number of states.
    assert!(
        errors.windows(2).all(|pair| pair[1] < pair[0]) && errors[3] > -1e-9 && errors[3] < 1e-6
    );
    Ok(())
}
