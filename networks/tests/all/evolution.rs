//! Evolution against the exponentials of dense matrices.

use std::ops::ControlFlow;

use t4a_algebra::c64;
use t4a_networks::{EvolveOptions, Mps, NetworksError, Sum, Tdvp, Tebd};
use t4a_structured::{Sector, U1};
use t4a_tensor::random::Generator;

use crate::dense::Dense;
use crate::models::{hubbard, product, t_v, xxz};

fn dense<S: Sector>(h: &Sum<S>) -> Dense {
    let entries = h.mpo().unwrap().to_matrix().unwrap();
    Dense { n: entries.len().isqrt(), entries }
}

/// The norm of the difference of the state and the evolved vector.
fn error<S: Sector>(state: &Mps<S>, exact: &[c64]) -> f64 {
    let x = state.to_vector().unwrap();
    x.iter().zip(exact).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt()
}

fn tebd_error<S: Sector>(
    h: &Sum<S>,
    start: &Mps<S>,
    exact: &[c64],
    steps: usize,
    order: usize,
) -> f64 {
    let options = EvolveOptions::new().order(order).cutoff(0.0);
    let mut evolution = Tebd::new(h, start.clone(), 1.0 / steps as f64, options).unwrap();
    evolution.run(steps, |_| Ok(ControlFlow::Continue(()))).unwrap();
    error(evolution.state(), exact)
}

#[test]
fn tebd_has_its_order() {
    let h = xxz(6, 1, 0.7);
    let start = product(&h, &["Up", "Dn"]);
    let exact = dense(&h).evolved(c64::new(0.0, -1.0), &start.to_vector().unwrap());
    for (order, steps, factor) in [(2, [4, 8], 4.0), (4, [4, 8], 16.0)] {
        let errors = steps.map(|n| tebd_error(&h, &start, &exact, n, order));
        let ratio = errors[0] / errors[1];
        assert!((ratio / factor - 1.0).abs() < 0.25, "order {order}: {errors:?}");
    }
    // Fermions of two kinds.
    let h = hubbard(4, 2.0);
    let start = product(&h, &["UpDn", "Emp", "Up", "Dn"]);
    let exact = dense(&h).evolved(c64::new(0.0, -1.0), &start.to_vector().unwrap());
    let errors = [4, 8].map(|n| tebd_error(&h, &start, &exact, n, 4));
    assert!(errors[1] < 1e-3 && errors[0] / errors[1] > 10.0, "{errors:?}");
}

#[test]
fn tdvp_conserves_norm_and_energy_and_is_exact_for_full_bonds() {
    let h = xxz(8, 1, 1.5);
    let mpo = h.mpo().unwrap();
    let start = product(&h, &["Up", "Dn"]);
    let exact = dense(&h).evolved(c64::new(0.0, -0.5), &start.to_vector().unwrap());
    // From two sites on a product state, as bonds grow.
    let options = EvolveOptions::new().cutoff(1e-20);
    let mut two = Tdvp::new(&mpo, start.clone(), 0.05, options).unwrap();
    let energy = start.expectation(&mpo).unwrap().re;
    let check = |report: &t4a_networks::Report| {
        assert!((report.energy - energy).abs() < 1e-10, "{report:?}");
        Ok(ControlFlow::Continue(()))
    };
    two.run(10, check).unwrap();
    assert!((two.state().norm().unwrap() - 1.0).abs() < 1e-10);
    assert!(error(two.state(), &exact) < 1e-3);
    // One site conserves both with truncated bonds.
    let mut start = Mps::random(h.sites(), U1(0), 6, true, &Generator::new(4)).unwrap();
    start.normalise().unwrap();
    let energy = start.expectation(&mpo).unwrap().re;
    let mut one = Tdvp::new(&mpo, start, 0.1, EvolveOptions::new().sites(1)).unwrap();
    let check = |report: &t4a_networks::Report| {
        assert!((report.energy - energy).abs() < 1e-10, "{report:?} {energy}");
        assert_eq!(report.bond_dim, 6);
        Ok(ControlFlow::Continue(()))
    };
    one.run(5, check).unwrap();
    assert!((one.state().norm().unwrap() - 1.0).abs() < 1e-10);
}

#[test]
fn tdvp_of_fermions_on_a_lattice() {
    let h = t_v(3, 2, 2.0);
    let mpo = h.mpo().unwrap();
    let start = Mps::random(h.sites(), U1(3), 8, false, &Generator::new(2)).unwrap();
    let exact = dense(&h).evolved(c64::new(0.0, -0.3), &start.to_vector().unwrap());
    for sites in [1, 2] {
        let options = EvolveOptions::new().sites(sites).cutoff(0.0);
        let mut evolution = Tdvp::new(&mpo, start.clone(), 0.03, options).unwrap();
        evolution.run(10, |_| Ok(ControlFlow::Continue(()))).unwrap();
        // Bonds of 8 states hold every state of six sites.
        let error = error(evolution.state(), &exact);
        assert!(error < 1e-4, "{sites} sites: {error}");
    }
}

#[test]
fn imaginary_time_leads_to_the_ground_state() {
    let h = xxz(6, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let exact = dense(&h).eigh().0[0];
    let start = product(&h, &["Up", "Dn"]);
    let options = EvolveOptions::new().imaginary(true);
    let mut tdvp = Tdvp::new(&mpo, start.clone(), 0.5, options).unwrap();
    let found = tdvp.run(40, |_| Ok(ControlFlow::Continue(()))).unwrap().energy;
    assert!((found - exact).abs() < 1e-8, "{found}, exact {exact}");
    assert!(!tdvp.state().is_complex());
    let mut tebd = Tebd::new(&h, start, 0.2, options.order(4)).unwrap();
    let found = tebd.run(50, |_| Ok(ControlFlow::Continue(()))).unwrap().energy;
    assert!((found - exact).abs() < 1e-4, "{found}, exact {exact}");
}

#[test]
fn rejected_evolutions() {
    let h = xxz(4, 1, 1.0);
    let mpo = h.mpo().unwrap();
    let start = || product(&h, &["Up", "Dn"]);
    for step in [0.0, f64::NAN, f64::INFINITY] {
        let e = Tdvp::new(&mpo, start(), step, EvolveOptions::new()).unwrap_err();
        assert!(matches!(e, NetworksError::Argument { name: "the time step", .. }), "{e}");
        let e = Tebd::new(&h, start(), step, EvolveOptions::new()).unwrap_err();
        assert!(matches!(e, NetworksError::Argument { name: "the time step", .. }), "{e}");
    }
    for options in [
        EvolveOptions::new().max_dim(0),
        EvolveOptions::new().cutoff(-1.0),
        EvolveOptions::new().order(3),
        EvolveOptions::new().sites(3),
    ] {
        assert!(Tdvp::new(&mpo, start(), 0.1, options).is_err());
    }
    let mut far = Sum::new(h.sites());
    far.add(1.0, [("Sz", 0), ("Sz", 2)]);
    let e = Tebd::new(&far, start(), 0.1, EvolveOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { name: "a term", .. }), "{e}");
    let mut evolution = Tebd::new(&h, start(), 0.1, EvolveOptions::new()).unwrap();
    assert!(evolution.run(0, |_| Ok(ControlFlow::Continue(()))).is_err());
}

#[test]
fn purified_states_have_the_energies_of_the_thermal_ensemble() {
    // All charges of the Hubbard chain of two sites, and of hopping fermions.
    let h = hubbard(2, 3.0);
    thermal(&h, 0.8, 1e-4);
    thermal(&t_v(3, 1, 1.5), 1.0, 1e-4);
}

fn thermal<S: Sector>(h: &Sum<S>, beta: f64, tolerance: f64) {
    let (values, _) = dense(h).eigh();
    let z: f64 = values.iter().map(|e| (-beta * e).exp()).sum();
    let exact = values.iter().map(|e| e * (-beta * e).exp()).sum::<f64>() / z;
    let operator = t4a_networks::thermal::purified_sum(h).unwrap().mpo().unwrap();
    let options = EvolveOptions::new().cutoff(1e-14);
    let mut cooling = t4a_networks::Thermal::new(&operator, h, beta / 10.0, options).unwrap();
    let energy = cooling.run(10, |_| Ok(ControlFlow::Continue(()))).unwrap().energy;
    assert!((cooling.inverse_temperature() - beta).abs() < 1e-12);
    assert!((energy - exact).abs() < tolerance, "{energy}, exact {exact}");
    let log_z = cooling.log_partition_function();
    assert!((log_z - z.ln()).abs() < tolerance, "{log_z}, exact {}", z.ln());
}

#[test]
fn domain_walls_evolve() {
    // Far from the wall the effective operators vanish up to rounding.
    let h = xxz(24, 1, 0.0);
    let wall = (0..24).map(|i| if i < 12 { "Up" } else { "Dn" });
    let (wall, sites) = (Mps::product(h.sites(), wall).unwrap(), h.sites());
    let mpo = h.mpo().unwrap();
    let mut evolution = Tdvp::new(&mpo, wall, 0.05, EvolveOptions::new().max_dim(16)).unwrap();
    let report = evolution.run(4, |_| Ok(ControlFlow::Continue(()))).unwrap();
    assert!(report.energy.abs() < 1e-10, "{report:?}");
    // Two spins exchange at first order: 1/2 − t²/4 + O(t⁴) beside the wall.
    let z = evolution.state().expect(sites, "Sz").unwrap()[11].re;
    assert!((z - (0.5 - 0.2f64.powi(2) / 4.0)).abs() < 1e-3, "{z}");
}
