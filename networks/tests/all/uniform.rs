//! Uniform states and VUMPS against exact energies per site.

use std::ops::ControlFlow;

use t4a_networks::sites::{self, Sites};
use t4a_networks::{NetworksError, Sum, UniformMps, Vumps, VumpsOptions, VumpsReport};
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec, U1, Z2};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

/// `Σ S·S` of spins `twice / 2` on a cell.
fn heisenberg(cell: usize, twice: usize) -> Sum<U1> {
    let site = if twice == 1 { sites::spin_half() } else { sites::spin(twice).unwrap() };
    let mut h = Sum::new(&Sites::uniform(site, cell));
    for i in 0..cell {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]).add(1.0, [("Sz", i), ("Sz", i + 1)]);
    }
    h
}

/// `−Σ XX − g Σ Z` on a cell of one site, by parity.
fn ising(g: f64) -> Sum<Z2> {
    let site = sites::spin_half().conserve(|q: U1| Z2::new((1 - i64::from(q.0)) / 2)).unwrap();
    let mut h = Sum::new(&Sites::uniform(site, 1));
    h.add(-1.0, [("X", 0), ("X", 1)]).add(-g, [("Z", 0)]);
    h
}

fn search<S: Sector>(h: &Sum<S>, start: &[&str], options: VumpsOptions) -> Vumps<S> {
    let start = UniformMps::product(h.sites(), start.iter().copied()).unwrap();
    let mut search = Vumps::new(&h.infinite_mpo().unwrap(), start, options).unwrap();
    search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    search
}

#[test]
fn canonical_form_of_a_random_cell() {
    let bond = [
        Leg::new([(U1(0), 3), (U1(2), 2)], Direction::Out).unwrap(),
        Leg::new([(U1(-1), 2), (U1(1), 3), (U1(3), 1)], Direction::Out).unwrap(),
    ];
    let site = sites::spin_half();
    let tensor = |k: usize, complex| {
        let legs = vec![bond[k].clone(), site.leg().clone(), bond[1 - k].dual()];
        let spec = Spec::new(legs, U1(0), 2).unwrap();
        GradedTensor::random(spec, DType::F64, complex, &Generator::new(k as u64 + 5)).unwrap()
    };
    for complex in [false, true] {
        let cell = [tensor(0, complex), tensor(1, complex)];
        let state = UniformMps::new(&cell).unwrap();
        assert!(state.gauge_error().unwrap() < 1e-12, "{:e}", state.gauge_error().unwrap());
        // Isometries, and the density matrix by the transfer matrix of the given cell.
        for (a, b) in state.left().iter().zip(state.right()) {
            let one = a.conj().unwrap().contract(a, &[0, 1], &[0, 1]).unwrap();
            let eye = GradedTensor::identity(&[one.spec().legs()[0].clone()], DType::F64).unwrap();
            let error = one.sub(&eye.repartition(one.spec().rows()).unwrap()).unwrap();
            assert!(size(&error) < 1e-12);
            let one = b.contract(&b.conj().unwrap(), &[1, 2], &[1, 2]).unwrap();
            let eye = GradedTensor::identity(&[one.spec().legs()[0].clone()], DType::F64).unwrap();
            assert!(size(&one.sub(&eye).unwrap()) < 1e-12);
        }
        let sites = Sites::uniform(site.clone(), 2);
        let found = state.expect(&sites, "Sz").unwrap();
        let want = by_powers(&cell, &site.operator("Sz").unwrap());
        assert!((found[0].re - want).abs() < 1e-10, "{found:?}, {want}");
    }
}

fn size<S: Sector>(x: &GradedTensor<S>) -> f64 {
    t4a_diff::check::elements(&x.norm().unwrap())[0]
}

/// `⟨O⟩` at the first site with forty cells on each side.
fn by_powers(cell: &[GradedTensor<U1>; 2], o: &GradedTensor<U1>) -> f64 {
    use t4a_structured::einsum;
    let leg = cell[0].spec().legs()[0].clone();
    let mut left = GradedTensor::identity(&[leg.dual()], DType::F64).unwrap();
    let mut right = GradedTensor::identity(&[leg], DType::F64).unwrap();
    for _ in 0..60 {
        for x in cell {
            left = einsum("kb,kpm,bpn->mn", &[&left, x, &x.conj().unwrap()]).unwrap();
        }
        for x in cell.iter().rev() {
            right = einsum("mn,kpm,bpn->kb", &[&right, x, &x.conj().unwrap()]).unwrap();
        }
        left = left.scale(1.0 / size(&left));
        right = right.scale(1.0 / size(&right));
    }
    let (a, b) = (&cell[0], &cell[1]);
    let right = einsum("mn,kpm,bpn->kb", &[&right, b, &b.conj().unwrap()]).unwrap();
    let whole = einsum("kb,kpm,bpn,mn->", &[&left, a, &a.conj().unwrap(), &right]).unwrap();
    let with = einsum("kb,kpm,qp,bqn,mn->", &[&left, a, o, &a.conj().unwrap(), &right]).unwrap();
    t4a_diff::check::elements(with.re())[0] / t4a_diff::check::elements(whole.re())[0]
}

#[test]
fn infinite_heisenberg_chain() {
    let h = heisenberg(2, 1);
    let search = search(&h, &["Up", "Dn"], VumpsOptions::new().max_dim(16).tolerance(1e-4));
    let last = *search.last().unwrap();
    let exact = 0.25 - 2f64.ln();
    assert!(last.gradient < 1e-4, "{last:?}");
    assert!(last.energy > exact && last.energy < exact + 1e-3, "{last:?}");
    assert!(search.state().max_bond_dim() <= 16);
    // A state of the gradient 0 is in mixed gauge.
    assert!(search.state().gauge_error().unwrap() < 1e-3);
}

#[test]
fn critical_ising_chain_of_one_site() {
    let h = ising(1.0);
    let search = search(&h, &["Up"], VumpsOptions::new().max_dim(16).tolerance(1e-5));
    let (last, exact) = (*search.last().unwrap(), -4.0 / std::f64::consts::PI);
    assert!((last.energy - exact).abs() < 3e-6, "{last:?}, {exact}");
    // ⟨Z⟩ = 2/π, half of the energy.
    let z = search.state().expect(h.sites(), "Z").unwrap()[0].re;
    assert!((z - 2.0 / std::f64::consts::PI).abs() < 1e-3, "{z}");
}

#[test]
fn chain_of_affleck_kennedy_lieb_and_tasaki() {
    // S·S + (S·S)² / 3 on a cell of one site: two states per bond, −2/3, correlations (−1/3)ʳ.
    let mut h = Sum::new(&Sites::uniform(sites::spin(2).unwrap(), 1));
    for a in ["Sx", "Sy", "Sz"] {
        h.add(1.0, [(a, 0), (a, 1)]);
        for b in ["Sx", "Sy", "Sz"] {
            h.add(1.0 / 3.0, [(a, 0), (a, 1), (b, 0), (b, 1)]);
        }
    }
    let search = search(&h, &["0"], VumpsOptions::new().max_dim(2).tolerance(1e-8));
    let last = *search.last().unwrap();
    assert!((last.energy + 2.0 / 3.0).abs() < 1e-10, "{last:?}");
    let length = search.state().correlation_length(U1(2)).unwrap();
    assert!((length * 3f64.ln() - 1.0).abs() < 1e-4, "{length}");
}

#[test]
fn next_neighbours_over_cells() {
    // Majumdar and Ghosh: neighbours, and next neighbours at half the strength, −3/8 per site.
    let mut h = Sum::new(&Sites::uniform(sites::spin_half(), 2));
    for i in 0..2 {
        for (j, strength) in [(i + 1, 1.0), (i + 2, 0.5)] {
            h.add_with_adjoint(0.5 * strength, [("S+", i), ("S-", j)]);
            h.add(strength, [("Sz", i), ("Sz", j)]);
        }
    }
    let search =
        search(&h, &["Up", "Dn"], VumpsOptions::new().max_dim(6).tolerance(1e-6).steps(60));
    let last = *search.last().unwrap();
    assert!((last.energy + 0.375).abs() < 1e-7, "{last:?}");
}

#[test]
fn stop_save_and_go_on() {
    let h = ising(1.5);
    let mpo = h.infinite_mpo().unwrap();
    let start = UniformMps::product(h.sites(), ["Up"]).unwrap();
    let options = VumpsOptions::new().max_dim(8).tolerance(1e-8);
    let mut first = Vumps::new(&mpo, start, options).unwrap();
    let stopped = first.run(|report: &VumpsReport| {
        Ok(if report.step < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    assert_eq!(stopped.unwrap().step, 3);
    let failed = first.run(|_| Err(NetworksError::callback("full disk")));
    assert!(matches!(failed.unwrap_err(), NetworksError::Callback { .. }));
    assert_eq!(first.last().unwrap().step, 4);
    let stored = serde_json::to_string(first.state()).unwrap();
    let read: UniformMps<Z2> = serde_json::from_str(&stored).unwrap();
    let mut second = Vumps::new(&mpo, read, options).unwrap();
    assert!((second.energy() - first.energy()).abs() < 1e-9);
    let last = second.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    // −1/π ∫ dk √(1 + g² − 2 g cos k).
    let point =
        |k: usize| (3.25 - 3.0 * (std::f64::consts::PI * (k as f64 + 0.5) / 1e4).cos()).sqrt();
    let exact = -(0..10_000).map(point).sum::<f64>() / 1e4;
    assert!((last.energy - exact).abs() < 1e-7, "{last:?}, {exact}");
    // Other lists of tensors than those of a state are rejected.
    let wrong = stored.replacen('[', "[[],", 1);
    assert!(serde_json::from_str::<UniformMps<Z2>>(&wrong).is_err());
}

#[test]
fn rejected_searches() {
    let h = heisenberg(2, 1);
    let mpo = h.infinite_mpo().unwrap();
    let neel = UniformMps::product(h.sites(), ["Up", "Dn"]).unwrap();
    let new = |options| Vumps::new(&mpo, neel.clone(), options).unwrap_err();
    for options in [
        VumpsOptions::new().max_dim(0),
        VumpsOptions::new().tolerance(f64::NAN),
        VumpsOptions::new().growth(1.0),
    ] {
        assert!(matches!(new(options), NetworksError::Argument { .. }));
    }
    let e = UniformMps::product(h.sites(), ["Up", "Up"]).unwrap_err();
    assert!(matches!(e, NetworksError::Charge { .. }), "{e}");
    let other = UniformMps::product(heisenberg(2, 2).sites(), ["1", "-1"]).unwrap();
    let e = Vumps::new(&mpo, other, VumpsOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Chain { .. }), "{e}");
    let e = UniformMps::new(&neel.left()[..1]).unwrap_err();
    assert!(matches!(e, NetworksError::Chain { .. }), "{e}");
}

#[test]
#[ignore = "minutes without optimisation"]
fn energies_to_more_digits() {
    let h = heisenberg(2, 1);
    let found = search(&h, &["Up", "Dn"], VumpsOptions::new().max_dim(64).tolerance(2e-5));
    let last = *found.last().unwrap();
    assert!((last.energy - (0.25 - 2f64.ln())).abs() < 1e-5, "{last:?}");
    let found = search(&ising(1.0), &["Up"], VumpsOptions::new().max_dim(24).tolerance(1e-6));
    let last = *found.last().unwrap();
    assert!((last.energy + 4.0 / std::f64::consts::PI).abs() < 1e-6, "{last:?}");
    let h = heisenberg(2, 2);
    let found = search(&h, &["1", "-1"], VumpsOptions::new().max_dim(60).tolerance(1e-5));
    let last = *found.last().unwrap();
    assert!((last.energy + 1.401484039).abs() < 1e-6, "{last:?}");
}
