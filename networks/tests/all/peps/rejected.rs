//! Arguments that are rejected before any work, and ends of searches.

use std::ops::ControlFlow;

use t4a_diff::check;
use t4a_networks::NetworksError;
use t4a_networks::peps::{
    Cell, CellEnergy, CellEnvironment, CellSearch, CellStep, CtmOptions, CtmReport, FixedStep,
    Grid, PepsEnergy, PepsOptions, PepsSearch, Symmetric, SymmetricEnergy, SymmetricSearch,
    cell_energy, layers, random_state,
};
use t4a_networks::sites::spin_half;
use t4a_networks::{Method, Report};
use t4a_structured::{Direction, GradedTensor, Leg, Spec, Trivial, U1, Z2};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

use super::infinite::{FLOW, OUT, checkerboard, even_ising};

#[track_caller]
fn argument<T: std::fmt::Debug>(found: Result<T, NetworksError>) {
    let e = found.unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
}

#[track_caller]
fn length<T: std::fmt::Debug>(found: Result<T, NetworksError>) {
    let e = found.unwrap_err();
    assert!(matches!(e, NetworksError::Length { .. }), "{e}");
}

fn wrong_options() -> [CtmOptions; 5] {
    let good = CtmOptions::new();
    [
        good.max_dim(0),
        good.steps(0),
        good.tolerance(f64::NAN),
        good.cutoff(-1.0),
        good.cutoff(f64::INFINITY),
    ]
}

#[test]
fn options_out_of_range() {
    let terms = [(1.0, "Sz", "Sz")];
    let symmetric = layers::pair_operator(&spin_half(), terms).unwrap();
    let pair = layers::bond_operator(&spin_half(), terms).unwrap();
    let bulk = even_ising([0.3; 4], OUT);
    let search = SymmetricSearch::new(bulk.clone(), CtmOptions::new()).unwrap();
    let cell = Cell::new(1, vec![even_ising([0.3; 4], FLOW)]).unwrap();
    let around = CellSearch::new(cell.clone(), CtmOptions::new()).unwrap().environment().clone();
    for options in wrong_options() {
        argument(SymmetricEnergy::new(symmetric.clone(), options));
        argument(CellEnergy::new(1, pair.clone(), options));
        argument(SymmetricSearch::new(bulk.clone(), options));
        argument(CellSearch::new(cell.clone(), options));
        argument(FixedStep::new(&bulk, search.environment(), &options));
        argument(CellStep::new(&cell, &around, &options));
        argument(around.clone().absorb(&cell, 0, &options));
    }
    // Operators are real.
    argument(SymmetricEnergy::new(symmetric.complexified(), CtmOptions::new()));
    argument(CellEnergy::new(1, pair.complexified(), CtmOptions::new()));
}

#[test]
fn environments_of_other_tensors() {
    let leg = |n: usize| Leg::new([(Trivial, n)], Direction::Out).unwrap();
    let tensor = |sizes: &[usize]| {
        let spec = Spec::new(sizes.iter().map(|&n| leg(n)).collect(), Trivial, 1).unwrap();
        GradedTensor::random(spec, DType::F64, false, &Generator::new(1)).unwrap()
    };
    assert!(Symmetric::new(tensor(&[2, 2]), tensor(&[2, 3, 2])).is_ok());
    for (corner, edge) in [([2, 3], [2, 3, 2]), ([2, 2], [3, 3, 2]), ([2, 2], [2, 3, 3])] {
        argument(Symmetric::new(tensor(&corner), tensor(&edge)));
    }
    length(Symmetric::new(tensor(&[2, 2, 2]), tensor(&[2, 3, 2])));
    // A bulk tensor of another bond than the edge, and one without the symmetries of the square.
    let environment = Symmetric::new(tensor(&[2, 2]), tensor(&[2, 3, 2])).unwrap();
    let bulk = layers::symmetrised(&tensor(&[2; 4])).unwrap();
    argument(SymmetricSearch::from_environment(bulk, environment.clone(), CtmOptions::new()));
    argument(environment.step(&tensor(&[3; 4]), &CtmOptions::new()));
}

#[test]
fn environments_of_other_cells() {
    let bulk = || even_ising([0.3; 4], FLOW);
    let one = Cell::new(1, vec![bulk()]).unwrap();
    let two = Cell::new(2, vec![bulk(), bulk()]).unwrap();
    let options = CtmOptions::new();
    let around = CellSearch::new(one.clone(), options).unwrap().environment().clone();
    length(around.partition_per_cell(&two));
    length(around.ratio(&two, 0, &bulk()));
    length(around.clone().absorb(&two, 0, &options));
    length(CellStep::new(&two, &around, &options));
    let (corners, edges) = (around.corners().clone(), around.edges().clone());
    let mut longer = edges.clone();
    longer[3].push(longer[3][0].clone());
    length(CellEnvironment::<Z2>::new(corners.clone(), longer));
    length(CellEnvironment::<Z2>::new(corners.clone(), corners.clone()));
    length(CellEnvironment::<Z2>::new(edges.clone(), edges.clone()));
    // A step of another number of sites.
    let double = |all: &[Vec<GradedTensor<Z2>>; 4]| all.clone().map(|x| [x.clone(), x].concat());
    let wide = CellEnvironment::new(double(&corners), double(&edges)).unwrap();
    let step = CellStep::new(&one, &around, &options).unwrap();
    length(step.apply(&two, &wide));
    length(step.apply(&two, &around));
    // Densities of states of another number of tensors, and in another direction.
    let state = checkerboard();
    let found = CellSearch::of_state(2, &state, options).unwrap();
    let (cell, around) = (found.cell(), found.environment());
    length(around.site_density(cell, &state[..1], 0));
    length(around.pair_density(cell, &state[..1], 0, 2));
    for direction in [1, 4] {
        argument(around.pair_density(cell, &state, 0, direction));
    }
}

#[test]
fn borders_of_grids() {
    let single = |sizes: [usize; 4]| {
        let legs = sizes.iter().zip(FLOW);
        let legs = legs.map(|(&n, way)| Leg::new([(Trivial, n)], way).unwrap()).collect();
        let spec = Spec::new(legs, Trivial, 2).unwrap();
        GradedTensor::random(spec, DType::F64, false, &Generator::new(1)).unwrap()
    };
    assert!(Grid::new(vec![vec![single([1; 4])]]).is_ok());
    for k in 0..4 {
        let mut sizes = [1; 4];
        sizes[k] = 2;
        let e = Grid::new(vec![vec![single(sizes)]]).unwrap_err();
        assert!(matches!(e, NetworksError::Chain { site: 0, .. }), "{e}");
    }
}

#[test]
fn truncations_of_grids_are_relative() {
    let leg = |border: bool, way| Leg::new([(Trivial, if border { 1 } else { 3 })], way).unwrap();
    let tensor = |x: usize, y: usize, size: f64| {
        let [a, b, c, d] = FLOW;
        let legs = vec![leg(x == 0, a), leg(y == 0, b), leg(x == 2, c), leg(y == 2, d)];
        let spec = Spec::new(legs, Trivial, 2).unwrap();
        let generator = Generator::new((3 * y + x) as u64);
        GradedTensor::random(spec, DType::F64, false, &generator).unwrap().scale(size)
    };
    let grid = |size: f64| {
        let row = |y: usize| (0..3).map(|x| tensor(x, y, size)).collect();
        Grid::new((0..3).map(row).collect()).unwrap()
    };
    let of = |size: f64| grid(size).contract(2, 0.0, Method::Exact).unwrap();
    let (one, ten) = (of(1.0), of(10.0));
    assert!(one.truncation > 1e-4 && one.truncation < 1.0, "{}", one.truncation);
    assert!((ten.truncation / one.truncation - 1.0).abs() < 1e-9);
    let ln = |x: t4a_diff::Eager| check::elements(&x)[0];
    assert!((ln(ten.ln()) - ln(one.ln()) - 9.0 * 10f64.ln()).abs() < 1e-9);
    // A grid of zeros.
    let none = of(0.0);
    assert_eq!(check::elements(&none.value.0), [0.0]);
    assert!(ln(none.ln_scale.clone()).is_finite() && none.truncation == 0.0);
}

#[test]
fn optimisation_ends_at_the_tolerance() {
    let site = spin_half().conserve(|_| Trivial).unwrap();
    let terms = [(-0.5, "S+", "S+"), (-0.5, "S-", "S-"), (-1.0, "Sz", "Sz")];
    let options = CtmOptions::new().max_dim(3).tolerance(1e-8).steps(60);
    let h = SymmetricEnergy::new(layers::pair_operator(&site, terms).unwrap(), options).unwrap();
    let state = |n| {
        let bond = Leg::new([(Trivial, n)], Direction::Out).unwrap();
        random_state(site.leg(), &bond, 1).unwrap()
    };
    argument(PepsSearch::new(&h, state(1), PepsOptions::new().memory(0)));
    argument(PepsSearch::new(&h, state(1), PepsOptions::new().tolerance(f64::NAN)));
    argument(PepsSearch::new(&h, state(1), PepsOptions::new().tolerance(-1.0)));
    let go = |_: &Report| Ok(ControlFlow::Continue(()));
    let mut search = PepsSearch::new(&h, state(2), PepsOptions::new().tolerance(1e3)).unwrap();
    let last = search.run(go).unwrap();
    assert_eq!(last.step, 1);
    let found = search.evaluated();
    assert_eq!((last.bond_dim, last.truncation), (found.report.bond_dim, found.report.truncation));
    assert!(last.bond_dim == found.environment.bond().dim() && last.truncation > 0.0);
    // Without entanglement the minimum is exact: the search ends there though no tolerance is given.
    let options = PepsOptions::new().tolerance(0.0).steps(200);
    let mut search = PepsSearch::new(&h, state(1), options).unwrap();
    let last = search.run(go).unwrap();
    assert!(last.step < 200 && (last.energy + 0.5).abs() < 1e-9, "{last:?}");
}

/// An energy that can be computed for the start only.
#[derive(Clone, Debug)]
struct OfTheStart(SymmetricEnergy<Trivial>);

impl PepsEnergy for OfTheStart {
    type Sector = Trivial;
    type State = GradedTensor<Trivial>;
    type Evaluated = <SymmetricEnergy<Trivial> as PepsEnergy>::Evaluated;

    fn evaluate(
        &self,
        state: &Self::State,
        similar: Option<&Self::Evaluated>,
    ) -> Result<Self::Evaluated, NetworksError> {
        let (op, name, required) = ("a test", "the state", "that of the start");
        match similar {
            None => self.0.evaluate(state, None),
            Some(_) => Err(NetworksError::Argument { op, name, given: "another".into(), required }),
        }
    }
    fn energy(&self, state: &Self::State) -> Result<f64, NetworksError> {
        self.0.energy(state)
    }
    fn tensors(state: &Self::State) -> &[GradedTensor<Trivial>] {
        SymmetricEnergy::<Trivial>::tensors(state)
    }
    fn state(tensors: Vec<GradedTensor<Trivial>>) -> Result<Self::State, NetworksError> {
        SymmetricEnergy::<Trivial>::state(tensors)
    }
    fn parts(evaluated: &Self::Evaluated) -> (f64, &[GradedTensor<Trivial>], &CtmReport) {
        SymmetricEnergy::<Trivial>::parts(evaluated)
    }
}

#[test]
fn steps_whose_energies_fail() {
    let site = spin_half().conserve(|_| Trivial).unwrap();
    let terms = [(1.0, "Sz", "Sz")];
    let options = CtmOptions::new().max_dim(3).tolerance(1e-8);
    let h = SymmetricEnergy::new(layers::pair_operator(&site, terms).unwrap(), options).unwrap();
    let bond = Leg::new([(Trivial, 2)], Direction::Out).unwrap();
    let start = random_state(site.leg(), &bond, 1).unwrap();
    let mut search = PepsSearch::new(&OfTheStart(h), start.clone(), PepsOptions::new()).unwrap();
    let go = |_: &Report| Ok(ControlFlow::Continue(()));
    argument(search.step());
    argument(search.run(go));
    assert_eq!(check::elements(&search.state().sub(&start).unwrap().norm().unwrap()), [0.0]);
}

#[test]
fn bulk_tensors_without_an_environment() {
    // Zeros and NaN: the environment before the step stays.
    for factor in [0.0, f64::NAN] {
        let bulk = even_ising([0.3; 4], FLOW).scale(factor);
        let mut search =
            CellSearch::new(Cell::new(1, vec![bulk]).unwrap(), CtmOptions::new()).unwrap();
        let corner = check::elements(search.environment().corners()[0][0].re());
        assert!(search.step().is_err() && search.last().is_none());
        assert_eq!(check::elements(search.environment().corners()[0][0].re()), corner);
    }
    let zero = even_ising([0.3; 4], OUT).scale(0.0);
    let mut search = SymmetricSearch::new(zero, CtmOptions::new()).unwrap();
    search.step().unwrap_err();
    assert!(search.last().is_none());
    argument(SymmetricSearch::new(even_ising([0.3; 4], OUT).scale(f64::NAN), CtmOptions::new()));
}

#[test]
fn environments_far_from_a_fixed_point() {
    let terms = [(0.5, "S+", "S-"), (0.5, "S-", "S+"), (1.0, "Sz", "Sz")];
    let pair = layers::bond_operator(&spin_half(), terms).unwrap();
    let [a, b] = checkerboard();
    let state = [a.clone(), b.clone(), b, a];
    let h = CellEnergy::new(2, pair, CtmOptions::new().max_dim(6).steps(1)).unwrap();
    let e = h.gradient(&state, None).unwrap_err();
    assert!(matches!(e, NetworksError::Gradient { .. }), "{e}");
    // A step to bonds of other dimensions.
    let cell = Cell::of_state(2, &state).unwrap();
    let search = CellSearch::of_state(2, &state, CtmOptions::new()).unwrap();
    let options = CtmOptions::new().max_dim(6);
    let step = CellStep::new(&cell, search.environment(), &options).unwrap();
    assert!(step.deviation() >= 1.0, "{}", step.deviation());
}

#[test]
fn nearly_symmetric_tensors() {
    let leg = Leg::new([(Trivial, 2)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg; 4], Trivial, 2).unwrap();
    let noise = GradedTensor::random(spec, DType::F64, false, &Generator::new(1)).unwrap();
    let bulk = layers::symmetrised(&noise).unwrap();
    let off =
        |by: f64| SymmetricSearch::new(bulk.add(&noise.scale(by)).unwrap(), CtmOptions::new());
    argument(off(1e-5));
    assert!(off(1e-12).is_ok());
}

#[test]
fn cells_whose_bonds_do_not_fit() {
    let single = |sizes: [usize; 4]| {
        let legs = sizes.iter().zip(FLOW);
        let legs = legs.map(|(&n, way)| Leg::new([(Trivial, n)], way).unwrap()).collect();
        let spec = Spec::new(legs, Trivial, 2).unwrap();
        GradedTensor::random(spec, DType::F64, false, &Generator::new(1)).unwrap()
    };
    assert!(Cell::new(1, vec![single([2, 3, 2, 3])]).is_ok());
    // To the right and below, within the cell and from its last site to its first one.
    let [wide, high] = [single([2, 2, 3, 2]), single([2, 2, 2, 3])];
    let fits = single([2; 4]);
    for (width, cell) in [
        (1, vec![wide.clone()]),
        (1, vec![high.clone()]),
        (3, vec![fits.clone(), fits.clone(), wide]),
        (1, vec![fits.clone(), fits, high]),
    ] {
        let last = cell.len() - 1;
        let e = Cell::new(width, cell).unwrap_err();
        assert!(matches!(e, NetworksError::Chain { site, .. } if site == last), "{e}");
    }
}

/// Tensors `[site, left, up, right, down]` of two states per bond, of a checkerboard of up and down spins.
fn on_a_checkerboard() -> Vec<GradedTensor<U1>> {
    let [a, b] = checkerboard();
    vec![a.clone(), b.clone(), b, a]
}

#[test]
fn states_whose_bonds_do_not_fit() {
    let terms = [(0.5, "S+", "S-"), (0.5, "S-", "S+"), (1.0, "Sz", "Sz")];
    let pair = layers::bond_operator(&spin_half(), terms).unwrap();
    let options = CtmOptions::new().max_dim(4).tolerance(1e-6);
    let h = CellEnergy::new(2, pair, options).unwrap();
    let state = on_a_checkerboard();
    let found = h.gradient(&state, None).unwrap();
    // The charges of one bond shifted: both layers together have the charges of before.
    let shifted = |site: usize, axis: usize| {
        let (mut state, x) = (state.clone(), &state[site]);
        let mut legs = x.spec().legs().to_vec();
        let sectors = legs[axis].sectors().iter().map(|&(q, n)| (U1(q.0 + 2), n));
        legs[axis] = Leg::new(sectors.collect::<Vec<_>>(), legs[axis].direction()).unwrap();
        let by = if legs[axis].direction() == Direction::Out { 2 } else { -2 };
        let spec = Spec::new(legs, U1(x.spec().flux().0 + by), 1).unwrap();
        state[site] = GradedTensor::new(spec, x.re().clone(), None).unwrap();
        state
    };
    // The first tensor in the order of rows whose leg on the right or below does not fit.
    for (site, axis, first, message) in [
        (0, 3, 0, "the leg right is"),
        (3, 4, 3, "the leg down is"),
        (1, 1, 0, "the leg left of tensor 1 is"),
        (2, 2, 0, "the leg up of tensor 2 is"),
    ] {
        let state = shifted(site, axis);
        let doubled: Vec<_> = state.iter().map(|x| layers::double(x).unwrap()).collect();
        assert!(Cell::new(2, doubled).is_ok());
        let is_rejected_by = |op: &str, found: Result<(), NetworksError>| {
            let e = found.unwrap_err();
            let text = e.to_string();
            assert!(text.starts_with(op) && text.contains(message), "{text}");
            assert!(matches!(e, NetworksError::Chain { site, .. } if site == first), "{text}");
        };
        is_rejected_by("CTMRG", Cell::of_state(2, &state).map(drop));
        is_rejected_by("CTMRG", CellSearch::of_state(2, &state, options).map(drop));
        // Before the tensors are normalised.
        let is_rejected = |found| is_rejected_by("energy of a cell", found);
        is_rejected(h.environment(&state, None).map(drop));
        is_rejected(h.value(&state).map(drop));
        is_rejected(h.gradient(&state, None).map(drop));
        is_rejected(h.gradient(&state, Some(&found.environment)).map(drop));
        is_rejected(h.in_environment(&state, &found.environment).map(drop));
        is_rejected(cell_energy(&h, &state).map(drop));
        is_rejected(PepsSearch::new(&h, state.clone(), PepsOptions::new()).map(drop));
    }
    length(Cell::of_state(2, &state[..3]));
    length(Cell::of_state(2, found.environment.corners()[0].as_slice()));
}

#[test]
fn environments_of_cells_with_other_bonds() {
    let terms = [(0.5, "S+", "S-"), (0.5, "S-", "S+"), (1.0, "Sz", "Sz")];
    let pair = layers::bond_operator(&spin_half(), terms).unwrap();
    let options = CtmOptions::new().max_dim(4).tolerance(1e-8);
    let h = CellEnergy::new(2, pair, options).unwrap();
    let state = on_a_checkerboard();
    let (around, _) = h.environment(&state, None).unwrap();
    let single = |x: &GradedTensor<U1>| {
        let legs = x.spec().legs().iter().enumerate().map(|(k, leg)| {
            let first = leg.sectors()[0].0;
            if k == 0 { leg.clone() } else { Leg::new([(first, 1)], leg.direction()).unwrap() }
        });
        let spec = Spec::new(legs.collect(), x.spec().flux(), 1).unwrap();
        GradedTensor::random(spec, DType::F64, false, &Generator::new(3)).unwrap()
    };
    let small: Vec<_> = state.iter().map(single).collect();
    let cell = Cell::of_state(2, &small).unwrap();
    let e = CellSearch::from_environment(cell.clone(), around.clone(), options).unwrap_err();
    assert!(matches!(e, NetworksError::Chain { site: 0, .. }), "{e}");
    // Energies start from a closed boundary then; an environment of another number of sites is an error.
    let spectrum = |start| h.environment(&small, start).unwrap().0;
    let [own, want] =
        [Some(&around), None].map(spectrum).map(|x| check::elements(x.corners()[0][0].re()));
    assert_eq!(own, want);
    let halved = |all: &[Vec<GradedTensor<U1>>; 4]| all.clone().map(|x| x[..2].to_vec());
    let fewer = CellEnvironment::new(halved(around.corners()), halved(around.edges())).unwrap();
    length(h.environment(&state, Some(&fewer)));
    // One edge alone, of the last direction and site.
    let (corners, mut edges) = (around.corners().clone(), around.edges().clone());
    edges[3][3] = edges[3][3].conj().unwrap();
    let wrong = CellEnvironment::new(corners, edges).unwrap();
    let cell = Cell::of_state(2, &state).unwrap();
    let e = CellSearch::from_environment(cell, wrong, options).unwrap_err();
    assert!(matches!(e, NetworksError::Chain { site: 3, .. }), "{e}");
}
