//! Scans over monoids.

use t4a_einsum::FloatSemiring;
use t4a_tensor::DType;

use super::*;
use t4a_scan::{AssociativeScan, FloatMonoid, Monoid, Result, ScanError};

fn all() -> Vec<FloatMonoid> {
    use FloatMonoid::{Affine, All, Any, LogAddExp, Matrix, Max, Min, Product, Sum};
    let mut all = vec![Sum, Product, Max, Min, LogAddExp, Any, All, Affine];
    all.extend(FloatSemiring::ALL.iter().copied().map(Matrix));
    all
}

/// Operands of shape `[…, n, …]`; matrices are 2×2 in the last axes.
fn operands(monoid: FloatMonoid, shape: &[usize]) -> Vec<Eager> {
    let shape = match monoid {
        FloatMonoid::Matrix(_) => [shape, &[2, 2]].concat(),
        _ => shape.to_vec(),
    };
    let one = |seed| match monoid {
        // (max, ×) and (min, ×) are semirings on numbers ≥ 0 only.
        FloatMonoid::Matrix(FloatSemiring::MaxMul | FloatSemiring::MinMul) => {
            random(&shape, seed).abs()
        }
        FloatMonoid::Any | FloatMonoid::All => {
            let x = random(&shape, seed);
            x.fill(&x.greater(&x.full(&x.shape(), -0.7)), 0.0)
        }
        _ => random(&shape, seed),
    };
    (0..monoid.arrays() as u64).map(|k| one(11 + k)).collect()
}

/// Sequential scan.
fn naive(monoid: FloatMonoid, x: &[Eager], axis: usize, reverse: bool) -> Vec<Eager> {
    let n = x[0].shape()[axis];
    // Monoid elements are enumerated along the first axis.
    let front = |x: &Eager, t: usize| {
        let x = x.narrow(axis, t, 1);
        x.reshape(&[&[1], &x.shape()[..]].concat())
    };
    let mut y: Vec<Vec<Eager>> = Vec::new();
    for k in 0..n {
        let t = if reverse { n - 1 - k } else { k };
        let x: Vec<Eager> = x.iter().map(|x| front(x, t)).collect();
        y.push(match y.last() {
            Some(y) => monoid.combine(y, &x).unwrap(),
            None => x,
        });
    }
    if reverse {
        y.reverse();
    }
    let back = |x: &Eager| x.reshape(&x.shape()[1..]);
    let one =
        |k: usize| <Eager as Array>::cat(&y.iter().map(|y| back(&y[k])).collect::<Vec<_>>(), axis);
    (0..x.len()).map(one).collect()
}

#[test]
fn every_length_is_the_loop() {
    for monoid in all() {
        for n in [1, 2, 7, 8, 9, 16, 17, 63, 64, 73, 130] {
            for reverse in [false, true] {
                let op = AssociativeScan { reverse, ..AssociativeScan::new(monoid, 1) };
                let x = operands(monoid, &[2, n]);
                let want = naive(monoid, &x, 1, reverse);
                let portable = op.portable(&values(&x), &[]).unwrap().results;
                for results in [run(&op, &x), portable] {
                    for (y, want) in results.iter().zip(&want) {
                        close(&elements(y), &elements(want), 1e-12);
                    }
                }
            }
        }
    }
}

#[test]
fn lengths_0_and_1_are_unchanged() {
    for monoid in all() {
        for (n, reverse) in [(0, false), (0, true), (1, false), (1, true)] {
            let op = AssociativeScan { reverse, ..AssociativeScan::new(monoid, 1) };
            let x = operands(monoid, &[2, n]);
            for (y, x) in run(&op, &x).iter().zip(&x) {
                assert_eq!((y.shape(), elements(y)), (x.shape(), elements(x)), "{monoid:?}");
            }
        }
    }
}

#[test]
fn derivatives() {
    for monoid in all() {
        for (n, reverse, exclusive) in [
            (1, false, false),
            (5, true, false),
            (11, false, true),
            (19, true, true),
            (73, false, false),
        ] {
            let op = AssociativeScan { reverse, exclusive, ..AssociativeScan::new(monoid, 0) };
            // `any` and `all` are discontinuous at 0, so finite differences are invalid.
            if matches!(monoid, FloatMonoid::Any | FloatMonoid::All)
                || (exclusive && infinite(monoid))
            {
                continue;
            }
            check(&op, &operands(monoid, &[n]));
        }
    }
}

/// True if the identity is infinite, which finite differences cannot evaluate.
fn infinite(monoid: FloatMonoid) -> bool {
    let like = [random(&[1, 1, 1], 1)];
    elements(&monoid.identity(&like)[0])[0].is_infinite()
}

#[test]
fn exclusive_scans_begin_with_the_identity() {
    for monoid in all() {
        let op = AssociativeScan::new(monoid, 0);
        let x = operands(monoid, &[20]);
        let inclusive = run(&op, &x);
        let exclusive = run(&AssociativeScan { exclusive: true, ..op }, &x);
        for (k, (y, z)) in inclusive.iter().zip(&exclusive).enumerate() {
            close(&elements(&z.narrow(0, 1, 19)), &elements(&y.narrow(0, 0, 19)), 1e-14);
            // Combining with the identity leaves x unchanged.
            let first: Vec<Eager> = exclusive.iter().map(|z| z.narrow(0, 0, 1)).collect();
            let x: Vec<Eager> = x.iter().map(|x| x.narrow(0, 0, 1)).collect();
            if !matches!(monoid, FloatMonoid::Any | FloatMonoid::All) {
                let same = monoid.combine(&first, &x).unwrap();
                close(&elements(&same[k]), &elements(&x[k]), 1e-15);
            }
        }
    }
    let empty = AssociativeScan { exclusive: true, ..AssociativeScan::new(FloatMonoid::Sum, 0) };
    assert_eq!(run(&empty, &[array(&[0, 2], |_| 0.0)])[0].shape(), [0, 2]);
}

/// Values from the documentation of `jax.lax.associative_scan` and of ports of it.
#[test]
fn published_numbers() {
    let affine = AssociativeScan::new(FloatMonoid::Affine, 0);
    let y = run(&affine, &[of(&[3], &[2.0, 3.0, 5.0]), of(&[3], &[1.0, 4.0, 2.0])]);
    assert_eq!(elements(&y[0]), [2.0, 6.0, 30.0]);
    assert_eq!(elements(&y[1]), [1.0, 7.0, 37.0]);
    let sum = AssociativeScan::new(FloatMonoid::Sum, 0);
    assert_eq!(elements(&gradient(&sum, &[random(&[5], 1)])[0]), [5.0, 4.0, 3.0, 2.0, 1.0]);
    // Reverse: [.., f(f(z, y), x), f(z, y), z].
    let affine = AssociativeScan { reverse: true, ..affine };
    let y = run(&affine, &[of(&[2], &[2.0, 3.0]), of(&[2], &[1.0, 4.0])]);
    assert_eq!((elements(&y[0]), elements(&y[1])), (vec![6.0, 3.0], vec![9.0, 4.0]));
}

/// Products of 3×3 blocks as a user-defined monoid: not commutative, and its vjp is not elementwise.
#[derive(Clone, Debug)]
struct Rotations;

impl Monoid for Rotations {
    fn name(&self) -> &'static str {
        "rotations"
    }
    fn identity<A: Array>(&self, like: &[A]) -> Vec<A> {
        FloatMonoid::Matrix(FloatSemiring::Standard).identity(like)
    }
    fn combine<A: Array>(&self, x: &[A], y: &[A]) -> Result<Vec<A>> {
        Ok(vec![x[0].matmul(&y[0])])
    }
    fn vjp<A: Array>(&self, x: &[A], y: &[A], g: &[A]) -> Result<[Vec<A>; 2]> {
        Ok([vec![g[0].matmul(&y[0].transpose())], vec![x[0].transpose().matmul(&g[0])]])
    }
}

#[test]
fn a_monoid_of_ones_own() {
    for exclusive in [false, true] {
        let op = AssociativeScan { exclusive, ..AssociativeScan::new(Rotations, 0) };
        check(&op, &[random(&[19, 3, 3], 1)]);
        let named = FloatMonoid::Matrix(FloatSemiring::Standard);
        let named = AssociativeScan { exclusive, ..AssociativeScan::new(named, 0) };
        let x = [random(&[100, 3, 3], 1)];
        close(&elements(&run(&op, &x)[0]), &elements(&run(&named, &x)[0]), 1e-14);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    for monoid in [FloatMonoid::Affine, FloatMonoid::Matrix(FloatSemiring::LogSumExp)] {
        let op = AssociativeScan::new(monoid, 0);
        let x = operands(monoid, &[3000]);
        same_bits_on_threads(|| [run(&op, &x), gradient(&op, &x)].concat());
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let results = |monoid, shapes: &[&[usize]]| {
        let meta = |x: &&[usize]| Meta { shape: x.to_vec(), dtype: DType::F32 };
        AssociativeScan::new(monoid, 0).results(&shapes.iter().map(meta).collect::<Vec<_>>())
    };
    let matrix = FloatMonoid::Matrix(FloatSemiring::MaxPlus);
    assert!(results(matrix, &[&[5, 2, 2]]).is_ok());
    let tensor = |x| matches!(x, Err(ScanError::Tensor(_)));
    assert!(tensor(results(matrix, &[&[5, 2, 3]])));
    assert!(tensor(results(FloatMonoid::Affine, &[&[5]])));
    assert!(tensor(results(FloatMonoid::Affine, &[&[5], &[4]])));
    assert!(tensor(results(FloatMonoid::Affine, &[&[5, 2], &[5, 1]])));
    assert!(tensor(results(FloatMonoid::Sum, &[&[]])));
}

/// Kalman filtering as a scan: an element summarises steps `i..j` by `x_j = A x_i + b + noise of variance C` and the
/// likelihood `exp(η x_i − ½ J x_i²)`. Särkkä and García-Fernández 2021, for one state.
#[derive(Clone, Debug)]
struct Filtering;

impl Monoid for Filtering {
    fn name(&self) -> &'static str {
        "filtering"
    }
    fn arrays(&self) -> usize {
        5
    }
    fn identity<A: Array>(&self, like: &[A]) -> Vec<A> {
        let full = |x| like[0].full(&like[0].shape(), x);
        vec![full(1.0), full(0.0), full(0.0), full(0.0), full(0.0)]
    }
    fn combine<A: Array>(&self, x: &[A], y: &[A]) -> Result<Vec<A>> {
        let ([a, b, c, eta, j], [a2, b2, c2, eta2, j2]) = (x, y) else { unreachable!("five") };
        let scale = c.mul(j2).shift(1.0);
        let (left, right) = (a2.div(&scale), a.div(&scale));
        Ok(vec![
            left.mul(a),
            left.mul(&b.add(&c.mul(eta2))).add(b2),
            left.mul(c).mul(a2).add(c2),
            right.mul(&eta2.sub(&j2.mul(b))).add(eta),
            right.mul(j2).mul(a).add(j),
        ])
    }
}

#[test]
fn parallel_kalman_filter_is_the_sequential_one() {
    let (n, f, q, h, r, p0) = (37, 0.9, 0.3, 1.2, 0.5, 0.7);
    let y = random(&[n], 3);
    let mut x: [Vec<f64>; 5] = Default::default();
    for (t, y) in elements(&y).into_iter().enumerate() {
        // The first element contains the prior and does not depend on an earlier state.
        let p = if t == 0 { f * f * p0 + q } else { q };
        let s = h * h * p + r;
        let gain = p * h / s;
        let first = if t == 0 { 0.0 } else { 1.0 };
        let all = [
            first * (1.0 - gain * h) * f,
            gain * y,
            (1.0 - gain * h) * p,
            first * f * h * y / s,
            first * f * f * h * h / s,
        ];
        x.iter_mut().zip(all).for_each(|(x, value)| x.push(value));
    }
    let x = x.map(|x| of(&[n], &x));
    let op = AssociativeScan::new(Filtering, 0);
    let parallel = run(&op, &x);
    let one = |x: f64| of(&[1, 1], &[x]);
    let operands =
        [one(f), one(q), one(h), one(r), y.reshape(&[1, n, 1]), of(&[1], &[0.0]), one(p0)];
    let sequential = run(&t4a_scan::KalmanFilter, &operands);
    close(&elements(&parallel[1]), &elements(&sequential[0]), 1e-13);
    close(&elements(&parallel[2]), &elements(&sequential[1]), 1e-13);
    super::check(&op, &x);
}

/// Terms of −∞ have derivative 0 and leave the other derivatives finite.
#[test]
fn log_sums_without_a_term_do_not_move() {
    let none = f64::NEG_INFINITY;
    let x = of(&[5], &[none, none, 0.0, 1.0, none]);
    for exclusive in [false, true] {
        let op = AssociativeScan { exclusive, ..AssociativeScan::new(FloatMonoid::LogAddExp, 0) };
        let back = gradient(&op, std::slice::from_ref(&x));
        let dual = Value::Float(Dual::new(x.clone(), of(&[5], &[1.0; 5])));
        let out = op.jvp(&[dual], &[true]).unwrap();
        let ahead = elements(&out.results[0].clone().into_tangent());
        let back = elements(&back[0]);
        let e = 1f64.exp();
        let want = if exclusive {
            // The first element is copied unchanged.
            ([1.0, 0.0, 1.0 + 1.0 / (1.0 + e), e / (1.0 + e), 0.0], [0.0, 1.0, 0.0, 1.0, 1.0])
        } else {
            ([0.0, 0.0, 1.0 + 2.0 / (1.0 + e), 2.0 * e / (1.0 + e), 0.0], [0.0, 0.0, 1.0, 1.0, 1.0])
        };
        for (a, b) in back.iter().zip(&want.0).chain(ahead.iter().zip(&want.1)) {
            assert!((a - b).abs() < 1e-12, "{exclusive}: {back:?} {ahead:?}");
        }
    }
}
