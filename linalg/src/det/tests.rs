use super::*;
use crate::operation::Part;
use crate::testing::*;

fn matrix<T: LinalgScalar>() -> Tensor<T> {
    with_singular_values::<T>(1, &[2], 4, 4, &[0.5, 1.0, 1.5, 2.0])
}

fn values<T: LinalgScalar>() {
    let a = matrix::<T>();
    let d = det(&a).unwrap();
    assert!(d.to_vec().unwrap().iter().all(|d| (d.modulus().to_f64() - 1.5).abs() < tight::<T>(4)));
    let (sign, log) = slogdet(&a).unwrap();
    for ((d, s), l) in
        d.to_vec().unwrap().iter().zip(sign.to_vec().unwrap()).zip(log.to_vec().unwrap())
    {
        let product = Numeric::mul(s, real::<T>(Float::exp(l)));
        assert!(Numeric::sub(*d, product).modulus().to_f64() < tight::<T>(10));
    }
    // An odd permutation has determinant −1.
    let p: Vec<T> = [0., 1., 0., 0., 0., 1., 1., 0., 0.].map(T::from_f64).to_vec();
    let even = Tensor::from_vec(p, &[3, 3]).unwrap();
    assert_eq!(det(&even).unwrap().to_vec().unwrap(), [T::ONE]);
    let odd = even.flip(&[0]).unwrap();
    assert_eq!(det(&odd).unwrap().to_vec().unwrap(), [T::from_f64(-1.0)]);
    let product = det(&mm(&a, &a)).unwrap();
    let squares = Batched::numbers(&d).mul(&Batched::numbers(&d)).into_numbers().unwrap();
    assert_close(&product, &squares, tight::<T>(10));
}

fn derivatives<T: LinalgScalar>() {
    check_operation(DetOp, &[matrix::<T>()]);
    check_operation(SlogdetOp, &[matrix::<T>()]);
}

/// Rank n − 1, in a batch with a regular matrix.
fn singular<T: LinalgScalar>() {
    let flat = with_singular_values::<T>(3, &[1], 4, 4, &[2.0, 1.0, 0.5, 0.0]);
    let regular = with_singular_values::<T>(5, &[1], 4, 4, &[2.0, 1.0, 0.5, 0.2]);
    let data = [flat.to_vec().unwrap(), regular.to_vec().unwrap()].concat();
    check_operation(DetOp, &[Tensor::from_vec(data, &[2, 4, 4]).unwrap()]);
}

for_all_dtypes! {
    determinants_of_known_matrices => values;
    rules_agree_with_differences => derivatives;
    singular_matrices_have_a_derivative => singular;
}

#[test]
fn singular_and_bad_matrices() {
    let a = Tensor::from_vec(vec![1.0, 2.0, 2.0, 4.0, 1.0, 0.0, 0.0, 1.0], &[2, 2, 2]).unwrap();
    assert_eq!(det(&a).unwrap().to_vec().unwrap(), [0.0, 1.0]);
    let ((sign, log), _, info) = slogdet_ex(&a).unwrap();
    assert_eq!(sign.to_vec().unwrap(), [0.0, 1.0]);
    assert_eq!(log.to_vec().unwrap(), [f64::NEG_INFINITY, 0.0]);
    assert_eq!(info.to_vec().unwrap(), [0, 0]);
    let given = [None, Some(Part::Real(Batched::numbers(&log)))];
    let error = gradient(SlogdetOp, &[&a], &given).unwrap_err();
    let rank = LinalgError::RankDeficient { op: "slogdet_vjp", batch: 0, rank: 1, required: 2 };
    assert_eq!(error, rank);
    let bad = Tensor::from_vec(vec![f64::NAN; 4], &[2, 2]).unwrap();
    assert_eq!(det(&bad).unwrap_err(), LinalgError::NonFinite { op: "det", batch: 0 });
    assert!(det_ex(&bad).unwrap().0.to_vec().unwrap()[0].is_nan());
    assert_eq!(
        det(&Tensor::<f64>::zeros(&[3, 0, 0]).unwrap()).unwrap().to_vec().unwrap(),
        [1.0; 3]
    );
    assert!(matches!(
        det(&Tensor::<f64>::zeros(&[2, 3]).unwrap()),
        Err(LinalgError::NotSquare { .. })
    ));
}
