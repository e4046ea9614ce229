//! Derivatives of overlaps and expectation values, by duals and finite differences.

use t4a_diff::{Dual, Eager, check};
use t4a_networks::{Mpo, Mps};
use t4a_structured::{GradedTensor, Sector, U1};
use t4a_tensor::random::Generator;

use crate::models::{t_v, xxz};

type D = Dual<Eager>;

/// The same tensors with pseudo-random tangents times `size`.
pub(crate) fn duals<S: Sector>(tensors: &[GradedTensor<S>], size: f64) -> Vec<GradedTensor<S, D>> {
    let dual = |(k, x): (usize, &GradedTensor<S>)| {
        let tangent = check::noise(x.re(), k as u64);
        let re = Dual::new(x.re().clone(), t4a_diff::Array::scale(&tangent, size));
        GradedTensor::new(x.spec().clone(), re, x.im().cloned().map(Dual::constant)).unwrap()
    };
    tensors.iter().enumerate().map(dual).collect()
}

/// The tensors moved along the same tangents.
pub(crate) fn moved<S: Sector>(tensors: &[GradedTensor<S>], step: f64) -> Vec<GradedTensor<S>> {
    let moved = |(k, x): (usize, &GradedTensor<S>)| {
        let tangent = check::noise(x.re(), k as u64);
        let tangent = GradedTensor::new(x.spec().clone(), tangent, None).unwrap();
        x.add(&tangent.scale(step)).unwrap()
    };
    tensors.iter().enumerate().map(moved).collect()
}

pub(crate) fn tangent(x: (D, Option<D>)) -> f64 {
    check::elements(&x.0.into_tangent())[0]
}

pub(crate) fn difference(f: impl Fn(f64) -> f64) -> f64 {
    let step = f64::EPSILON.cbrt();
    (f(step) - f(-step)) / (2.0 * step)
}

#[test]
fn energies_have_derivatives_in_states_and_operators() {
    let h = t_v(3, 2, 2.0);
    let mpo = h.mpo().unwrap();
    let state = Mps::random(h.sites(), U1(3), 4, false, &Generator::new(7)).unwrap();
    let at = |step: f64| Mps::new(moved(state.tensors(), step)).unwrap();
    let dual = Mps::new(duals(state.tensors(), 1.0)).unwrap();
    let fixed = Mpo::new(duals(mpo.tensors(), 0.0)).unwrap();
    let own = tangent(dual.matrix_element_array(&fixed, &dual).unwrap());
    let want = difference(|step| at(step).expectation(&mpo).unwrap().re);
    assert!((own - want).abs() < 1e-7 * want.abs().max(1.0), "{own}, {want}");
    // In the operator.
    let still = Mps::new(duals(state.tensors(), 0.0)).unwrap();
    let operator = Mpo::new(duals(mpo.tensors(), 1.0)).unwrap();
    let own = tangent(still.matrix_element_array(&operator, &still).unwrap());
    let moved = |step: f64| Mpo::new(moved(mpo.tensors(), step)).unwrap();
    let want = difference(|step| state.expectation(&moved(step)).unwrap().re);
    assert!((own - want).abs() < 1e-6 * want.abs().max(1.0), "{own}, {want}");
}

#[test]
fn overlaps_of_sums_have_derivatives() {
    let h = xxz(5, 1, 1.0);
    let state = |seed| Mps::random(h.sites(), U1(1), 4, false, &Generator::new(seed)).unwrap();
    let (a, b) = (state(1), state(2));
    let at = |step: f64| {
        let a = Mps::new(moved(a.tensors(), step)).unwrap();
        a.inner(&a.scale(2.0).add(&b).unwrap()).unwrap().re
    };
    let dual = Mps::new(duals(a.tensors(), 1.0)).unwrap();
    let fixed = Mps::new(duals(b.tensors(), 0.0)).unwrap();
    let sum = dual.scale(2.0).add(&fixed).unwrap();
    let (own, want) = (tangent(dual.inner_array(&sum).unwrap()), difference(at));
    assert!((own - want).abs() < 1e-7 * want.abs().max(1.0), "{own}, {want}");
}
