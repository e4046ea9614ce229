use std::f64::consts::TAU;

use super::*;
use crate::testing::{Mix, any_layouts, assert_close};
use crate::{AnyTensor, DType};

fn random(shape: &[usize], seed: u64) -> Tensor<f64> {
    let mut mix = Mix(seed);
    Tensor::from_fn(shape, |_| 2.0 * mix.unit() - 1.0).unwrap()
}

/// The definition, along axis 1 of `[outer, len, inner]`, of `n` elements and `m` results.
fn naive(
    [re, im]: [&[f64]; 2],
    [outer, len, inner]: [usize; 3],
    n: usize,
    m: usize,
    sign: f64,
) -> [Vec<f64>; 2] {
    let mut out = [Vec::new(), Vec::new()];
    for o in 0..outer {
        for k in 0..m {
            for i in 0..inner {
                let (mut a, mut b) = (0.0, 0.0);
                for j in 0..len.min(n) {
                    let (sin, cos) = (sign * TAU * ((j * k) % n) as f64 / n as f64).sin_cos();
                    let at = (o * len + j) * inner + i;
                    a += re[at] * cos - im[at] * sin;
                    b += re[at] * sin + im[at] * cos;
                }
                out[0].push(a);
                out[1].push(b);
            }
        }
    }
    out
}

fn values(x: &AnyTensor) -> Vec<f64> {
    x.clone().cast(DType::F64).unwrap().into_typed::<f64>().unwrap().to_vec().unwrap()
}

const LENGTHS: [(usize, Option<usize>); 9] = [
    (1, None),
    (2, None),
    (8, None),
    (7, None),
    (12, None),
    (8, Some(5)),
    (5, Some(16)),
    (3, Some(1)),
    (37, None),
];

#[test]
fn transforms_agree_with_their_definition_in_every_layout_and_dtype() {
    let tolerances =
        [(DType::F64, 1e-12), (DType::F32, 1e-4), (DType::F16, 3e-1), (DType::BF16, 2.0)];
    for (len, n) in LENGTHS {
        let size = n.unwrap_or(len);
        for (shape, axis) in [([2, len, 3], 1), ([1, 4, len], 2), ([len, 2, 2], 0)] {
            let outer: usize = shape[..axis].iter().product();
            let cut = [outer, len, shape[axis + 1..].iter().product()];
            for (dtype, tolerance) in tolerances {
                let imaginary = AnyTensor::from(random(&shape, 5)).cast(dtype).unwrap();
                for (layout, x) in any_layouts(dtype, &shape) {
                    let context = format!("{dtype} {layout} {shape:?} {axis} {n:?}");
                    let (xs, ys) = (values(&x), values(&imaginary));
                    let zeros = vec![0.0; xs.len()];
                    let (re, im) = x.rfft(axis, n).unwrap();
                    assert_eq!((re.dtype(), re.shape()[axis]), (dtype, size / 2 + 1));
                    let want = naive([&xs, &zeros], cut, size, size / 2 + 1, -1.0);
                    assert_close(&values(&re), &want[0], tolerance, &context);
                    assert_close(&values(&im), &want[1], tolerance, &context);
                    let (re, im) = x.fft(&imaginary, axis, n).unwrap();
                    let want = naive([&xs, &ys], cut, size, size, -1.0);
                    assert_close(&values(&re), &want[0], tolerance, &context);
                    assert_close(&values(&im), &want[1], tolerance, &context);
                    let (re, _) = x.ifft(&imaginary, axis, n).unwrap();
                    let [want, _] = naive([&xs, &ys], cut, size, size, 1.0);
                    let want: Vec<f64> = want.iter().map(|v| v / size as f64).collect();
                    assert_close(&values(&re), &want, tolerance, &context);
                }
            }
        }
    }
}

#[test]
fn inverses_give_the_tensor_back() {
    for n in [1, 2, 3, 8, 9, 31, 64, 100] {
        let x = random(&[3, n, 4], 1);
        let y = random(&[3, n, 4], 2);
        let (re, im) = rfft(&x, 1, None).unwrap();
        let back = irfft(&re, &im, 1, Some(n)).unwrap();
        assert_close(&back.to_vec().unwrap(), &x.to_vec().unwrap(), 1e-13, &format!("{n}"));
        let (re, im) = fft(&x, &y, 1, None).unwrap();
        let (a, b) = ifft(&re, &im, 1, None).unwrap();
        assert_close(&a.to_vec().unwrap(), &x.to_vec().unwrap(), 1e-13, &format!("{n}"));
        assert_close(&b.to_vec().unwrap(), &y.to_vec().unwrap(), 1e-13, &format!("{n}"));
    }
}

#[test]
fn inverses_of_other_sizes_complete_the_spectrum() {
    for (len, n) in [(5, None), (5, Some(9)), (5, Some(4)), (3, Some(10)), (2, Some(1))] {
        let size = n.unwrap_or(2 * (len - 1));
        let (re, im) = (random(&[2, len], 1), random(&[2, len], 2));
        let got = irfft(&re, &im, 1, n).unwrap();
        assert_eq!(got.shape(), [2, size]);
        let (res, ims) = (re.to_vec().unwrap(), im.to_vec().unwrap());
        for lane in 0..2 {
            for j in 0..size {
                let mut sum = 0.0;
                for k in 0..size {
                    // Element n − k is the conjugate of element k.
                    let (at, sign) = if k <= size / 2 { (k, 1.0) } else { (size - k, -1.0) };
                    if at < len {
                        let own = at == 0 || 2 * at == size;
                        let b = if own { 0.0 } else { sign * ims[lane * len + at] };
                        let angle = TAU * ((j * k) % size) as f64 / size as f64;
                        sum += res[lane * len + at] * angle.cos() - b * angle.sin();
                    }
                }
                let got = got.get(&[lane, j]).unwrap();
                assert!((got - sum / size as f64).abs() < 1e-13, "{len} {n:?} {j}");
            }
        }
    }
}

#[test]
fn many_lanes_on_threads_and_more_lengths_than_are_kept() {
    let x = random(&[300, 256], 1);
    let (re, im) = rfft(&x, 1, None).unwrap();
    let one = x.slice_axis(0, 299, 1, 1).unwrap();
    let (a, b) = rfft(&one, 1, None).unwrap();
    let last = |x: &Tensor<f64>| x.slice_axis(0, 299, 1, 1).unwrap().to_vec().unwrap();
    assert_eq!((last(&re), last(&im)), (a.to_vec().unwrap(), b.to_vec().unwrap()));
    for n in 1..150 {
        let (re, _) = rfft(&one, 1, Some(n)).unwrap();
        let sum: f64 = one.to_vec().unwrap()[..n].iter().sum();
        assert!((re.get(&[0, 0]).unwrap() - sum).abs() < 1e-12);
    }
}

#[test]
fn axes_lengths_and_shapes_that_do_not_fit_are_errors() {
    let x = random(&[2, 4], 1);
    assert!(matches!(rfft(&x, 2, None), Err(TensorError::Axis { .. })));
    assert!(matches!(irfft(&x, &x, 2, None), Err(TensorError::Axis { .. })));
    assert!(matches!(rfft(&x, 1, Some(0)), Err(TensorError::Value { .. })));
    assert!(rfft(&x, 1, Some(usize::MAX)).is_err());
    let one = random(&[2, 1], 1);
    assert!(matches!(irfft(&one, &one, 1, None), Err(TensorError::Value { .. })));
    let empty = random(&[2, 0], 1);
    assert!(matches!(rfft(&empty, 1, None), Err(TensorError::Value { .. })));
    assert_eq!(rfft(&empty, 1, Some(4)).unwrap().0.to_vec().unwrap(), [0.0; 6]);
    assert_eq!(rfft(&empty, 0, None).unwrap().0.shape(), [2, 0]);
    assert!(matches!(fft(&x, &one, 1, None), Err(TensorError::ShapeMismatch { .. })));
    assert!(matches!(irfft(&x, &one, 1, None), Err(TensorError::ShapeMismatch { .. })));
}
