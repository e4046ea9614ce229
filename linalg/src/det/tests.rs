use super::*;
use crate::testing::*;

fn matrix<T: LinalgScalar>() -> Tensor<T> {
    with_singular_values::<T>(1, &[2], 4, 4, &[0.5, 1.0, 1.5, 2.0])
}

fn pair<T: LinalgScalar>(out: (Tensor<T>, Tensor<T::R>)) -> Vec<Tensor<T>> {
    vec![out.0, Batched::from_re(&Batched::numbers(&out.1)).into_numbers().unwrap()]
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
    // A permutation of odd parity, by definition −1.
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
    check_rules(
        &[matrix::<T>()],
        |x| vec![det(&x[0]).unwrap()],
        |x, v| {
            let (d, factors, _) = det_ex(&x[0]).unwrap();
            vec![det_jvp(&x[0], &d, &factors, &v[0]).unwrap()]
        },
        |x, w| {
            let (d, factors, _) = det_ex(&x[0]).unwrap();
            vec![det_vjp(&x[0], &d, &factors, &w[0]).unwrap()]
        },
    );
    check_rules(
        &[matrix::<T>()],
        |x| pair(slogdet(&x[0]).unwrap()),
        |x, v| {
            let ((sign, _), factors, _) = slogdet_ex(&x[0]).unwrap();
            pair(slogdet_jvp(&sign, &factors, &v[0]).unwrap())
        },
        |x, w| {
            let ((sign, _), factors, _) = slogdet_ex(&x[0]).unwrap();
            let log_bar = Batched::numbers(&w[1]).re().into_numbers().unwrap();
            vec![slogdet_vjp(&sign, &factors, Some(&w[0]), Some(&log_bar)).unwrap()]
        },
    );
}

/// At rank n − 1, and one regular matrix beside it.
fn singular<T: LinalgScalar>() {
    let flat = with_singular_values::<T>(3, &[1], 4, 4, &[2.0, 1.0, 0.5, 0.0]);
    let regular = with_singular_values::<T>(5, &[1], 4, 4, &[2.0, 1.0, 0.5, 0.2]);
    let data = [flat.to_vec().unwrap(), regular.to_vec().unwrap()].concat();
    check_rules(
        &[Tensor::from_vec(data, &[2, 4, 4]).unwrap()],
        |x| vec![det(&x[0]).unwrap()],
        |x, v| {
            let (d, factors, _) = det_ex(&x[0]).unwrap();
            let factors = spoil_pivot(factors);
            vec![det_jvp(&x[0], &d, &factors, &v[0]).unwrap()]
        },
        |x, w| {
            let (d, factors, _) = det_ex(&x[0]).unwrap();
            let factors = spoil_pivot(factors);
            vec![det_vjp(&x[0], &d, &factors, &w[0]).unwrap()]
        },
    );
}

/// Rounding leaves a tiny last pivot; zero makes the singular branch certain.
fn spoil_pivot<T: LinalgScalar>(factors: LuFactors<T>) -> LuFactors<T> {
    let mut data = factors.packed.to_vec().unwrap();
    data[15] = T::ZERO;
    LuFactors { packed: Tensor::from_vec(data, &[2, 4, 4]).unwrap(), ..factors }
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
    let ((sign, log), factors, info) = slogdet_ex(&a).unwrap();
    assert_eq!(sign.to_vec().unwrap(), [0.0, 1.0]);
    assert_eq!(log.to_vec().unwrap(), [f64::NEG_INFINITY, 0.0]);
    assert_eq!(info.to_vec().unwrap(), [0, 0]);
    let error = slogdet_vjp(&sign, &factors, None, Some(&log)).unwrap_err();
    assert!(matches!(error, LinalgError::Singular { op: "slogdet_vjp", batch: 0, index: 1 }));
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
