use super::*;
use crate::error::LinalgError;
use crate::expm::expm;
use crate::hermitian::{Elementary, hermitian_function};
use crate::testing::*;
use crate::vocabulary::Batched;

fn matrix<T: LinalgScalar>(batch: &[usize], n: usize) -> Tensor<T> {
    // 2 I + a perturbation of norm below 2: no eigenvalue near the negative real axis.
    let shape: Vec<usize> = batch.iter().copied().chain([n, n]).collect();
    let a = Batched::new(&random::<T>(1, &shape)).scale(1.2 / n as f64);
    a.add(&a.identity(n).scale(2.0)).into_tensor().unwrap()
}

fn identities<T: LinalgScalar>() {
    for (batch, n) in [(&[3][..], 4), (&[][..], 1), (&[2, 2][..], 7), (&[2][..], 0)] {
        let a = matrix::<T>(batch, n);
        assert_close(&expm(&logm(&a).unwrap()).unwrap(), &a, tight::<T>(2 * n));
    }
    // ‖B‖ < π: the logarithm of the exponential is B.
    let b = random::<T>(3, &[4, 3, 3]);
    assert_close(&logm(&expm(&b).unwrap()).unwrap(), &b, tight::<T>(20));
    let a = with_eigenvalues::<T>(2, &[], &[1e-3, 1e-2, 1.0, 1e2, 1e3]);
    let want = hermitian_function(&a, &Elementary::Ln).unwrap();
    assert_close(&logm(&a).unwrap(), &want, 1e6 * crate::scalar::epsilon::<T>());
}

fn derivatives<T: LinalgScalar>() {
    check_operation(LogmOp, &[matrix::<T>(&[2], 4)]);
}

for_all_dtypes! {
    the_exponential_undoes_it => identities;
    rules_agree_with_differences => derivatives;
}

/// Jordan block: `ln [[a, 1], [0, a]] = [[ln a, 1/a], [0, ln a]]`; the logarithm of a rotation by φ is `φ J`.
#[test]
fn published_values() {
    let jordan = Tensor::from_vec(vec![3.0, 1.0, 0.0, 3.0], &[2, 2]).unwrap();
    let log = 3f64.ln();
    let want = Tensor::from_vec(vec![log, 1.0 / 3.0, 0.0, log], &[2, 2]).unwrap();
    assert_close(&logm(&jordan).unwrap(), &want, 1e-14);
    let phi = 3.0f64;
    let (sin, cos) = phi.sin_cos();
    let turn = Tensor::from_vec(vec![cos, -sin, sin, cos], &[2, 2]).unwrap();
    let want = Tensor::from_vec(vec![0.0, -phi, phi, 0.0], &[2, 2]).unwrap();
    assert_close(&logm(&turn).unwrap(), &want, 1e-13);
}

#[test]
fn one_bad_matrix_does_not_spoil_the_others() {
    use crate::error::{NEGATIVE_EIGENVALUE, NON_FINITE};
    let data = [
        [1.0, 0.0, 0.0, 1.0],
        [-1.0, 0.0, 0.0, 2.0],
        [1.0, f64::NAN, 0.0, 1.0],
        [1e20, 0.0, 0.0, 1e-20],
    ];
    let a = Tensor::from_vec(data.concat(), &[4, 2, 2]).unwrap();
    let (x, info) = logm_ex(&a).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, NEGATIVE_EIGENVALUE, NON_FINITE, 0]);
    let x = x.to_vec().unwrap();
    assert_eq!(x[..4], [0.0; 4]);
    assert!(x[4..12].iter().all(|x| x.is_nan()));
    let log = 20.0 * 10f64.ln();
    assert!((x[12] - log).abs() < 1e-10 * log && (x[15] + log).abs() < 1e-10 * log, "{x:?}");
    let singular = Tensor::from_vec(vec![1.0, 2.0, 2.0, 4.0], &[2, 2]).unwrap();
    assert!(matches!(logm(&singular), Err(LinalgError::Singular { op: "logm", .. })));
}

fn square(data: [f64; 4]) -> Tensor<f64> {
    Tensor::from_vec(data.to_vec(), &[2, 2]).unwrap()
}

/// Eigenvalues `e^(±i(π − δ))`, where the condition number of the logarithm is about π/δ.
#[test]
fn rotations_near_half_a_turn_have_logarithms() {
    for delta in [1e-3f64, 1e-7, 1e-8] {
        let a = square([-delta.cos(), -delta.sin(), delta.sin(), -delta.cos()]);
        let phi = std::f64::consts::PI - delta;
        assert_close(&logm(&a).unwrap(), &square([0.0, -phi, phi, 0.0]), 5e-16 / delta);
    }
}

/// `ln [[a, m], [0, b]] = [[ln a, m ln[a, b]], [0, ln b]]`.
#[test]
fn triangular_matrices_lose_no_digit() {
    for m in [1e-12f64, 1.0, 1e6, 1e12, 1e100] {
        let near = 1.0 + 2f64.powi(-30);
        // ln(1 + x)/x = 1 − x/2 + x²/3 − …
        let slope = 1.0 - 2f64.powi(-31) + 2f64.powi(-60) / 3.0;
        let cases = [(1.0f64, 2.0f64, 2f64.ln()), (3.0, 3.0, 1.0 / 3.0), (1.0, near, slope)];
        for (a, b, slope) in cases {
            let log = logm(&square([a, m, 0.0, b])).unwrap().to_vec().unwrap();
            for (got, want) in log.iter().zip([a.ln(), m * slope, 0.0, b.ln()]) {
                assert!((got - want).abs() <= 8.0 * f64::EPSILON * want, "{m:e} {a} {b}: {log:?}");
            }
        }
    }
    // Three rows: the nilpotent logarithm has a closed form.
    let m = 1e7;
    let a = Tensor::from_vec(vec![1.0, m, m, 0.0, 1.0, m, 0.0, 0.0, 1.0], &[3, 3]).unwrap();
    let log = logm(&a).unwrap().to_vec().unwrap();
    let want: [f64; 9] = [0.0, m, m - m * m / 2.0, 0.0, 0.0, m, 0.0, 0.0, 0.0];
    for (got, want) in log.iter().zip(want) {
        assert!((got - want).abs() <= 1e-14 * want.abs(), "{log:?}");
    }
}

/// Norms from 1e-300 to 1e300.
#[test]
fn scales_are_added() {
    let a = matrix::<f64>(&[], 4);
    let near = Batched::new(&logm(&a).unwrap());
    for e in [-1000, 1000] {
        let half = 2f64.powi(e / 2);
        let far = Batched::new(&a).scale(half).scale(half).into_tensor().unwrap();
        let shift = near.identity(4).scale(f64::from(e) * LN_2);
        assert_close(&logm(&far).unwrap(), &near.add(&shift).into_tensor().unwrap(), 1e-14);
    }
}

/// `f(t) = ln [[1 + t, m], [0, 2]]`: above the diagonal `m (ln 2 − ln(1 + t))/(1 − t)`.
#[test]
fn derivatives_far_from_normal() {
    use crate::vocabulary::DualMatrix;
    for m in [1.0, 1e6, 1e12] {
        let a = Batched::new(&square([1.0, m, 0.0, 2.0]));
        let da = Batched::new(&square([1.0, 0.0, 0.0, 0.0]));
        let along = jvp(&DualMatrix::new(a, da.clone()), &DualMatrix::constant_of(da));
        let values = |x: Batched<f64>| x.into_tensor().unwrap().to_vec().unwrap();
        let (first, second) = (values(along.value.clone()), values(along.into_tangent()));
        let log = 2f64.ln();
        let want = [[1.0, m * (log - 1.0), 0.0, 0.0], [-1.0, m * (2.0 * log - 1.0), 0.0, 0.0]];
        for (got, want) in first.iter().chain(&second).zip(want.as_flattened()) {
            assert!((got - want).abs() <= 1e-13 * want.abs(), "{m:e} {first:?} {second:?}");
        }
    }
}
