use super::*;
use crate::error::LinalgError;
use crate::testing::*;

const POWERS: [i64; 7] = [-3, -1, 0, 1, 2, 5, 8];

fn matrices<T: LinalgScalar>() -> Tensor<T> {
    with_singular_values::<T>(1, &[2], 3, 3, &[1.5, 1.0, 0.7])
}

fn products<T: LinalgScalar>() {
    let a = matrices::<T>();
    let inverse = crate::inverse::inv(&a).unwrap();
    for k in POWERS {
        let factor = if k < 0 { &inverse } else { &a };
        let unit = Batched::new(&a).identity(3).into_tensor().unwrap();
        let want = (0..k.abs()).fold(unit, |product, _| mm(&product, factor));
        assert_close(&matrix_power(&a, k).unwrap(), &want, tight::<T>(20));
    }
}

fn derivatives<T: LinalgScalar>() {
    let view = |t: &Tensor<T>| Batched::new(t);
    for k in POWERS {
        check_rules(
            &[matrices::<T>()],
            |x| vec![matrix_power(&x[0], k).unwrap()],
            |x, v| vec![jvp(&view(&x[0]), &view(&v[0]), k).into_tensor().unwrap()],
            |x, w| vec![vjp(&view(&x[0]), &view(&w[0]), k).into_tensor().unwrap()],
        );
    }
}

for_all_dtypes! {
    powers_are_products => products;
    rules_agree_with_differences => derivatives;
}

#[test]
fn the_largest_exponents_end() {
    let unit = Tensor::from_vec(vec![0.0, 1.0, 1.0, 0.0], &[2, 2]).unwrap();
    assert_eq!(matrix_power(&unit, i64::MAX).unwrap().to_vec().unwrap(), [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(matrix_power(&unit, i64::MIN).unwrap().to_vec().unwrap(), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(matrix_power(&random::<f64>(1, &[2, 0, 0]), -3).unwrap().shape(), [2, 0, 0]);
}

#[test]
fn errors_name_the_operation() {
    let op = "matrix_power";
    let a = Tensor::from_vec(vec![1.0, 2.0, 2.0, 4.0], &[2, 2]).unwrap();
    assert_eq!(matrix_power(&a, -1).unwrap_err(), LinalgError::Singular { op, batch: 0, index: 1 });
    assert!(matrix_power(&a, 3).is_ok());
    let error = matrix_power(&random::<f64>(1, &[2, 3]), 2).unwrap_err();
    assert_eq!(error, LinalgError::NotSquare { op, shape: vec![2, 3] });
}
