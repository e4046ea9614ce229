//! Infinite chains against exact energies per site.

use std::ops::ControlFlow;

use t4a_networks::sites::{self, Sites};
use t4a_networks::{Idmrg, IdmrgOptions, NetworksError, Sum};
use t4a_structured::{Product, Sector, U1, Z2};

fn energy<S: Sector>(h: &Sum<S>, start: [&str; 2], dim: usize) -> (f64, Idmrg<S>) {
    let options = IdmrgOptions::new().max_dim(dim).steps(60).tolerance(1e-8);
    let mut search = Idmrg::new(&h.infinite_mpo().unwrap(), start, options).unwrap();
    let report = search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    (report.energy, search)
}

#[test]
fn energies_of_infinite_chains() {
    let mut h = Sum::new(&Sites::uniform(sites::spin_half(), 2));
    for i in 0..2 {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]).add(1.0, [("Sz", i), ("Sz", i + 1)]);
    }
    let (found, search) = energy(&h, ["Up", "Dn"], 24);
    let exact = 0.25 - 2f64.ln();
    assert!((found - exact).abs() < 5e-4, "{found}, exact {exact}");
    assert!(search.expect("Sz").unwrap().iter().all(|z| z.norm() < 0.5));
    // A field alone, and the Ising chain off criticality: −1/π ∫ dk √(1 + g² − 2 g cos k).
    let site = sites::spin_half().conserve(|q: U1| Z2::new((i64::from(q.0) + 1) / 2)).unwrap();
    let mut h = Sum::new(&Sites::uniform(site, 2));
    for i in 0..2 {
        h.add(-1.0, [("X", i), ("X", i + 1)]).add(-2.0, [("Z", i)]);
    }
    let integral =
        |k: usize| (5.0 - 4.0 * (std::f64::consts::PI * (k as f64 + 0.5) / 1e4).cos()).sqrt();
    let exact = -(0..10_000).map(integral).sum::<f64>() / 1e4;
    let (found, search) = energy(&h, ["Up", "Up"], 16);
    assert!((found - exact).abs() < 1e-7, "{found}, exact {exact}");
    assert!(search.entropy().unwrap() < 0.5);
    // The order parameter is correlated over 1 / ln g sites, the field (two excitations) over half of that; with few
    // bond states the continuum is approximated and correlation lengths are shorter.
    let lengths = [1, 0].map(|charge| search.correlation_length(Z2::new(charge)).unwrap());
    assert!((lengths[0] * 2f64.ln() - 1.0).abs() < 0.15, "{lengths:?}");
    assert!((lengths[1] * 2f64.ln() - 0.5).abs() < 0.15, "{lengths:?}");
}

#[test]
fn chain_of_affleck_kennedy_lieb_and_tasaki() {
    // S·S + (S·S)² / 3: −2/3 per bond, two states per bond, correlations (−1/3)ʳ.
    let mut h = Sum::new(&Sites::uniform(sites::spin(2).unwrap(), 2));
    let names = ["Sx", "Sy", "Sz"];
    for i in 0..2 {
        for a in names {
            h.add(1.0, [(a, i), (a, i + 1)]);
            for b in names {
                h.add(1.0 / 3.0, [(a, i), (a, i + 1), (b, i), (b, i + 1)]);
            }
        }
    }
    let (found, search) = energy(&h, ["1", "-1"], 8);
    assert!((found + 2.0 / 3.0).abs() < 1e-7, "{found}");
    let length = search.correlation_length(U1(2)).unwrap();
    assert!((length * 3f64.ln() - 1.0).abs() < 1e-2, "{length}");
}

#[test]
fn dimers_of_majumdar_and_ghosh() {
    // Neighbours, and next neighbours at half the strength: −3/8 per site, a product of singlets.
    let mut h = Sum::new(&Sites::uniform(sites::spin_half(), 2));
    for i in 0..2 {
        for (j, strength) in [(i + 1, 1.0), (i + 2, 0.5)] {
            h.add_with_adjoint(0.5 * strength, [("S+", i), ("S-", j)]);
            h.add(strength, [("Sz", i), ("Sz", j)]);
        }
    }
    let mpo = h.infinite_mpo().unwrap();
    assert_eq!(mpo.tensors()[0].spec().legs()[0].dim(), 8);
    let (found, _) = energy(&h, ["Up", "Dn"], 12);
    assert!((found + 0.375).abs() < 1e-8, "{found}");
}

#[test]
#[ignore = "ten seconds without optimisation"]
fn infinite_spin_one_chain() {
    let mut h = Sum::new(&Sites::uniform(sites::spin(2).unwrap(), 2));
    for i in 0..2 {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]).add(1.0, [("Sz", i), ("Sz", i + 1)]);
    }
    let (found, _) = energy(&h, ["1", "-1"], 60);
    assert!((found + 1.401484039).abs() < 1e-5, "{found}");
}

#[test]
fn infinite_hubbard_chain_at_half_filling() {
    // Charges relative to the filling.
    let site = sites::electron().conserve(|q| Product(U1(q.0.0 - 1), q.1)).unwrap();
    let mut h = Sum::new(&Sites::uniform(site, 2));
    for i in 0..2 {
        h.add(4.0, [("Nupdn", i)]);
        h.add_with_adjoint(-1.0, [("Cdagup", i), ("Cup", i + 1)]);
        h.add_with_adjoint(-1.0, [("Cdagdn", i), ("Cdn", i + 1)]);
    }
    let (found, _) = energy(&h, ["Up", "Dn"], 24);
    assert!((found + 0.573729368).abs() < 5e-3, "{found}");
}

#[test]
fn rejected_infinite_chains() {
    let sites = Sites::uniform(sites::spin_half(), 2);
    let mut constant = Sum::new(&sites);
    constant.add(1.0, []);
    assert!(matches!(constant.infinite_mpo().unwrap_err(), NetworksError::Argument { .. }));
    let mut h = Sum::new(&sites);
    h.add(1.0, [("Sz", 0), ("Sz", 3)]);
    let h = h.infinite_mpo().unwrap();
    let e = Idmrg::new(&h, ["Up", "Up"], IdmrgOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Charge { .. }), "{e}");
    let e = Idmrg::new(&h, ["Up", "Dn"], IdmrgOptions::new().max_dim(0)).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
}
