//! Finite grids against exact contraction.

use t4a_diff::{Array, Dual, Eager, check};
use t4a_networks::peps::{Grid, layers};
use t4a_networks::sites::spin_half;
use t4a_networks::{Method, NetworksError};
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec, Trivial, U1, Z2, einsum};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

/// Legs of the tensor in a row and column of a grid of three by three.
fn legs<S: Sector>(bond: &Leg<S>, x: usize, y: usize) -> Vec<Leg<S>> {
    let one = Leg::new([(S::TRIVIAL, 1)], Direction::Out).unwrap();
    let leg = |border: bool| if border { one.clone() } else { bond.clone() };
    vec![leg(x == 0), leg(y == 0), leg(x == 2).dual(), leg(y == 2).dual()]
}

/// Random tensors without sites, or with one.
fn random<S: Sector>(bond: &Leg<S>, site: Option<&Leg<S>>) -> Vec<Vec<GradedTensor<S>>> {
    let tensor = |x: usize, y: usize| {
        let all = site.into_iter().cloned().chain(legs(bond, x, y)).collect();
        let spec = Spec::new(all, S::TRIVIAL, 2).unwrap();
        let generator = Generator::new((3 * y + x) as u64);
        GradedTensor::random(spec, DType::F64, false, &generator).unwrap()
    };
    (0..3).map(|y| (0..3).map(|x| tensor(x, y)).collect()).collect()
}

/// All nine tensors at once; legs at the border have one state.
fn exact<S: Sector>(rows: &[Vec<GradedTensor<S>>]) -> f64 {
    let all: Vec<&GradedTensor<S>> = rows.iter().flatten().collect();
    let subscripts = "ABab,aCcd,cDEe,FbfG,fdgh,geHi,IGjJ,jhkK,kiLM->ABCDEFHIJKLM";
    let whole = einsum(subscripts, &all).unwrap();
    check::elements(&whole.to_dense().unwrap().0).iter().sum()
}

fn value(grid: &Grid<Z2>, max_dim: usize, method: Method) -> f64 {
    let found = grid.contract(max_dim, 0.0, method).unwrap();
    check::elements(&found.value.0)[0] * check::elements(&found.ln_scale)[0].exp()
}

#[test]
fn grids_are_exact_and_close() {
    let bond = Leg::new([(Z2::new(0), 2), (Z2::new(1), 1)], Direction::Out).unwrap();
    let rows = random(&bond, None);
    let (grid, want) = (Grid::new(rows.clone()).unwrap(), exact(&rows));
    for method in [Method::Exact, Method::ZipUp] {
        let own = value(&grid, 100, method);
        assert!((own - want).abs() < 1e-10 * want.abs(), "{own}, {want}");
    }
    // Two states of three drop something.
    let found = grid.contract(2, 0.0, Method::Exact).unwrap();
    assert!(found.truncation > 1e-8 && found.truncation < 0.5, "{}", found.truncation);
    let own = value(&grid, 2, Method::Exact);
    assert!((own - want).abs() > 1e-10 * want.abs());
    let ln = check::elements(&grid.contract(100, 0.0, Method::Exact).unwrap().ln())[0];
    assert!((ln - want.abs().ln()).abs() < 1e-9);
}

#[test]
fn expectation_values_on_a_grid() {
    // A state of even parity, against the contraction of both layers at once.
    let bond = Leg::new([(Z2::new(0), 1), (Z2::new(1), 1)], Direction::Out).unwrap();
    let site = spin_half().conserve(|q: U1| Z2::new((i64::from(q.0) + 1) / 2)).unwrap();
    let rows = random(&bond, Some(site.leg()));
    let norm = Grid::of_state(&rows).unwrap();
    let sz = site.operator("Sz").unwrap();
    let with = norm.with(1, 1, layers::double_with(&rows[1][1], &sz).unwrap()).unwrap();
    let number = |grid: &Grid<Z2>| {
        let found = grid.contract(64, 0.0, Method::Exact).unwrap();
        check::elements(&found.value.0)[0] * check::elements(&found.ln_scale)[0].exp()
    };
    let own = number(&with) / number(&norm);
    let all: Vec<&GradedTensor<Z2>> = rows.iter().flatten().collect();
    let ket = "1ABab,2aCcd,3cDEe,4FbfG,5fdgh,6geHi,7IGjJ,8jhkK,9kiLM->123456789ABCDEFHIJKLM";
    let ket = einsum(ket, &all).unwrap();
    let moved = einsum("x5,123456789ABCDEFHIJKLM->1234x6789ABCDEFHIJKLM", &[&sz, &ket]).unwrap();
    let moved = moved.repartition(ket.spec().rows()).unwrap();
    let numbers = |x: (Eager, Option<Eager>)| check::elements(&x.0)[0];
    let want = numbers(ket.inner(&moved).unwrap()) / numbers(ket.inner(&ket).unwrap());
    assert!((own - want).abs() < 1e-10, "{own}, {want}");
}

#[test]
fn logarithms_of_grids_have_derivatives() {
    let bond = Leg::new([(Trivial, 2)], Direction::Out).unwrap();
    let rows = random(&bond, None);
    let moved = |step: f64| -> Vec<Vec<GradedTensor<Trivial>>> {
        let one = |x: &GradedTensor<Trivial>| {
            let noise = check::noise(x.re(), 7).scale(step);
            GradedTensor::new(x.spec().clone(), x.re().add(&noise), None).unwrap()
        };
        rows.iter().map(|row| row.iter().map(one).collect()).collect()
    };
    let ln = |step: f64| {
        let found = Grid::new(moved(step)).unwrap().contract(16, 0.0, Method::Exact).unwrap();
        check::elements(&found.ln())[0]
    };
    let dual = |x: &GradedTensor<Trivial>| {
        let tangent = check::noise(x.re(), 7);
        GradedTensor::new(x.spec().clone(), Dual::new(x.re().clone(), tangent), None).unwrap()
    };
    let duals: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(dual).collect()).collect();
    let found = Grid::new(duals).unwrap().contract(16, 0.0, Method::Exact).unwrap();
    let own = check::elements(&found.ln().into_tangent())[0];
    let step = f64::EPSILON.cbrt();
    let want = (ln(step) - ln(-step)) / (2.0 * step);
    assert!((own - want).abs() < 1e-6 * want.abs().max(1.0), "{own}, {want}");
}

#[test]
fn rejected_grids() {
    let bond = Leg::new([(Trivial, 2)], Direction::Out).unwrap();
    let rows = random(&bond, None);
    let mut ragged = rows.clone();
    ragged[1].pop();
    assert!(matches!(Grid::new(ragged).unwrap_err(), NetworksError::Length { .. }));
    let mut wrong = rows.clone();
    wrong[0].swap(0, 1);
    assert!(matches!(Grid::new(wrong).unwrap_err(), NetworksError::Chain { site: 0, .. }));
    let grid = Grid::new(rows.clone()).unwrap();
    assert!(grid.contract(0, 0.0, Method::Exact).is_err());
    let e = grid.with(3, 0, rows[0][0].clone()).unwrap_err();
    assert!(matches!(e, NetworksError::SiteOutOfRange { .. }), "{e}");
}
