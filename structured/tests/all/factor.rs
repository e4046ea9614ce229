//! Factorisations against dense ones, and truncation over all sectors.

use t4a_diff::{Array, Dual, Eager, Integers, check};
use t4a_linalg::svd::Truncation;
use t4a_linalg::{Degeneracy, LinalgError};
use t4a_structured::{
    Direction, FermionNumber, FluxOn, GradedTensor, Leg, Sector, Spec, StructuredError, Truncated,
    U1, Z2, Zn,
};
use t4a_tensor::{DType, Tensor};

use crate::oracle::*;

fn identities<S: Sector>(seed: u64, sectors: &[S]) {
    let mut rng = Rng::new(seed);
    for round in 0..12 {
        let complex = round % 2 == 0;
        let legs = rng.legs(3, sectors);
        let charge = sectors[rng.below(sectors.len())];
        let flux = if charge.is_odd() { S::TRIVIAL } else { charge };
        let a = rng.tensor(legs, flux, complex);
        let (rows, on) = (rng.below(4), [FluxOn::Left, FluxOn::Right][rng.below(2)]);
        let svd = a.svd(rows, on).unwrap();
        [&svd.u, &svd.vh].into_iter().for_each(invariant);
        let us = svd.u.scale_columns(&svd.s).unwrap();
        same(&us.contract(&svd.vh, &[rows], &[0]).unwrap(), &a);
        let sv = svd.vh.scale_rows(&svd.s).unwrap();
        same(&svd.u.contract(&sv, &[rows], &[0]).unwrap(), &a);
        let charge = |x: &GradedTensor<S>| x.spec().flux();
        let on_left = on == FluxOn::Left;
        assert_eq!(charge(&svd.u), if on_left { flux } else { S::TRIVIAL });
        let qr = a.qr(rows, on).unwrap();
        [&qr.q, &qr.r].into_iter().for_each(invariant);
        same(&qr.q.contract(&qr.r, &[rows], &[0]).unwrap(), &a);
    }
}

#[test]
fn factors_multiply_to_the_tensor() {
    identities(1, &[-1, 0, 1].map(U1));
    identities(2, &[0, 1, 2].map(Zn::<3>::new));
    identities(3, &[0, 1, 2].map(FermionNumber));
}

/// Random matrix with three sectors.
pub(crate) fn matrix(seed: u64) -> GradedTensor<U1> {
    let rows = Leg::new([(U1(-1), 4), (U1(0), 3), (U1(2), 2)], Direction::Out).unwrap();
    let cols = Leg::new([(U1(-1), 2), (U1(0), 5), (U1(2), 3)], Direction::In).unwrap();
    Rng::new(seed).tensor(vec![rows, cols], U1(0), false)
}

#[test]
fn trap_14_the_spectrum_and_the_best_error_are_those_of_the_dense_matrix() {
    for seed in 0..5 {
        let a = matrix(seed);
        let whole = t4a_linalg::svd::svdvals(dense(&a)[0].typed::<f64>().unwrap()).unwrap();
        let whole: Vec<f64> = whole.to_vec().unwrap();
        for keep in 1..=7 {
            let policy = Truncation::new().max_dim(keep);
            let Truncated { kept, error } = a.svd_truncated(1, FluxOn::Right, policy).unwrap();
            let mut values = check::elements(kept.s.values());
            values.sort_by(|a, b| b.total_cmp(a));
            close(&values, &whole[..keep]);
            let rest: f64 = whole[keep..].iter().map(|x| x * x).sum();
            close(&[error], &[rest.sqrt()]);
            let near = kept.u.scale_columns(&kept.s).unwrap();
            let near = near.contract(&kept.vh, &[1], &[0]).unwrap();
            let near = near.repartition(a.spec().rows()).unwrap();
            close(&check::elements(&a.sub(&near).unwrap().norm().unwrap()), &[error]);
        }
    }
}

#[test]
fn trap_13_ties_are_cut_to_the_number_asked_for() {
    let leg = Leg::new([0, 1, 2, 3].map(|q| (U1(q), 2)), Direction::Out).unwrap();
    let a = GradedTensor::identity(&[leg], DType::F64).unwrap();
    for keep in 1..=8 {
        let policy = Truncation::new().max_dim(keep);
        let Truncated { kept, error } = a.svd_truncated(1, FluxOn::Right, policy).unwrap();
        assert_eq!(kept.s.leg().dim(), keep);
        close(&[error], &[((8 - keep) as f64).sqrt()]);
        // Smaller sectors have priority.
        assert_eq!(kept.s.leg().sectors()[0], (U1(0), keep.min(2)));
    }
    // A zero tensor keeps one value, in the smallest sector.
    let policy = Truncation::new().relative_cutoff(0.1).cutoff(0.1);
    let zero = a.scale(0.0).svd_truncated(1, FluxOn::Right, policy).unwrap();
    assert_eq!(zero.kept.s.leg().sectors(), [(U1(0), 1)]);
}

/// Scalar loss of a tensor of any array type.
pub(crate) trait Loss {
    fn of<A: Array>(&self, a: &GradedTensor<U1, A>) -> A;
}

/// Derivative of a loss along a random direction, compared with finite differences.
#[track_caller]
pub(crate) fn slope(a: &GradedTensor<U1>, loss: &impl Loss) -> (f64, GradedTensor<U1>) {
    let t = check::noise(a.re(), 5);
    let dual = GradedTensor::new(a.spec().clone(), Dual::new(a.re().clone(), t.clone()), None);
    let tangent = check::elements(&loss.of(&dual.unwrap()).into_tangent())[0];
    let at = |h: f64| {
        let moved = GradedTensor::new(a.spec().clone(), a.re().add(&t.scale(h)), None).unwrap();
        check::elements(&loss.of(&moved))[0]
    };
    let want = (at(1e-5) - at(-1e-5)) / 2e-5;
    assert!((tangent - want).abs() < 1e-6 * want.abs().max(1.0), "{tangent} {want}");
    (tangent, GradedTensor::new(a.spec().clone(), t, None).unwrap())
}

/// `Σ w x` with different weights for all entries.
pub(crate) fn weighted<A: Array>(x: &GradedTensor<U1, A>) -> A {
    let weights = x.re().counting(x.spec().len()).elements().unwrap().cast(DType::F64).unwrap();
    x.re().mul(&x.re().constant(weights)).sum(0)
}

/// Weighted sum of the kept tensor, plus that of its singular values: gauge invariant.
struct Kept(Truncation);

impl Loss for Kept {
    fn of<A: Array>(&self, a: &GradedTensor<U1, A>) -> A {
        let kept = a.svd_truncated(1, FluxOn::Right, self.0).unwrap().kept;
        let near = kept.u.scale_columns(&kept.s).unwrap().contract(&kept.vh, &[1], &[0]).unwrap();
        weighted(&near).add(&kept.s.values().mul(kept.s.values()).sum(0))
    }
}

/// `U S³ Vᴴ = A Aᴴ A`.
struct Cube;

impl Loss for Cube {
    fn of<A: Array>(&self, a: &GradedTensor<U1, A>) -> A {
        let svd = a.svd(1, FluxOn::Right).unwrap();
        let u = (0..3).fold(svd.u, |u, _| u.scale_columns(&svd.s).unwrap());
        weighted(&u.contract(&svd.vh, &[1], &[0]).unwrap())
    }
}

/// `Σ s²`.
struct Squares;

impl Loss for Squares {
    fn of<A: Array>(&self, a: &GradedTensor<U1, A>) -> A {
        let s = a.svd_with(1, FluxOn::Right, Degeneracy::SEPARABLE).unwrap().s;
        s.values().mul(s.values()).sum(0)
    }
}

#[test]
fn trap_15_derivatives_of_truncated_factors() {
    // One sector with more rows, one with more columns.
    slope(&matrix(9), &Kept(Truncation::new().max_dim(4)));
    slope(&matrix(9), &Cube);
}

#[test]
fn trap_15_equal_values_of_two_sectors_are_no_tie() {
    let leg = Leg::new([(U1(0), 3), (U1(1), 3)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    let once = check::noise(&check::array(&[9], |_| 0.0), 2);
    let a = GradedTensor::new(spec, <Eager as Array>::cat(&[once.clone(), once], 0), None).unwrap();
    let values = check::elements(a.svd(1, FluxOn::Right).unwrap().s.values());
    close(&values[..3], &values[3..]);
    slope(&a, &Cube);
    slope(&a, &Kept(Truncation::new().max_dim(4)));
}

#[test]
fn trap_15_sectors_of_lower_rank_have_finite_derivatives() {
    // One sector of rank 1, one zero sector.
    let leg = |d| Leg::new([(U1(0), 2), (U1(1), 2), (U1(2), 3)], d).unwrap();
    let legs = vec![leg(Direction::Out), leg(Direction::In)];
    let spec = Spec::new(legs, U1(0), 1).unwrap();
    let entry = |i: usize| [1.0, 2.0, 2.0, 4.0, 0.0, 0.0, 0.0, 0.0].get(i).map_or(i as f64, |&x| x);
    let a = GradedTensor::new(spec.clone(), check::array(&[17], entry), None).unwrap();
    // d Σ s² = 2 ⟨A, dA⟩ for any rank.
    let (tangent, t) = slope(&a, &Squares);
    close(&[tangent], &[2.0 * check::elements(&a.inner(&t).unwrap().0)[0]]);
}

/// A multiple of the identity: all singular values are degenerate, and generic directions split them.
#[test]
fn derivatives_at_ties_are_errors_or_masked() {
    let leg = Leg::new([(U1(0), 2), (U1(1), 3)], Direction::Out).unwrap();
    let unit = GradedTensor::identity(&[leg], DType::F64).unwrap();
    let along = |t: Eager| {
        let dual = Dual::new(unit.re().clone(), t);
        GradedTensor::new(unit.spec().clone(), dual, None).unwrap()
    };
    fn refused<T: std::fmt::Debug>(result: Result<T, StructuredError>) {
        match result {
            Err(StructuredError::Linalg(LinalgError::SplitTie { .. })) => {}
            other => panic!("{other:?}"),
        }
    }
    let policy = || Truncation::new().max_dim(4);
    let a = along(check::noise(unit.re(), 5));
    refused(a.svd(1, FluxOn::Right));
    refused(a.svd_truncated(1, FluxOn::Right, policy()));
    refused(a.eigh());
    let masked = Degeneracy::SEPARABLE;
    assert!(a.svd_with(1, FluxOn::Right, masked).is_ok());
    assert!(a.svd_truncated_with(1, FluxOn::Right, policy(), masked).is_ok());
    assert!(a.eigh_with(masked).is_ok());
    // A direction that preserves the degeneracy.
    let scaled = along(unit.re().scale(0.5));
    let w = scaled.eigh().unwrap().w;
    close(&check::elements(&w.values().clone().into_tangent()), &[0.5; 5]);
}

#[test]
fn exponentials_and_eigenvectors_of_maps() {
    let mut rng = Rng::new(4);
    // Fermions with legs of both directions: products of maps are contractions including signs.
    for directions in 0..4 {
        let direction =
            |k: usize| if directions >> k & 1 == 0 { Direction::Out } else { Direction::In };
        let leg = |k| Leg::new([0, 1].map(|q| (FermionNumber(q), 2)), direction(k)).unwrap();
        let legs = [leg(0), leg(1)];
        let all: Vec<_> = legs.iter().cloned().chain(legs.iter().map(Leg::dual)).collect();
        let a = rng.tensor(all, FermionNumber(0), false).repartition(2).unwrap().scale(0.1);
        let one = GradedTensor::identity(&legs, DType::F64).unwrap();
        let product =
            |a: &GradedTensor<_>, b: &GradedTensor<_>| a.contract(b, &[2, 3], &[0, 1]).unwrap();
        same(&product(&one, &a), &a);
        same(&product(&a, &one), &a);
        let (mut sum, mut power) = (one.clone(), one);
        for n in 1..25 {
            power = product(&power, &a).scale(1.0 / n as f64);
            sum = sum.add(&power).unwrap();
        }
        let exp = a.exp().unwrap();
        invariant(&exp);
        same(&exp, &sum);
    }
    // Hermitian map: A V = V w.
    let leg = Leg::new([(Z2::new(0), 3), (Z2::new(1), 2)], Direction::Out).unwrap();
    for complex in [false, true] {
        let spec = Spec::new(vec![leg.clone(), leg.dual()], Z2::new(0), 1).unwrap();
        let x = rng.tensor(spec.legs().to_vec(), Z2::new(0), complex).repartition(1).unwrap();
        let h = x.add(&x.dagger().unwrap()).unwrap();
        let eigh = h.eigh().unwrap();
        let left = h.contract(&eigh.v, &[1], &[0]).unwrap();
        same(&left, &eigh.v.scale_columns(&eigh.w).unwrap());
    }
}

#[test]
fn numbers_of_a_bond_belong_to_it() {
    let a = matrix(3);
    let svd = a.svd(1, FluxOn::Right).unwrap();
    assert!(svd.u.scale_rows(&svd.s).is_err());
    assert!(a.scale_columns(&svd.s).is_err());
    let values: Tensor<f64> = svd.s.values().tensor().unwrap().typed::<f64>().unwrap().clone();
    assert_eq!(values.shape(), [svd.s.leg().dim()]);
    let _: &Eager = svd.s.values();
}
