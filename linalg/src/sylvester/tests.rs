use super::*;
use crate::error::{COMMON_EIGENVALUE, LinalgError, NON_FINITE};
use crate::solve::solve as solve_system;
use crate::testing::*;
use crate::vocabulary::Region;

/// `A X + X B`.
fn applied<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>, x: &Tensor<T>) -> Tensor<T> {
    axpy(&mm(a, x), 1.0, &mm(x, b))
}

/// Solution of `(I ⊗ A + Bᵀ ⊗ I) vec X = vec C`.
fn by_kronecker(a: &Tensor<c64>, b: &Tensor<c64>, c: &Tensor<c64>) -> Tensor<c64> {
    let (m, n) = (a.shape()[0], b.shape()[0]);
    let (a, b) = (a.to_vec().unwrap(), b.to_vec().unwrap());
    let system = Tensor::from_fn(&[m * n, m * n], |at| {
        let (row, column) = (at / (m * n), at % (m * n));
        let ((i, j), (k, l)) = ((row / n, row % n), (column / n, column % n));
        let mut sum = ZERO;
        if j == l {
            sum += a[i * m + k];
        }
        if i == k {
            sum += b[l * n + j];
        }
        sum
    });
    let x = solve_system(&system.unwrap(), &c.reshape(&[m * n, 1]).unwrap()).unwrap();
    x.reshape(&[m, n]).unwrap()
}

fn equations<T: LinalgScalar>() {
    for (batch, m, n) in [(&[2][..], 4, 3), (&[][..], 1, 5), (&[][..], 6, 6), (&[2][..], 0, 2)] {
        let shape = |m: usize, n: usize| [batch, &[m, n]].concat();
        let a = random::<T>(1, &shape(m, m));
        let b = Batched::new(&random::<T>(2, &shape(n, n)));
        let b = b.add(&b.identity(n).scale(4.0)).into_tensor().unwrap();
        let c = random::<T>(3, &shape(m, n));
        let x = sylvester(&a, &b, &c).unwrap();
        assert_close(&applied(&a, &b, &x), &c, tight::<T>(m + n));
    }
    // Neither Hermitian nor stable.
    let a = random::<T>(5, &[2, 5, 5]);
    let c = random::<T>(6, &[2, 5, 5]);
    let ah = Batched::new(&a).adjoint().into_tensor().unwrap();
    let x = lyapunov(&a, &c).unwrap();
    assert_close(&applied(&a, &ah, &x), &c, 1e3 * tight::<T>(5));
}

fn derivatives<T: LinalgScalar>() {
    let (a, b) = (random::<T>(1, &[2, 3, 3]), Batched::new(&random::<T>(2, &[2, 4, 4])));
    let b = b.add(&b.identity(4).scale(4.0)).into_tensor().unwrap();
    check_operation(SylvesterOp, &[a, b, random::<T>(3, &[2, 3, 4])]);
}

for_all_dtypes! {
    solutions_satisfy_their_equation => equations;
    rules_agree_with_differences => derivatives;
}

#[test]
fn agrees_with_the_kronecker_system() {
    let (a, b) = (random::<c64>(1, &[3, 3]), random::<c64>(2, &[4, 4]));
    let c = random::<c64>(3, &[3, 4]);
    assert_close(&sylvester(&a, &b, &c).unwrap(), &by_kronecker(&a, &b, &c), 1e-13);
}

/// A = [[1, 1], [0, 2]], Q = I: 2x + 2y = 1, 3y + z = 0, 4z = 1 for X = [[x, y], [y, z]].
#[test]
fn published_values() {
    let a = Tensor::from_vec(vec![1.0, 1.0, 0.0, 2.0], &[2, 2]).unwrap();
    let unit = Batched::new(&a).identity(2).into_tensor().unwrap();
    let (y, z) = (-1.0 / 12.0, 0.25);
    let want = Tensor::from_vec(vec![0.5 - y, y, y, z], &[2, 2]).unwrap();
    assert_close(&lyapunov(&a, &unit).unwrap(), &want, 1e-15);
}

#[test]
fn equations_without_a_unique_solution_are_named() {
    let stack = |data: [[f64; 4]; 3]| Tensor::from_vec(data.concat(), &[3, 2, 2]).unwrap();
    let regular = [2.0, 1.0, 0.5, 3.0];
    // Eigenvalues ±1: their sum is zero.
    let a = stack([regular, [0.0, 1.0, 1.0, 0.0], regular]);
    let c = stack([regular, regular, [f64::NAN; 4]]);
    let (x, info) = sylvester_ex(&a, &a, &c).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, COMMON_EIGENVALUE, NON_FINITE]);
    let x = x.to_vec().unwrap();
    // A X + X A = A.
    assert!((x[0] - 0.5).abs() < 1e-15 && x[4].is_nan() && x[8].is_nan(), "{x:?}");
    let error = LinalgError::CommonEigenvalue { op: "lyapunov", batch: 1 };
    assert_eq!(lyapunov(&a, &a).unwrap_err(), error);
    for seed in 0..20 {
        // Similar matrices with opposite signs.
        let a = random::<c64>(seed, &[5, 5]);
        let u = Batched::new(&isometry::<c64>(seed, &[], 5, 5));
        let b = u.matmul(&Batched::new(&a)).matmul(&u.adjoint()).neg().into_tensor().unwrap();
        let error = sylvester(&a, &b, &a).unwrap_err();
        assert_eq!(error, LinalgError::CommonEigenvalue { op: "sylvester", batch: 0 });
    }
    let wide = Tensor::<f64>::zeros(&[3, 2, 3]).unwrap();
    assert!(matches!(sylvester(&a, &a, &wide), Err(LinalgError::Tensor(_))));
    assert!(matches!(sylvester(&a, &wide, &wide), Err(LinalgError::NotSquare { .. })));
}

/// Both ends of the range; triangular coefficients to full precision.
#[test]
fn coefficients_of_any_size() {
    let a = random::<f64>(1, &[4, 4]);
    let b = Batched::new(&random::<f64>(2, &[4, 4]));
    let b = b.add(&b.identity(4).scale(4.0)).into_tensor().unwrap();
    let c = random::<f64>(3, &[4, 4]);
    let near = sylvester(&a, &b, &c).unwrap();
    let times = |x: &Tensor<f64>, e: i32| {
        let half = 2f64.powi(e / 2);
        Batched::new(x).scale(half).scale(half).into_tensor().unwrap()
    };
    for (e, f) in [(1000, 0), (-1000, 0), (0, 1000), (0, -1000), (1000, 1000), (-900, -1000)] {
        let x = sylvester(&times(&a, e), &times(&b, e), &times(&c, f)).unwrap();
        assert_close(&times(&x, e - f), &near, 1e-13);
    }
    let upper = Batched::new(&a).mask(Region::Upper(0)).into_tensor().unwrap();
    let error = sylvester(&upper, &times(&upper, 1000), &c);
    assert!(error.is_ok(), "{error:?}");
}
