//! Graded diagonal tensors.

use t4a_diff::{Array, check};
use t4a_structured::{
    Bond, Direction, FermionNumber, FluxOn, GradedTensor, Leg, StructuredError, U1,
};

use crate::factor::{Loss, matrix, slope};
use crate::oracle::*;

fn bond(values: &[f64]) -> Bond<U1, t4a_diff::Eager> {
    let leg = Leg::new([(U1(0), 2), (U1(1), values.len() - 2)], Direction::Out).unwrap();
    Bond::new(leg, check::array(&[values.len()], |i| values[i])).unwrap()
}

fn values(bond: &Bond<U1, t4a_diff::Eager>) -> Vec<f64> {
    check::elements(bond.values())
}

#[test]
fn functions_of_bonds() {
    let s = bond(&[2.0, 1.0, 2.0, 4.0, 0.0]);
    close(&values(&s.sqrt().unwrap()), &[2f64.sqrt(), 1.0, 2f64.sqrt(), 2.0, 0.0]);
    close(&values(&s.inverse(0.0).unwrap()), &[0.5, 1.0, 0.5, 0.25, 0.0]);
    close(&values(&s.inverse(0.3).unwrap()), &[0.5, 0.0, 0.5, 0.25, 0.0]);
    close(&values(&s.normalised().unwrap()), &[0.4, 0.2, 0.4, 0.8, 0.0]);
    close(&values(&s.mul(&s).unwrap()), &[4.0, 1.0, 4.0, 16.0, 0.0]);
    let p: [f64; 4] = [0.16, 0.04, 0.16, 0.64];
    let entropy: f64 = p.iter().map(|p| -p * p.ln()).sum();
    close(&check::elements(&s.entropy().unwrap()), &[entropy]);
    let square: f64 = p.iter().map(|p| p * p).sum();
    close(&check::elements(&s.renyi_entropy(2.0).unwrap()), &[-square.ln()]);
    close(&check::elements(&s.renyi_entropy(1.0).unwrap()), &[entropy]);
    // Two equal values: ln 2.
    close(&check::elements(&bond(&[1.0, 0.0, 1.0]).entropy().unwrap()), &[2f64.ln()]);
    let numbers = s.numbers().unwrap();
    assert_eq!(numbers, [(U1(0), vec![2.0, 1.0]), (U1(1), vec![2.0, 4.0, 0.0])]);
    assert!(s.to_string().contains("0: 2.0000 1.0000"));
}

#[test]
fn bonds_as_tensors_multiply_into_legs() {
    let mut rng = Rng::new(3);
    for direction in [Direction::Out, Direction::In] {
        let leg = Leg::new([(FermionNumber(0), 2), (FermionNumber(1), 3)], direction).unwrap();
        let s = Bond::new(leg.clone(), check::noise(&check::array(&[5], |_| 0.0), 4)).unwrap();
        let legs = vec![leg.clone(), leg.dual(), leg.clone()];
        let a = rng.tensor(legs, FermionNumber(0), true).repartition(1).unwrap();
        let map = s.to_tensor().unwrap();
        invariant(&map);
        let from_left = map.contract(&a, &[1], &[0]).unwrap();
        same(&from_left, &a.scale_bond(0, &s).unwrap());
    }
}

struct Entropy;

impl Loss for Entropy {
    fn of<A: Array>(&self, a: &GradedTensor<U1, A>) -> A {
        let s = a.svd(1, FluxOn::Right).unwrap().s;
        let inverse = s.inverse(1e-12).unwrap().sqrt().unwrap();
        let sum = s.entropy().unwrap().add(&s.renyi_entropy(3.0).unwrap());
        sum.add(&inverse.normalised().unwrap().values().sum(0))
    }
}

#[test]
fn derivatives_of_entropies() {
    slope(&matrix(6), &Entropy);
    // Values of 0 do not contribute.
    let s = check::array(&[3], |i| [1.0, 0.0, 2.0][i]);
    let dual = t4a_diff::Dual::new(s.clone(), check::array(&[3], |i| [0.0, 1.0, 0.0][i]));
    let leg = Leg::new([(U1(0), 3)], Direction::Out).unwrap();
    let entropy = Bond::new(leg, dual).unwrap().entropy().unwrap();
    close(&check::elements(&entropy.into_tangent()), &[0.0]);
}

#[test]
fn bad_input_of_bonds() {
    let s = bond(&[1.0, -2.0, 0.0]);
    let invalid = |error| matches!(error, StructuredError::Invalid { .. });
    assert!(invalid(s.sqrt().unwrap_err()));
    assert!(invalid(s.inverse(f64::NAN).unwrap_err()));
    assert!(invalid(s.renyi_entropy(-1.0).unwrap_err()));
    assert!(invalid(s.scale(0.0).entropy().unwrap_err()));
    assert!(invalid(s.scale(f64::NAN).normalised().unwrap_err()));
    let error = s.mul(&bond(&[1.0, 1.0, 1.0, 1.0])).map(|_| ()).unwrap_err();
    assert!(matches!(error, StructuredError::LegMismatch { .. }));
    let error = Bond::new(s.leg().clone(), check::array(&[2], |_| 0.0)).map(|_| ()).unwrap_err();
    assert!(matches!(error, StructuredError::LengthMismatch { required: 3, given: 2, .. }));
    let error = s.map(|x| x.sum(0)).map(|_| ()).unwrap_err();
    assert!(matches!(error, StructuredError::Shape { .. }));
}
