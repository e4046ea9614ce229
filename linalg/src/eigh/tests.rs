use super::*;
use crate::degeneracy::Degeneracy;
use crate::error::LinalgError;
use crate::operation::{Outcome, Part};
use crate::table::MatrixOp;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices};

fn identities<T: LinalgScalar>() {
    for shape in [&[4, 4][..], &[1, 1], &[2, 3, 5, 5], &[70, 70]] {
        let n = shape[shape.len() - 1];
        let a = random::<T>(1, shape);
        let Eigh { values, vectors } = eigh(&a).unwrap();
        assert_isometry(&vectors);
        let adjoint = Batched::new(&vectors).adjoint().into_tensor().unwrap();
        let herm = Batched::new(&a).herm().into_tensor().unwrap();
        assert_close(&sandwich(&vectors, &values, &adjoint), &herm, tight::<T>(n));
        for row in values.to_vec().unwrap().chunks(n) {
            assert!(row.windows(2).all(|w| w[0] <= w[1]));
        }
        assert_close(&eigvalsh(&a).unwrap(), &values, tight::<T>(n));
    }
}

fn operand<T: LinalgScalar>(
    eigh: &Eigh<T>,
    degeneracy: &Degeneracy,
) -> (MatrixOp, Batched<T>, Outcome<Batched<T>>) {
    let vectors = Batched::new(&eigh.vectors);
    let parts = vec![Part::Real(Batched::rows_of(&eigh.values)), Part::Full(vectors.clone())];
    (EighOp { degeneracy: *degeneracy }.into(), vectors, Outcome::new(parts))
}

/// Applies the rule to given factors.
pub(crate) fn eigh_vjp<T: LinalgScalar>(
    eigh: &Eigh<T>,
    values: Option<&Tensor<T::R>>,
    vectors: Option<&Tensor<T>>,
    degeneracy: &Degeneracy,
) -> Result<Tensor<T>> {
    let (op, a, out) = operand(eigh, degeneracy);
    let values = values.map(|e| Part::Real(Batched::rows_of(e)));
    let given = [values, vectors.map(|v| Part::Full(Batched::new(v)))];
    op.pullback(&[a], &out, &given, &[])?.swap_remove(0).into_tensor()
}

fn eigh_jvp<T: LinalgScalar>(
    eigh: &Eigh<T>,
    da: &Tensor<T>,
    degeneracy: &Degeneracy,
) -> Result<Eigh<T>> {
    let (op, a, out) = operand(eigh, degeneracy);
    let parts = op.pushforward(&[a], &out, &[Some(Batched::new(da))], false)?.0;
    let (values, vectors) = (parts[0].real().clone(), parts[1].full().clone());
    Ok(Eigh { values: values.into_vectors()?, vectors: vectors.into_tensor()? })
}

/// `V diag(w) Vᴴ` and the eigenvalues: gauge-invariant functions of `A`.
fn derivatives<T: LinalgScalar>() {
    let a = with_eigenvalues::<T>(3, &[2], &[-2.0, -0.7, 0.5, 1.4, 2.5]);
    // Deliberately not Hermitian: the operation uses (A + Aᴴ)/2.
    let skew = Batched::new(&random::<T>(4, &[2, 5, 5])).skew().into_tensor().unwrap();
    let a = axpy(&a, 1.0, &skew);
    let weights = |v: &Batched<T>| row(v, &[1.0, -2.0, 0.5, 3.0, 0.1]);
    let no_policy = Degeneracy::default();
    check_rules(
        &[a],
        |x| {
            let e = eigh(&x[0]).unwrap();
            let v = Batched::new(&e.vectors);
            let product = v.mul(&weights(&v)).matmul(&v.adjoint());
            let values = Batched::from_re(&Batched::rows_of(&e.values));
            vec![product.into_tensor().unwrap(), values.into_tensor().unwrap()]
        },
        |x, t| {
            let e = eigh(&x[0]).unwrap();
            let d = eigh_jvp(&e, &t[0], &no_policy).unwrap();
            let (v, dv) = (Batched::new(&e.vectors), Batched::new(&d.vectors));
            let half = dv.mul(&weights(&v)).matmul(&v.adjoint());
            let values = Batched::from_re(&Batched::rows_of(&d.values));
            let product = half.add(&half.adjoint());
            vec![product.into_tensor().unwrap(), values.into_tensor().unwrap()]
        },
        |x, w| {
            let e = eigh(&x[0]).unwrap();
            let v = Batched::new(&e.vectors);
            let cotangent = Batched::new(&w[0]);
            let v_cotangent = cotangent.add(&cotangent.adjoint()).matmul(&v).mul(&weights(&v));
            let e_cotangent = Batched::new(&w[1]).re().into_vectors().unwrap();
            let v_cotangent = v_cotangent.into_tensor().unwrap();
            vec![eigh_vjp(&e, Some(&e_cotangent), Some(&v_cotangent), &no_policy).unwrap()]
        },
    );
}

/// `Re tr(C V diag(w) Vᴴ)` with equal weights on a tied subspace: a function of the projector.
fn tie<T: LinalgScalar>() {
    let a = with_eigenvalues::<T>(5, &[], &[-1.0, 1.0, 1.0, 1.0, 2.0]);
    let c = Batched::new(&random::<T>(6, &[5, 5])).herm();
    let e = eigh(&a).unwrap();
    let v = Batched::new(&e.vectors);
    let weights = [0.5, 1.0, 1.0, 1.0, -2.0];
    let v_cotangent = c.matmul(&v).mul(&row(&v, &weights)).scale(2.0).into_tensor().unwrap();
    let policy = Degeneracy { tolerance: Some(tight::<T>(1)), ..Degeneracy::SEPARABLE };
    let got = eigh_vjp(&e, None, Some(&v_cotangent), &policy).unwrap();
    // Divided differences of the weights, in closed form.
    let w = [-1.0, 1.0, 1.0, 1.0, 2.0];
    let quotient = |i: usize, j: usize| match w[i] == w[j] {
        true => 0.0,
        false => (weights[i] - weights[j]) / (w[i] - w[j]),
    };
    let gamma = (0..25).map(|at| T::from_f64(quotient(at / 5, at % 5))).collect();
    let gamma = Batched::new(&Tensor::from_vec(gamma, &[5, 5]).unwrap());
    let exact = v.matmul(&v.adjoint().matmul(&c).matmul(&v).mul(&gamma)).matmul(&v.adjoint());
    assert_close(&got, &exact.into_tensor().unwrap(), tight::<T>(50));
    // tr(C A²) has different cotangents at tied values: its derivative is not a function of the cotangents.
    let values = Batched::<T::R>::rows_of(&e.values);
    let v_cotangent = c.matmul(&v).mul_real(&values.mul(&values)).scale(2.0).into_tensor().unwrap();
    let diagonal = v.adjoint().matmul(&c).matmul(&v).diagonal().re();
    let e_cotangent = diagonal.mul(&values).scale(2.0).into_vectors().unwrap();
    let error = eigh_vjp(&e, Some(&e_cotangent), Some(&v_cotangent), &policy).unwrap_err();
    assert!(matches!(error, LinalgError::GaugeIllDefined { op: "eigh_vjp", batch: 0, .. }));
}

fn gauge<T: LinalgScalar>() {
    let tied = eigh(&with_eigenvalues::<T>(7, &[], &[1.0, 1.0, 2.0])).unwrap();
    let cotangent = random::<T>(8, &[3, 3]);
    let error = eigh_vjp(&tied, None, Some(&cotangent), &Degeneracy::default()).unwrap_err();
    assert!(matches!(error, LinalgError::GaugeIllDefined { op: "eigh_vjp", batch: 0, .. }));
    let apart = eigh(&with_eigenvalues::<T>(7, &[], &[0.0, 1.0, 2.0])).unwrap();
    let result = eigh_vjp(&apart, None, Some(&cotangent), &Degeneracy::default());
    assert_eq!(result.is_err(), T::IS_COMPLEX);
}

fn phases<T: LinalgScalar>() {
    let e = eigh(&with_eigenvalues::<T>(9, &[], &[0.0, 1.0, 2.0, 3.5])).unwrap();
    let c = Batched::new(&random::<T>(10, &[4, 4])).herm();
    let gradient = |v: &Batched<T>| {
        let v_cotangent = c.matmul(v).mul(&row(v, &[1.0, 2.0, -1.0, 0.5])).into_tensor().unwrap();
        let e = Eigh { values: e.values.clone(), vectors: v.clone().into_tensor().unwrap() };
        eigh_vjp(&e, None, Some(&v_cotangent), &Degeneracy::default()).unwrap()
    };
    let v = Batched::new(&e.vectors);
    assert_close(&gradient(&v.mul(&unit_row(4))), &gradient(&v), tight::<T>(20));
}

for_all_dtypes! {
    gradients_do_not_depend_on_phases => phases;
    factors_reproduce_the_matrix => identities;
    rules_agree_with_differences => derivatives;
    a_tie_is_exact_for_functions_of_the_subspace => tie;
    losses_that_depend_on_the_basis_are_reported => gauge;
}

#[test]
fn errors_name_the_matrix() {
    assert!(matches!(eigh(&random::<f64>(1, &[2, 3])), Err(LinalgError::NotSquare { .. })));
    let mut data = random::<f64>(1, &[2, 2, 2]).to_vec().unwrap();
    data[7] = f64::INFINITY;
    let a = Tensor::from_vec(data, &[2, 2, 2]).unwrap();
    assert_eq!(eigh(&a).unwrap_err(), LinalgError::NonFinite { op: "eigh", batch: 1 });
    assert_eq!(eigvalsh(&a).unwrap_err(), LinalgError::NonFinite { op: "eigvalsh", batch: 1 });
    let (out, info) = eigh_ex(&a).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, -2]);
    assert!(out.values.to_vec().unwrap()[..2].iter().all(|x| x.is_finite()));
    for shape in [[0, 3, 3], [2, 0, 0]] {
        assert_eq!(eigh(&Tensor::<f32>::zeros(&shape).unwrap()).unwrap().vectors.shape(), shape);
    }
}
