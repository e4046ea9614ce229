use super::*;
use crate::testing::*;

fn derivatives<T: LinalgScalar>() {
    let p = with_eigenvalues::<T>(1, &[2], &[0.5, 1.0, 1.0, 2.5]);
    let b = random::<T>(2, &[2, 4, 4]);
    let x = lyapunov_positive(&p, &b).unwrap();
    assert_close(&axpy(&mm(&p, &x), 1.0, &mm(&x, &p)), &b, tight::<T>(8));
    check_operation(LyapunovPositiveOp, &[p, b]);
}

for_all_dtypes! {
    the_solution_satisfies_the_equation_and_its_derivatives => derivatives;
}

#[test]
fn a_matrix_that_is_not_positive_definite_is_an_error() {
    let p = with_eigenvalues::<f64>(1, &[], &[0.0, 1.0, 2.0]);
    let error = lyapunov_positive(&p, &p).unwrap_err();
    assert!(matches!(error, LinalgError::RankDeficient { rank: 2, required: 3, .. }));
}

#[test]
fn one_bad_equation_does_not_spoil_the_others() {
    let good = with_eigenvalues::<f64>(1, &[], &[0.5, 1.0, 2.0]).to_vec().unwrap();
    let bad = with_eigenvalues::<f64>(2, &[], &[0.0, 1.0, 2.0]).to_vec().unwrap();
    let p = Tensor::from_vec([good.clone(), bad, good.clone()].concat(), &[3, 3, 3]).unwrap();
    let rhs = [good.clone(), good, vec![f64::NAN; 9]].concat();
    let (x, info) = lyapunov_positive_ex(&p, &Tensor::from_vec(rhs, &[3, 3, 3]).unwrap()).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, 3, NON_FINITE]);
    let norms = Batched::new(&x).norms().unwrap();
    // X = I/2 solves P X + X P = P.
    assert!((norms[0] - 0.75f64.sqrt()).abs() < 1e-14);
    assert!(norms[1].is_nan() && norms[2].is_nan());
}

#[test]
fn sums_of_eigenvalues_may_leave_the_range() {
    let diagonal = |x: f64, y: f64| Tensor::from_vec(vec![x, 0.0, 0.0, y], &[2, 2]).unwrap();
    let third = Tensor::full(&[2, 2], 1.0 / 3.0).unwrap();
    let large = Tensor::full(&[2, 2], 1e308).unwrap();
    assert_close(&lyapunov_positive(&diagonal(1.5e308, 1.5e308), &large).unwrap(), &third, 1e-15);
    let small = Tensor::full(&[2, 2], 6e-310).unwrap();
    let want = Tensor::from_vec(vec![3.0, 1.5, 1.5, 1.0], &[2, 2]).unwrap();
    assert_close(&lyapunov_positive(&diagonal(1e-310, 3e-310), &small).unwrap(), &want, 1e-13);
    // Quotient of numbers at both ends of the range.
    let x = lyapunov_positive(&diagonal(1.5e308, 1.5e308), &small).unwrap().to_vec().unwrap();
    assert!(x.iter().all(|&x| x == 0.0));
}

#[test]
fn a_right_hand_side_of_another_width_is_an_error() {
    let p = with_eigenvalues::<f64>(1, &[], &[0.5, 1.0, 2.0]);
    for cols in [2, 4, 0] {
        let error = lyapunov_positive(&p, &random::<f64>(2, &[3, cols])).unwrap_err();
        assert!(matches!(error, LinalgError::Tensor(TensorError::ShapeMismatch { .. })), "{cols}");
    }
}
