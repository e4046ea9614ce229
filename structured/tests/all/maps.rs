//! Inverses, polar decompositions, null spaces and functions of maps, for bosons and fermions with legs of both
//! directions.

use t4a_diff::{Array, check};
use t4a_linalg::LinalgError;
use t4a_linalg::hermitian::Elementary;
use t4a_linalg::krylov::Vector;
use t4a_linalg::polar::Side;
use t4a_structured::{
    Direction, FermionNumber, FluxOn, GradedTensor, Leg, Product, Sector, Spec, StructuredError,
    U1, Z2, Zn,
};
use t4a_tensor::DType;
use t4a_tensor::random::Generator;

use crate::factor::{Loss, matrix, slope, weighted};
use crate::oracle::*;

/// Two nonempty row legs.
fn rows<S: Sector>(rng: &mut Rng, sectors: &[S]) -> Vec<Leg<S>> {
    (0..2)
        .map(|_| {
            let dims: Vec<_> = sectors.iter().map(|&s| (s, 1 + rng.below(2))).collect();
            Leg::new(dims, rng.direction()).unwrap()
        })
        .collect()
}

/// Random tensor with these row legs and the duals of `cols`.
fn tensor<S: Sector>(
    rng: &mut Rng,
    rows: &[Leg<S>],
    cols: &[Leg<S>],
    flux: S,
    complex: bool,
) -> GradedTensor<S> {
    let legs = rows.iter().cloned().chain(cols.iter().map(Leg::dual)).collect();
    rng.tensor(legs, flux, complex).repartition(rows.len()).unwrap()
}

/// Contraction over all column legs of a, which has two.
fn product<S: Sector>(a: &GradedTensor<S>, b: &GradedTensor<S>) -> GradedTensor<S> {
    a.contract(b, &[2, 3], &[0, 1]).unwrap()
}

fn inverses<S: Sector>(seed: u64, sectors: &[S]) {
    let mut rng = Rng::new(seed);
    for round in 0..8 {
        let complex = round % 2 == 0;
        let [x, y] = <[_; 2]>::try_from(rows(&mut rng, sectors)).unwrap();
        let (left, right) = ([x.clone(), y.clone()], [y.clone(), x.clone()]);
        let a = tensor(&mut rng, &left, &right, S::TRIVIAL, complex);
        let inverse = a.inverse(2).unwrap();
        invariant(&inverse);
        same(&product(&a, &inverse), &GradedTensor::identity(&left, DType::F64).unwrap());
        same(&product(&inverse, &a), &GradedTensor::identity(&right, DType::F64).unwrap());
        // Right-hand sides with an additional leg.
        let b = rng.tensor(vec![x.clone(), y.clone(), x.dual()], S::TRIVIAL, !complex);
        let solved = a.solve(2, &b).unwrap();
        same(&a.contract(&solved, &[2, 3], &[0, 1]).unwrap(), &b);
        // Rectangular structures, and charges without a common sector.
        let charge = sectors[rng.below(sectors.len())];
        let flux = if charge.is_odd() { S::TRIVIAL } else { charge };
        let a = {
            let legs = rng.legs(4, sectors);
            rng.tensor(legs, flux, complex)
        }
        .repartition(2)
        .unwrap();
        let pinv = a.pinv(2, None).unwrap();
        invariant(&pinv);
        let once = product(&a, &pinv);
        same(&once.contract(&a, &[2, 3], &[0, 1]).unwrap(), &a);
        same(&product(&pinv, &a).contract(&pinv, &[2, 3], &[0, 1]).unwrap(), &pinv);
        polar_of(&a);
        null_of(&a);
        let lq = a.lq(2, [FluxOn::Left, FluxOn::Right][round % 2]).unwrap();
        [&lq.l, &lq.q].into_iter().for_each(invariant);
        same(&lq.l.contract(&lq.q, &[2], &[0]).unwrap(), &a);
        let dim = lq.q.spec().legs()[0].dim() as f64;
        close(&check::elements(&lq.q.norm_squared().unwrap()), &[dim]);
    }
}

fn polar_of<S: Sector>(a: &GradedTensor<S>) {
    let rank: usize = a.spec().matrices().iter().map(|m| m.rows.min(m.cols)).sum();
    for side in [Side::Left, Side::Right] {
        let polar = a.polar(2, side).unwrap();
        [&polar.u, &polar.p].into_iter().for_each(invariant);
        let back = match side {
            Side::Right => product(&polar.u, &polar.p),
            Side::Left => product(&polar.p, &polar.u),
        };
        same(&back.repartition(2).unwrap(), a);
        close(&check::elements(&polar.u.norm_squared().unwrap()), &[rank as f64]);
        // P is positive semidefinite: eigenvalues of its Hermitian part are ≥ 0, and P V = V w.
        let eigh = polar.p.eigh().unwrap();
        assert!(check::elements(eigh.w.values()).iter().all(|&w| w > -1e-12));
        let image = polar.p.contract(&eigh.v, &[2, 3], &[0, 1]).unwrap();
        same(&image, &eigh.v.scale_columns(&eigh.w).unwrap());
    }
}

fn null_of<S: Sector>(a: &GradedTensor<S>) {
    let null = a.null_space(2, 1e-12).unwrap();
    invariant(&null);
    let states: usize = a.spec().legs()[..2].iter().map(Leg::dim).product();
    let rank: usize = a.spec().matrices().iter().map(|m| m.rows.min(m.cols)).sum();
    let dim = null.spec().legs()[2].dim();
    assert_eq!(dim + rank, states);
    // Norms of odd incoming kets include a sign.
    let inward: Vec<usize> =
        (0..2).filter(|&k| a.spec().legs()[k].direction() == Direction::In).collect();
    let bra = null.dagger().unwrap();
    let over = |ket: &GradedTensor<S>| {
        bra.contract(&ket.twist(&inward).unwrap(), &[2, 1], &[0, 1]).unwrap()
    };
    assert!(Vector::norm(&over(a)).unwrap() < 1e-11);
    close(&[Vector::norm(&over(&null)).unwrap().powi(2)], &[dim as f64]);
}

#[test]
fn inverses_polar_factors_and_null_spaces() {
    inverses(1, &[-1, 0, 1].map(U1));
    inverses(2, &[0, 1].map(Z2::new));
    inverses(3, &[0, 1, 2].map(FermionNumber));
    inverses(4, &[(0, 0), (1, 1), (2, 1)].map(|(n, z)| Product(FermionNumber(n), Zn::<3>::new(z))));
}

#[test]
fn functions_of_maps() {
    let mut rng = Rng::new(7);
    for round in 0..4 {
        let complex = round % 2 == 0;
        let legs = rows(&mut rng, &[0, 1].map(FermionNumber));
        let a = tensor(&mut rng, &legs, &legs, FermionNumber(0), complex).scale(0.2);
        let exp = a.exp().unwrap();
        same(&exp.log().unwrap(), &a);
        let root = exp.sqrt().unwrap();
        same(&product(&root, &root), &exp);
        // Hermitian map: the square root of its square is positive.
        let eigh = a.eigh().unwrap();
        let v = a.hermitian_function(Elementary::Exp).unwrap();
        let image = v.contract(&eigh.v, &[2, 3], &[0, 1]).unwrap();
        let w = eigh.w.map(|w| w.exp()).unwrap();
        same(&image, &eigh.v.scale_columns(&w).unwrap());
        // Right eigenvectors of a general map.
        let eig = a.eig().unwrap();
        assert!(eig.v.is_complex());
        let image = a.contract(&eig.v, &[2, 3], &[0, 1]).unwrap();
        let [re, im] = &eig.w;
        let scaled = eig.v.scale_columns(re).unwrap();
        same(&image, &scaled.add(&eig.v.scale_columns(im).unwrap().times_i()).unwrap());
        // U S³ Vᴴ.
        let svd = a.svd(2, FluxOn::Right).unwrap();
        let cube = svd.s.map(|s| s.mul(s).mul(s)).unwrap();
        let want = svd.u.scale_columns(&cube).unwrap().contract(&svd.vh, &[2], &[0]).unwrap();
        same(&a.svd_function(2, Elementary::Pow(3.0)).unwrap(), &want);
    }
}

#[test]
fn inverses_with_a_charge_and_in_f32() {
    let leg = |q: i32, d| Leg::new([(U1(q), 3), (U1(q + 1), 2)], d).unwrap();
    let legs = vec![leg(2, Direction::Out), leg(0, Direction::In)];
    for dtype in [DType::F32, DType::F64] {
        let spec = Spec::new(legs.clone(), U1(2), 1).unwrap();
        let a = GradedTensor::random(spec, dtype, true, &Generator::new(4)).unwrap();
        let inverse = a.inverse(1).unwrap();
        assert_eq!(inverse.spec().flux(), U1(-2));
        let one = a.contract(&inverse, &[1], &[0]).unwrap();
        let identity = GradedTensor::identity(&legs[..1], dtype).unwrap();
        let bound = if dtype == DType::F32 { 1e-4 } else { 1e-12 };
        assert!(Vector::norm(&one.sub(&identity).unwrap()).unwrap() < bound);
    }
}

/// Map with three sectors close to a multiple of the identity.
fn map(seed: u64) -> GradedTensor<U1> {
    let leg = Leg::new([(U1(-1), 3), (U1(0), 2), (U1(2), 2)], Direction::Out).unwrap();
    let x = Rng::new(seed).tensor(vec![leg.clone(), leg.dual()], U1(0), false);
    let one = GradedTensor::identity(&[leg], DType::F64).unwrap();
    x.repartition(1).unwrap().scale(0.3).add(&one.scale(2.0)).unwrap()
}

enum Of {
    Inverse,
    Pinv,
    Solve,
    Sqrt,
    Log,
    SvdFunction,
    HermitianFunction,
    Polar(Side),
    Lq,
    Eig,
}

impl Loss for Of {
    fn of<A: Array>(&self, a: &GradedTensor<U1, A>) -> A {
        match self {
            Of::Inverse => weighted(&a.inverse(1).unwrap()),
            Of::Pinv => weighted(&a.pinv(1, None).unwrap()),
            Of::Solve => weighted(&a.solve(1, &a.dagger().unwrap()).unwrap()),
            Of::Sqrt => weighted(&a.sqrt().unwrap()),
            Of::Log => weighted(&a.log().unwrap()),
            Of::SvdFunction => weighted(&a.svd_function(1, Elementary::Pow(3.0)).unwrap()),
            Of::HermitianFunction => weighted(&a.hermitian_function(Elementary::Exp).unwrap()),
            Of::Polar(side) => {
                let polar = a.polar(1, *side).unwrap();
                weighted(&polar.u).add(&weighted(&polar.p))
            }
            Of::Lq => {
                let lq = a.lq(1, FluxOn::Right).unwrap();
                weighted(&lq.l).add(&weighted(&lq.q))
            }
            Of::Eig => {
                let [re, im] = a.eig().unwrap().w;
                let [re, im] = [re.values().clone(), im.values().clone()];
                re.mul(&re).mul(&re).sum(0).sub(&re.mul(&im).mul(&im).scale(3.0).sum(0))
            }
        }
    }
}

#[test]
fn derivatives_of_inverses_and_functions() {
    let a = map(3);
    for of in [Of::Inverse, Of::Solve, Of::Sqrt, Of::Log, Of::HermitianFunction, Of::Eig] {
        slope(&a, &of);
    }
    // Σ λ³ is tr A³.
    let cube = a.contract(&a, &[1], &[0]).unwrap().contract(&a, &[1], &[0]).unwrap();
    let trace = check::elements(cube.trace(&[(0, 1)]).unwrap().re());
    close(&check::elements(&Of::Eig.of(&a)), &trace);
    let b = matrix(5);
    let both = [Of::Polar(Side::Left), Of::Polar(Side::Right)];
    for of in [Of::Pinv, Of::SvdFunction, Of::Lq].into_iter().chain(both) {
        slope(&b, &of);
    }
}

#[test]
fn bad_input_of_maps() {
    let a = matrix(2);
    let invalid = |error| matches!(error, StructuredError::Invalid { .. });
    // Rectangular matrices, and coupled sectors of the rows without columns.
    assert!(invalid(a.inverse(1).unwrap_err()));
    let leg = |q: &[i32], d| Leg::new(q.iter().map(|&q| (U1(q), 2)), d).unwrap();
    let legs = vec![leg(&[0, 1], Direction::Out), leg(&[1, 2], Direction::In)];
    let lone = Rng::new(1).tensor(legs, U1(0), false);
    assert!(invalid(lone.inverse(1).unwrap_err()));
    assert!(invalid(lone.null_space(1, f64::NAN).unwrap_err()));
    assert!(matches!(a.inverse(3), Err(StructuredError::Rows { .. })));
    assert!(matches!(a.sqrt(), Err(StructuredError::LegMismatch { .. })));
    let charged = Spec::new(map(1).spec().legs().to_vec(), U1(1), 1).unwrap();
    let charged = GradedTensor::zeros(charged, DType::F64, false).unwrap();
    assert!(matches!(charged.log(), Err(StructuredError::Flux { .. })));
    let singular = map(1).scale(0.0);
    assert!(matches!(
        singular.inverse(1),
        Err(StructuredError::Linalg(LinalgError::Singular { .. }))
    ));
    assert!(matches!(
        map(1).scale(-1.0).log(),
        Err(StructuredError::Linalg(LinalgError::NegativeEigenvalue { .. }))
    ));
    // Right-hand side with mismatching legs.
    assert!(map(1).solve(1, &a).is_err());
}
