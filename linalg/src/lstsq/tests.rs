use super::*;
use crate::testing::*;

const VALUES: [f64; 3] = [2.0, 1.0, 0.5];

fn systems<T: LinalgScalar>() -> [[Tensor<T>; 2]; 3] {
    [(5, 3), (3, 5), (3, 3)].map(|(m, n)| {
        [with_singular_values::<T>(1, &[2], m, n, &VALUES), random::<T>(2, &[2, m, 2])]
    })
}

fn identities<T: LinalgScalar>() {
    for [a, b] in systems::<T>() {
        let x = lstsq(&a, &b).unwrap().x;
        let residual = axpy(&mm(&a, &x), -1.0, &b);
        let normal = Batched::new(&a).adjoint().matmul(&Batched::new(&residual));
        assert!(normal.norms().unwrap().iter().all(|n| *n < tight::<T>(20)));
        assert_close(&x, &lstsq_min_norm(&a, &b, None).unwrap(), tight::<T>(20));
    }
    for [a, b] in systems::<T>() {
        let x = random::<T>(5, &[2, a.shape()[2], 2]);
        let rest = Batched::new(&axpy(&mm(&a, &x), -1.0, &b));
        let got = Batched::rows_of(&lstsq_residuals(&a, &b, &x).unwrap());
        for j in 0..2 {
            let norms = rest.slice(0..a.shape()[1], j..j + 1).norms().unwrap();
            let column = got.slice(0..1, j..j + 1).into_tensor().unwrap().to_vec().unwrap();
            for (norm, got) in norms.iter().zip(column) {
                assert!((norm * norm - got.to_f64()).abs() < tight::<T>(20) * norm * norm);
            }
        }
    }
    // Rank 2: the pseudoinverse gives the minimum-norm solution.
    let a = with_singular_values::<T>(1, &[], 4, 3, &[2.0, 1.0, 0.0]);
    let b = random::<T>(2, &[4, 1]);
    let x = lstsq_min_norm(&a, &b, None).unwrap();
    let normal =
        mm(&Batched::new(&a).adjoint().into_tensor().unwrap(), &axpy(&mm(&a, &x), -1.0, &b));
    assert!(norm(&normal) < tight::<T>(20));
}

fn derivatives<T: LinalgScalar>() {
    for system in systems::<T>() {
        check_operation(LstsqOp, &system);
        check_operation(LstsqMinNormOp { rtol: None }, &system);
    }
}

for_all_dtypes! {
    the_residual_is_orthogonal => identities;
    rules_agree_with_differences => derivatives;
}

#[test]
fn one_deficient_matrix_does_not_spoil_the_others() {
    let a = Tensor::from_vec(
        vec![1.0, 2.0, 2.0, 4.0, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0],
        &[2, 3, 2],
    );
    let (a, b) = (a.unwrap(), Tensor::ones(&[2, 3, 1]).unwrap());
    let error = lstsq(&a, &b).unwrap_err();
    assert_eq!(error, LinalgError::RankDeficient { op: "lstsq", batch: 0, rank: 1, required: 2 });
    let (out, info) = lstsq_ex(&a, &b).unwrap();
    assert_eq!(info.to_vec().unwrap(), [2, 0]);
    let x = out.x.to_vec().unwrap();
    assert!(x[0].is_nan() && (x[2] - 1.0).abs() < 1e-14 && (x[3] - 0.5).abs() < 1e-14);
    assert!(matches!(lstsq(&a, &random::<f64>(1, &[2, 2, 1])), Err(LinalgError::Tensor(_))));
    let mut bad = b.to_vec().unwrap();
    bad[4] = f64::NAN;
    let (_, info) = lstsq_ex(&a, &Tensor::from_vec(bad, &[2, 3, 1]).unwrap()).unwrap();
    assert_eq!(info.to_vec().unwrap(), [2, -2]);
}
