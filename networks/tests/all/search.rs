//! DMRG against exact diagonalisation and published energies.

use std::ops::ControlFlow;

use t4a_networks::{Dmrg, DmrgOptions, Mps, NetworksError, Report, Sum, Update};
use t4a_structured::{Sector, U1, Z2};
use t4a_tensor::random::Generator;

use crate::dense::Dense;
use crate::models::{hubbard, ising, product, t_v, xxz};

fn ground<S: Sector>(h: &Sum<S>, start: Mps<S>, options: DmrgOptions) -> (f64, Mps<S>) {
    let h = h.mpo().unwrap();
    let mut search = Dmrg::new(&h, start, options).unwrap();
    let report = search.run_to_end().unwrap();
    let state = search.into_state();
    // The energy that is reported is that of the state.
    let energy = state.expectation(&h).unwrap();
    assert!((energy.re - report.energy).abs() < 1e-8 && energy.im.abs() < 1e-10, "{energy}");
    assert!((state.norm().unwrap() - 1.0).abs() < 1e-12);
    (report.energy, state)
}

fn check<S: Sector>(h: &Sum<S>, start: Mps<S>, options: DmrgOptions, exact: f64, error: f64) {
    let charge = start.charge();
    let (energy, state) = ground(h, start, options);
    assert!((energy - exact).abs() < error, "{energy}, exact {exact}");
    assert_eq!(state.charge(), charge);
}

#[test]
fn spin_chains() {
    let options = || DmrgOptions::new().max_dim(32);
    for (n, delta, exact) in
        [(8, 1.0, -3.374932598688), (12, 1.0, -5.142090632841), (12, 2.0, -7.056954786582)]
    {
        let h = xxz(n, 1, delta);
        check(&h, product(&h, &["Up", "Dn"]), options(), exact, 1e-9);
    }
}

#[test]
fn critical_ising() {
    let h = ising(20);
    let start = Mps::random(h.sites(), Z2::new(0), 4, false, &Generator::new(1)).unwrap();
    let options = DmrgOptions::new().max_dims([8, 16, 24]);
    check(&h, start, options, -25.107797111623785, 1e-8);
}

#[test]
fn hubbard_chains() {
    let h = hubbard(6, 4.0);
    let options = || DmrgOptions::new().max_dims([16, 64]).cutoff(1e-13);
    check(&h, product(&h, &["Up", "Dn"]), options(), -3.092565319505, 1e-8);
    let five = product(&h, &["Up", "Dn", "Up", "Dn", "Up", "Emp"]);
    check(&h, five, options(), -3.984358962762, 1e-8);
}

#[test]
fn fermions_on_a_lattice() {
    let h = t_v(3, 3, 2.0);
    let generator = Generator::new(3);
    let start = Mps::random(h.sites(), U1(4), 8, false, &generator).unwrap();
    check(&h, start, DmrgOptions::new().max_dim(32), -3.512931714258, 1e-8);
}

#[test]
#[ignore = "twenty seconds without optimisation"]
fn larger_chains() {
    let h = xxz(16, 1, 1.0);
    check(&h, product(&h, &["Up", "Dn"]), DmrgOptions::new().max_dim(128), -6.911737145575, 1e-9);
    let h = xxz(10, 2, 1.0);
    let start = product(&h, &["1", "-1"]);
    check(&h, start, DmrgOptions::new().max_dim(160), -12.894560132211, 1e-8);
}

#[test]
#[ignore = "twenty seconds without optimisation"]
fn entropy_of_the_critical_chain_grows_with_half_a_central_charge() {
    // c/6 ln((2n/π) sin(πl/n)) + constant for open ends, with c = ½.
    let entropy = |n: usize| {
        let h = ising(n);
        let start = Mps::random(h.sites(), Z2::new(0), 4, false, &Generator::new(1)).unwrap();
        let (_, state) = ground(&h, start, DmrgOptions::new().max_dims([8, 16, 32]));
        state.entropies().unwrap()[n / 2 - 1]
    };
    let [small, middle, large] = [20, 40, 80].map(entropy);
    // Slopes have an error of the order 1/n, which the combination of two cancels.
    let slopes = [middle - small, large - middle].map(|rise| rise / 2f64.ln());
    assert!((slopes[1] - 1.0 / 12.0).abs() < (slopes[0] - 1.0 / 12.0).abs(), "{slopes:?}");
    let limit = 2.0 * slopes[1] - slopes[0];
    assert!((limit - 1.0 / 12.0).abs() < 5e-4, "{limit} of {slopes:?}");
}

/// White, Huse (1993): 0.41050(2); 0.41048 by later work. An open chain of spins 1 has a spin ½ at each end, whose four
/// states are the lowest level for long chains; the gap is the energy of one more excitation, which the total spin 2
/// has beside the end spins.
#[test]
#[ignore = "minutes without optimisation"]
fn gap_of_haldane() {
    let energy = |n: usize, spin: usize| {
        let h = xxz(n, 2, 1.0);
        let names = ["1", "-1"].into_iter().cycle().take(n).enumerate();
        // A zero in the place of −1 adds one to the total spin.
        let names = names.map(|(i, name)| if i % 2 == 1 && i / 2 < spin { "0" } else { name });
        let start = Mps::product(h.sites(), names).unwrap();
        let options = DmrgOptions::new().max_dims([20, 40, 80, 120]).cutoff(1e-11);
        let h = h.mpo().unwrap();
        let mut search = Dmrg::new(&h, start, options.tolerance(1e-7)).unwrap();
        search.run_to_end().unwrap().energy
    };
    let sizes = [32, 48, 64];
    let gaps = sizes.map(|n| energy(n, 2) - energy(n, 1));
    // A massive particle in a box: gap + a/n² + b/n³.
    let row = |n: usize| [1.0, 1.0 / (n as f64).powi(2), 1.0 / (n as f64).powi(3)];
    let [a, b, c] = sizes.map(row);
    let det = |x: [[f64; 3]; 3]| {
        let minor = |i: usize, j: usize| x[1][i] * x[2][j] - x[1][j] * x[2][i];
        x[0][0] * minor(1, 2) - x[0][1] * minor(0, 2) + x[0][2] * minor(0, 1)
    };
    let with = |row: [f64; 3], gap: f64| [gap, row[1], row[2]];
    let limit = det([with(a, gaps[0]), with(b, gaps[1]), with(c, gaps[2])]) / det([a, b, c]);
    println!("gaps {gaps:?}, limit {limit}");
    assert!(gaps[0] > gaps[1] && gaps[1] > gaps[2] && gaps[2] > limit, "{gaps:?}");
    assert!((limit - 0.41048).abs() < 0.01 * 0.41048, "{limit} of {gaps:?}");
}

#[test]
fn one_site_with_enrichment_leaves_a_product_state() {
    let h = xxz(10, 1, 1.0);
    let options = DmrgOptions::new().max_dim(32).update(Update::OneSite).expansion(1e-2);
    let exact = Dense { n: 1 << 10, entries: h.mpo().unwrap().to_matrix().unwrap() };
    let (two, _) = ground(&h, product(&h, &["Up", "Dn"]), DmrgOptions::new().max_dim(32));
    let (one, state) = ground(&h, product(&h, &["Up", "Dn"]), options.clone());
    assert!((one - two).abs() < 1e-8, "{one}, {two}");
    assert!(state.max_bond_dim() > 8);
    let h = exact_energy(&exact, &state);
    assert!((h - one).abs() < 1e-9, "{h}");
    // Without it the bonds stay.
    let h = xxz(10, 1, 1.0);
    let (stuck, state) = ground(&h, product(&h, &["Up", "Dn"]), options.expansion(0.0));
    assert!(state.max_bond_dim() == 1 && stuck > two + 0.1, "{stuck}");
}

fn exact_energy(h: &Dense, state: &Mps<U1>) -> f64 {
    let x = state.to_vector().unwrap();
    let row = |i: usize| (0..h.n).map(|j| h.entries[i * h.n + j] * x[j]).sum::<t4a_algebra::c64>();
    (0..h.n).map(|i| (x[i].conj() * row(i)).re).sum()
}

#[test]
fn excited_states_are_the_next_eigenvalues() {
    let h = xxz(8, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let dense = Dense { n: 1 << 8, entries: mpo.to_matrix().unwrap() };
    // Eigenvalues in the sector of magnetisation 0: basis states by number of ups.
    let inside: Vec<usize> = (0..256usize).filter(|k| k.count_ones() == 4).collect();
    let mut sector = Dense::zeros(inside.len());
    for (i, &row) in inside.iter().enumerate() {
        for (j, &col) in inside.iter().enumerate() {
            sector.entries[i * inside.len() + j] = dense.entries[row * 256 + col];
        }
    }
    let exact = sector.eigh().0;
    let mut states: Vec<Mps<U1>> = Vec::new();
    for (k, exact) in exact.iter().take(3).enumerate() {
        let start = Mps::random(h.sites(), U1(0), 8, false, &Generator::new(5 + k as u64)).unwrap();
        let options = DmrgOptions::new().max_dim(32).sweeps(40).tolerance(1e-12);
        let mut search = Dmrg::excited(&mpo, start, &states, options).unwrap();
        let energy = search.run_to_end().unwrap().energy;
        assert!((energy - exact).abs() < 1e-7, "state {k}: {energy}, exact {exact}");
        let state = search.into_state();
        assert!(states.iter().all(|x| x.inner(&state).unwrap().norm() < 1e-5));
        states.push(state);
    }
}

#[test]
fn a_search_stops_and_goes_on() {
    let h = xxz(8, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let mut search =
        Dmrg::new(&mpo, product(&h, &["Up", "Dn"]), DmrgOptions::new().max_dim(16)).unwrap();
    let stop = |report: &Report| {
        Ok(match report.step {
            1 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    };
    assert_eq!(search.run(stop).unwrap().step, 1);
    let fail = |_: &Report| Err(NetworksError::callback("disk full"));
    let error = search.run(fail).unwrap_err();
    assert!(matches!(&error, NetworksError::Callback { message, .. } if message == "disk full"));
    assert_eq!(search.last().unwrap().step, 2);
    let energy = search.state().expectation(&mpo).unwrap().re;
    assert!((energy - search.last().unwrap().energy).abs() < 1e-8);
    // A search continues from a stored state.
    let stored = serde_json::to_string(search.state()).unwrap();
    let read: Mps<U1> = serde_json::from_str(&stored).unwrap();
    assert!((read.inner(search.state()).unwrap().re - 1.0).abs() < 1e-12);
    let last = Dmrg::new(&mpo, read, DmrgOptions::new()).unwrap().run_to_end().unwrap();
    assert!((last.energy + 3.374932598688).abs() < 1e-9);
}

#[test]
fn rejected_searches() {
    let h = xxz(4, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let start = || product(&h, &["Up", "Dn"]);
    let error = |options| Dmrg::new(&mpo, start(), options).unwrap_err();
    for options in [
        DmrgOptions::new().max_dim(0),
        DmrgOptions::new().max_dims([]),
        DmrgOptions::new().cutoff(f64::NAN),
        DmrgOptions::new().tolerance(-1.0),
        DmrgOptions::new().sweeps(0),
    ] {
        assert!(matches!(error(options), NetworksError::Argument { .. }));
    }
    let mut one_way = Sum::new(h.sites());
    one_way.add(1.0, [("S+", 0), ("S-", 1)]).add(1.0, [("Sz", 2)]);
    let one_way = one_way.mpo().unwrap();
    let e = Dmrg::new(&one_way, start(), DmrgOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::NotHermitian { .. }), "{e}");
    let mut raise = Sum::new(h.sites());
    let raise = raise.with_charge(U1(2)).add(1.0, [("S+", 0)]).mpo().unwrap();
    let e = Dmrg::new(&raise, start(), DmrgOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Charge { .. }), "{e}");
    let short = xxz(3, 1, 1.0);
    let e = Dmrg::new(&mpo, product(&short, &["Up", "Dn"]), DmrgOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Length { .. }), "{e}");
    let other = product(&h, &["Up", "Up"]);
    let e = Dmrg::excited(&mpo, start(), &[other], DmrgOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Charge { .. }), "{e}");
}
