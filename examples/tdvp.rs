//! A domain wall by TDVP: up spins on the left, down spins on the right, in the XX chain. The profile at time t is
//! `⟨Sᶻⱼ⟩ = Σ_{k > j} J_k(t)² − ½` with Bessel functions (Antal, Rácz, Rákos, Schütz 1999). Norm and energy are
//! conserved. The picture has the profiles at times 1 to 4.
//!
//! `cargo run --release --example tdvp`

#[path = "picture/lines.rs"]
mod picture;

use burn_t4a::ext::networks::sites::{Sites, spin_half};
use burn_t4a::ext::networks::{EvolveOptions, Mps, Sum, Tdvp};
use indicatif::ProgressBar;

const SITES: usize = 24;
const HALF: usize = SITES / 2;

/// The Bessel function `J_n` by the trapezoidal rule, exact for a periodic integrand.
fn bessel(n: i32, x: f64) -> f64 {
    let angle = |k: u8| 2.0 * std::f64::consts::PI * f64::from(k) / 128.0;
    let term = |k| (f64::from(n) * angle(k) - x * angle(k).sin()).cos();
    (0..128).map(term).sum::<f64>() / 128.0
}

fn exact(site: usize, t: f64) -> f64 {
    let first = site as i32 - HALF as i32 + 1;
    (first..40).map(|k| bessel(k, t).powi(2)).sum::<f64>() - 0.5
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sites = Sites::uniform(spin_half(), SITES);
    let mut h = Sum::new(&sites);
    (0..SITES - 1).for_each(|i| _ = h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]));
    let h = h.mpo()?;
    let wall = Mps::product(&sites, (0..SITES).map(|i| if i < HALF { "Up" } else { "Dn" }))?;
    let options = EvolveOptions::new().max_dim(64).cutoff(1e-14);
    let mut evolution = Tdvp::new(&h, wall, 0.05, options)?;
    let (bar, mut profiles) = (ProgressBar::new(80), Vec::new());
    println!("time      energy    1 − norm   error of the profile   states");
    for step in 1..=80 {
        let report = evolution.step()?;
        bar.inc(1);
        if step % 20 == 0 {
            let (t, state) = (0.05 * f64::from(step), evolution.state());
            let z: Vec<f64> = state.expect(&sites, "Sz")?.iter().map(|z| z.re).collect();
            let error = (0..SITES).map(|i| (z[i] - exact(i, t)).abs()).fold(0.0, f64::max);
            let (energy, states) = (report.energy, report.bond_dim);
            let norm = 1.0 - Mps::new(state.tensors().to_vec())?.norm()?;
            let row = format!("{t:>4.1} {energy:>11.1e} {norm:>11.1e} {error:>22.1e} {states:>8}");
            bar.suspend(|| println!("{row}"));
            assert!(error < 1e-3 && energy.abs() < 1e-8 && norm.abs() < 1e-10);
            profiles.push(z.iter().enumerate().map(|(i, &z)| (i as f64, z)).collect());
        }
    }
    bar.finish_and_clear();
    picture::lines("tdvp", "site", &profiles)
}
