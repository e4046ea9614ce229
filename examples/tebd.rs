//! A quench by TEBD: the Néel state in the XX chain. Its staggered magnetisation is `J₀(2t) / 2` (Barmettler, Punk,
//! Gritsev, Demler, Altman 2009), and the error falls with the order of the product formula. The picture has the
//! magnetisation and the entropy of the central bond over time.
//!
//! `cargo run --release --example tebd`

#[path = "picture/lines.rs"]
mod picture;

use burn_t4a::ext::networks::sites::{Sites, spin_half};
use burn_t4a::ext::networks::{EvolveOptions, Mps, Sum, Tebd};
use indicatif::ProgressBar;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const SITES: usize = 24;

/// The Bessel function J₀ by the midpoint rule, exact for a periodic integrand.
fn j0(x: f64) -> f64 {
    let angle = |k: u8| std::f64::consts::PI * (f64::from(k) + 0.5) / 64.0;
    (0..64).map(|k| (x * angle(k).sin()).cos()).sum::<f64>() / 64.0
}

/// `[t, magnetisation, error, entropy]` after each step.
fn quench(order: usize, steps: usize) -> Result<Vec<[f64; 4]>> {
    let sites = Sites::uniform(spin_half(), SITES);
    let mut h = Sum::new(&sites);
    (0..SITES - 1).for_each(|i| _ = h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]));
    let neel = Mps::product(&sites, ["Up", "Dn"].into_iter().cycle().take(SITES))?;
    let options = EvolveOptions::new().order(order).max_dim(128).cutoff(1e-14);
    let mut evolution = Tebd::new(&h, neel, 2.0 / steps as f64, options)?;
    let (bar, mut rows) = (ProgressBar::new(steps as u64), Vec::new());
    for k in 1..=steps {
        evolution.step()?;
        let (state, t) = (evolution.state(), 2.0 * k as f64 / steps as f64);
        let z = state.expect(&sites, "Sz")?;
        let staggered = (z[SITES / 2].re - z[SITES / 2 + 1].re) / 2.0;
        let error = (staggered - j0(2.0 * t) / 2.0).abs();
        rows.push([t, staggered, error, state.entropies()?[SITES / 2 - 1]]);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(rows)
}

fn main() -> Result<()> {
    println!("order   error, wide steps   half of them   ratio");
    for (order, steps, ratio) in [(2, 10, 4.0), (4, 5, 16.0)] {
        let most = |rows: Vec<[f64; 4]>| rows.iter().map(|x| x[2]).fold(0.0, f64::max);
        let (wide, fine) = (most(quench(order, steps)?), most(quench(order, 2 * steps)?));
        println!("{order:>5} {wide:>19.2e} {fine:>14.2e} {:>7.1}", wide / fine);
        assert!((wide / fine / ratio - 1.0).abs() < 0.2);
    }
    let rows = quench(4, 40)?;
    picture::lines(
        "tebd",
        "time",
        &[1, 3].map(|k| rows.iter().map(|x| (x[0], x[k])).collect::<Vec<_>>()),
    )
}
