//! Reports of CTMRG, starts from environments, symmetries of bulk tensors, densities of symmetric states.

use std::ops::ControlFlow;

use t4a_diff::check;
use t4a_networks::NetworksError;
use t4a_networks::peps::{
    Cell, CellEnvironment, CellSearch, CtmOptions, SymmetricEnergy, SymmetricSearch, layers,
    random_state,
};
use t4a_networks::sites::spin_half;
use t4a_structured::{Direction, GradedTensor, Leg, Spec, Trivial, einsum};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

use super::infinite::{FLOW, OUT, even_ising};

fn state(seed: u64) -> GradedTensor<Trivial> {
    let site = spin_half().conserve(|_| Trivial).unwrap();
    let bond = Leg::new([(Trivial, 2)], Direction::Out).unwrap();
    let noise = random_state(site.leg(), &bond, seed).unwrap();
    let one = [(vec![(Trivial, 0); 5], 1.0)];
    let one = GradedTensor::from_elements(noise.spec(), one, DType::F64, false).unwrap();
    one.add(&noise.scale(0.5)).unwrap()
}

fn size(x: &GradedTensor<Trivial>) -> f64 {
    check::elements(&x.norm().unwrap())[0]
}

#[test]
fn truncations_are_relative() {
    // The norm of a bulk tensor is a factor of the partition function and of nothing else.
    let bulk = layers::double(&state(4)).unwrap();
    let options = CtmOptions::new().max_dim(3).tolerance(1e-10);
    let symmetric = |bulk: GradedTensor<Trivial>| {
        let mut search = SymmetricSearch::new(bulk, options).unwrap();
        search.run(|_| Ok(ControlFlow::Continue(()))).unwrap().truncation
    };
    let (one, ten) = (symmetric(bulk.clone()), symmetric(bulk.scale(10.0)));
    assert!(one > 1e-8 && (ten / one - 1.0).abs() < 1e-6, "{one:e}, {ten:e}");
    // With one even state the grown corner of the Ising model is diag(1, tanh K), and the product of four is its power.
    let options = CtmOptions::new().max_dim(1);
    let (k, t) = ([0.4; 4], 0.4f64.tanh());
    let mut search = SymmetricSearch::new(even_ising(k, OUT), options).unwrap();
    let found = search.run(|_| Ok(ControlFlow::Continue(()))).unwrap().truncation;
    assert!((found - t / (1.0 + t * t).sqrt()).abs() < 1e-12, "{found}");
    let cell = Cell::new(1, vec![even_ising(k, FLOW)]).unwrap();
    let mut search = CellSearch::new(cell, options).unwrap();
    let found = search.run(|_| Ok(ControlFlow::Continue(()))).unwrap().truncation;
    assert!((found - t.powi(4) / (1.0 + t.powi(8)).sqrt()).abs() < 1e-12, "{found}");
}

#[test]
fn truncation_of_a_cell_is_the_largest_of_all_cuts_and_moves() {
    let moves = |couplings: &[f64]| {
        let bulk = couplings.iter().map(|&k| even_ising([k; 4], FLOW)).collect();
        let start = CtmOptions::new().max_dim(4).steps(3).tolerance(0.0);
        let mut search = CellSearch::new(Cell::new(1, bulk).unwrap(), start).unwrap();
        search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
        let (cell, options) = (search.cell().clone(), CtmOptions::new().max_dim(1));
        let environment = search.environment();
        let one: Vec<f64> =
            (0..4).map(|d| environment.clone().absorb(&cell, d, &options).unwrap()).collect();
        // A step is four moves in turn.
        let mut next = environment.clone();
        let all = (0..4).map(|d| next.absorb(&cell, d, &options).unwrap());
        let largest = all.fold(0.0, f64::max);
        let mut step =
            CellSearch::from_environment(cell.clone(), environment.clone(), options).unwrap();
        assert_eq!(step.step().unwrap().truncation, largest);
        one
    };
    let close = |a: &[f64], b: &[f64]| {
        let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        assert!(differences.fold(0.0, f64::max) < 1e-9, "{a:?}, {b:?}");
    };
    // The cuts of a column of three sites, in the order of the sites.
    let [k, l, m] = [0.1, 0.3, 0.6];
    let first = moves(&[k, l, m]);
    close(&first, &moves(&[l, m, k]));
    close(&first, &moves(&[m, k, l]));
    close(&moves(&[l]), &moves(&[l, l, l]));
}

#[test]
fn evaluations_start_from_similar_environments() {
    let options = CtmOptions::new().max_dim(6).tolerance(1e-10);
    let site = spin_half().conserve(|_| Trivial).unwrap();
    let terms = [(-0.5, "S+", "S+"), (-0.5, "S-", "S-"), (-1.0, "Sz", "Sz")];
    let h = SymmetricEnergy::new(layers::pair_operator(&site, terms).unwrap(), options).unwrap();
    let (environment, first) = h.environment(&state(4), None).unwrap();
    let (_, again) = h.environment(&state(4), Some(&environment)).unwrap();
    assert!(first.step > 4 && again.step <= 2, "{first:?}, {again:?}");
}

#[test]
fn turned_but_not_mirrored_tensors_are_rejected() {
    let leg = Leg::new([(Trivial, 3)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg; 4], Trivial, 2).unwrap();
    let x = GradedTensor::random(spec, DType::F64, false, &Generator::new(1)).unwrap();
    let turn = |k: usize| x.permute(&[k % 4, (k + 1) % 4, (k + 2) % 4, (k + 3) % 4], 2).unwrap();
    let chiral = (1..4).fold(turn(0), |sum, k| sum.add(&turn(k)).unwrap());
    let e = SymmetricSearch::new(chiral, CtmOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
}

#[test]
fn densities_of_symmetric_states() {
    let state = state(4);
    let options = CtmOptions::new().max_dim(8).tolerance(1e-11);
    let mut search = SymmetricSearch::new(layers::double(&state).unwrap(), options).unwrap();
    search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    let environment = search.environment();
    let site = environment.site_density(&state).unwrap();
    let trace = einsum("pp->", &[&site]).unwrap();
    assert!((check::elements(trace.re())[0] - 1.0).abs() < 1e-12);
    let pair = environment.pair_density(&state).unwrap();
    let reduced = einsum("pqss->pq", &[&pair]).unwrap().repartition(site.spec().rows()).unwrap();
    let error = size(&reduced.sub(&site).unwrap());
    assert!(error < 1e-5, "{error:e}");
}

#[test]
fn random_states_have_the_direction_of_the_site() {
    let site = spin_half().conserve(|_| Trivial).unwrap();
    let bond = Leg::new([(Trivial, 2)], Direction::Out).unwrap();
    let [one, other] = [&bond, &bond.dual()].map(|leg| random_state(site.leg(), leg, 3).unwrap());
    assert_eq!(one.spec(), other.spec());
    assert_eq!(check::elements(one.re()), check::elements(other.re()));
    let error = size(&layers::symmetrised(&one).unwrap().sub(&one).unwrap());
    assert!(error < 1e-14 && (size(&one) - 1.0).abs() < 1e-14, "{error}");
}

#[test]
fn environments_of_states_with_other_bonds_are_not_used() {
    let options = CtmOptions::new().max_dim(4).tolerance(1e-9);
    let site = spin_half().conserve(|_| Trivial).unwrap();
    let terms = [(-0.5, "S+", "S+"), (-0.5, "S-", "S-"), (-1.0, "Sz", "Sz")];
    let h = SymmetricEnergy::new(layers::pair_operator(&site, terms).unwrap(), options).unwrap();
    let bond = Leg::new([(Trivial, 1)], Direction::Out).unwrap();
    let small = random_state(site.leg(), &bond, 1).unwrap();
    let (start, _) = h.environment(&small, None).unwrap();
    let (found, _) = h.environment(&state(4), Some(&start)).unwrap();
    let (want, _) = h.environment(&state(4), None).unwrap();
    let spectra = [found, want].map(|x| x.spectrum().unwrap());
    assert_eq!(spectra[0], spectra[1]);
}

#[test]
fn operators_act_on_the_site_and_on_its_neighbour() {
    // Operators that differ under an exchange of the sites, on a row of two tensors.
    let site = spin_half().conserve(|_| Trivial).unwrap();
    let mut state = super::infinite::checkerboard().map(|x| x.drop_charge().unwrap());
    let noise = state[0].spec().clone();
    let noise = GradedTensor::random(noise, DType::F64, false, &Generator::new(7)).unwrap();
    state[0] = state[0].add(&noise.scale(0.2)).unwrap();
    let options = CtmOptions::new().max_dim(6).tolerance(1e-8);
    let mut search = CellSearch::of_state(2, &state, options).unwrap();
    search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    let environment = search.environment();
    let [z, x] = ["Sz", "Sx"].map(|name| site.operator(name).unwrap());
    let density = environment.pair_density(search.cell(), &state, 0, 2).unwrap();
    let value = |a: &GradedTensor<Trivial>, b: &GradedTensor<Trivial>| {
        check::elements(einsum("pqst,qp,ts->", &[&density, a, b]).unwrap().re())[0]
    };
    let (want, other) = (0.3 * value(&z, &x) - 0.7 * value(&x, &z), value(&x, &z));
    let pair = layers::bond_operator(&site, [(0.3, "Sz", "Sx"), (-0.7, "Sx", "Sz")]).unwrap();
    let found = check::elements(&CellEnvironment::expectation(&density, &pair).unwrap())[0];
    assert!((found - want).abs() < 1e-12, "{found}, {want}");
    assert!((value(&z, &x) - other).abs() > 1e-3, "{other}");
}
