//! Sweeps of two-site DMRG: seconds per sweep to the right and back, with a bond dimension that is reached before.
//!
//! ```text
//! rows   Heisenberg chain, U(1), N = 100, D = 64, 256, 512; Hubbard chain at U = 4, U(1)², N = 50, D = 256
//! sweep  the faster of two sweeps
//! cold   a sweep after all structures and plans are dropped; warm: the same sweep from the same state with its plans
//! plans  share of the cold sweep that plans take: 1 − warm / cold
//! gained decrease of the energy in the last sweep: the Hubbard chain converges after about ten sweeps
//! ```
//!
//! Arguments: `[heisenberg|hubbard] [D] [THREADS] [sweep|plans]` for one row, and one of its measurements; without them all
//! rows, with one thread and two. Each pair of sites has four applications of the effective operator, also where it has
//! converged, and the same number of them in TeNPy. `peers/table.py` runs the rows in turns with TeNPy.
//!
//! Floor, D = 256 and one thread: singular value decompositions take three fifths of a sweep, as long as those of LAPACK;
//! applications take a fifth, three quarters of it in matrix products.

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

/// Seconds of a cold and of a warm sweep from the state of a search: the fastest of four each, in turns.
fn planned<S: Sector>(search: &Dmrg<S>) -> [f64; 2] {
    let sweep = || search.clone().sweep().unwrap().seconds;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..4 {
        clear_plans();
        best[0] = best[0].min(sweep());
        best[1] = best[1].min(sweep());
    }
    best
}

fn row<S: Sector>(name: &str, h: &Sum<S>, dim: usize, threads: &[usize], only: Option<&str>) {
    parallel::set_threads(threads[0]);
    let n = h.sites().len();
    let start = Mps::product(h.sites(), ["Up", "Dn"].into_iter().cycle().take(n)).unwrap();
    let operator = h.mpo().unwrap();
    let options = DmrgOptions::new().max_dims([16, 64, dim]).cutoff(0.0);
    let options = options.applications(4).eigen_tolerance(0.0);
    let mut search = Dmrg::new(&operator, start, options).unwrap();
    let mut last = search.sweep().unwrap();
    while last.bond_dim < dim && last.step < 8 {
        last = search.sweep().unwrap();
    }
    search.sweep().unwrap();
    for &threads in threads {
        parallel::set_threads(threads);
        let begin = format!("{name:<10} D {:>4}  threads {threads}", last.bond_dim);
        if only != Some("plans") {
            let (first, last) = (search.sweep().unwrap(), search.sweep().unwrap());
            println!(
                "{begin}  sweep {:>8.3} s  energy {:.10}  gained {:.1e}",
                first.seconds.min(last.seconds),
                last.energy,
                first.energy - last.energy
            );
        }
        if only != Some("sweep") {
            let [cold, warm] = planned(&search);
            let plans = 1.0 - warm / cold;
            println!("{begin}  cold {cold:>8.3} s  warm {warm:>8.3} s  plans {plans:>6.3}");
        }
    }
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let number = |i: usize| arguments.get(i).and_then(|x| x.parse::<usize>().ok());
    let model = arguments.first().map(String::as_str);
    let threads = number(2).map_or(vec![1, 2], |threads| vec![threads]);
    let only = arguments.get(3).map(String::as_str);
    let is_given = |name, dim| {
        model.is_none_or(|given| given == name) && number(1).is_none_or(|given| given == dim)
    };
    for dim in [64, 256, 512] {
        if is_given("heisenberg", dim) {
            row("heisenberg", &heisenberg(100), dim, &threads, only);
        }
    }
    if is_given("hubbard", 256) {
        row("hubbard", &hubbard(50), 256, &threads, only);
    }
}
