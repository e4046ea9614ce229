use super::*;
use crate::error::LinalgError;
use crate::testing::*;
use crate::vocabulary::DualMatrix;

/// First `n` columns of `H₁ ⋯ Hₖ` by products of `m × m` matrices.
fn naive<T: LinalgScalar>(v: &Tensor<T>, tau: &Tensor<T>) -> Tensor<T> {
    let (v, tau) = (Batched::new(v), Batched::rows_of(tau));
    let m = v.rows();
    let mut q = v.identity(m);
    for i in 0..tau.cols() {
        let column = v.slice(0..m, i..i + 1).mask(Region::Lower(-(i as isize) - 1));
        let unit = v.constant(m, 1, 1.0);
        let unit = unit
            .mask(Region::Lower(-(i as isize)))
            .sub(&unit.mask(Region::Lower(-(i as isize) - 1)));
        let column = column.add(&unit);
        let outer = column.matmul(&column.adjoint()).mul(&tau.slice(0..1, i..i + 1));
        q = q.matmul(&v.identity(m).sub(&outer));
    }
    q.slice(0..m, 0..v.cols()).into_tensor().unwrap()
}

fn definition<T: LinalgScalar>() {
    for (m, n, k) in [(5, 3, 3), (4, 4, 4), (5, 4, 2), (4, 3, 0), (3, 0, 0)] {
        let (v, tau) = (random::<T>(1, &[2, m, n]), random::<T>(2, &[2, k]));
        let q = householder_product(&v, &tau).unwrap();
        assert_close(&q, &naive(&v, &tau), tight::<T>(20));
        let mut some = tau.to_vec().unwrap();
        if k > 1 {
            some[1] = T::ZERO;
            let tau = Tensor::from_vec(some, &[2, k]).unwrap();
            let q = householder_product(&v, &tau).unwrap();
            assert_close(&q, &naive(&v, &tau), tight::<T>(20));
        }
    }
}

fn tangents<T: LinalgScalar>() {
    let inputs = [random::<T>(1, &[2, 5, 4]), random::<T>(2, &[2, 3])];
    let v = [random::<T>(3, &[2, 5, 4]), random::<T>(4, &[2, 3])];
    let dual = product(
        &DualMatrix::new(Batched::new(&inputs[0]), Batched::new(&v[0])),
        &DualMatrix::new(Batched::rows_of(&inputs[1]), Batched::rows_of(&v[1])),
    );
    let moved = dual.into_tangent().into_tensor().unwrap();
    let at = |h: f64| {
        householder_product(&axpy(&inputs[0], h, &v[0]), &axpy(&inputs[1], h, &v[1])).unwrap()
    };
    let h = 1e-5;
    let zero = Tensor::zeros(moved.shape()).unwrap();
    let slope = axpy(&zero, 0.5 / h, &axpy(&at(h), -1.0, &at(-h)));
    assert_close(&moved, &slope, 1e-7);
}

for_all_dtypes! {
    products_of_reflections => definition;
}

for_doubles! {
    tangents_agree_with_differences => tangents;
}

/// `τ = 2/‖v‖²`: the product is orthogonal.
#[test]
fn reflections_are_isometries() {
    let v = random::<f64>(1, &[5, 3]);
    let below = v.to_vec().unwrap();
    let tau =
        (0..3).map(|i| 2.0 / (1.0 + (i + 1..5).map(|r| below[3 * r + i].powi(2)).sum::<f64>()));
    let tau = Tensor::from_vec(tau.collect(), &[3]).unwrap();
    assert_isometry(&householder_product(&v, &tau).unwrap());
}

#[test]
fn shapes_have_to_match() {
    let check = |v: &[usize], tau: &[usize]| {
        let error = householder_product(&random::<f64>(1, v), &random(2, tau)).unwrap_err();
        assert!(matches!(error, LinalgError::Tensor(_)), "{error}");
    };
    check(&[3, 4], &[3]);
    check(&[4, 3], &[4]);
    check(&[2, 4, 3], &[3]);
    let mut nan = random::<f64>(1, &[2, 4, 3]).to_vec().unwrap();
    nan[22] = f64::NAN;
    let v = Tensor::from_vec(nan, &[2, 4, 3]).unwrap();
    let error = householder_product(&v, &random(2, &[2, 3])).unwrap_err();
    assert_eq!(error, LinalgError::NonFinite { op: "householder_product", batch: 1 });
}
