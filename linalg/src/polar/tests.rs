use super::*;
use crate::error::LinalgError;
use crate::testing::*;

/// Ties are no matter here.
const VALUES: [f64; 3] = [2.0, 1.0, 1.0];

fn matrices<T: LinalgScalar>() -> [(Tensor<T>, Side); 4] {
    let a = |m, n| with_singular_values::<T>(1, &[2], m, n, &VALUES);
    [(a(3, 3), Side::Right), (a(5, 3), Side::Right), (a(3, 3), Side::Left), (a(3, 5), Side::Left)]
}

fn identities<T: LinalgScalar>() {
    for (a, side) in matrices::<T>() {
        let Polar { u, p, .. } = polar(&a, side).unwrap();
        let view = Batched::new(&u);
        let product = match side {
            Side::Right => {
                assert_isometry(&u);
                mm(&u, &p)
            }
            Side::Left => {
                assert_isometry(&view.adjoint().into_tensor().unwrap());
                mm(&p, &u)
            }
        };
        assert_close(&product, &a, tight::<T>(5));
        let values = crate::eigh::eigvalsh(&p).unwrap().to_vec().unwrap();
        assert!(values.iter().all(|v| *v > <T::R as t4a_algebra::Numeric>::ZERO));
    }
}

fn derivatives<T: LinalgScalar>() {
    for (a, side) in matrices::<T>() {
        check_rules(
            &[a],
            |x| polar(&x[0], side).map(|f| vec![f.u, f.p]).unwrap(),
            |x, v| polar_jvp(&polar(&x[0], side).unwrap(), &v[0]).map(|f| vec![f.u, f.p]).unwrap(),
            |x, w| {
                let out = polar(&x[0], side).unwrap();
                vec![polar_vjp(&out, Some(&w[0]), Some(&w[1])).unwrap()]
            },
        );
    }
}

for_all_dtypes! {
    factors_reproduce_the_matrix => identities;
    rules_agree_with_differences_at_ties => derivatives;
}

#[test]
fn a_derivative_needs_full_rank() {
    let a = with_singular_values::<f64>(1, &[], 4, 3, &[1.0, 0.5, 0.0]);
    let out = polar(&a, Side::Right).unwrap();
    assert_close(&mm(&out.u, &out.p), &a, 1e-14);
    let error = polar_vjp(&out, Some(&out.u), None).unwrap_err();
    assert!(matches!(error, LinalgError::RankDeficient { rank: 2, required: 3, .. }));
    let wide = polar(&random::<f64>(1, &[2, 3]), Side::Right).unwrap();
    assert!(polar_jvp(&wide, &random::<f64>(1, &[2, 3])).is_err());
    let mut data = vec![1.0; 8];
    data[4] = f64::NAN;
    let bad = Tensor::from_vec(data, &[2, 2, 2]).unwrap();
    let error = polar(&bad, Side::Left).unwrap_err();
    assert_eq!(error, LinalgError::NonFinite { op: "polar", batch: 1 });
}
