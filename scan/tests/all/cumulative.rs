//! Cumulative sums, products, extrema and log-sum-exp.

use t4a_algebra::{c64, f16};
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::*;
use t4a_scan::{Cumulative, Running, running};

fn op(kind: Running, axis: usize, reverse: bool) -> Cumulative {
    Cumulative { reverse, ..Cumulative::new(kind, axis) }
}

/// Sequential loop.
fn naive(kind: Running, x: &[f64]) -> Vec<f64> {
    let mut y = Vec::new();
    for i in 0..x.len() {
        let x = &x[..=i];
        let max = x.iter().fold(f64::NEG_INFINITY, |m, &x| if x > m || x.is_nan() { x } else { m });
        y.push(match kind {
            Running::Sum => x.iter().sum(),
            Running::Product => x.iter().product(),
            Running::Max => max,
            Running::Min => -x.iter().fold(f64::NEG_INFINITY, |m, &x| m.max(-x)),
            Running::LogSumExp if max.is_infinite() => max,
            Running::LogSumExp => max + x.iter().map(|x| (x - max).exp()).sum::<f64>().ln(),
            other => unreachable!("{other:?} has no reference here"),
        });
    }
    y
}

#[test]
fn forward_in_every_shape_is_the_loop() {
    for kind in Running::ALL {
        for (shape, axis) in SHAPES {
            for reverse in [false, true] {
                // Factors near 1, so that long products stay in range.
                let mut x = random(shape, 3);
                if kind == Running::Product {
                    x = x.scale(0.01).shift(1.0);
                }
                if shape.iter().product::<usize>() > 4000 && kind == Running::LogSumExp {
                    x = x.scale(30.0);
                }
                let [data, y] = [&x, &run(&op(kind, axis, reverse), &[x.clone()])[0]].map(elements);
                let mut want = vec![0.0; data.len()];
                lanes(shape, axis, reverse, |places| {
                    let lane: Vec<f64> = places.iter().map(|&i| data[i]).collect();
                    // The reference is quadratic, so long lanes are checked in part.
                    let long = lane.len() > 1000;
                    let upto =
                        if long { [1, 513, 1030, lane.len()].to_vec() } else { vec![lane.len()] };
                    for (i, &place) in places.iter().enumerate() {
                        want[place] = if long { y[place] } else { 0.0 };
                        if long && upto.contains(&(i + 1)) {
                            want[place] = *naive(kind, &lane[..=i]).last().unwrap();
                        }
                    }
                    if !long {
                        for (&place, y) in places.iter().zip(naive(kind, &lane)) {
                            want[place] = y;
                        }
                    }
                });
                close(&y, &want, 1e-12);
            }
        }
    }
}

#[test]
fn derivatives() {
    for kind in Running::ALL {
        for (shape, axis) in [(&[5][..], 0), (&[3, 4, 2], 1), (&[1, 3], 0), (&[2, 18], 0)] {
            for reverse in [false, true] {
                check(&op(kind, axis, reverse), &[random(shape, 5)]);
            }
        }
    }
}

#[test]
fn complex_products() {
    for reverse in [false, true] {
        let op = Cumulative { complex: true, ..op(Running::Product, 0, reverse) };
        check(&op, &[random(&[5, 2], 1), random(&[5, 2], 2)]);
        check(&Cumulative { kind: Running::Sum, ..op }, &[random(&[5, 2], 1), random(&[5, 2], 2)]);
    }
    // i, i², i³, i⁴ = i, −1, −i, 1.
    let op = Cumulative { complex: true, ..op(Running::Product, 0, false) };
    let y = run(&op, &[of(&[4], &[0.0; 4]), of(&[4], &[1.0; 4])]);
    assert_eq!(elements(&y[0]), [0.0, -1.0, 0.0, 1.0]);
    assert_eq!(elements(&y[1]), [1.0, 0.0, -1.0, 0.0]);
}

#[test]
fn gradient_of_a_product_with_zeros() {
    let grad =
        |x: &[f64]| elements(&gradient(&op(Running::Product, 0, false), &[of(&[x.len()], x)])[0]);
    assert_eq!(grad(&[2.0, 0.0, 3.0]), [1.0, 8.0, 0.0]);
    assert_eq!(grad(&[0.0, 0.0, 3.0]), [1.0, 0.0, 0.0]);
    // d/dx₀ of x₀ + x₀x₁ + x₀x₁x₂ + x₀x₁x₂x₃ and so on.
    assert_eq!(grad(&[2.0, 3.0, 0.0, 5.0]), [4.0, 2.0, 36.0, 0.0]);
}

#[test]
fn ties_take_the_first() {
    for (kind, sign) in [(Running::Max, 1.0), (Running::Min, -1.0)] {
        let x = of(&[5], &[1.0, 3.0, 3.0, 2.0, 4.0]).scale(sign);
        assert_eq!(
            elements(&gradient(&op(kind, 0, false), std::slice::from_ref(&x))[0]),
            [1.0, 3.0, 0.0, 0.0, 1.0]
        );
        // In reverse the first element in time is the last: 4 is the maximum throughout.
        assert_eq!(elements(&gradient(&op(kind, 0, true), &[x])[0]), [0.0, 0.0, 0.0, 0.0, 5.0]);
    }
}

#[test]
fn infinities_and_nan() {
    let inf = f64::INFINITY;
    let y = |kind, x: &[f64]| elements(&run(&op(kind, 0, false), &[of(&[x.len()], x)])[0]);
    let x = [-inf, -inf, 0.0, 0.0, inf, 1.0, inf];
    let two = 2.0f64.ln();
    close(&y(Running::LogSumExp, &x), &[-inf, -inf, 0.0, two, inf, inf, inf], 1e-15);
    let grad = elements(&gradient(&op(Running::LogSumExp, 0, false), &[of(&[4], &x[..4])])[0]);
    close(&grad, &[0.0, 0.0, 1.5, 0.5], 1e-15);
    for kind in Running::ALL {
        let y = y(kind, &[1.0, f64::NAN, 2.0]);
        assert!(y[0] == 1.0 && y[1].is_nan() && y[2].is_nan(), "{kind:?} {y:?}");
    }
    // Large differences do not overflow.
    close(&y(Running::LogSumExp, &[-1e4, 1e4, -1e4]), &[-1e4, 1e4, 1e4], 1e-15);
}

#[test]
fn long_lanes_beyond_the_range_of_numbers() {
    // 2^5000 overflows in every chunk; a product that is 0 stays 0.
    let mut x = vec![2.0; 5000];
    x[0] = 0.0;
    let y = elements(&run(&op(Running::Product, 0, false), &[of(&[5000], &x)])[0]);
    assert!(y.iter().all(|&y| y == 0.0));
    // ½^1000 · 2^1000 = 1 through subnormal numbers.
    let x: Vec<f64> = (0..5000).map(|i| if i / 1060 % 2 == 0 { 0.5 } else { 2.0 }).collect();
    let y = elements(&run(&op(Running::Product, 0, false), &[of(&[5000], &x)])[0]);
    let mut p = 1.0;
    let want: Vec<f64> = x
        .iter()
        .map(|x| {
            p *= x;
            p
        })
        .collect();
    assert_eq!(y, want);
    // Partial sums of a chunk overflow, total sums do not.
    let mut x = vec![0.0; 5000];
    (x[0], x[600], x[601], x[602]) = (-1.5e308, 1e308, 1e308, -1e308);
    let y = elements(&run(&op(Running::Sum, 0, false), &[of(&[5000], &x)])[0]);
    assert_eq!(y[4999], -0.5e308);
    // Sums of a run overflow, those of the whole lane do not: in a run that ends and in the last one.
    for n in [40, 70] {
        for lanes in [1, 40] {
            let term = |t| [(0, -1.5e308), (36, 1e308), (37, 1e308)].iter().find(|x| x.0 == t);
            let x = Tensor::from_fn(&[n, lanes], |i| term(i / lanes).map_or(0.0, |x| x.1)).unwrap();
            let y = running(Running::Sum, &AnyTensor::from(x), 0, false).unwrap();
            let y = y.into_typed::<f64>().unwrap();
            let y: Vec<f64> = (0..n).map(|i| y.get(&[i, lanes - 1]).unwrap()).collect();
            assert_eq!(y[..36], [-1.5e308; 36]);
            assert_eq!(y[36..], [vec![-0.5e308], vec![0.5e308; n - 37]].concat());
        }
    }
}

/// A sequential sum of ones in `f32` stagnates at 2²⁴.
#[test]
fn errors_of_long_lanes_do_not_grow() {
    let epsilon = 2f64.powi(-24);
    let of = |kind, shape: &[usize], value: f32, axis, reverse| {
        let x = AnyTensor::from(Tensor::full(shape, value).unwrap());
        running(kind, &x, axis, reverse).unwrap().into_typed::<f32>().unwrap()
    };
    let n = 1 << 25;
    let y = of(Running::Sum, &[n], 1.0, 0, false);
    for i in [0, 600, n / 2 - 1, n / 2, n / 2 + 301, n - 1] {
        let off = (f64::from(y.get(&[i]).unwrap()) - (i + 1) as f64).abs();
        assert!(off <= 5.0 * epsilon * (i + 1) as f64, "{i}: off by {off}");
    }
    // Adjacent lanes, strided lanes, and a few long ones.
    let tenth = f64::from(0.1f32);
    for (shape, axis) in [(&[1 << 15, 33][..], 0), (&[9, 1 << 17], 1), (&[1 << 18, 3], 0)] {
        let y = of(Running::Sum, shape, 0.1, axis, true);
        for i in [0, 1000, shape[axis] - 1] {
            let mut at = vec![1; shape.len()];
            at[axis] = shape[axis] - 1 - i;
            let want = (i + 1) as f64 * tenth;
            let off = (f64::from(y.get(&at).unwrap()) - want).abs();
            assert!(off <= 5.0 * epsilon * want, "{shape:?}, {i}: off by {off}");
        }
    }
    for (shape, axis) in [(&[1 << 14, 33][..], 0), (&[1 << 19], 0)] {
        let lane = |i: usize| if i.is_multiple_of(2) { 0.0 } else { -0.1f32 };
        let pitch = shape.iter().product::<usize>() / shape[axis];
        let x = Tensor::from_fn(shape, |i| lane(i / pitch)).unwrap();
        let y = running(Running::LogSumExp, &AnyTensor::from(x), axis, false).unwrap();
        let y = y.into_typed::<f32>().unwrap();
        let mut at = vec![0; shape.len()];
        at[axis] = shape[axis] - 1;
        let half = (shape[axis] / 2) as f64;
        let want = (half + half * f64::from(-0.1f32).exp()).ln();
        let off = (f64::from(y.get(&at).unwrap()) - want).abs();
        assert!(off <= epsilon * (8.0 + want), "{shape:?}: off by {off}");
    }
}

#[test]
fn sums_that_are_not_finite_stay_so() {
    let large = f32::MAX;
    let x = [1.0, -large, large, large, f32::INFINITY, 1.0, f32::NEG_INFINITY, 1.0];
    for lanes in [1, 40] {
        let x = Tensor::from_fn(&[8, lanes], |i| x[i / lanes]).unwrap();
        let y = running(Running::Sum, &AnyTensor::from(x), 0, false).unwrap();
        let y = y.into_typed::<f32>().unwrap();
        let y: Vec<f32> = (0..8).map(|i| y.get(&[i, lanes - 1]).unwrap()).collect();
        assert_eq!(y[..6], [1.0, -large, 0.0, large, f32::INFINITY, f32::INFINITY]);
        assert!(y[6..].iter().all(|y| y.is_nan()));
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    for (shape, axis) in [(&[70_000][..], 0), (&[300, 300], 0), (&[300, 300], 1), (&[40_000, 3], 0)]
    {
        let x = random(shape, 9);
        same_bits_on_threads(|| {
            let each =
                Running::ALL.map(|kind| run(&op(kind, axis, true), std::slice::from_ref(&x)));
            each.into_iter().flatten().collect()
        });
    }
}

#[test]
fn other_dtypes_and_views() {
    let any = |t: AnyTensor| elements(&Eager::from(t.cast(DType::F64)));
    let x = AnyTensor::from(Tensor::from_vec(vec![3i32, 1, 2, 5], &[4]).unwrap());
    let y = |kind, x: &AnyTensor, reverse| any(running(kind, x, 0, reverse).unwrap());
    assert_eq!(y(Running::Sum, &x, false), [3.0, 4.0, 6.0, 11.0]);
    assert_eq!(y(Running::Product, &x, true), [30.0, 10.0, 10.0, 5.0]);
    assert_eq!(y(Running::Max, &x, false), [3.0, 3.0, 3.0, 5.0]);
    assert_eq!(y(Running::Min, &x, true), [1.0, 1.0, 2.0, 5.0]);
    let every_second_backwards = x.slice_axis(0, 3, 2, -2).unwrap();
    assert_eq!(y(Running::Sum, &every_second_backwards, false), [5.0, 6.0]);
    // u8 wraps, 16-bit floats are summed in f32.
    let wraps = AnyTensor::from(Tensor::from_vec(vec![200u8, 100], &[2]).unwrap());
    assert_eq!(y(Running::Sum, &wraps, false), [200.0, 44.0]);
    let halves = AnyTensor::from(Tensor::full(&[4096], f16::ONE).unwrap());
    assert_eq!(y(Running::Sum, &halves, false)[4095], 4096.0);
    assert_eq!(running(Running::Sum, &halves, 0, false).unwrap().dtype(), DType::F16);
    let flags = AnyTensor::from(Tensor::from_vec(vec![true, false, true], &[3]).unwrap());
    let flags = |kind| running(kind, &flags, 0, false).unwrap().typed::<bool>().unwrap().to_vec();
    assert_eq!(flags(Running::Max).unwrap(), [true, true, true]);
    assert_eq!(flags(Running::Min).unwrap(), [true, false, false]);
    let i = c64::new(0.0, 1.0);
    let z = AnyTensor::from(Tensor::from_vec(vec![i; 3], &[3]).unwrap());
    let z = running(Running::Product, &z, 0, false).unwrap();
    assert_eq!(z.typed::<c64>().unwrap().to_vec().unwrap(), [i, i * i, i * i * i]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let m = |shape: &[usize], dtype| Meta { shape: shape.to_vec(), dtype };
    let f = m(&[2, 3], DType::F64);
    let results = |kind, inputs: &[Meta]| op(kind, 2, false).results(inputs);
    assert!(matches!(
        results(Running::Sum, std::slice::from_ref(&f)),
        Err(TensorError::Axis { axis: 2, rank: 2, .. })
    ));
    assert!(matches!(results(Running::Sum, &[]), Err(TensorError::Value { .. })));
    let int = m(&[2, 3, 4], DType::I32);
    assert!(matches!(results(Running::Max, &[int]), Err(TensorError::DTypeUnsupported { .. })));
    let complex = Cumulative { complex: true, ..op(Running::Max, 0, false) };
    assert!(matches!(complex.results(&[f.clone(), f]), Err(TensorError::Value { .. })));
    let flags = AnyTensor::from(Tensor::from_vec(vec![true], &[1]).unwrap());
    assert!(running(Running::Sum, &flags, 0, false).is_err());
    assert!(running(Running::LogSumExp, &flags, 0, false).is_err());
}
