//! Ground states of spin chains by DMRG, and the decrease of the error with the number of states. Energies are asserted
//! against exact diagonalisation, and P. Pfeuty, *The one-dimensional Ising model with a transverse field* (1970).
//!
//! `cargo run --release --example dmrg` writes the picture `target/pictures/dmrg.svg`.

use std::ops::ControlFlow;

use burn_t4a::ext::networks::sector::{Sector, U1, Z2};
use burn_t4a::ext::networks::sites::{Sites, spin_half};
use burn_t4a::ext::networks::{Dmrg, DmrgOptions, Mps, NetworksError, Sum};

#[path = "picture/lines.rs"]
mod picture;

/// The energy, and the decimal logarithm of its error after each sweep.
type Ground = Result<(f64, Vec<(f64, f64)>), NetworksError>;

/// The ground state by at most `most` states per bond; prints a line per sweep.
fn ground<S: Sector>(name: &str, h: &Sum<S>, most: usize, exact: f64) -> Ground {
    let n = h.sites().len();
    println!("\n{name}, {n} sites, at most {most} states");
    println!("  sweep           energy     error  states  dropped");
    let start = Mps::product(h.sites(), ["Up", "Dn"].into_iter().cycle().take(n))?;
    let options = DmrgOptions::new().max_dim(most).tolerance(1e-11);
    let mut errors = Vec::new();
    let last = Dmrg::new(&h.mpo()?, start, options)?.run(|sweep| {
        let (step, energy, states) = (sweep.step, sweep.energy, sweep.bond_dim);
        let (error, dropped) = (energy - exact, sweep.truncation);
        println!("  {step:>5} {energy:>16.12} {error:>9.1e} {states:>7} {dropped:>8.1e}");
        errors.push((step as f64, error.max(1e-13).log10()));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((last.energy, errors))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let known = [(8, 1.0, -3.374932598688), (12, 1.0, -5.142090632841), (12, 2.0, -7.056954786582)];
    for (n, delta, exact) in known {
        let mut h = Sum::new(&Sites::uniform(spin_half(), n));
        for i in 0..n - 1 {
            h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
            h.add(delta, [("Sz", i), ("Sz", i + 1)]);
        }
        let (energy, _) = ground(&format!("XXZ, Δ = {delta}"), &h, 64, exact)?;
        assert!((energy - exact).abs() < 1e-9, "{energy}, exact {exact}");
    }
    // The critical Ising chain, by the parity of up spins.
    let (n, parity) = (32, |q: U1| Z2::new((i64::from(q.0) + 1) / 2));
    let mut h = Sum::new(&Sites::uniform(spin_half().conserve(parity)?, n));
    (0..n).for_each(|i| _ = h.add(-1.0, [("Z", i)]));
    (0..n - 1).for_each(|i| _ = h.add(-1.0, [("X", i), ("X", i + 1)]));
    let exact = 1.0 - 1.0 / (std::f64::consts::PI / (2 * (2 * n + 1)) as f64).sin();
    let found = [2, 4, 8, 16].map(|most| ground("critical Ising", &h, most, exact));
    let (energies, errors): (Vec<f64>, Vec<_>) =
        found.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    // The energy is an upper bound, which decreases with the number of states.
    assert!(energies.windows(2).all(|pair| pair[1] < pair[0]));
    assert!(energies[3] - exact > -1e-9 && energies[3] - exact < 1e-6);
    picture::lines("dmrg", "sweep", &errors)
}
