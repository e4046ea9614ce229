use super::*;
use crate::operation::Part;
use crate::testing::*;

/// The four Penrose conditions, for full rank and for lower rank.
fn identities<T: LinalgScalar>() {
    let full = [2.0, 1.0, 0.5];
    let deficient = [2.0, 1.0, 0.0];
    for (m, n, values) in [(5, 3, full), (3, 5, full), (3, 3, full), (5, 4, deficient)] {
        let a = with_singular_values::<T>(1, &[2], m, n, &values);
        let p = pinv(&a, None).unwrap();
        let (ap, pa) = (mm(&a, &p), mm(&p, &a));
        let limit = tight::<T>(10);
        assert_close(&mm(&ap, &a), &a, limit);
        assert_close(&mm(&pa, &p), &p, limit);
        for projector in [ap, pa] {
            let adjoint = Batched::new(&projector).adjoint().into_tensor().unwrap();
            assert_close(&projector, &adjoint, limit);
        }
    }
    let a = with_singular_values::<T>(1, &[], 4, 3, &[2.0, 1.0, 0.5]);
    let cut = pinv(&a, Some(0.3)).unwrap();
    // Norm of diag(1/2, 1).
    assert!((norm(&cut) - 1.25f64.sqrt()).abs() < tight::<T>(10));
    assert!(pinv(&a, Some(-1.0)).is_err() && pinv(&a, Some(f64::NAN)).is_err());
}

fn derivatives<T: LinalgScalar>() {
    for (m, n) in [(5, 3), (3, 5), (3, 3)] {
        check_operation(
            PinvOp { rtol: None },
            &[with_singular_values::<T>(1, &[2], m, n, &[2.0, 1.0, 0.5])],
        );
    }
}

/// Rank 2 of 3, along a path of constant rank: `A = X Y` with thin factors.
fn constant_rank<T: LinalgScalar>() {
    const OP: PinvOp = PinvOp { rtol: Some(1e-6) };
    let p = |x: &[Tensor<T>]| pinv(&mm(&x[0], &x[1]), Some(1e-6)).unwrap();
    check_rules(
        &[random::<T>(1, &[4, 2]), random::<T>(2, &[2, 3])],
        |x| vec![p(x)],
        |x, v| {
            let da = axpy(&mm(&v[0], &x[1]), 1.0, &mm(&x[0], &v[1]));
            tensors_of(tangents(OP, &[&mm(&x[0], &x[1])], &[&da]).unwrap())
        },
        |x, w| {
            let given = [Some(Part::Full(Batched::new(&w[0])))];
            let cotangent = Batched::new(&gradient(OP, &[&mm(&x[0], &x[1])], &given).unwrap()[0]);
            let (x, y) = (Batched::new(&x[0]), Batched::new(&x[1]));
            let pair = [cotangent.matmul(&y.adjoint()), x.adjoint().matmul(&cotangent)];
            pair.map(|m| m.into_tensor().unwrap()).to_vec()
        },
    );
}

for_all_dtypes! {
    the_penrose_conditions_hold => identities;
    rules_agree_with_differences => derivatives;
    rules_hold_at_constant_lower_rank => constant_rank;
}

#[test]
fn a_bad_matrix_is_named() {
    let mut data = random::<f64>(1, &[2, 3, 2]).to_vec().unwrap();
    data[7] = f64::NAN;
    let a = Tensor::from_vec(data, &[2, 3, 2]).unwrap();
    let error = pinv(&a, None).unwrap_err();
    assert_eq!(error, crate::LinalgError::NonFinite { op: "pinv", batch: 1 });
    let (p, info) = pinv_ex(&a, None).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, -2]);
    assert!(Batched::new(&p).norms().unwrap()[0].is_finite());
}
