use super::*;
use crate::error::LinalgError;
use crate::lu::lu_factor;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices};

const VALUES: [f64; 5] = [0.5, 1.0, 1.5, 2.0, 3.0];

fn identities<T: LinalgScalar>() {
    for batch in [&[][..], &[2, 3]] {
        let a = with_singular_values::<T>(1, batch, 5, 5, &VALUES);
        let shape: Vec<usize> = batch.iter().copied().chain([5, 2]).collect();
        let b = random::<T>(3, &shape);
        assert_close(&mm(&a, &solve(&a, &b).unwrap()), &b, tight::<T>(20));
        let factors = lu_factor(&a).unwrap();
        for (op, dense) in [
            (TriangleOp::None, Batched::new(&a)),
            (TriangleOp::Transpose, Batched::new(&a).transpose()),
            (TriangleOp::Adjoint, Batched::new(&a).adjoint()),
        ] {
            let x = Batched::new(&lu_solve(&factors, &b, op).unwrap());
            assert_close(&dense.matmul(&x).into_tensor().unwrap(), &b, tight::<T>(20));
        }
    }
}

fn derivatives<T: LinalgScalar>() {
    let a = with_singular_values::<T>(1, &[2], 5, 5, &VALUES);
    check_operation(SolveOp, &[a, random::<T>(3, &[2, 5, 2])]);
}

for_all_dtypes! {
    the_solution_satisfies_the_system => identities;
    rules_agree_with_differences => derivatives;
}

#[test]
fn one_singular_matrix_does_not_spoil_the_others() {
    let data = vec![1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 2.0, 4.0, 2.0, 0.0, 0.0, 2.0];
    let a = Tensor::from_vec(data, &[3, 2, 2]).unwrap();
    let b = Tensor::<f64>::ones(&[3, 2, 1]).unwrap();
    assert_eq!(
        solve(&a, &b).unwrap_err(),
        LinalgError::Singular { op: "solve", batch: 1, index: 1 }
    );
    let (x, _, info) = solve_ex(&a, &b).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, 2, 0]);
    let x = x.to_vec().unwrap();
    assert!(x[2].is_nan() && (x[4] - 0.5).abs() < 1e-15 && (x[0] + 1.0).abs() < 1e-14);
    let bad = Tensor::full(&[3, 2, 1], f64::INFINITY).unwrap();
    assert!(matches!(solve(&a, &bad), Err(LinalgError::NonFinite { batch: 0, .. })));
    let zero = Tensor::<f64>::zeros(&[2, 0, 0]).unwrap();
    let rhs = Tensor::<f64>::zeros(&[2, 0, 3]).unwrap();
    assert_eq!(solve(&zero, &rhs).unwrap().shape(), [2, 0, 3]);
}

#[test]
fn an_axis_without_elements_costs_nothing() {
    let (a, b) = (Tensor::<f64>::zeros(&[0, 0]).unwrap(), Tensor::zeros(&[0, 1 << 36]).unwrap());
    assert_eq!(solve(&a, &b).unwrap().shape(), b.shape());
    let factors = lu_factor(&a).unwrap();
    assert_eq!(lu_solve(&factors, &b, TriangleOp::Adjoint).unwrap().shape(), b.shape());
}

/// Quotients by subnormal numbers may be normal; those beyond the range are errors.
#[test]
fn subnormal_systems_have_solutions() {
    let a = Tensor::from_vec(vec![2.0, 1.0, 1.0, 3.0], &[2, 2]).unwrap();
    let b = Tensor::from_vec(vec![3.0, 5.0], &[2, 1]).unwrap();
    let times = |x: &Tensor<f64>, e: i32| {
        let x = Batched::new(x).scale(2f64.powi(e / 2)).scale(2f64.powi(e - e / 2));
        x.into_tensor().unwrap()
    };
    let want = solve(&a, &b).unwrap();
    // Powers of two, which make these elements exact.
    for (c, d) in [(-1060, -1060), (-1050, -100)] {
        let x = solve(&times(&a, c), &times(&b, d)).unwrap();
        assert_close(&times(&x, c - d), &want, 1e-4);
        let upper = Triangle::UPPER;
        let x = crate::triangular::solve_triangular(&times(&a, c), &times(&b, d), upper).unwrap();
        let near = crate::triangular::solve_triangular(&a, &b, upper).unwrap();
        assert_close(&times(&x, c - d), &near, 1e-15);
    }
    let tiny = times(&a, -1060);
    assert_eq!(solve(&tiny, &b).unwrap_err(), LinalgError::Overflow { op: "solve", batch: 0 });
    let (x, _, info) = solve_ex(&tiny, &b).unwrap();
    assert_eq!(info.to_vec().unwrap(), [crate::error::OVERFLOW]);
    assert!(x.to_vec().unwrap().iter().all(|x| x.is_nan()));
    let error = crate::triangular::solve_triangular(&tiny, &b, Triangle::UPPER).unwrap_err();
    assert_eq!(error, LinalgError::Overflow { op: "solve_triangular", batch: 0 });
    let a = Tensor::from_vec(vec![2e-39f32, 0.0, 0.0, 4e-39], &[2, 2]).unwrap();
    let x = solve(&a, &a).unwrap();
    let unit = Batched::new(&a).identity(2).into_tensor().unwrap();
    assert_close(&x, &unit, 1e-6);
}
