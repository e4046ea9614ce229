//! Sweeps of two-site DMRG: seconds per sweep to the right and back, with a bond dimension that is reached before.
//!
//! ```text
//! rows   Heisenberg chain, U(1), N = 100, D = 64, 256, 512; Hubbard chain at U = 4, U(1)², N = 50, D = 256
//! plans  the share of a sweep that plans take: the first sweep after plans are forgotten beside the next one
//! ```
//!
//! The first argument is the largest D. Four applications of the effective operator per pair of sites.

use t4a_algebra::parallel;
use t4a_networks::sites::{Sites, electron, spin_half};
use t4a_networks::{Dmrg, DmrgOptions, Mps, Sum};
use t4a_structured::{Sector, clear_plans};

fn heisenberg(n: usize) -> Sum<t4a_structured::U1> {
    let mut h = Sum::new(&Sites::uniform(spin_half(), n));
    for i in 0..n - 1 {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
        h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
    }
    h
}

fn hubbard(n: usize) -> Sum<t4a_structured::Product<t4a_structured::U1, t4a_structured::U1>> {
    let mut h = Sum::new(&Sites::uniform(electron(), n));
    for i in 0..n {
        h.add(4.0, [("Nupdn", i)]);
        if i + 1 < n {
            h.add_with_adjoint(-1.0, [("Cdagup", i), ("Cup", i + 1)]);
            h.add_with_adjoint(-1.0, [("Cdagdn", i), ("Cdn", i + 1)]);
        }
    }
    h
}

fn row<S: Sector>(name: &str, h: &Sum<S>, dim: usize) {
    let n = h.sites().len();
    let start = Mps::product(h.sites(), ["Up", "Dn"].into_iter().cycle().take(n)).unwrap();
    let operator = h.mpo().unwrap();
    let options = DmrgOptions::new().max_dims([16, 64, dim]).cutoff(0.0).applications(4);
    let mut search = Dmrg::new(&operator, start, options).unwrap();
    let mut last = search.sweep().unwrap();
    while last.bond_dim < dim && last.step < 8 {
        last = search.sweep().unwrap();
    }
    for threads in [1, 2] {
        parallel::set_threads(threads);
        clear_plans();
        let cold = search.sweep().unwrap();
        let warm = search.sweep().unwrap();
        println!(
            "{name:<12} D {:>4}  threads {threads}  cold {:>8.3} s  warm {:>8.3} s  energy {:.10}",
            warm.bond_dim, cold.seconds, warm.seconds, warm.energy
        );
    }
}

fn main() {
    let arguments: Vec<usize> = std::env::args().filter_map(|x| x.parse().ok()).collect();
    let most = arguments.first().copied().unwrap_or(512);
    for dim in [64, 256, 512].into_iter().filter(|&dim| dim <= most) {
        row("Heisenberg", &heisenberg(100), dim);
    }
    if most >= 256 {
        row("Hubbard", &hubbard(50), 256);
    }
}
