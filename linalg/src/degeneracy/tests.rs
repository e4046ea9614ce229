//! Losses with known derivatives at and near ties.

use t4a_algebra::Numeric;
use t4a_diff::Dual;
use t4a_tensor::Tensor;

use super::sweep::{Function, through_eigh, through_svd};
use crate::degeneracy::Degeneracy;
use crate::eig::{EigOp, eig};
use crate::eigh::EighOp;
use crate::error::{LinalgError, Result};
use crate::operation::Part;
use crate::scalar::{LinalgScalar, epsilon};
use crate::svd::{SvdOp, Vectors};
use crate::table::MatrixOp;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices, RealMatrices};

const SVD: SvdOp = SvdOp { vectors: Vectors::Thin, degeneracy: Degeneracy::DEFAULT };
const EIGH: EighOp = EighOp { degeneracy: Degeneracy::DEFAULT };

fn square<T: LinalgScalar>(entries: &[f64]) -> Tensor<T> {
    let n = entries.len().isqrt();
    let entries = entries.iter().map(|&x| <T as Numeric>::from_f64(x)).collect();
    Tensor::from_vec(entries, &[n, n]).unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, name: &str) {
    match result {
        Err(LinalgError::SplitTie { op, batch: 0 }) => assert_eq!(op, name),
        other => panic!("{other:?}"),
    }
}

const UNIT: [f64; 4] = [1.0, 0.0, 0.0, 1.0];
const SWAP: [f64; 4] = [0.0, 1.0, 1.0, 0.0];

/// `⟨C, A⟩` and `⟨C, eᴬ⟩` through the factors of `I`, `C` a swap: masks give 0.
fn products<T: LinalgScalar>() {
    let (a, c) = (square::<T>(&UNIT), square::<T>(&SWAP));
    refused(through_svd(&a, &c, Function::Identity, 2, Degeneracy::DEFAULT), "svd_vjp");
    refused(through_eigh(&a, &c, Function::Exp, Degeneracy::DEFAULT), "eigh_vjp");
    let zeros = square::<T>(&[0.0; 4]);
    let with_unit = axpy(&c, 1.0, &a);
    for c in [&c, &with_unit] {
        refused(through_svd(&zeros, c, Function::Identity, 2, Degeneracy::DEFAULT), "svd_vjp");
        refused(through_eigh(&zeros, c, Function::Identity, Degeneracy::DEFAULT), "eigh_vjp");
        let op = crate::svd::SvdFunctionOp { function: crate::hermitian::Elementary::Pow(1.0) };
        let given = [Some(Part::Full(Batched::new(c)))];
        assert_close(&gradient(op, &[&zeros], &given).unwrap()[0], c, tight::<T>(2));
    }
    // The option masks the quotients, which is not the derivative of this loss.
    let masked = through_svd(&a, &c, Function::Identity, 2, Degeneracy::SEPARABLE).unwrap();
    assert!(norm(&masked) < tight::<T>(2));
    // The dedicated operations of these functions are exact.
    let given = [Some(Part::Full(Batched::new(&c)))];
    let function = crate::hermitian::Elementary::Exp;
    let op = crate::hermitian::HermitianFunctionOp { function };
    let got = &gradient(op, &[&a], &given).unwrap()[0];
    assert_close(got, &axpy(&c, std::f64::consts::E - 1.0, &c), tight::<T>(2));
    let function = crate::hermitian::Elementary::Pow(1.0);
    let op = crate::svd::SvdFunctionOp { function };
    assert_close(&gradient(op, &[&a], &given).unwrap()[0], &c, tight::<T>(2));
}

/// Sum of all entries of the truncation of `diag(2, 2, 1)` to two values. If the values are distinct, the rule gives
/// the limit.
fn truncations<T: LinalgScalar>() {
    let ones = square::<T>(&[1.0; 9]);
    let at = |second: f64| {
        let a = square::<T>(&[2.0, 0.0, 0.0, 0.0, second, 0.0, 0.0, 0.0, 1.0]);
        through_svd(&a, &ones, Function::Identity, 2, Degeneracy::DEFAULT)
    };
    refused(at(2.0), "svd_vjp");
    let gap = epsilon::<T>().sqrt() * 16.0;
    let want = square::<T>(&[1.0, 1.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0, 0.0]);
    assert_close(&at(2.0 + gap).unwrap(), &want, 32.0 * epsilon::<T>() / gap + 4.0 * gap);
}

/// `⟨C, V e^Λ V⁻¹⟩` at `I`, with `C` a unit matrix: the cotangents vanish, the gradient `e C` does not.
fn general<T: LinalgScalar>() {
    let a = square::<T>(&UNIT);
    let e = eig(&a).unwrap();
    let (v, l) = (Batched::new(&e.vectors), Batched::rows_of(&e.values));
    let zero = |x: &Batched<T::Complex>| Some(Part::Complex(x.scale(0.0)));
    let vanishing = [zero(&l), zero(&v)];
    refused(gradient(EigOp { degeneracy: Degeneracy::DEFAULT }, &[&a], &vanishing), "eig_vjp");
    let op = EigOp { degeneracy: Degeneracy::SEPARABLE };
    assert_eq!(norm(&gradient(op, &[&a], &vanishing).unwrap()[0]), 0.0);
    let split = square::<T>(&[0.0, 1.0, 0.0, 0.0]);
    let default = EigOp { degeneracy: Degeneracy::DEFAULT };
    refused(tangents(default, &[&a], &[&split]).map(drop), "eig_jvp");
    assert!(tangents(default, &[&a], &[&a]).is_ok());
}

/// `A = s R(0.3)`: the same error at every scale `s`, or the gradient if the values are distinct.
fn units<T: LinalgScalar>() {
    let c = square::<T>(&[1.0, 0.5, 0.2, -1.0]);
    let (sin, cos) = 0.3f64.sin_cos();
    let far = if epsilon::<T>() < 1e-10 { 300 } else { 40 };
    for e in (-far..=far).step_by(10) {
        let s = 2f64.powi(e);
        let a = square::<T>(&[s * cos, -s * sin, s * sin, s * cos]);
        refused(through_svd(&a, &c, Function::Identity, 2, Degeneracy::DEFAULT), "svd_vjp");
        let apart = square::<T>(&[3.0 * s, s, 0.5 * s, -s]);
        let got = through_svd(&apart, &c, Function::Identity, 2, Degeneracy::DEFAULT);
        assert_close(&got.unwrap(), &c, tight::<T>(10));
    }
}

/// Tangents along directions that split ties, and along directions that do not.
fn directions<T: LinalgScalar>() {
    let (unit, swap) = (square::<T>(&UNIT), square::<T>(&SWAP));
    refused(tangents(SVD, &[&unit], &[&swap]).map(drop), "svd_jvp");
    refused(tangents(EIGH, &[&unit], &[&swap]).map(drop), "eigh_jvp");
    let turn = square::<T>(&[1.0, 1.0, -1.0, 1.0]);
    let moved = tangents(SVD, &[&unit], &[&turn]).unwrap();
    let out = crate::svd::svd(&unit, Vectors::Thin).unwrap();
    let (u, vh) = (Batched::new(&out.u), Batched::new(&out.vh));
    let product = moved[0].full().matmul(&vh).add(&u.matmul(moved[2].full()));
    let product = product.add(&u.mul(&Batched::from_re(moved[1].real())).matmul(&vh));
    assert_close(&product.into_tensor().unwrap(), &turn, tight::<T>(2));
    assert!(tangents(EIGH, &[&unit], &[&unit]).is_ok());
    // Away from zero, and along the null spaces.
    let low = square::<T>(&[1.0, 0.0, 0.0, 0.0]);
    refused(tangents(SVD, &[&low], &[&unit]).map(drop), "svd_jvp");
    assert!(tangents(SVD, &[&low], &[&square::<T>(&[0.3, 1.0, 2.0, 0.0])]).is_ok());
}

/// `⟨g|h g⟩/⟨g|g⟩` of the lowest eigenvector has the gradient `|g⟩⟨g|`; the cotangent of `g` is the rounding error of
/// `h g − E g`.
fn rayleigh<T: LinalgScalar>() {
    for n in [2, 4, 8] {
        for seed in 0..40 {
            let h = Batched::new(&random::<T>(1000 * n as u64 + seed, &[n, n])).herm();
            let e = crate::eigh::eigh(&h.clone().into_tensor().unwrap()).unwrap();
            let v = Batched::new(&e.vectors);
            let g = v.slice(0..n, 0..1);
            let (hg, square) = (h.matmul(&g), g.adjoint().matmul(&g));
            let energy = g.adjoint().matmul(&hg).mul_real(&square.re().recip());
            let residual = hg.sub(&g.mul(&energy)).scale(2.0).mul_real(&square.re().recip());
            let cotangent = residual.append(&v.constant(n, n - 1, 0.0));
            let given = [None, Some(Part::Full(cotangent))];
            let through = gradient(EIGH, &[&h.into_tensor().unwrap()], &given);
            let through = through.unwrap_or_else(|error| panic!("n = {n}, seed {seed}: {error}"));
            // The explicit part is the whole gradient.
            assert!(norm(&through[0]) < 1e4 * epsilon::<T>(), "{:e}", norm(&through[0]));
        }
    }
}

/// Second derivatives through vectors at gaps below `√ε` are errors along directions that split the pair, and correct
/// at larger gaps.
fn second<T: Scalar>() {
    let swap = square::<T>(&SWAP);
    let at = |op: MatrixOp, values: usize, gap: f64| {
        let a = square::<T>(&[1.0 + gap, 0.0, 0.0, 1.0]);
        let inputs = duals(std::slice::from_ref(&a), std::slice::from_ref(&swap));
        let recorded = Recorded::new(op, T::IS_COMPLEX, inputs)?;
        // Loss: half of the sum of squares, with gradient A.
        let mut given = vec![None; recorded.out.results.len()];
        given[values] = Some(recorded.out.results[values].clone());
        let gradient = recorded.vjp(&given, &[])?;
        from_eager::<T>(gradient.into_iter().map(Dual::into_tangent).collect())
    };
    let eig = EigOp { degeneracy: Degeneracy::DEFAULT };
    let complex = usize::from(T::IS_COMPLEX);
    for (op, values) in [(SVD.into(), 1 + complex), (EIGH.into(), 0), (eig.into(), 0)] {
        for gap in [0.0, 0.01, 0.5].map(|x| x * epsilon::<T>().sqrt()) {
            match at(op, values, gap) {
                Err(LinalgError::SecondOrderAtTie { batch: 0, .. }) => {}
                // Even the first tangent does not exist.
                Err(LinalgError::SplitTie { batch: 0, .. }) if gap == 0.0 => {}
                other => panic!("{op:?} at {gap:e}: {other:?}"),
            }
        }
        assert_close(&at(op, values, 0.1).unwrap(), &swap, 1e3 * tight::<T>(2));
    }
}

/// NaN is propagated, not reported as a tie.
#[test]
fn cotangents_that_are_not_finite_are_passed_on() {
    let a = square::<f64>(&[2.0, 0.0, 0.0, 1.0]);
    let c = square::<f64>(&[f64::NAN; 4]);
    for a in [a, square::<f64>(&UNIT)] {
        let got = through_svd(&a, &c, Function::Identity, 2, Degeneracy::DEFAULT).unwrap();
        assert!(got.to_vec().unwrap().iter().all(|x| x.is_nan()));
    }
}

/// Losses of values alone may have different cotangents at ties, also if the cotangents of vectors are given as
/// zeros.
#[test]
fn zero_cotangents_of_vectors_are_none() {
    let a = square::<f64>(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let zero = || Some(Part::Full(Batched::new(&Tensor::<f64>::zeros(&[3, 3]).unwrap())));
    let s = Batched::new(&Tensor::from_vec(vec![1.0, 2.0, 3.0], &[1, 3]).unwrap());
    let with = gradient(SVD, &[&a], &[zero(), Some(Part::Real(s.clone())), zero()]).unwrap();
    let without = gradient(SVD, &[&a], &[None, Some(Part::Real(s)), None]).unwrap();
    assert_close(&with[0], &without[0], 1e-15);
}

for_all_dtypes! {
    functions_of_the_matrix_are_refused_at_ties => products;
    truncations_of_tied_values_are_refused => truncations;
    eigenvectors_of_tied_values_are_refused => general;
    comparisons_do_not_depend_on_units => units;
    directions_that_split_ties_are_refused => directions;
    rayleigh_quotients_have_gradients => rayleigh;
    second_derivatives_near_ties_are_errors => second;
}
