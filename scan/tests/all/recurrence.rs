//! Linear recurrences.

use t4a_tensor::DType;

use super::*;
use t4a_scan::LinearRecurrence;

/// Operands of a shape: coefficients of size up to 1.
fn operands(op: &LinearRecurrence, shape: &[usize]) -> Vec<Eager> {
    let mut first = shape.to_vec();
    first[op.axis] = 1;
    let shapes = [shape, shape, &first];
    let count = 2 + op.initial as usize;
    let parts = 1 + op.complex as usize;
    (0..count * parts).map(|i| random(shapes[i / parts], 20 + i as u64)).collect()
}

fn variants(axis: usize) -> impl Iterator<Item = LinearRecurrence> {
    (0..8).map(move |i| LinearRecurrence {
        axis,
        reverse: i & 1 != 0,
        initial: i & 2 != 0,
        complex: i & 4 != 0,
    })
}

#[test]
fn forward_in_every_shape_is_the_loop() {
    for (shape, axis) in SHAPES {
        for op in variants(axis) {
            let x = operands(&op, shape);
            let p = 1 + op.complex as usize;
            let y: Vec<Vec<f64>> = run(&op, &x).iter().map(elements).collect();
            let x: Vec<Vec<f64>> = x.iter().map(elements).collect();
            let mut want = vec![vec![0.0; y[0].len()]; p];
            let mut lane = 0;
            lanes(shape, axis, op.reverse, |places| {
                let mut h = [0.0; 2];
                for i in 0..p {
                    h[i] = if op.initial { x[2 * p + i][lane] } else { 0.0 };
                }
                lane += 1;
                for &t in places {
                    let (a, b) = (x[0][t], x[p][t]);
                    h = if op.complex {
                        let (ia, ib) = (x[1][t], x[3][t]);
                        [a * h[0] - ia * h[1] + b, a * h[1] + ia * h[0] + ib]
                    } else {
                        [a * h[0] + b, 0.0]
                    };
                    for i in 0..p {
                        want[i][t] = h[i];
                    }
                }
            });
            for (y, want) in y.iter().zip(&want) {
                close(y, want, 1e-13);
            }
        }
    }
}

#[test]
fn derivatives() {
    for (shape, axis) in [(&[4][..], 0), (&[2, 3, 2], 1), (&[3, 17], 0)] {
        for op in variants(axis) {
            check(&op, &operands(&op, shape));
        }
    }
}

/// The chunked kernel against the portable rule.
#[test]
fn derivatives_of_long_lanes() {
    for op in variants(0) {
        let x = operands(&op, &[4500]);
        let tracked = vec![true; x.len()];
        let h = run(&op, &x);
        let cotangents: Vec<_> = h.iter().map(|h| Some(noise(h, 77))).collect();
        let kept = t4a_diff::Kept::new(op.keep(&tracked), &values(&x), &Outcome::new(h));
        let reverse = t4a_diff::Reverse {
            kept: &kept,
            cotangents: &cotangents,
            hidden: &[],
            wanted: &tracked,
        };
        let (vjp, fused) = (op.vjp(&reverse).unwrap(), op.fused_vjp(&reverse).unwrap());
        for (vjp, fused) in vjp.iter().zip(&fused) {
            let [vjp, fused] = [vjp, fused].map(|x| elements(x.as_ref().unwrap()));
            close(&fused, &vjp, 1e-12);
        }
    }
}

/// Each cotangent is the same, independent of the set of requested cotangents.
#[test]
fn only_what_is_wanted() {
    for op in variants(0) {
        let x = operands(&op, &[5, 2]);
        let p = 1 + op.complex as usize;
        let all = gradient(&op, &x);
        for k in 0..x.len() / p {
            let wanted: Vec<bool> = (0..x.len()).map(|i| i / p == k).collect();
            let h = run(&op, &x);
            let ones: Vec<_> = h.iter().map(|h| Some(h.full(&h.shape(), 1.0))).collect();
            let kept = t4a_diff::Kept::new(op.keep(&wanted), &values(&x), &Outcome::new(h));
            let reverse =
                t4a_diff::Reverse { kept: &kept, cotangents: &ones, hidden: &[], wanted: &wanted };
            for cotangents in [op.vjp(&reverse).unwrap(), op.fused_vjp(&reverse).unwrap()] {
                for i in (0..x.len()).filter(|i| wanted[*i]) {
                    close(&elements(cotangents[i].as_ref().unwrap()), &elements(&all[i]), 1e-14);
                }
            }
        }
    }
}

#[test]
fn long_lanes_beyond_the_range_of_numbers() {
    let op = LinearRecurrence::new(0);
    let n = 5000;
    let sequential = |a: &[f64], b: &[f64]| {
        let mut h = 0.0f64;
        a.iter()
            .zip(b)
            .map(|(a, b)| {
                h = a.mul_add(h, *b);
                h
            })
            .collect::<Vec<f64>>()
    };
    // Coefficients that overflow on a state of 0; decay to 0 of a state of 10³⁰⁰; a sign of 0.
    let grows = (vec![2.0; n], (0..n).map(|i| if i < 4900 { 0.0 } else { 1.0 }).collect());
    let decays = (vec![0.5; n], (0..n).map(|i| if i == 3 { 1e300 } else { 0.0 }).collect());
    let resets = ((0..n).map(|i| (i % 700 != 5) as u8 as f64).collect(), vec![1.0; n]);
    for (a, b) in [grows, decays, resets] {
        let (a, b): (Vec<f64>, Vec<f64>) = (a, b);
        let h = elements(&run(&op, &[of(&[n], &a), of(&[n], &b)])[0]);
        close(&h, &sequential(&a, &b), 1e-14);
        assert!(h.iter().all(|h| !h.is_nan()));
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    for (shape, axis) in [(&[70_000][..], 0), (&[200, 300], 0), (&[300, 200], 1), (&[40_000, 3], 0)]
    {
        let op = LinearRecurrence { initial: true, ..LinearRecurrence::new(axis) };
        let x = operands(&op, shape);
        same_bits_on_threads(|| [run(&op, &x), gradient(&op, &x)].concat());
    }
}

#[test]
fn narrow_floats_are_computed_in_single_precision() {
    let op = LinearRecurrence::new(0);
    let cast = |x: Eager| Eager::from(x.tensor().unwrap().clone().cast(DType::BF16));
    let x = operands(&op, &[9, 2]).into_iter().map(cast).collect::<Vec<_>>();
    let wide = |x: &Eager| Eager::from(x.tensor().unwrap().clone().cast(DType::F64));
    let want = run(&op, &x.iter().map(wide).collect::<Vec<_>>());
    close(&elements(&run(&op, &x)[0]), &elements(&want[0]), 1.0 / 256.0);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let m = |shape: &[usize], dtype| Meta { shape: shape.to_vec(), dtype };
    let f = |shape: &[usize]| m(shape, DType::F64);
    let op = LinearRecurrence { initial: true, ..LinearRecurrence::new(0) };
    let shapes = |x: &[&[usize]]| op.results(&x.iter().map(|x| f(x)).collect::<Vec<_>>());
    assert!(shapes(&[&[4, 2], &[4, 2], &[1, 2]]).is_ok());
    assert!(matches!(shapes(&[&[4, 2], &[4, 2]]), Err(TensorError::Value { .. })));
    assert!(matches!(shapes(&[&[4, 2], &[3, 2], &[1, 2]]), Err(TensorError::ShapeMismatch { .. })));
    assert!(matches!(shapes(&[&[4, 2], &[4, 2], &[2]]), Err(TensorError::ShapeMismatch { .. })));
    let mixed = [f(&[4]), m(&[4], DType::F32), f(&[1])];
    assert!(matches!(op.results(&mixed), Err(TensorError::DTypeMismatch { .. })));
    let ints = [m(&[4], DType::I32), m(&[4], DType::I32), m(&[1], DType::I32)];
    assert!(matches!(op.results(&ints), Err(TensorError::DTypeUnsupported { .. })));
}

/// A chunk whose product of factors underflows and then grows again must not be applied as one factor.
#[test]
fn factors_that_vanish_and_come_back() {
    let n = 4096;
    let a = |t: usize| match t {
        512..712 => 0.5f32,
        712..912 => 2.0,
        _ => 1.0,
    };
    let a: Vec<f32> = (0..n).map(a).collect();
    let mut b = vec![0f32; n];
    b[1000] = 1.0;
    let narrow = |x: &[f32], shape: &[usize]| {
        Eager::from(t4a_tensor::AnyTensor::from(
            t4a_tensor::Tensor::from_vec(x.to_vec(), shape).unwrap(),
        ))
    };
    let op = LinearRecurrence { initial: true, ..LinearRecurrence::new(0) };
    let arrays = [narrow(&a, &[n, 1]), narrow(&b, &[n, 1]), narrow(&[1e30], &[1, 1])];
    let found = elements(&run(&op, &arrays)[0]);
    let mut h = 1e30f32;
    for t in 0..n {
        h = a[t].mul_add(h, b[t]);
        assert!((found[t] - f64::from(h)).abs() <= 1e-6 * f64::from(h), "{t}: {} {h}", found[t]);
    }
}
