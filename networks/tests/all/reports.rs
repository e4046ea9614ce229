//! Reports of sweeps and steps, and truncated states: norms, dropped weights, schedules.

use std::ops::ControlFlow;

use t4a_networks::{
    Dmrg, DmrgOptions, EvolveOptions, Mps, NetworksError, Report, Tdvp, Tebd, Update,
};
use t4a_structured::U1;
use t4a_tensor::random::Generator;

use crate::dense::Dense;
use crate::models::{product, xxz};

fn go(_: &Report) -> t4a_networks::Flow {
    Ok(ControlFlow::Continue(()))
}

#[test]
fn dropped_weight_of_a_singlet() {
    // Two singular values √½: one of them has half of the weight, and the state that is left has norm 1.
    let h = xxz(2, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let start = product(&h, &["Up", "Dn"]);
    let mut search = Dmrg::new(&mpo, start, DmrgOptions::new().max_dim(1)).unwrap();
    let report = search.sweep().unwrap();
    assert!((report.truncation - 0.5).abs() < 1e-12, "{report:?}");
    let norm = search.state().norm().unwrap();
    assert!((norm - 1.0).abs() < 1e-12, "{norm}");
}

#[test]
fn the_largest_dropped_weight_is_reported() {
    // The last update of a sweep is at the end of the chain, where two states are enough.
    let h = xxz(8, 1, 1.0);
    let (mpo, start) = (h.mpo().unwrap(), || product(&h, &["Up", "Dn"]));
    let mut search = Dmrg::new(&mpo, start(), DmrgOptions::new().max_dim(2)).unwrap();
    search.run_to_end().unwrap();
    let report = search.sweep().unwrap();
    assert!(report.truncation > 1e-4, "{report:?}");
    let options = EvolveOptions::new().max_dim(2);
    let mut tdvp = Tdvp::new(&mpo, start(), 0.2, options).unwrap();
    let report = tdvp.run(4, go).unwrap();
    assert!(report.truncation > 1e-6, "{report:?}");
    // The energy is that of the state, whose norm decreases with the dropped weight.
    let norm = tdvp.state().norm().unwrap();
    let energy = tdvp.state().expectation(&mpo).unwrap().re;
    assert!(norm < 1.0 - 1e-6 && (report.energy - energy / (norm * norm)).abs() < 1e-9, "{norm}");
    let mut tebd = Tebd::new(&h, start(), 0.2, options).unwrap();
    let report = tebd.run(4, go).unwrap();
    assert!(report.truncation > 1e-6, "{report:?}");
    assert!((tebd.state().norm().unwrap() - 1.0).abs() < 1e-12);
    let energy = tebd.state().expectation(&mpo).unwrap().re;
    assert!((report.energy - energy).abs() < 1e-9, "{report:?}, {energy}");
}

#[test]
fn schedules_of_bond_dimensions() {
    let h = xxz(8, 1, 1.0);
    let mpo = h.mpo().unwrap();
    // The schedule is completed though the energy changes by less than the tolerance.
    let options = DmrgOptions::new().max_dims([2, 4, 8]).tolerance(1e3);
    let mut search = Dmrg::new(&mpo, product(&h, &["Up", "Dn"]), options).unwrap();
    let mut dims = Vec::new();
    let note = |report: &Report| {
        dims.push(report.bond_dim);
        Ok(ControlFlow::Continue(()))
    };
    search.run(note).unwrap();
    assert_eq!(dims, [2, 4, 8]);
    // The search ends at the tolerance.
    let options = DmrgOptions::new().max_dim(16).tolerance(1e-6).sweeps(50);
    let mut search = Dmrg::new(&mpo, product(&h, &["Up", "Dn"]), options).unwrap();
    assert!(search.run_to_end().unwrap().step < 10);
}

#[test]
fn tolerances_of_updates() {
    // With a large one an update ends after its first application.
    let h = xxz(8, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let energy = |options: DmrgOptions| {
        let mut search = Dmrg::new(&mpo, product(&h, &["Up", "Dn"]), options).unwrap();
        search.sweep().unwrap().energy
    };
    let exact = energy(DmrgOptions::new());
    let coarse = energy(DmrgOptions::new().eigen_tolerance(0.5));
    let one = energy(DmrgOptions::new().applications(1));
    assert!(coarse > exact + 1e-3 && (coarse - one).abs() < 1e-9, "{coarse}, {one}, {exact}");
    let all = energy(DmrgOptions::new().eigen_tolerance(0.0));
    assert!((all - exact).abs() < 1e-6, "{all}, {exact}");
    let options = DmrgOptions::new().eigen_tolerance(f64::NAN);
    let e = Dmrg::new(&mpo, product(&h, &["Up", "Dn"]), options).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
}

#[test]
fn enrichment_decreases() {
    // With few states per bond what enriches it displaces states of the ground state.
    let h = xxz(10, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let start = || Mps::random(h.sites(), U1(0), 6, false, &Generator::new(3)).unwrap();
    let options = DmrgOptions::new().max_dim(6).sweeps(16).tolerance(0.0);
    let run = |options: DmrgOptions| {
        Dmrg::new(&mpo, start(), options).unwrap().run_to_end().unwrap().energy
    };
    let two = run(options.clone());
    let one = run(options.update(Update::OneSite).expansion(0.3));
    assert!(one < two + 1e-4, "{one}, {two}");
}

#[test]
fn excited_states_by_single_sites() {
    let h = xxz(6, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let dense = Dense { n: 1 << 6, entries: mpo.to_matrix().unwrap() };
    // A triplet is above the singlet; its state of magnetisation 0 is the second one.
    let exact = dense.eigh().0;
    let start = |seed| Mps::random(h.sites(), U1(0), 8, false, &Generator::new(seed)).unwrap();
    let options =
        || DmrgOptions::new().max_dim(16).update(Update::OneSite).sweeps(60).tolerance(1e-13);
    let mut search = Dmrg::new(&mpo, start(1), options()).unwrap();
    let ground = search.run_to_end().unwrap().energy;
    assert!((ground - exact[0]).abs() < 1e-8, "{ground}, {}", exact[0]);
    let lower = [search.into_state()];
    let mut search = Dmrg::excited(&mpo, start(2), &lower, options()).unwrap();
    let first = search.run_to_end().unwrap().energy;
    assert!((first - exact[1]).abs() < 1e-7, "{first}, {}", exact[1]);
}

#[test]
fn constants_in_sums_of_neighbours() {
    // A constant adds to the energy and turns the phase.
    let h = xxz(4, 1, 1.0);
    let mut shifted = h.clone();
    shifted.add(0.7, []);
    let start = product(&h, &["Up", "Dn"]);
    let evolved = |h: &t4a_networks::Sum<U1>| {
        let mut evolution = Tebd::new(h, start.clone(), 0.1, EvolveOptions::new()).unwrap();
        let energy = evolution.run(5, go).unwrap().energy;
        (energy, evolution.into_state())
    };
    let ((e, x), (f, y)) = (evolved(&h), evolved(&shifted));
    assert!((f - e - 0.7).abs() < 1e-9, "{e}, {f}");
    let phase = x.inner(&y).unwrap();
    let (cos, sin) = ((0.7f64 * 0.5).cos(), (0.7f64 * 0.5).sin());
    assert!((phase.re - cos).abs() < 1e-9 && (phase.im + sin).abs() < 1e-9, "{phase}");
}

/// A callback that fails at the second report.
fn failing(report: &Report) -> t4a_networks::Flow {
    match report.step {
        2 => Err(NetworksError::callback("disk full")),
        _ => go(report),
    }
}

#[test]
fn failing_callbacks_leave_the_state_of_their_report() {
    let h = xxz(6, 1, 1.0);
    let (mpo, start) = (h.mpo().unwrap(), || product(&h, &["Up", "Dn"]));
    let failed = |found: Result<Report, NetworksError>| {
        let e = found.unwrap_err();
        assert!(
            matches!(&e, NetworksError::Callback { message, .. } if message == "disk full"),
            "{e}"
        );
    };
    let same = |x: &Mps<U1>, y: &Mps<U1>| {
        assert_eq!(x.to_vector().unwrap(), y.to_vector().unwrap());
    };
    for update in [Update::TwoSites, Update::OneSite] {
        let options = DmrgOptions::new().max_dim(8).update(update).tolerance(0.0).sweeps(4);
        let mut search = Dmrg::new(&mpo, start(), options).unwrap();
        let mut whole = search.clone();
        failed(search.run(failing));
        let report = [whole.sweep().unwrap(), whole.sweep().unwrap()][1];
        assert_eq!(search.last().map(|last| (last.step, last.energy)), Some((2, report.energy)));
        same(search.state(), whole.state());
        assert_eq!(search.run(go).unwrap().energy, whole.run(go).unwrap().energy);
    }
    for sites in [1, 2] {
        let options = EvolveOptions::new().sites(sites);
        let mut evolution = Tdvp::new(&mpo, start(), 0.1, options).unwrap();
        let mut whole = evolution.clone();
        failed(evolution.run(4, failing));
        whole.run(2, go).unwrap();
        same(evolution.state(), whole.state());
        let (one, other) = (evolution.run(1, go).unwrap(), whole.run(1, go).unwrap());
        assert_eq!((one.step, one.energy), (3, other.energy));
    }
    let mut evolution = Tebd::new(&h, start(), 0.1, EvolveOptions::new()).unwrap();
    let mut whole = evolution.clone();
    failed(evolution.run(4, failing));
    whole.run(2, go).unwrap();
    same(evolution.state(), whole.state());
    let operator = t4a_networks::thermal::purified_sum(&h).unwrap().mpo().unwrap();
    let options = EvolveOptions::new().max_dim(8);
    let mut cooling = t4a_networks::Thermal::new(&operator, &h, 0.1, options).unwrap();
    let mut whole = cooling.clone();
    failed(cooling.run(4, failing));
    whole.run(2, go).unwrap();
    same(cooling.state(), whole.state());
    assert_eq!(cooling.inverse_temperature(), 0.2);
    assert_eq!(cooling.log_partition_function(), whole.log_partition_function());
}
