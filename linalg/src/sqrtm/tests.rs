use super::*;
use crate::testing::*;

fn matrix<T: LinalgScalar>(batch: &[usize], n: usize) -> Tensor<T> {
    // 2 I + a perturbation of norm below 2: no eigenvalue near the negative axis.
    let shape: Vec<usize> = batch.iter().copied().chain([n, n]).collect();
    let a = Batched::new(&random::<T>(1, &shape)).scale(1.2 / n as f64);
    a.add(&a.identity(n).scale(2.0)).into_tensor().unwrap()
}

fn identities<T: LinalgScalar>() {
    for (batch, n) in [(&[3][..], 4), (&[][..], 1), (&[2, 2][..], 7)] {
        let a = matrix::<T>(batch, n);
        let r = sqrtm(&a).unwrap();
        assert_close(&mm(&r, &r), &a, tight::<T>(n));
    }
    // Badly scaled: eigenvalues from 1e-4 to 1e4.
    let a = with_eigenvalues::<T>(2, &[], &[1e-4, 1e-2, 1.0, 1e2, 1e4]);
    let r = sqrtm(&a).unwrap();
    assert_close(&mm(&r, &r), &a, 1e3 * tight::<T>(5));
}

fn derivatives<T: LinalgScalar>() {
    check_operation(SqrtmOp, &[matrix::<T>(&[2], 4)]);
    // dR solves R dR + dR R = dA.
    let (a, da) = (matrix::<T>(&[2], 4), random::<T>(5, &[2, 4, 4]));
    let r = sqrtm(&a).unwrap();
    let dr = tensors_of(tangents(SqrtmOp, &[&a], &[&da]).unwrap()).swap_remove(0);
    assert_close(&axpy(&mm(&r, &dr), 1.0, &mm(&dr, &r)), &da, tight::<T>(20));
}

for_all_dtypes! {
    the_root_squares_to_the_matrix => identities;
    rules_agree_with_differences => derivatives;
}

#[test]
fn matrices_without_a_principal_root_are_named() {
    let data = vec![4.0, 0.0, 0.0, 9.0, -1.0, 0.0, 0.0, 1.0, f64::NAN, 0.0, 0.0, 1.0];
    let a = Tensor::from_vec(data, &[3, 2, 2]).unwrap();
    let (r, info) = sqrtm_ex(&a).unwrap();
    let codes = info.to_vec().unwrap();
    use crate::error::{NEGATIVE_EIGENVALUE, NON_FINITE};
    assert_eq!(codes, [0, NEGATIVE_EIGENVALUE, NON_FINITE]);
    assert!((r.to_vec().unwrap()[3] - 3.0).abs() < 1e-14);
    let text = sqrtm(&a).unwrap_err().to_string();
    assert!(
        text.starts_with("sqrtm: matrix 1 has an eigenvalue on the negative real axis"),
        "{text}"
    );
    for seed in 0..20 {
        // A real matrix with a negative eigenvalue, anywhere.
        let a = with_eigenvalues::<f64>(seed, &[], &[-0.7, 0.5, 1.0]);
        let error = sqrtm(&a).unwrap_err();
        assert_eq!(error, LinalgError::NegativeEigenvalue { op: "sqrtm", batch: 0 });
    }
    let singular = Tensor::from_vec(vec![1.0, 0.0, 0.0, 0.0], &[2, 2]).unwrap();
    assert_eq!(
        sqrtm(&singular).unwrap_err(),
        LinalgError::Singular { op: "sqrtm", batch: 0, index: 1 }
    );
}

/// Elements whose reciprocal is infinite.
#[test]
fn subnormal_matrices_have_roots() {
    let a = Tensor::from_vec(vec![2e-39f32, 0.0, 0.0, 2e-39], &[2, 2]).unwrap();
    let root = sqrtm(&a).unwrap();
    let want = Batched::new(&a).identity(2).scale(2e-39f64.sqrt()).into_tensor().unwrap();
    assert_close(&root, &want, 1e-6);
}
