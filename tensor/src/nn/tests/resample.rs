use super::{inner, random, values};
use crate::nn::resample::Filter::*;
use crate::nn::resample::*;
use crate::testing::{any_layouts, assert_close, indices};
use crate::{DType, Tensor, TensorError};

const FILTERS: [Filter; 5] = [Nearest, NearestExact, Linear, Cubic, Lanczos3];

/// Planes and their new sizes: up, down, one element, lines in several tasks.
const SIZES: &[([usize; 2], [usize; 2])] = &[
    ([3, 4], [6, 8]),
    ([5, 7], [3, 2]),
    ([4, 5], [4, 5]),
    ([1, 6], [3, 1]),
    ([2, 1], [5, 5]),
    ([9, 3], [2, 11]),
];

/// Element and weight of every element that counts for result `i` of `n`, from the definitions.
fn taps(filter: Filter, align: bool, m: usize, n: usize, i: usize) -> Vec<(usize, f64)> {
    let (size, last) = (m as f64, m as isize - 1);
    let p = match align {
        true if n == 1 => 0.0,
        true => i as f64 * (size - 1.0) / (n as f64 - 1.0),
        false => (i as f64 + 0.5) * size / n as f64 - 0.5,
    };
    let sinc = |t: f64| {
        let t = t * std::f64::consts::PI;
        if t == 0.0 { 1.0 } else { t.sin() / t }
    };
    let keys = |t: f64| match t.abs() {
        t if t < 1.0 => 1.25 * t.powi(3) - 2.25 * t.powi(2) + 1.0,
        t if t < 2.0 => -0.75 * t.powi(3) + 3.75 * t.powi(2) - 6.0 * t + 3.0,
        _ => 0.0,
    };
    let around = p.floor() as isize - 3..p.floor() as isize + 5;
    let inside = |k: isize| k.clamp(0, last) as usize;
    match filter {
        Nearest => vec![(i * m / n, 1.0)],
        NearestExact => vec![((2 * i + 1) * m / (2 * n), 1.0)],
        Linear => around.map(|k| (inside(k), (1.0 - (p - k as f64).abs()).max(0.0))).collect(),
        Cubic => around.map(|k| (inside(k), keys(p - k as f64))).collect(),
        Lanczos3 => {
            let weight = |t: f64| if t.abs() < 3.0 { sinc(t) * sinc(t / 3.0) } else { 0.0 };
            let real = around.filter(|k| (0..=last).contains(k));
            let all: Vec<_> = real.map(|k| (k as usize, weight(p - k as f64))).collect();
            let sum: f64 = all.iter().map(|tap| tap.1).sum();
            all.into_iter().map(|(k, w)| (k, w / sum)).collect()
        }
    }
}

fn naive(x: &[f64], h: [usize; 2], size: [usize; 2], options: &ResampleOptions) -> Vec<f64> {
    let ResampleOptions { filter, align_corners } = *options;
    let axis = |i: usize, at: usize| taps(filter, align_corners, h[i], size[i], at);
    let mut out = Vec::new();
    for at in indices(&[x.len() / (h[0] * h[1]), size[0], size[1]]) {
        let mut sum = 0.0;
        for (i, v) in axis(0, at[1]) {
            for (j, w) in axis(1, at[2]) {
                sum += v * w * x[(at[0] * h[0] + i) * h[1] + j];
            }
        }
        out.push(sum);
    }
    out
}

#[test]
fn filters_agree_with_their_definitions() {
    let tolerances =
        [(DType::F64, 1e-12), (DType::F32, 1e-4), (DType::F16, 2e-1), (DType::BF16, 1.0)];
    for filter in FILTERS {
        for align_corners in [false, true] {
            let options = ResampleOptions { filter, align_corners };
            for &(h, size) in SIZES {
                for (dtype, tolerance) in tolerances {
                    for (layout, x) in any_layouts(dtype, &[2, 3, h[0], h[1]]) {
                        let y = x.resample(size, &options).unwrap();
                        let context = format!("{dtype} {layout} {options:?} {h:?} {size:?}");
                        assert_eq!((y.dtype(), y.shape()), (dtype, &[2, 3, size[0], size[1]][..]));
                        let want = naive(&values(&x), h, size, &options);
                        assert_close(&values(&y), &want, tolerance, &context);
                    }
                }
            }
        }
    }
}

#[test]
fn cotangents_satisfy_the_adjoint_identity() {
    for filter in FILTERS {
        for align_corners in [false, true] {
            let options = ResampleOptions { filter, align_corners };
            for &(h, size) in SIZES.iter().chain(&[([150, 130], [170, 40])]) {
                let x = random(&[2, 3, h[0], h[1]], 1);
                let y = resample(&x, size, &options).unwrap();
                let dy = random(&[size[1], size[0], 3, 2], 2).permute(&[3, 2, 1, 0]).unwrap();
                let dx = resample_vjp(x.shape(), &dy, &options).unwrap();
                let (got, want) = (inner(&dx, &x), inner(&dy, &y));
                assert!((got - want).abs() < 1e-10 * (1.0 + want.abs()), "{options:?} {h:?}");
            }
        }
    }
}

#[test]
fn large_planes_have_the_same_bits_as_their_parts() {
    let x = random(&[2, 1, 150, 130], 1);
    for filter in FILTERS {
        let options = ResampleOptions { filter, align_corners: false };
        let y = resample(&x, [300, 260], &options).unwrap();
        let want = naive(&x.to_vec().unwrap(), [150, 130], [300, 260], &options);
        assert_close(&y.to_vec().unwrap(), &want, 1e-12, &format!("{filter:?}"));
    }
}

#[test]
fn elements_that_do_not_count_are_not_read() {
    let x = Tensor::from_fn(&[1, 1, 1, 8], |i| if i == 0 { f32::NAN } else { i as f32 }).unwrap();
    for filter in FILTERS {
        let y = resample(&x, [1, 8], &ResampleOptions { filter, align_corners: true }).unwrap();
        assert!((y.to_vec().unwrap()[7] - 7.0).abs() < 1e-5, "{filter:?}");
        assert!(y.to_vec().unwrap()[0].is_nan(), "{filter:?}");
    }
}

#[test]
fn planes_that_are_empty_or_of_other_ranks_are_errors() {
    let options = ResampleOptions { filter: Linear, align_corners: false };
    let x = random(&[1, 2, 3, 3], 1);
    assert_eq!(resample(&x, [0, 4], &options).unwrap().shape(), [1, 2, 0, 4]);
    let none = random(&[0, 2, 3, 3], 1);
    assert_eq!(resample(&none, [2, 2], &options).unwrap().shape(), [0, 2, 2, 2]);
    let empty = random(&[1, 2, 0, 3], 1);
    assert!(matches!(resample(&empty, [2, 2], &options), Err(TensorError::Shape { .. })));
    let flat = random(&[3, 3], 1);
    assert!(matches!(resample(&flat, [2, 2], &options), Err(TensorError::Shape { .. })));
    assert!(resample(&x, [usize::MAX, usize::MAX], &options).is_err());
    assert!(resample(&x, [1 << 30, 1 << 30], &options).is_err());
    let error = resample_vjp(&[1, 3, 3, 3], &x, &options).unwrap_err();
    assert!(matches!(error, TensorError::ShapeMismatch { .. }), "{error}");
    assert!(resample_vjp(&[1, 2, 0, 3], &x, &options).is_err());
    assert!(resample_vjp(&[1, 2, 3, 3], &flat, &options).is_err());
}
