//! Sweeps of two-site DMRG: seconds per sweep to the right and back, with a bond dimension that is reached before.
//!
//! ```text
//! rows   Heisenberg chain, U(1), N = 100, D = 64, 256, 512; Hubbard chain at U = 4, U(1)², N = 50, D = 256
//! cold   first sweep after all structures and plans are dropped; warm: the faster of the next two
//! plans  share of a cold sweep that plans take: 1 − warm / cold
//! gained decrease of the energy in the last sweep: the Hubbard chain converges after about ten sweeps
//! ```
//!
//! Arguments: `[heisenberg|hubbard] [D] [THREADS]` for one row; without them all rows, with one thread and two. Four
//! applications of the effective operator per pair of sites. `peers/table.py` runs the rows in turns with TeNPy.
//!
//! Floor, D = 256 and one thread: applications take half of a sweep, 0.9 to 1.1 times their matrix products alone (bench
//! `graded` of t4a-structured); singular value decompositions take 30 %, as long as those of LAPACK.

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

fn row<S: Sector>(name: &str, h: &Sum<S>, dim: usize, threads: &[usize]) {
    parallel::set_threads(threads[0]);
    let n = h.sites().len();
    let start = Mps::product(h.sites(), ["Up", "Dn"].into_iter().cycle().take(n)).unwrap();
    let operator = h.mpo().unwrap();
    let options = DmrgOptions::new().max_dims([16, 64, dim]).cutoff(0.0).applications(4);
    let mut search = Dmrg::new(&operator, start, options).unwrap();
    let mut last = search.sweep().unwrap();
    while last.bond_dim < dim && last.step < 8 {
        last = search.sweep().unwrap();
    }
    for &threads in threads {
        parallel::set_threads(threads);
        clear_plans();
        let cold = search.sweep().unwrap().seconds;
        let (first, last) = (search.sweep().unwrap(), search.sweep().unwrap());
        let warm = first.seconds.min(last.seconds);
        println!(
            "{name:<10} D {:>4}  threads {threads}  cold {cold:>8.3} s  warm {warm:>8.3} s  plans {:>5.3}  energy {:.10}  \
             gained {:.1e}",
            last.bond_dim,
            1.0 - warm / cold,
            last.energy,
            first.energy - last.energy
        );
    }
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let number = |i: usize| arguments.get(i).and_then(|x| x.parse::<usize>().ok());
    let model = arguments.first().map(String::as_str);
    let threads = number(2).map_or(vec![1, 2], |threads| vec![threads]);
    let is_given = |name, dim| {
        model.is_none_or(|given| given == name) && number(1).is_none_or(|given| given == dim)
    };
    for dim in [64, 256, 512] {
        if is_given("heisenberg", dim) {
            row("heisenberg", &heisenberg(100), dim, &threads);
        }
    }
    if is_given("hubbard", 256) {
        row("hubbard", &hubbard(50), 256, &threads);
    }
}
