//! Identities, isometries and charges on a backend; truncation policies.

use burn_autodiff::Autodiff;
use burn_backend::{DType, Distribution};
use burn_t4a::ext::structured::*;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::Tensor;
use t4a_tensor::random::Generator;

use super::cases::{Rng, S, close, numbers};

type B = BurnT4a;
type AD = Autodiff<BurnT4a>;
type G<B> = GradedTensor<B, S>;

fn device() -> T4aDevice {
    T4aDevice
}

fn random(legs: Vec<Leg<S>>, flux: i32, rows: usize) -> G<B> {
    let spec = Spec::new(legs, FermionNumber(flux), rows).unwrap();
    G::random(&spec, Distribution::Normal(0.0, 1.0), (&device(), DType::F64)).unwrap()
}

#[test]
fn identities_are_neutral() {
    for seed in 1..6 {
        let mut rng = Rng::new(seed);
        let legs: Vec<Leg<S>> = (0..3).map(|_| rng.leg()).collect();
        let x = random(legs.clone(), 2, 1);
        let duals: Vec<Leg<S>> = legs[..2].to_vec();
        let identity =
            t4a_structured::GradedTensor::identity(&duals, t4a_tensor::DType::F64).unwrap();
        let identity = G::<B>::from_engine(&identity, &device()).unwrap();
        let same = identity.contract(&x, &[2, 3], &[0, 1]).unwrap();
        assert_eq!(same.spec().legs(), x.spec().legs());
        let same = same.repartition(1).unwrap();
        close("1 x", &numbers(same.flat()), &numbers(x.flat()), 1e-14);
    }
}

#[test]
fn isometries_keep_norms() {
    let leg = |sizes: [usize; 3], direction| {
        Leg::new([0, 1, 2].map(FermionNumber).into_iter().zip(sizes), direction).unwrap()
    };
    let legs = vec![
        leg([2, 3, 2], Direction::Out),
        leg([1, 2, 1], Direction::Out),
        leg([2, 3, 4], Direction::In),
    ];
    let spec = Spec::new(legs, FermionNumber(0), 2).unwrap();
    for complex in [false, true] {
        let engine = t4a_structured::GradedTensor::isometry(
            spec.clone(),
            t4a_tensor::DType::F64,
            complex,
            &Generator::new(3),
        );
        let u = G::<B>::from_engine(&engine.unwrap(), &device()).unwrap();
        let square = u.dagger().unwrap().contract(&u, &[2, 1], &[0, 1]).unwrap();
        let eye = Tensor::<B, 2>::eye(9, &device());
        let square = square.to_complex::<2>().unwrap();
        close("UᴴU", &numbers(square.re()), &numbers(eye.clone()), 1e-13);
        close("UᴴU", &numbers(square.im()), &numbers(eye * 0.0), 1e-13);
    }
    // More columns than rows.
    let wide = Spec::new(
        vec![leg([1, 1, 1], Direction::Out), leg([1, 2, 1], Direction::In)],
        FermionNumber(0),
        1,
    );
    let wide = t4a_structured::GradedTensor::isometry(
        wide.unwrap(),
        t4a_tensor::DType::F64,
        false,
        &Generator::new(3),
    );
    assert!(matches!(wide, Err(StructuredError::Invalid { .. })));
}

#[test]
fn charges_are_shifted_along_a_leg() {
    let mut rng = Rng::new(5);
    let x = random((0..3).map(|_| rng.leg()).collect(), 0, 1);
    let leaf = G::<AD>::from_inner(&x).require_grad();
    let charged = leaf.change_flux(1, FermionNumber(2)).unwrap();
    assert_eq!(charged.spec().flux(), FermionNumber(2));
    let [a, b] = [&leaf, &charged].map(|x| numbers(x.to_tensor::<3>().unwrap()));
    close("entries", &b, &a, 0.0);
    let back = charged.change_flux(1, FermionNumber(0)).unwrap();
    assert_eq!(back.spec().legs(), x.spec().legs());
    close("back", &numbers(back.flat()), &numbers(x.flat()), 0.0);
    let y = charged.flat();
    let grad = leaf.grad(&(y.clone() * y).sum().backward()).unwrap();
    close("gradient", &numbers(grad.flat()), &numbers(x.flat() * 2.0), 1e-14);
    assert!(matches!(x.change_flux(1, FermionNumber(1)), Err(StructuredError::OddParity { .. })));
    assert!(matches!(x.change_flux(3, FermionNumber(2)), Err(StructuredError::Axis { .. })));
}

/// Values 3, 1, ¼ in one sector and 1, ½ in the other.
#[test]
fn policies_see_sectors_and_ties() {
    let leg = Leg::new([(FermionNumber(0), 3), (FermionNumber(1), 2)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], FermionNumber(0), 1).unwrap();
    let data = Tensor::from_data(
        [3.0f64, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.25, 1.0, 0.0, 0.0, 0.5],
        (&device(), DType::F64),
    );
    let x = G::<B>::from_flat(&spec, data).unwrap();
    let dims = |policy: BondTruncation| -> Vec<usize> {
        let cut = x.svd_truncated(1, FluxOn::Right, policy).unwrap();
        let leg = cut.kept.s.leg().clone();
        [0, 1].map(|n| leg.place(FermionNumber(n)).map_or(0, |i| leg.sectors()[i].1)).to_vec()
    };
    let most = |n| BondTruncation::from(Truncation::new().max_dim(n));
    assert_eq!(dims(most(1)), [1, 0]);
    assert_eq!(dims(most(2)), [2, 0]);
    assert_eq!(dims(most(3)), [2, 1]);
    assert_eq!(dims(most(2).min_per_sector(1)), [2, 1]);
    // Degenerate values are kept together or dropped together.
    assert_eq!(dims(most(2).degeneracy(1e-8)), [1, 0]);
    assert_eq!(dims(most(3).degeneracy(1e-8)), [2, 1]);
    let wrong = most(2).degeneracy(f64::NAN);
    assert!(matches!(
        x.svd_truncated(1, FluxOn::Right, wrong),
        Err(StructuredError::Invalid { .. })
    ));
}
