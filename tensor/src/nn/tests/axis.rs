use super::{assert_vjp, random, values};
use crate::nn::{norm, softmax};
use crate::testing::{any_layouts, assert_close, indices};
use crate::{AnyTensor, DType, Tensor, TensorError};

const FLOATS: [(DType, f64); 4] =
    [(DType::F64, 1e-13), (DType::F32, 1e-5), (DType::F16, 2e-2), (DType::BF16, 8e-2)];

/// `f` of every lane along an axis.
fn lanes(x: &AnyTensor, axis: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let shape = x.shape();
    let all = values(x);
    let inner: usize = shape[axis + 1..].iter().product();
    let mut out = vec![0.0; all.len()];
    for (i, index) in indices(shape).enumerate() {
        if index[axis] == 0 {
            let lane: Vec<f64> = (0..shape[axis]).map(|k| all[i + k * inner]).collect();
            for (k, y) in f(&lane).into_iter().enumerate() {
                out[i + k * inner] = y;
            }
        }
    }
    out
}

fn naive_softmax(x: &[f64]) -> Vec<f64> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
    x.iter().map(|x| (x - max).exp() / sum).collect()
}

#[test]
fn softmax_and_its_logarithm_agree_with_naive_lanes_on_every_layout() {
    for shape in [&[7][..], &[1, 1], &[5, 37], &[3, 4, 5], &[2, 3, 150], &[2, 0, 3], &[2, 33, 2, 3]]
    {
        for (dtype, tolerance) in FLOATS {
            for (layout, x) in any_layouts(dtype, shape) {
                for axis in 0..shape.len() {
                    let context = format!("{dtype} {layout} {shape:?} axis {axis}");
                    let want = lanes(&x, axis, naive_softmax);
                    let y = x.softmax(axis).unwrap();
                    assert_eq!((y.dtype(), y.shape()), (dtype, shape));
                    assert_close(&values(&y), &want, tolerance, &context);
                    let log = values(&x.log_softmax(axis).unwrap());
                    let log_want: Vec<f64> = want.iter().map(|y| y.ln()).collect();
                    assert_close(&log, &log_want, 4.0 * tolerance, &context);
                }
            }
        }
    }
}

#[test]
fn softmax_of_extreme_lanes() {
    let huge = Tensor::from_vec(vec![1e38f32, -1e38, 1e38, f32::NEG_INFINITY], &[4]).unwrap();
    assert_eq!(softmax::softmax(&huge, 0).unwrap().to_vec().unwrap(), [0.5, 0.0, 0.5, 0.0]);
    for bad in [f32::NAN, f32::INFINITY] {
        let x = Tensor::from_vec(vec![0.0, bad, 1.0], &[3, 1]).unwrap();
        let y = softmax::softmax(&x, 0).unwrap().to_vec().unwrap();
        assert!(y[1].is_nan(), "{bad}: {y:?}");
    }
}

#[test]
fn vjps_of_softmax_agree_with_finite_differences() {
    for (shape, axis) in [(&[4, 37][..], 1), (&[4, 5, 3], 1), (&[6, 200], 0)] {
        let (x, dy) = (random(shape, 1), random(shape, 2));
        let y = softmax::softmax(&x, axis).unwrap();
        let dx = softmax::softmax_vjp(&y, &dy, axis).unwrap();
        assert_vjp(&x, &dx, &dy, |x| softmax::softmax(x, axis).unwrap());
        let y = softmax::log_softmax(&x, axis).unwrap();
        let dx = softmax::log_softmax_vjp(&y, &dy, axis).unwrap();
        assert_vjp(&x, &dx, &dy, |x| softmax::log_softmax(x, axis).unwrap());
    }
    // A cotangent with another layout than the result.
    let (x, dy) = (random(&[4, 6], 3), random(&[6, 4], 4).swap_axes(0, 1).unwrap());
    let y = softmax::softmax(&x, 1).unwrap();
    let dx = softmax::softmax_vjp(&y, &dy, 1).unwrap();
    assert_vjp(&x, &dx, &dy, |x| softmax::softmax(x, 1).unwrap());
}

#[test]
fn norms_agree_with_naive_rows_on_every_layout() {
    for shape in [&[7][..], &[5, 37], &[3, 4, 5], &[300, 100], &[0, 3], &[2, 1]] {
        let d = shape[shape.len() - 1];
        for (dtype, tolerance) in FLOATS {
            let weight = |seed| AnyTensor::from(random(&[d], seed)).cast(dtype).unwrap();
            let (gamma, beta) = (weight(1), weight(2));
            let (g, b) = (values(&gamma), values(&beta));
            for (layout, x) in any_layouts(dtype, shape) {
                let context = format!("{dtype} {layout} {shape:?}");
                let normal = |x: &[f64], center: f64| -> Vec<f64> {
                    let mean = center * x.iter().sum::<f64>() / d as f64;
                    let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
                    x.iter().map(|x| (x - mean) / (var + 0.01).sqrt()).collect()
                };
                let affine = |y: Vec<f64>, b: &[f64]| -> Vec<f64> {
                    (0..d).map(|i| y[i] * g[i] + b[i]).collect()
                };
                let want = lanes(&x, shape.len() - 1, |x| affine(normal(x, 1.0), &b));
                let y = x.layer_norm(&gamma, Some(&beta), 0.01).unwrap();
                assert_close(&values(&y), &want, 8.0 * tolerance, &context);
                let zeros = vec![0.0; d];
                let want = lanes(&x, shape.len() - 1, |x| affine(normal(x, 1.0), &zeros));
                let y = x.layer_norm(&gamma, None, 0.01).unwrap();
                assert_close(&values(&y), &want, 8.0 * tolerance, &context);
                let want = lanes(&x, shape.len() - 1, |x| affine(normal(x, 0.0), &zeros));
                let y = x.rms_norm(&gamma, 0.01).unwrap();
                assert_close(&values(&y), &want, 8.0 * tolerance, &context);
            }
        }
    }
}

#[test]
fn vjps_of_norms_agree_with_finite_differences() {
    for shape in [&[4, 37][..], &[2, 3, 5], &[2000, 40]] {
        let d = shape[shape.len() - 1];
        let (x, dy) = (random(shape, 1), random(shape, 2));
        let (gamma, beta) = (random(&[d], 3), random(&[d], 4));
        let vjp = norm::layer_norm_vjp(&x, &gamma, 1e-3, &dy).unwrap();
        let f = |x: &_, g: &_, b: &_| norm::layer_norm(x, g, Some(b), 1e-3).unwrap();
        assert_vjp(&x, &vjp.x, &dy, |x| f(x, &gamma, &beta));
        assert_vjp(&gamma, &vjp.gamma, &dy, |g| f(&x, g, &beta));
        assert_vjp(&beta, &vjp.beta, &dy, |b| f(&x, &gamma, b));
        let vjp = norm::rms_norm_vjp(&x, &gamma, 1e-3, &dy).unwrap();
        assert_vjp(&x, &vjp.x, &dy, |x| norm::rms_norm(x, &gamma, 1e-3).unwrap());
        assert_vjp(&gamma, &vjp.gamma, &dy, |g| norm::rms_norm(&x, g, 1e-3).unwrap());
    }
}

#[test]
fn wrong_operands_are_errors() {
    let x = AnyTensor::from(random(&[2, 3], 1));
    let ints = x.clone().cast(DType::I32).unwrap();
    let single = x.clone().cast(DType::F32).unwrap();
    let scalar = AnyTensor::from(random(&[], 1));
    assert!(matches!(x.softmax(2), Err(TensorError::Axis { axis: 2, .. })));
    assert!(matches!(scalar.softmax(0), Err(TensorError::Axis { .. })));
    assert!(matches!(ints.softmax(0), Err(TensorError::DTypeUnsupported { .. })));
    assert!(matches!(x.softmax_vjp(&single, 0), Err(TensorError::DTypeMismatch { .. })));
    assert!(matches!(x.softmax_vjp(&scalar, 0), Err(TensorError::ShapeMismatch { .. })));
    assert!(matches!(x.layer_norm(&x, None, 0.1), Err(TensorError::ShapeMismatch { .. })));
    assert!(matches!(scalar.rms_norm(&scalar, 0.1), Err(TensorError::Shape { .. })));
}
