use super::*;
use crate::error::LinalgError;
use crate::testing::*;

#[test]
fn factors_of_a_tensor_reproduce_it() {
    let a = random::<f64>(1, &[2, 3, 4, 2]);
    let split = AxisSplit::new(a.shape(), &[2, 0]).unwrap();
    let matrix = split.matrix(&a).unwrap();
    assert_eq!(matrix.shape(), [8, 6]);
    assert_eq!(matrix.get(&[3, 5]), a.get(&[1, 2, 1, 1]));
    assert_close(&split.tensor(&matrix).unwrap(), &a, 0.0);
    let flat = |t: &Tensor<f64>, m, n| t.reshape(&[m, n]).unwrap();

    let out = svd_left_dims(&a, &[2, 0], None).unwrap();
    assert_eq!((out.u.shape(), out.vh.shape()), (&[4, 2, 6][..], &[6, 3, 2][..]));
    let product = sandwich(&flat(&out.u, 8, 6), &out.s, &flat(&out.vh, 6, 6));
    assert_close(&split.tensor(&product).unwrap(), &a, tight::<f64>(8));
    let cut = svd_left_dims(&a, &[2, 0], Some(&Truncation::new().max_dim(2))).unwrap();
    assert_eq!((cut.u.shape(), cut.vh.shape()), (&[4, 2, 2][..], &[2, 3, 2][..]));

    let out = qr_left_dims(&a, &[2, 0]).unwrap();
    let product = mm(&flat(&out.q, 8, 6), &flat(&out.r, 6, 6));
    assert_close(&split.tensor(&product).unwrap(), &a, tight::<f64>(8));

    let out = polar_left_dims(&a, &[2, 0], Side::Right).unwrap();
    assert_eq!((out.u.shape(), out.p.shape()), (a.shape(), &[3, 2, 3, 2][..]));
    let product = mm(&split.matrix(&out.u).unwrap(), &flat(&out.p, 6, 6));
    assert_close(&split.tensor(&product).unwrap(), &a, tight::<f64>(8));

    let h = with_eigenvalues::<f64>(2, &[], &[1.0, 2.0, 3.0, 4.0]).reshape(&[2, 2, 2, 2]).unwrap();
    let out = eigh_left_dims(&h, &[0, 1]).unwrap();
    assert_eq!(out.vectors.shape(), [2, 2, 4]);
}

#[test]
fn bad_axes_are_errors() {
    let a = random::<f64>(1, &[2, 3]);
    for left in [&[2][..], &[0, 0]] {
        let error = qr_left_dims(&a, left).unwrap_err();
        assert!(matches!(error, LinalgError::Tensor(TensorError::Axis { .. })));
    }
    assert!(matches!(eigh_left_dims(&a, &[0]), Err(LinalgError::NotSquare { .. })));
    // No row axes: a 1 × n matrix.
    assert_eq!(svd_left_dims(&a, &[], None).unwrap().u.shape(), [1]);
}
