//! The Kalman filter.

use t4a_tensor::DType;
use t4a_tensor::route::{Policy, Reason, set_policy};

use super::*;
use t4a_scan::KalmanFilter;

/// A stable system with positive definite Q, R and P₀.
fn operands([batch, n, d, m]: [usize; 4]) -> Vec<Eager> {
    let positive = |size: usize, seed| {
        let a = random(&[size, size], seed);
        let unit = array(&[size, size], |i| if i % (size + 1) == 0 { 1.0 } else { 0.0 });
        a.matmul(&a.transpose()).scale(0.3).add(&unit)
    };
    vec![
        random(&[d, d], 1).scale(0.6),
        positive(d, 2),
        random(&[m, d], 3),
        positive(m, 4),
        random(&[batch, n, m], 5),
        random(&[d], 6),
        positive(d, 7),
    ]
}

#[test]
fn the_kernel_is_the_definition() {
    for sizes in [
        [2, 5, 1, 1],
        [1, 7, 2, 1],
        [3, 4, 4, 2],
        [1, 3, 3, 1],
        [2, 3, 6, 3],
        [2, 3, 3, 5],
        [1, 2, 8, 8],
        [2, 0, 2, 1],
        [0, 3, 2, 1],
    ] {
        let x = operands(sizes);
        let want = KalmanFilter.portable(&values(&x), &[]).unwrap().results;
        for (y, want) in run(&KalmanFilter, &x).iter().zip(&want) {
            close(&elements(y), &elements(want), 1e-12);
        }
    }
}

/// One state, one observed component, computed by hand.
#[test]
fn numbers_by_hand() {
    let one = |x: f64| of(&[1, 1], &[x]);
    // P⁻ = 1 + 1 = 2, S = 2 + 2 = 4, K = ½, x = ½·3, P = 1; then P⁻ = 2 again, x = 1.5 + ½(1 − 1.5).
    let x = [
        one(1.0),
        one(1.0),
        one(1.0),
        one(2.0),
        of(&[1, 2, 1], &[3.0, 1.0]),
        of(&[1], &[0.0]),
        one(1.0),
    ];
    let y = run(&KalmanFilter, &x);
    assert_eq!(elements(&y[0]), [1.5, 1.25]);
    assert_eq!(elements(&y[1]), [1.0, 1.0]);
    let likelihood = |v: f64| -0.5 * (v * v / 4.0 + 4f64.ln() + (2.0 * std::f64::consts::PI).ln());
    close(&elements(&y[2]), &[likelihood(3.0), likelihood(-0.5)], 1e-15);
}

/// The sum of log-likelihoods is the logarithm of one Gaussian density of all observations.
#[test]
fn likelihood_is_that_of_the_joint_distribution() {
    let (n, f, q, r, p0) = (4usize, 0.8f64, 0.5, 0.3, 0.7);
    let y = [0.3, -0.2, 0.9, 0.4];
    let one = |x: f64| of(&[1, 1], &[x]);
    let x = [one(f), one(q), one(1.0), one(r), of(&[1, n, 1], &y), of(&[1], &[0.0]), one(p0)];
    let l: f64 = elements(&run(&KalmanFilter, &x)[2]).iter().sum();
    // Cov(x_s, x_t) = f^|s−t| Var(x_min).
    let mut variance = vec![f * f * p0 + q];
    for t in 1..n {
        variance.push(f * f * variance[t - 1] + q);
    }
    let mut c: Vec<f64> = (0..n * n)
        .map(|i| {
            let (s, t) = (i / n, i % n);
            let shared = f.powi(s.abs_diff(t) as i32) * variance[s.min(t)];
            shared + if s == t { r } else { 0.0 }
        })
        .collect();
    // Gaussian elimination: density from pivots and reduced right-hand sides.
    let (mut z, mut log) = (y, 0.0);
    for k in 0..n {
        let pivot = c[k * n + k];
        log -= 0.5 * (z[k] * z[k] / pivot + (2.0 * std::f64::consts::PI * pivot).ln());
        for i in k + 1..n {
            let factor = c[i * n + k] / pivot;
            z[i] -= factor * z[k];
            for j in 0..n {
                c[i * n + j] -= factor * c[k * n + j];
            }
        }
    }
    assert!((l - log).abs() < 1e-13, "{l} {log}");
}

#[test]
fn derivatives() {
    // The last size has sequences in several groups.
    for sizes in [
        [1, 3, 1, 1],
        [2, 4, 2, 1],
        [2, 3, 4, 2],
        [1, 2, 3, 1],
        [1, 2, 3, 3],
        [1, 2, 6, 3],
        [19, 2, 2, 1],
    ] {
        check(&KalmanFilter, &operands(sizes));
    }
}

/// |S| of eight observed components is below the smallest `f32`, its logarithm is finite.
#[test]
fn determinants_beyond_the_range_of_numbers() {
    let cast = |x: Eager| Eager::from(x.into_tensor().and_then(|x| x.cast(DType::F32)));
    let mut x = operands([1, 3, 2, 8]);
    x[2] = x[2].scale(1e-4);
    x[3] = array(&[8, 8], |i| if i % 9 == 0 { 1e-6 } else { 0.0 });
    x[4] = x[4].scale(1e-3);
    let want = elements(&run(&KalmanFilter, &x)[2]);
    let x: Vec<Eager> = x.into_iter().map(cast).collect();
    close(&elements(&run(&KalmanFilter, &x)[2]), &want, 1e-5);
}

#[test]
fn bits_do_not_depend_on_threads() {
    let x = operands([64, 500, 2, 1]);
    same_bits_on_threads(|| [run(&KalmanFilter, &x), gradient(&KalmanFilter, &x)].concat());
}

#[test]
fn large_filters_say_that_they_fall_back() {
    let x = operands([1, 2, 9, 1]);
    check(&KalmanFilter, &x);
    let route = |y: &Eager| y.tensor().unwrap().route().reason;
    assert_eq!(route(&run(&KalmanFilter, &x)[0]), Reason::OpUnsupported);
    assert_eq!(route(&run(&KalmanFilter, &operands([1, 2, 8, 1]))[0]), Reason::Native);
    // No other test of this crate uses a fallback.
    set_policy(Policy::RejectFallback);
    let refused = KalmanFilter.forward(&values(&x), &[false; 7]);
    set_policy(Policy::Allow);
    assert!(matches!(refused, Err(TensorError::RouteRejected { .. })), "{refused:?}");
}

#[test]
fn what_is_not_positive_definite_is_nan() {
    let mut x = operands([1, 3, 2, 1]);
    x[3] = of(&[1, 1], &[-100.0]);
    let portable = KalmanFilter.portable(&values(&x), &[]).unwrap().results;
    for results in [run(&KalmanFilter, &x), portable] {
        assert!(results.iter().flat_map(elements).all(|x| x.is_nan()));
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let x = operands([2, 3, 2, 1]);
    for i in 0..7 {
        let mut metas = metas(&x);
        metas[i].shape.push(1);
        assert!(KalmanFilter.results(&metas).is_err(), "{i}");
        let mut metas = self::metas(&x);
        metas[i].dtype = DType::F32;
        assert!(matches!(KalmanFilter.results(&metas), Err(TensorError::DTypeMismatch { .. })));
    }
}
