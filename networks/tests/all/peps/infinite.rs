//! Infinite lattices: partition functions of the Ising model, cells against single sites, gradings against dense tensors.

use std::ops::ControlFlow;

use t4a_diff::Array;
use t4a_diff::check::{array, elements};
use t4a_networks::NetworksError;
use t4a_networks::peps::{
    Cell, CellEnvironment, CellSearch, CtmOptions, Symmetric, SymmetricSearch,
};
use t4a_networks::tape::{Recorded, gradients};
use t4a_structured::{
    Bond, Direction, Forbidden, GradedTensor, Leg, Sector, Spec, Trivial, U1, Z2, einsum,
};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

/// The bonds of the Ising model in the basis of even and odd states: `½ Π √λ`, λ = 2 cosh K and 2 sinh K.
fn entry(k: [f64; 4], bits: usize) -> f64 {
    let root = |axis: usize| {
        let odd = bits >> axis & 1 == 1;
        (2.0 * if odd { k[axis].sinh() } else { k[axis].cosh() }).sqrt()
    };
    0.5 * (0..4).map(root).product::<f64>()
}

/// The bulk tensor of couplings by direction, and that with a spin if `spin`: entries of odd parity.
fn dense_ising(k: [f64; 4], spin: bool, directions: [Direction; 4]) -> GradedTensor<Trivial> {
    let legs = directions.map(|direction| Leg::new([(Trivial, 2)], direction).unwrap()).to_vec();
    let spec = Spec::new(legs, Trivial, 2).unwrap();
    let value = |bits: usize| match (bits.count_ones() % 2 == 1) == spin {
        true => entry(k, bits),
        false => 0.0,
    };
    let at = |i: usize| (0..4).map(|axis| (i >> (3 - axis) & 1) << axis).sum::<usize>();
    let dense = array(&[2, 2, 2, 2], |i| value(at(i)));
    GradedTensor::from_dense(&spec, &dense, None, Forbidden::Project).unwrap()
}

pub(super) fn even_ising(k: [f64; 4], directions: [Direction; 4]) -> GradedTensor<Z2> {
    let states = [(Z2::new(0), 1), (Z2::new(1), 1)];
    let legs = directions.map(|direction| Leg::new(states, direction).unwrap()).to_vec();
    let spec = Spec::new(legs, Z2::new(0), 2).unwrap();
    let entry = |bits: usize| {
        let state = |axis: usize| (Z2::new((bits >> axis & 1) as i64), 0);
        ((0..4).map(state).collect::<Vec<_>>(), entry(k, bits))
    };
    let all = (0..16usize).filter(|bits| bits.count_ones() % 2 == 0).map(entry);
    GradedTensor::from_elements(&spec, all, DType::F64, false).unwrap()
}

pub(super) const OUT: [Direction; 4] = [Direction::Out; 4];
pub(super) const FLOW: [Direction; 4] =
    [Direction::Out, Direction::Out, Direction::In, Direction::In];

fn symmetric<S: Sector>(bulk: GradedTensor<S>, options: CtmOptions) -> SymmetricSearch<S> {
    let mut search = SymmetricSearch::new(bulk, options).unwrap();
    search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    search
}

fn cells<S: Sector>(
    width: usize,
    bulk: Vec<GradedTensor<S>>,
    options: CtmOptions,
) -> CellSearch<S> {
    let cell = Cell::new(width, bulk).unwrap();
    let mut search = CellSearch::new(cell, options).unwrap();
    search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    search
}

fn partition<S: Sector>(search: &CellSearch<S>) -> f64 {
    elements(&search.environment().partition_per_cell(search.cell()).unwrap())[0]
}

/// `ln κ` of the Ising model by Onsager (1944), one integral done.
fn onsager(k: [f64; 2]) -> f64 {
    let n = 2000;
    let point = |i: usize| {
        let cos = ((i as f64 + 0.5) * 2.0 * std::f64::consts::PI / n as f64).cos();
        let a = (2.0 * k[0]).cosh() * (2.0 * k[1]).cosh() - (2.0 * k[0]).sinh() * cos;
        ((a + (a * a - (2.0 * k[1]).sinh().powi(2)).sqrt()) / 2.0).ln()
    };
    2f64.ln() + 0.5 * (0..n).map(point).sum::<f64>() / n as f64
}

#[test]
fn free_energy_of_the_ising_model() {
    let options = CtmOptions::new().max_dim(8).tolerance(1e-9);
    for k in [0.3, 0.5] {
        let exact = onsager([k; 2]);
        let found = symmetric(dense_ising([k; 4], false, OUT), options);
        let own = found.partition_per_site().unwrap().ln();
        assert!((own - exact).abs() < 1e-6, "K = {k}: {own}, {exact}");
        let report = found.last().unwrap();
        assert!(report.change < 1e-9 && report.bond_dim <= 8, "{report:?}");
        let graded = symmetric(even_ising([k; 4], OUT), options);
        let own = graded.partition_per_site().unwrap().ln();
        assert!((own - exact).abs() < 1e-6, "K = {k}, graded: {own}, {exact}");
        let cell = cells(1, vec![even_ising([k; 4], FLOW)], options);
        let own = partition(&cell).ln();
        assert!((own - exact).abs() < 1e-6, "K = {k}, moves: {own}, {exact}");
    }
    let critical = 0.5 * (1.0 + 2f64.sqrt()).ln();
    let options = CtmOptions::new().max_dim(12).tolerance(1e-6).steps(80);
    let own = symmetric(even_ising([critical; 4], OUT), options).partition_per_site().unwrap().ln();
    assert!((own - 0.929695398341610).abs() < 3e-5, "{own}");
}

#[test]
fn magnetisation_of_the_ising_model() {
    // (1 − sinh⁻⁴ 2K)^⅛; Yang (1952).
    let (k, options) = (0.5f64, CtmOptions::new().max_dim(8).tolerance(1e-10));
    let exact = (1.0 - (2.0 * k).sinh().powi(-4)).powf(0.125);
    let found = symmetric(dense_ising([k; 4], false, OUT), options);
    let spin = dense_ising([k; 4], true, OUT);
    let own = elements(&found.environment().ratio(&spin, found.bulk()).unwrap())[0].abs();
    assert!((own - exact).abs() < 1e-6, "{own}, {exact}");
    let found = cells(1, vec![dense_ising([k; 4], false, FLOW)], options);
    let spin = dense_ising([k; 4], true, FLOW);
    let own = elements(&found.environment().ratio(found.cell(), 0, &spin).unwrap())[0].abs();
    assert!((own - exact).abs() < 1e-6, "{own}, {exact}");
}

#[test]
fn cells_of_different_tensors() {
    // Anisotropic couplings, and bonds in bases that differ by site: κ of the cell is that of all its sites.
    let k = [0.35, 0.25];
    let bulk = dense_ising([k[0], k[1], k[0], k[1]], false, FLOW);
    let exact = onsager(k);
    let options = CtmOptions::new().max_dim(6).tolerance(1e-8);
    let gauge = |seed: u64, leg: &Leg<Trivial>| {
        let spec = Spec::new(vec![leg.clone(), leg.dual()], Trivial, 1).unwrap();
        let noise = GradedTensor::random(spec, DType::F64, false, &Generator::new(seed)).unwrap();
        let one = GradedTensor::identity(std::slice::from_ref(leg), DType::F64).unwrap();
        one.add(&noise.scale(0.2)).unwrap()
    };
    // Three sites in a period tell left from right.
    for (width, height) in [(2, 2), (3, 1), (1, 3)] {
        let mut all = Vec::new();
        for site in 0..width * height {
            let (x, y) = (site % width, site / width);
            let horizontal = |site: usize| gauge(site as u64, &bulk.spec().legs()[0]);
            let vertical = |site: usize| gauge(site as u64 + 10, &bulk.spec().legs()[1]);
            let (right, down) = (horizontal(site), vertical(site));
            let left = horizontal(y * width + (x + width - 1) % width).inverse(1).unwrap();
            let up = vertical((y + height - 1) % height * width + x).inverse(1).unwrap();
            // A bond has the matrix on the site on its left or above, the inverse on the other one.
            let own = einsum("al,bu,lurd,rx,dy->abxy", &[&left, &up, &bulk, &right, &down]);
            all.push(own.unwrap());
        }
        let sites = all.len() as f64;
        let own = partition(&cells(width, all, options)).ln() / sites;
        assert!((own - exact).abs() < 1e-7, "{width} × {height}: {own}, {exact}");
    }
}

/// A random state of two tensors with conserved magnetisation, on a checkerboard.
pub(super) fn checkerboard() -> [GradedTensor<U1>; 2] {
    let odd = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out).unwrap();
    let even = Leg::new([(U1(0), 1), (U1(2), 1)], Direction::Out).unwrap();
    let site = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out).unwrap();
    let tensor = |left: &Leg<U1>, right: &Leg<U1>, up: &Leg<U1>, down: &Leg<U1>, seed| {
        let legs = vec![site.clone(), left.clone(), up.clone(), right.dual(), down.dual()];
        let spec = Spec::new(legs, U1(0), 1).unwrap();
        let noise = GradedTensor::random(spec, DType::F64, false, &Generator::new(seed)).unwrap();
        // Near a product, so that correlations are short.
        let ones =
            GradedTensor::new(noise.spec().clone(), noise.re().full_like(1.0), None).unwrap();
        let mut x = ones.add(&noise.scale(0.3)).unwrap();
        for axis in [1, 2] {
            let weights = weights_of(x.spec().legs()[axis].clone());
            x = x.scale_bond(axis, &weights).unwrap();
        }
        x
    };
    [tensor(&odd, &even, &even, &even, 1), tensor(&even, &odd, &even, &even, 2)]
}

/// The second state of a bond counts little.
fn weights_of(leg: Leg<U1>) -> Bond<U1, t4a_diff::Eager> {
    Bond::new(leg, array(&[2], |i| if i == 0 { 1.0 } else { 0.3 })).unwrap()
}

trait FullLike {
    fn full_like(&self, c: f64) -> Self;
}

impl FullLike for t4a_diff::Eager {
    fn full_like(&self, c: f64) -> Self {
        self.full(&self.shape(), c)
    }
}

#[test]
fn graded_cells_are_dense_ones() {
    let options = CtmOptions::new().max_dim(8).tolerance(1e-8);
    let [a, b] = checkerboard();
    let state = vec![a.clone(), b.clone(), b, a];
    let dense: Vec<GradedTensor<Trivial>> =
        state.iter().map(|x| x.drop_charge().unwrap()).collect();
    let mut graded = CellSearch::of_state(2, &state, options).unwrap();
    let report = graded.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    assert!(report.change < 1e-8, "{report:?}");
    let mut plain = CellSearch::of_state(2, &dense, options).unwrap();
    plain.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    for (site, direction) in [(0, 2), (0, 3), (1, 2)] {
        let x = graded.environment().pair_density(graded.cell(), &state, site, direction).unwrap();
        let y = plain.environment().pair_density(plain.cell(), &dense, site, direction).unwrap();
        let (x, y) = (elements(&x.to_dense().unwrap().0), elements(&y.to_dense().unwrap().0));
        let error = x.iter().zip(&y).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 1e-6, "{error:e}");
    }
    // Density matrices of pairs reduce to those of sites.
    let pair = graded.environment().pair_density(graded.cell(), &state, 1, 3).unwrap();
    let site = graded.environment().site_density(graded.cell(), &state, 1).unwrap();
    let reduced = einsum("pqss->pq", &[&pair]).unwrap().repartition(site.spec().rows()).unwrap();
    let error = elements(&reduced.sub(&site).unwrap().norm().unwrap())[0];
    assert!(error < 1e-6, "{error:e}");
}

#[test]
fn pairs_reduce_to_both_sites() {
    // Columns differ, rows do not, or the reverse: right and below are different neighbours.
    let mut state: Vec<_> = checkerboard().iter().map(|x| x.drop_charge().unwrap()).collect();
    let spec = state[0].spec().clone();
    let noise = GradedTensor::random(spec, DType::F64, false, &Generator::new(7)).unwrap();
    state.push(state[0].add(&noise.scale(0.2)).unwrap());
    let options = CtmOptions::new().max_dim(6).tolerance(1e-8);
    for (width, sites) in [(2, 2), (3, 3), (1, 3)] {
        let state = &state[..sites];
        let mut search = CellSearch::of_state(width, state, options).unwrap();
        search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
        let (environment, cell) = (search.environment(), search.cell());
        for (site, direction) in (0..sites).flat_map(|site| [(site, 2), (site, 3)]) {
            let pair = environment.pair_density(cell, state, site, direction).unwrap();
            let next = match (direction == 2, width) {
                (true, 1) | (false, 2..) => site,
                _ => (site + 1) % sites,
            };
            for (sum, own) in [("pqss->pq", site), ("ppst->st", next)] {
                let want = environment.site_density(cell, state, own).unwrap();
                let found = einsum(sum, &[&pair]).unwrap().repartition(want.spec().rows()).unwrap();
                let error = elements(&found.sub(&want).unwrap().norm().unwrap())[0];
                assert!(error < 1e-4, "{width} {site} {direction} {sum}: {error:e}");
            }
        }
    }
}

#[test]
fn complex_states_are_real_ones_in_another_basis() {
    // Complex unitaries on the site and on all bonds: density matrices change by that of the site.
    let state: Vec<_> = checkerboard().iter().map(|x| x.drop_charge().unwrap()).collect();
    let unitary = |leg: &Leg<Trivial>, seed: u64| {
        let spec = Spec::new(vec![leg.clone(), leg.dual()], Trivial, 1).unwrap();
        GradedTensor::isometry(spec, DType::F64, true, &Generator::new(seed)).unwrap()
    };
    let bond = state[0].spec().legs()[1].clone();
    let (turn, turns) =
        (unitary(&state[0].spec().legs()[0], 9), [1, 2, 3, 4].map(|k| unitary(&bond, k)));
    let back = turns.clone().map(|turn| turn.dagger().unwrap());
    // Right bonds of both tensors, then those below.
    let all = [[0, 1], [1, 0]].map(|[own, before]| {
        let all = [&turn, &state[own], &back[before], &back[2 + own], &turns[own], &turns[2 + own]];
        einsum("ts,slurd,al,bu,rx,dy->tabxy", &all).unwrap().repartition(1).unwrap()
    });
    let options = CtmOptions::new().max_dim(6).tolerance(1e-8);
    let run = |state: &[GradedTensor<Trivial>]| {
        let mut search = CellSearch::of_state(2, state, options).unwrap();
        search.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
        search
    };
    let (real, complex) = (run(&state), run(&all));
    let conjugate = turn.conj().unwrap();
    let close = |found: &GradedTensor<Trivial>, want: &GradedTensor<Trivial>| {
        let want = want.repartition(found.spec().rows()).unwrap();
        let error = elements(&found.sub(&want).unwrap().norm().unwrap())[0];
        assert!(error < 1e-6, "{error:e}");
    };
    for (site, direction) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        let own = real.environment().pair_density(real.cell(), &state, site, direction).unwrap();
        let all_turns = [&own, &turn, &conjugate, &turn, &conjugate];
        let want = einsum("abcd,pa,qb,sc,td->pqst", &all_turns).unwrap();
        close(
            &complex.environment().pair_density(complex.cell(), &all, site, direction).unwrap(),
            &want,
        );
    }
    let own = real.environment().site_density(real.cell(), &state, 1).unwrap();
    let want = einsum("ab,pa,qb->pq", &[&own, &turn, &conjugate]).unwrap();
    close(&complex.environment().site_density(complex.cell(), &all, 1).unwrap(), &want);
}

#[test]
fn environments_are_stored() {
    let options = CtmOptions::new().max_dim(6).tolerance(1e-9);
    let k = [0.3, 0.4, 0.3, 0.4];
    let search = cells(1, vec![even_ising(k, FLOW)], options);
    let stored = serde_json::to_string(search.environment()).unwrap();
    let read: CellEnvironment<Z2> = serde_json::from_str(&stored).unwrap();
    let mut next = CellSearch::from_environment(search.cell().clone(), read, options).unwrap();
    assert!((partition(&next) / partition(&search) - 1.0).abs() < 1e-14);
    assert!(next.step().unwrap().change < 1e-8);
    // One corner of two sites.
    let mut wrong: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let first = wrong[0][0][0].clone();
    wrong[0][0].as_array_mut().unwrap().push(first);
    let error = serde_json::from_value::<CellEnvironment<Z2>>(wrong).unwrap_err();
    assert!(error.to_string().contains("sites of an environment"), "{error}");

    let search = symmetric(even_ising([0.4; 4], OUT), options);
    let stored = serde_json::to_string(search.environment()).unwrap();
    let read: Symmetric<Z2> = serde_json::from_str(&stored).unwrap();
    let mut next = SymmetricSearch::from_environment(search.bulk().clone(), read, options).unwrap();
    assert!(next.step().unwrap().change < 1e-8);
    // The edge in the place of the corner.
    let edge = serde_json::to_string(search.environment().edge()).unwrap();
    let error = serde_json::from_str::<Symmetric<Z2>>(&format!("[{edge},{edge}]")).unwrap_err();
    assert!(error.to_string().contains("legs of a tensor"), "{error}");
}

#[test]
fn symmetric_states_are_cells() {
    // The neighbour of a conjugate is the state itself: a checkerboard of both has the same density matrices.
    let site = Leg::new([(Trivial, 2)], Direction::Out).unwrap();
    let bond = Leg::new([(Trivial, 2)], Direction::Out).unwrap();
    let noise = t4a_networks::peps::random_state(&site, &bond, 4).unwrap();
    // Near a product, so that correlations are short.
    let one = [(vec![(Trivial, 0); 5], 1.0)];
    let one = GradedTensor::from_elements(noise.spec(), one, DType::F64, false).unwrap();
    let state = one.add(&noise.scale(0.5)).unwrap();
    let bulk = t4a_networks::peps::layers::double(&state).unwrap();
    let options = CtmOptions::new().max_dim(6).tolerance(1e-8).steps(60);
    let found = symmetric(bulk, options);
    let own = found.environment().pair_density(&state).unwrap();
    // In a cell legs flow: the entries stay, directions of dense legs change.
    let legs: Vec<Leg<Trivial>> = [0, 1, 2, 3, 4]
        .map(|k| {
            if k > 2 {
                bond.dual()
            } else if k == 0 {
                site.clone()
            } else {
                bond.clone()
            }
        })
        .to_vec();
    let spec = Spec::new(legs, Trivial, 1).unwrap();
    let flowing = GradedTensor::new(spec, state.re().clone(), None).unwrap();
    let state = vec![flowing];
    let mut cell = CellSearch::of_state(1, &state, options).unwrap();
    cell.run(|_| Ok(ControlFlow::Continue(()))).unwrap();
    for direction in [2, 3] {
        let other = cell.environment().pair_density(cell.cell(), &state, 0, direction).unwrap();
        let (x, y) = (elements(&own.to_dense().unwrap().0), elements(&other.to_dense().unwrap().0));
        let error = x.iter().zip(&y).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 1e-5, "{error:e}");
    }
}

#[test]
fn moves_are_differentiable() {
    // d ln κ / dK through eight moves, by the tape and by differences: the energy of the Ising model.
    let bulk = |k: f64| dense_ising([k, k + 0.1, k, k + 0.1], false, FLOW);
    let options = CtmOptions::new().max_dim(4).steps(30);
    let start = cells(1, vec![bulk(0.3)], options);
    fn ln<A: Array>(
        bulk: GradedTensor<Trivial, A>,
        start: &CellSearch<Trivial>,
        options: &CtmOptions,
    ) -> A {
        let lift = |all: &Vec<GradedTensor<Trivial>>| {
            let one = |x: &GradedTensor<Trivial>| {
                let re = bulk.re().constant(x.re().tensor().unwrap().clone());
                GradedTensor::new(x.spec().clone(), re, None).unwrap()
            };
            all.iter().map(one).collect::<Vec<_>>()
        };
        let environment = start.environment();
        let corners = std::array::from_fn(|d| lift(&environment.corners()[d]));
        let edges = std::array::from_fn(|d| lift(&environment.edges()[d]));
        let mut environment = CellEnvironment::new(corners, edges).unwrap();
        let cell = Cell::new(1, vec![bulk]).unwrap();
        for d in 0..8 {
            environment.absorb(&cell, d, options).unwrap();
        }
        environment.partition_per_cell(&cell).unwrap().ln()
    }
    let variable = Recorded::variable(bulk(0.3).re().clone());
    let recorded = GradedTensor::new(bulk(0.3).spec().clone(), variable.clone(), None).unwrap();
    let found = gradients(&ln(recorded, &start, &options), &[&variable]).unwrap();
    let at = |h: f64| elements(&ln(bulk(0.3 + h), &start, &options))[0];
    let h = f64::EPSILON.cbrt();
    let slope = bulk(0.3 + h).sub(&bulk(0.3 - h)).unwrap().scale(0.5 / h);
    let own = elements(&found[0].mul(slope.re())).iter().sum::<f64>();
    let want = (at(h) - at(-h)) / (2.0 * h);
    assert!((own - want).abs() < 1e-6 * want.abs(), "{own}, {want}");
}

#[test]
fn rejected_networks() {
    let bulk = dense_ising([0.3, 0.3, 0.4, 0.3], false, OUT);
    let e = SymmetricSearch::new(bulk, CtmOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
    let bulk = dense_ising([0.3; 4], false, FLOW);
    let e = SymmetricSearch::new(bulk.clone(), CtmOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
    let e = Cell::new(1, vec![dense_ising([0.3; 4], false, OUT)]).unwrap_err();
    assert!(matches!(e, NetworksError::Chain { .. }), "{e}");
    let e = Cell::new(2, vec![bulk.clone(); 3]).unwrap_err();
    assert!(matches!(e, NetworksError::Length { .. }), "{e}");
    let cell = Cell::new(1, vec![bulk.clone()]).unwrap();
    let e = CellSearch::new(cell.clone(), CtmOptions::new().max_dim(0)).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
    let search = CellSearch::new(cell, CtmOptions::new()).unwrap();
    let e = search.environment().ratio(search.cell(), 1, &bulk).unwrap_err();
    assert!(matches!(e, NetworksError::SiteOutOfRange { .. }), "{e}");
    let other = Cell::new(2, vec![bulk.clone(); 2]).unwrap();
    let environment = search.environment().clone();
    let e = CellSearch::from_environment(other, environment, CtmOptions::new()).unwrap_err();
    assert!(matches!(e, NetworksError::Length { .. }), "{e}");
}
