use super::*;
use crate::error::LinalgError;
use crate::testing::*;
use crate::vocabulary::Region;

const VALUES: [f64; 5] = [0.5, 1.0, 1.5, 2.0, 3.0];

fn identities<T: LinalgScalar>() {
    for batch in [&[][..], &[2, 3]] {
        let a = with_eigenvalues::<T>(1, batch, &VALUES);
        let l = cholesky(&a).unwrap();
        let view = Batched::new(&l);
        assert_close(&view.matmul(&view.adjoint()).into_tensor().unwrap(), &a, tight::<T>(5));
        let u = Batched::new(&cholesky_upper(&a).unwrap());
        assert_close(&u.adjoint().matmul(&u).into_tensor().unwrap(), &a, tight::<T>(5));
        assert_eq!(u.mask(Region::Lower(-1)).norms().unwrap().iter().sum::<f64>(), 0.0);
        assert_eq!(view.mask(Region::Upper(1)).norms().unwrap().iter().sum::<f64>(), 0.0);
    }
    let values: Vec<f64> = (0..80).map(|i| 1.0 + i as f64 / 20.0).collect();
    let a = with_eigenvalues::<T>(2, &[], &values);
    let l = Batched::new(&cholesky(&a).unwrap());
    assert_close(&l.matmul(&l.adjoint()).into_tensor().unwrap(), &a, tight::<T>(80));
}

fn derivatives<T: LinalgScalar>() {
    let a = with_eigenvalues::<T>(3, &[2], &VALUES);
    let skew = Batched::new(&random::<T>(4, &[2, 5, 5])).skew().into_tensor().unwrap();
    check_operation(CholeskyOp, &[axpy(&a, 1.0, &skew)]);
}

for_all_dtypes! {
    the_factor_reproduces_the_matrix => identities;
    rules_agree_with_differences => derivatives;
}

#[test]
fn a_matrix_that_is_not_positive_is_named_and_the_others_stay() {
    let good = with_eigenvalues::<f64>(5, &[], &VALUES).to_vec().unwrap();
    let mut data = [good.clone(), good.clone(), good].concat();
    data[25 + 2 * 5 + 2] = -1.0;
    data[50] = f64::NAN;
    let a = Tensor::from_vec(data, &[3, 5, 5]).unwrap();
    let error = cholesky(&a).unwrap_err();
    assert_eq!(error, LinalgError::NonPositivePivot { op: "cholesky", batch: 1, index: 2 });
    let (l, info) = cholesky_ex(&a).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, 3, -2]);
    let norms = Batched::new(&l).norms().unwrap();
    assert!(norms[0].is_finite() && norms[1].is_nan() && norms[2].is_nan());
    assert!(matches!(cholesky(&random::<f64>(1, &[2, 3])), Err(LinalgError::NotSquare { .. })));
    assert_eq!(cholesky(&Tensor::<f64>::zeros(&[2, 0, 0]).unwrap()).unwrap().shape(), [2, 0, 0]);
}
