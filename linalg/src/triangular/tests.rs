use super::*;
use crate::error::LinalgError;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices, Region};

fn triangles() -> impl Iterator<Item = Triangle> {
    let ops = [TriangleOp::None, TriangleOp::Transpose, TriangleOp::Adjoint];
    let all = [(false, false), (false, true), (true, false), (true, true)];
    all.into_iter().flat_map(move |(upper, unit)| ops.map(|op| Triangle { upper, unit, op }))
}

/// Full matrix with the selected triangle of `t`.
fn dense<T: LinalgScalar>(t: &Tensor<T>, triangle: Triangle) -> Batched<T> {
    let t = Batched::new(t);
    let region = if triangle.upper { Region::Upper(0) } else { Region::Lower(0) };
    let mut read = t.mask(region);
    if triangle.unit {
        let unit = t.identity(t.cols());
        read = read.sub(&read.mask(Region::Diagonal)).add(&unit);
    }
    match triangle.op {
        TriangleOp::None => read,
        TriangleOp::Transpose => read.transpose(),
        TriangleOp::Adjoint => read.adjoint(),
    }
}

fn matrix<T: LinalgScalar>(batch: &[usize], n: usize) -> Tensor<T> {
    let shape: Vec<usize> = batch.iter().copied().chain([n, n]).collect();
    let a = Batched::new(&random::<T>(1, &shape)).scale(0.5);
    a.add(&a.identity(n).scale(1.5)).into_tensor().unwrap()
}

fn identities<T: LinalgScalar>() {
    for triangle in triangles() {
        for (batch, n, r) in [(&[][..], 4, 3), (&[2, 2][..], 5, 1), (&[3][..], 1, 4)] {
            let t = matrix::<T>(batch, n);
            let shape: Vec<usize> = batch.iter().copied().chain([n, r]).collect();
            let b = random::<T>(2, &shape);
            let x = solve_triangular(&t, &b, triangle).unwrap();
            let product = dense(&t, triangle).matmul(&Batched::new(&x)).into_tensor().unwrap();
            assert_close(&product, &b, tight::<T>(4 * n));
            // From the right: X op(T) = Bᵀ.
            let bt = Batched::new(&b).transpose();
            let x = Batched::new(&t).solve_triangular_right(&bt, triangle);
            let product = x.matmul(&dense(&t, triangle)).into_tensor().unwrap();
            assert_close(&product, &bt.into_tensor().unwrap(), tight::<T>(4 * n));
        }
    }
}

fn derivatives<T: LinalgScalar>() {
    for triangle in triangles() {
        let inputs = [matrix::<T>(&[2], 4), random::<T>(2, &[2, 4, 3])];
        check_operation(SolveTriangularOp { triangle }, &inputs);
    }
}

/// Repeated elements in memory (stride 0), as of an expanded number.
fn expanded<T: LinalgScalar>() {
    for n in [3, 40] {
        let t = Tensor::full(&[], T::from_f64(0.5)).unwrap().expand(&[n, n]).unwrap();
        let b = random::<T>(4, &[1, n]).expand(&[n, n]).unwrap();
        let copy = |t: &Tensor<T>| Tensor::from_vec(t.to_vec().unwrap(), t.shape()).unwrap();
        for triangle in [Triangle::LOWER, Triangle::UPPER.adjoint()] {
            let got = solve_triangular(&t, &b, triangle).unwrap();
            let want = solve_triangular(&copy(&t), &copy(&b), triangle).unwrap();
            assert_close(&got, &want, tight::<T>(n));
        }
    }
}

for_all_dtypes! {
    expanded_matrices_are_read_as_they_are => expanded;
    the_solution_satisfies_the_system => identities;
    rules_agree_with_differences => derivatives;
}

#[test]
fn errors_name_the_matrix() {
    let mut data = matrix::<f64>(&[2], 3).to_vec().unwrap();
    data[9 + 4] = 0.0;
    let t = Tensor::from_vec(data.clone(), &[2, 3, 3]).unwrap();
    let b = random::<f64>(3, &[2, 3, 2]);
    let error = solve_triangular(&t, &b, Triangle::LOWER).unwrap_err();
    assert_eq!(error, LinalgError::Singular { op: "solve_triangular", batch: 1, index: 1 });
    let (x, info) = solve_triangular_ex(&t, &b, Triangle::LOWER).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, 2]);
    assert!(Batched::new(&x).norms().unwrap()[0].is_finite());
    assert!(solve_triangular(&t, &b, Triangle::LOWER.unit()).is_ok());
    // Only the selected triangle is read: NaN elsewhere has no effect.
    data[9 + 4] = 1.0;
    data[2] = f64::NAN;
    let t = Tensor::from_vec(data, &[2, 3, 3]).unwrap();
    assert!(solve_triangular(&t, &b, Triangle::LOWER).is_ok());
    let error = solve_triangular(&t, &b, Triangle::UPPER).unwrap_err();
    assert_eq!(error, LinalgError::NonFinite { op: "solve_triangular", batch: 0 });
    let shape_error = |a: &[usize], b: &[usize]| {
        solve_triangular(&random::<f64>(1, a), &random::<f64>(2, b), Triangle::LOWER).unwrap_err()
    };
    assert!(matches!(shape_error(&[3, 2], &[3, 2]), LinalgError::NotSquare { .. }));
    assert!(matches!(shape_error(&[3, 3], &[2, 2]), LinalgError::Tensor(_)));
    assert!(matches!(
        shape_error(&[2, 3, 3], &[4, 3, 2]),
        LinalgError::BatchMismatch { axis: -3, .. }
    ));
}
