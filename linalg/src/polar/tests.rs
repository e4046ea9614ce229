use super::*;
use crate::error::LinalgError;
use crate::operation::Part;
use crate::testing::*;
use t4a_algebra::Real;

/// Includes a tie, which does not affect the derivative.
const VALUES: [f64; 3] = [2.0, 1.0, 1.0];

fn matrices<T: LinalgScalar>() -> [(Tensor<T>, Side); 6] {
    let a = |m, n| with_singular_values::<T>(1, &[2], m, n, &VALUES);
    [(3, 3), (5, 3), (3, 5)]
        .into_iter()
        .flat_map(|(m, n)| [(a(m, n), Side::Right), (a(m, n), Side::Left)])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

fn identities<T: LinalgScalar>() {
    for (a, side) in matrices::<T>() {
        let Polar { u, p, .. } = polar(&a, side).unwrap();
        let view = Batched::new(&u);
        match a.shape()[1] >= a.shape()[2] {
            true => assert_isometry(&u),
            false => assert_isometry(&view.adjoint().into_tensor().unwrap()),
        }
        let product = match side {
            Side::Right => mm(&u, &p),
            Side::Left => mm(&p, &u),
        };
        assert_close(&product, &a, tight::<T>(5));
        let values = crate::eigh::eigvalsh(&p).unwrap().to_vec().unwrap();
        let zero = tight::<T>(5);
        assert!(values.iter().all(|v| v.to_f64() > -zero));
        let rank = values.iter().filter(|v| v.to_f64() > zero).count();
        assert_eq!(rank, 2 * VALUES.len());
    }
}

fn derivatives<T: LinalgScalar>() {
    for (a, side) in matrices::<T>() {
        check_operation(PolarOp { side }, &[a]);
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
    let error =
        gradient(PolarOp { side: Side::Right }, &[&a], &[Some(Part::Full(Batched::new(&out.u)))])
            .unwrap_err();
    assert!(matches!(error, LinalgError::RankDeficient { rank: 2, required: 3, .. }));
    let wide = with_singular_values::<f64>(1, &[], 3, 4, &[1.0, 0.5, 0.0]);
    let error = tangents(PolarOp { side: Side::Right }, &[&wide], &[&wide]).unwrap_err();
    assert!(matches!(error, LinalgError::RankDeficient { op: "polar_jvp", required: 3, .. }));
    let mut data = vec![1.0; 8];
    data[4] = f64::NAN;
    let bad = Tensor::from_vec(data, &[2, 2, 2]).unwrap();
    let error = polar(&bad, Side::Left).unwrap_err();
    assert_eq!(error, LinalgError::NonFinite { op: "polar", batch: 1 });
}
