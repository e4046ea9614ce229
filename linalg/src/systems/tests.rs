use super::*;
use crate::inverse::tensorinv;
use crate::lstsq::{lstsq, lstsq_min_norm};
use crate::lu::lu_factor;
use crate::solve::{lu_solve, solve, solve_right, tensorsolve};
use crate::testing::*;
use crate::triangular::{Triangle, TriangleOp, solve_triangular};
use crate::vocabulary::{Batched, Matrices};

const VALUES: [f64; 3] = [2.0, 1.0, 0.5];

/// Batch axes of `A`, of `B` and of both.
const BATCHES: [(&[usize], &[usize], &[usize]); 7] = [
    (&[2], &[2], &[2]),
    (&[], &[4], &[4]),
    (&[4], &[], &[4]),
    (&[3, 1], &[1, 5], &[3, 5]),
    (&[1, 3], &[2, 1], &[2, 3]),
    (&[3], &[2, 3], &[2, 3]),
    (&[1, 2, 1], &[4, 1, 3], &[4, 2, 3]),
];

fn repeat<T: LinalgScalar>(t: &Tensor<T>, batch: &[usize]) -> Tensor<T> {
    let matrix = &t.shape()[t.rank() - 2..];
    t.expand(&with(batch, matrix)).unwrap()
}

fn each<T: LinalgScalar>() {
    type Solver<T> = fn(&Tensor<T>, &Tensor<T>) -> Result<Tensor<T>>;
    let solvers: [(usize, Solver<T>); 5] = [
        (3, |a, b| solve(a, b)),
        (3, |a, b| solve_triangular(a, b, Triangle::UPPER)),
        (3, |a, b| lu_solve(&lu_factor(a)?, b, TriangleOp::Adjoint)),
        (4, |a, b| Ok(lstsq(a, b)?.x)),
        (4, |a, b| lstsq_min_norm(a, b, None)),
    ];
    for (a_batch, b_batch, batch) in BATCHES {
        for (m, solver) in solvers {
            let a = with_singular_values::<T>(1, a_batch, m, 3, &VALUES);
            let b = random::<T>(7, &with(b_batch, &[m, 2]));
            let got = solver(&a, &b).unwrap();
            assert_eq!(got.shape(), &with(batch, &[3, 2])[..]);
            let want = solver(&repeat(&a, batch), &repeat(&b, batch)).unwrap();
            assert_close(&got, &want, tight::<T>(20));
            // One vector for all matrices.
            let b = random::<T>(8, &[m]);
            let got = solver(&a, &b).unwrap();
            let column = b.unsqueeze(1).unwrap();
            let want = solver(&a, &repeat(&column, a_batch)).unwrap();
            assert_close(&got, &want.squeeze(want.rank() - 1).unwrap(), tight::<T>(20));
        }
    }
}

fn from_the_right<T: LinalgScalar>() {
    for (a_batch, b_batch, batch) in BATCHES {
        let a = with_singular_values::<T>(1, a_batch, 3, 3, &VALUES);
        let b = random::<T>(7, &with(b_batch, &[2, 3]));
        let x = solve_right(&a, &b).unwrap();
        assert_close(&mm(&x, &repeat(&a, batch)), &repeat(&b, batch), tight::<T>(20));
    }
    let a = with_singular_values::<T>(1, &[], 3, 3, &VALUES);
    let b = random::<T>(2, &[3]);
    let x = solve_right(&a, &b).unwrap().unsqueeze(0).unwrap();
    assert_close(&mm(&x, &a), &b.unsqueeze(0).unwrap(), tight::<T>(20));
}

fn of_tensors<T: LinalgScalar>() {
    let a = with_singular_values::<T>(1, &[], 6, 6, &[3.0, 2.5, 2.0, 1.5, 1.0, 0.5]);
    let (tensor, b) = (a.reshape(&[2, 3, 6]).unwrap(), random::<T>(2, &[2, 3]));
    let x = tensorsolve(&tensor, &b).unwrap();
    assert_eq!(x.shape(), [6]);
    let product = mm(&a, &x.unsqueeze(1).unwrap());
    assert_close(&product.reshape(&[2, 3]).unwrap(), &b, tight::<T>(20));

    let tensor = a.reshape(&[6, 3, 2]).unwrap();
    let inverse = tensorinv(&tensor, 1).unwrap();
    assert_eq!(inverse.shape(), [3, 2, 6]);
    let unit = Batched::new(&a).identity(6).into_tensor().unwrap();
    assert_close(&mm(&a, &inverse.reshape(&[6, 6]).unwrap()), &unit, tight::<T>(20));
}

for_all_dtypes! {
    batches_broadcast => each;
    rows_are_solved_for => from_the_right;
    tensors_are_matrices => of_tensors;
}

#[test]
fn errors() {
    let (a, b) = (random::<f64>(1, &[2, 3, 3]), random::<f64>(2, &[4, 3, 1]));
    assert!(matches!(solve(&a, &b), Err(LinalgError::BatchMismatch { axis: -3, .. })));
    let (long, short) = (random::<f64>(1, &[5, 2, 3, 3]), random::<f64>(2, &[2, 3, 3, 1]));
    assert!(matches!(solve(&long, &short), Err(LinalgError::BatchMismatch { axis: -4, .. })));
    let text = "solve_ex: the batches of shapes [2, 3, 3] and [4, 3, 1] differ in axis 0, equal batches are required";
    let error = LinalgError::unequal_batches("solve_ex", a.shape(), b.shape());
    assert_eq!((error.to_string(), error.batch()), (text.into(), None));
    let of_axis = |x: &[usize], y: &[usize]| match LinalgError::unequal_batches("solve", x, y) {
        LinalgError::BatchMismatch { axis, .. } => axis,
        _ => unreachable!(),
    };
    assert_eq!(of_axis(&[2, 5, 3, 3], &[2, 4, 3, 1]), 1);
    assert_eq!(of_axis(&[2, 3, 3], &[3, 1]), 0);
    assert_eq!(of_axis(&[2, 3, 3], &[2, 5, 3, 1]), 1);
    assert!(matches!(solve(&a, &random(3, &[2])), Err(LinalgError::Tensor(_))));
    assert!(matches!(solve(&random(3, &[3]), &b), Err(LinalgError::NotMatrix { .. })));
    assert!(matches!(solve(&a, &random(3, &[])), Err(LinalgError::NotMatrix { .. })));
    let zero = Tensor::<f64>::zeros(&[3, 3]).unwrap();
    let singular = |op| LinalgError::Singular { op, batch: 0, index: 0 };
    assert_eq!(solve_right(&zero, &random(1, &[2, 3])).unwrap_err(), singular("solve_right"));
    assert_eq!(tensorsolve(&zero, &random(1, &[3])).unwrap_err(), singular("tensorsolve"));
    assert_eq!(tensorinv(&zero, 1).unwrap_err(), singular("tensorinv"));
    assert!(matches!(tensorinv(&zero, 3), Err(LinalgError::Tensor(_))));
    assert!(matches!(tensorinv(&a, 1), Err(LinalgError::Tensor(_))));
    assert!(matches!(tensorsolve(&a, &random(1, &[2])), Err(LinalgError::Tensor(_))));
    // No unknowns.
    let empty = random::<f64>(1, &[0, 3, 1]);
    assert_eq!(solve(&random(1, &[3, 3]), &empty).unwrap().shape(), [0, 3, 1]);
}
