//! Gradients of the energy of an iPEPS, and its optimisation.

use std::ops::ControlFlow;

use t4a_diff::{Array, Dual, check};
use t4a_networks::peps::{
    CtmOptions, FixedStep, PepsOptions, PepsSearch, Symmetric, SymmetricEnergy, energy, layers,
    random_state,
};
use t4a_networks::sites::spin_half;
use t4a_networks::tape::{Recorded, gradients};
use t4a_networks::{NetworksError, Report};
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec, Trivial, U1, Z2, einsum};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

/// The Heisenberg antiferromagnet, with one sublattice rotated.
fn heisenberg<S: Sector>(charge: impl Fn(U1) -> S, options: CtmOptions) -> SymmetricEnergy<S> {
    let site = spin_half().conserve(charge).unwrap();
    let terms = [(-0.5, "S+", "S+"), (-0.5, "S-", "S-"), (-1.0, "Sz", "Sz")];
    SymmetricEnergy::new(layers::pair_operator(&site, terms).unwrap(), options).unwrap()
}

fn start<S: Sector>(
    charge: impl Fn(U1) -> S,
    bond: impl IntoIterator<Item = (S, usize)>,
    seed: u64,
) -> GradedTensor<S> {
    let site = spin_half().conserve(charge).unwrap();
    random_state(site.leg(), &Leg::new(bond, Direction::Out).unwrap(), seed).unwrap()
}

fn moved<S: Sector>(x: &GradedTensor<S>, step: f64) -> GradedTensor<S> {
    let noise = check::noise(x.re(), 11).scale(step);
    GradedTensor::new(x.spec().clone(), x.re().add(&noise), None).unwrap()
}

/// The gradient by the fixed point, by steps, as an operation, in forward mode, and by differences.
fn compare<S: Sector>(h: &SymmetricEnergy<S>, state: &GradedTensor<S>, operation: bool) {
    let found = h.gradient(state, None).unwrap();
    let along =
        |g: &t4a_diff::Eager| check::elements(&g.mul(&check::noise(g, 11))).iter().sum::<f64>();
    let own = along(found.gradient.re());
    // Differences of the fourth order.
    let half = |step: f64| {
        (h.value(&moved(state, step)).unwrap() - h.value(&moved(state, -step)).unwrap())
            / (2.0 * step)
    };
    let want = (4.0 * half(1e-3) - half(2e-3)) / 3.0;
    assert!((own - want).abs() < 1e-6 * want.abs().max(0.1), "{own}, differences {want}");
    // Steps from the fixed point: the derivative of the last of many is that of the fixed point.
    let variable = Recorded::variable(state.re().clone());
    let recorded = GradedTensor::new(state.spec().clone(), variable.clone(), None).unwrap();
    let unrolled = h.unrolled(&recorded, None, 30).unwrap();
    let g = gradients(&unrolled, &[&variable]).unwrap();
    assert!((along(&g[0]) - own).abs() < 1e-6 * own.abs().max(0.1), "{own}, {}", along(&g[0]));
    if !operation {
        return;
    }
    // As one operation: on the tape and in forward mode.
    let value = energy(h, &recorded).unwrap();
    assert!((check::elements(value.value())[0] - found.energy).abs() < 1e-12);
    let g = gradients(&value.mul(&value), &[&variable]).unwrap();
    assert!((along(&g[0]) - 2.0 * found.energy * own).abs() < 1e-9);
    let dual = Dual::new(state.re().clone(), check::noise(state.re(), 11));
    let dual = GradedTensor::new(state.spec().clone(), dual, None).unwrap();
    let tangent = check::elements(&energy(h, &dual).unwrap().into_tangent())[0];
    assert!((tangent - own).abs() < 1e-9, "{tangent}, {own}");
}

#[test]
fn gradient_by_the_fixed_point() {
    let options = CtmOptions::new().max_dim(6).tolerance(1e-12).steps(200);
    let h = heisenberg(|_| Trivial, options);
    compare(&h, &start(|_| Trivial, [(Trivial, 2)], 3), true);
}

#[test]
fn gradient_of_graded_states() {
    let options = CtmOptions::new().max_dim(6).tolerance(1e-12).steps(200);
    // The parity of up spins, and the magnetisation of the rotated spins up to multiples of four.
    let parity = |q: U1| Z2::new((i64::from(q.0) + 1) / 2);
    let h = heisenberg(parity, options);
    compare(&h, &start(parity, [(Z2::new(0), 1), (Z2::new(1), 1)], 1), false);
}

#[test]
fn fixed_steps_return_the_environment() {
    // Also one whose bond is in another basis than that of the iteration.
    let options = CtmOptions::new().max_dim(6).tolerance(1e-12).steps(200);
    let h = heisenberg(|_| Trivial, options);
    let state = start(|_| Trivial, [(Trivial, 2)], 3);
    let (found, _) = h.environment(&state, None).unwrap();
    let leg = found.bond().clone();
    let spec = Spec::new(vec![leg.dual(), leg], Trivial, 1).unwrap();
    let turn = GradedTensor::isometry(spec, DType::F64, false, &Generator::new(1)).unwrap();
    let corner = einsum("ab,ac,bd->cd", &[found.corner(), &turn, &turn]).unwrap();
    let edge = einsum("aub,ac,bd->cud", &[found.edge(), &turn, &turn]).unwrap();
    let turned = Symmetric::new(corner, edge.repartition(1).unwrap()).unwrap();
    let bulk = layers::double(&state).unwrap();
    let next = FixedStep::new(&bulk, &turned, &options).unwrap().apply(&bulk, &turned).unwrap();
    let error = next.edge().sub(turned.edge()).unwrap();
    let error = check::elements(&error.norm().unwrap())[0];
    assert!(error < 1e-7, "{error:e}");
}

#[test]
fn optimisation_lowers_the_energy() {
    // A state without entanglement: −½ per site, two bonds of −¼.
    let options = CtmOptions::new().max_dim(3).tolerance(1e-8).steps(60);
    let h = heisenberg(|_| Trivial, options);
    let one = start(|_| Trivial, [(Trivial, 1)], 1);
    let mut search = PepsSearch::new(&h, one, PepsOptions::new().steps(10)).unwrap();
    let last = search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    assert!((last.energy + 0.5).abs() < 1e-7, "{last:?}");
    // Two states per bond, a few steps, stopped and continued.
    let two = start(|_| Trivial, [(Trivial, 2)], 2);
    let mut search = PepsSearch::new(&h, two, PepsOptions::new().steps(4)).unwrap();
    let before = search.evaluated().energy;
    let stop = |report: &Report| match report.step {
        2 => Ok(ControlFlow::Break(())),
        _ => Ok(ControlFlow::Continue(())),
    };
    let middle = search.run(stop).unwrap();
    assert_eq!(middle.step, 2);
    let last = search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    assert!(last.step == 4 && last.energy < middle.energy && middle.energy < before);
}

#[test]
#[ignore = "minutes without optimisation"]
fn heisenberg_model_on_the_square_lattice() {
    // Two states per bond: −0.6602; Hasik, Poilblanc, Becca (2021).
    let options = CtmOptions::new().max_dim(24).tolerance(1e-9).steps(200);
    let h = heisenberg(|_| Trivial, options);
    let state = start(|_| Trivial, [(Trivial, 2)], 2);
    let mut search = PepsSearch::new(&h, state, PepsOptions::new().tolerance(1e-5)).unwrap();
    let last = search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    assert!((last.energy + 0.6602).abs() < 1e-4, "{last:?}");
}

#[test]
fn rejected_states() {
    let h = heisenberg(|_| Trivial, CtmOptions::new());
    let state = start(|_| Trivial, [(Trivial, 2)], 1);
    let e = h.value(&state.complexified()).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
    let bulk = layers::double(&state).unwrap();
    let e = h.gradient(&bulk, None).unwrap_err();
    assert!(matches!(e, NetworksError::Length { .. }), "{e}");
    let e = PepsSearch::new(&h, state, PepsOptions::new().steps(0)).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
}
