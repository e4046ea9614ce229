use super::{inner, random, values};
use crate::nn::pool::Overhang::*;
use crate::nn::pool::*;
use crate::testing::{any_layouts, assert_close, indices};
use crate::{AnyTensor, DType, Tensor, TensorError};

type Row = ([usize; 2], [usize; 2], [usize; 2], [usize; 2], [usize; 2]);

/// Plane, window, stride, padding, dilation.
const ROWS: &[Row] = &[
    ([4, 6], [2, 2], [2, 2], [0, 0], [1, 1]),
    ([5, 7], [2, 2], [2, 2], [1, 1], [1, 1]),
    ([5, 7], [3, 2], [1, 1], [1, 0], [1, 1]),
    ([9, 8], [3, 3], [2, 3], [1, 1], [1, 1]),
    ([9, 8], [2, 3], [1, 2], [1, 2], [3, 2]),
    ([6, 1], [3, 1], [2, 1], [1, 0], [1, 1]),
    ([20, 70], [3, 3], [2, 2], [1, 1], [1, 1]),
    // Windows entirely outside x.
    ([3, 3], [1, 1], [2, 2], [2, 2], [1, 1]),
];

fn options(row: &Row, overhang: Overhang) -> PoolOptions {
    let &(_, window, stride, padding, dilation) = row;
    PoolOptions { window, stride, padding, dilation, overhang }
}

fn size(row: &Row, overhang: Overhang) -> [usize; 2] {
    let &(x, k, s, p, d) = row;
    [0, 1].map(|i| {
        let room = x[i] + 2 * p[i] - d[i] * (k[i] - 1) - 1;
        let up = room.div_ceil(s[i]) + 1;
        match overhang {
            Never => room / s[i] + 1,
            Always => up,
            BeginsInside => up - usize::from((up - 1) * s[i] >= x[i] + p[i]),
        }
    })
}

/// Elements of a window: indices inside x, and number of elements inside the padded plane.
fn window(row: &Row, at: &[usize]) -> (Vec<[usize; 2]>, usize) {
    let &(x, k, s, p, d) = row;
    let (mut inside, mut padded) = (Vec::new(), 0);
    for kernel in indices(&k) {
        let place = [0, 1].map(|i| at[i] * s[i] + kernel[i] * d[i]);
        padded += usize::from((0..2).all(|i| place[i] < x[i] + 2 * p[i]));
        if (0..2).all(|i| place[i] >= p[i] && place[i] - p[i] < x[i]) {
            inside.push([place[0] - p[0], place[1] - p[1]]);
        }
    }
    (inside, padded)
}

#[test]
fn maxima_and_their_places_agree_with_naive_windows() {
    for row in ROWS {
        for ceil in [Never, Always, BeginsInside] {
            let shape = [2, 3, row.0[0], row.0[1]];
            let size = size(row, ceil);
            for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
                for (layout, x) in any_layouts(dtype, &shape) {
                    let context = format!("{dtype} {layout} {row:?} {ceil:?}");
                    let all = values(&x);
                    let plane = shape[2] * shape[3];
                    let (mut want, mut places) = (Vec::new(), Vec::new());
                    for at in indices(&[2, 3, size[0], size[1]]) {
                        let (mut best, mut place) = (f64::NEG_INFINITY, -1);
                        for [h, w] in window(row, &at[2..]).0 {
                            let v = all[(at[0] * 3 + at[1]) * plane + h * shape[3] + w];
                            if place < 0 || v > best {
                                (best, place) = (v, (h * shape[3] + w) as i64);
                            }
                        }
                        want.push(best);
                        places.push(place);
                    }
                    let y = x.max_pool(&options(row, ceil)).unwrap();
                    assert_eq!(y.shape(), [2, 3, size[0], size[1]], "{context}");
                    assert_eq!(values(&y), want, "{context}");
                    let (y, at) = x.max_pool_with_indices(&options(row, ceil)).unwrap();
                    assert_eq!(values(&y), want, "{context}");
                    let at = at.into_typed::<i64>().unwrap().to_vec().unwrap();
                    assert_eq!(at, places, "{context}");
                }
            }
        }
    }
}

#[test]
fn maxima_of_nan_and_of_nothing_but_minus_infinity() {
    let x = vec![1.0f32, f32::NAN, 3.0, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY];
    let x = Tensor::from_vec(x, &[1, 1, 1, 6]).unwrap();
    let (y, at) = max_pool_with_indices(&x, &PoolOptions::new([1, 3])).unwrap();
    let y = y.to_vec().unwrap();
    assert!(y[0].is_nan() && y[1] == f32::NEG_INFINITY);
    assert_eq!(at.to_vec().unwrap(), [1, 3]);
    assert!(max_pool(&x, &PoolOptions::new([1, 3])).unwrap().to_vec().unwrap()[0].is_nan());
}

#[test]
fn cotangents_of_maxima_go_to_their_places() {
    for row in ROWS {
        let x = random(&[2, 3, row.0[0], row.0[1]], 1);
        let (y, at) = max_pool_with_indices(&x, &options(row, Always)).unwrap();
        let dy = random(y.shape(), 2);
        let dx = max_pool_vjp(x.shape(), &dy, &at).unwrap();
        // y is linear in x as long as the places stay; windows outside contribute nothing.
        let finite = Tensor::from_fn(y.shape(), |i| {
            let v = y.to_vec().unwrap()[i];
            if v.is_finite() { v } else { 0.0 }
        });
        assert!((inner(&dx, &x) - inner(&dy, &finite.unwrap())).abs() < 1e-12, "{row:?}");
        // Indices of another type.
        let at = AnyTensor::from(at).cast(DType::I32).unwrap();
        let again = AnyTensor::from(dy).max_pool_vjp(x.shape(), &at).unwrap();
        assert_eq!(values(&again), dx.to_vec().unwrap());
    }
}

#[test]
fn means_agree_with_naive_windows_and_are_adjoint_to_their_cotangents() {
    for row in ROWS.iter().filter(|row| row.4 == [1, 1]) {
        for (ceil, count) in
            [Never, Always, BeginsInside].map(|o| [(o, false), (o, true)]).as_flattened()
        {
            let (ceil, count) = (*ceil, *count);
            let (options, size) = (options(row, ceil), size(row, ceil));
            let shape = [2, 3, row.0[0], row.0[1]];
            for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-5), (DType::F16, 1e-2)]
            {
                for (layout, x) in any_layouts(dtype, &shape) {
                    let all = values(&x);
                    let mut want = Vec::new();
                    for at in indices(&[2, 3, size[0], size[1]]) {
                        let (inside, padded) = window(row, &at[2..]);
                        let plane = (at[0] * 3 + at[1]) * shape[2] * shape[3];
                        let sum: f64 =
                            inside.iter().map(|[h, w]| all[plane + h * shape[3] + w]).sum();
                        let divisor = if count { padded } else { inside.len() };
                        want.push(sum / divisor.max(1) as f64);
                    }
                    let y = x.mean_pool(&options, count).unwrap();
                    let context = format!("{dtype} {layout} {row:?} {ceil:?} {count}");
                    assert_close(&values(&y), &want, tolerance, &context);
                }
            }
            let x = random(&shape, 1);
            let y = mean_pool(&x, &options, count).unwrap();
            let dy = random(y.shape(), 2);
            let dx = mean_pool_vjp(&shape, &dy, &options, count).unwrap();
            assert!((inner(&dx, &x) - inner(&dy, &y)).abs() < 1e-12, "{row:?}");
        }
    }
}

#[test]
fn adaptive_means_cover_the_plane() {
    for (plane, size) in [([5, 7], [3, 2]), ([4, 6], [4, 6]), ([3, 2], [5, 4]), ([6, 9], [1, 1])] {
        let x = random(&[2, 2, plane[0], plane[1]], 1);
        let y = adaptive_mean_pool(&x, size).unwrap();
        let range = |i: usize, n: usize, size: usize| i * n / size..((i + 1) * n).div_ceil(size);
        for at in indices(y.shape()) {
            let (mut sum, mut count) = (0.0, 0.0);
            for h in range(at[2], plane[0], size[0]) {
                for w in range(at[3], plane[1], size[1]) {
                    sum += x.get(&[at[0], at[1], h, w]).unwrap();
                    count += 1.0;
                }
            }
            assert!((y.get(&at).unwrap() - sum / count).abs() < 1e-14, "{plane:?} {size:?}");
        }
        let dy = random(y.shape(), 2);
        let dx = adaptive_mean_pool_vjp(x.shape(), &dy).unwrap();
        assert!((inner(&dx, &x) - inner(&dy, &y)).abs() < 1e-12);
    }
}

#[test]
fn a_first_window_may_be_larger_than_the_plane_by_less_than_a_stride() {
    let x = random(&[1, 1, 3, 3], 1);
    let options =
        PoolOptions { stride: [2, 2], overhang: BeginsInside, ..PoolOptions::new([4, 4]) };
    assert_eq!(max_pool(&x, &options).unwrap().shape(), [1, 1, 1, 1]);
    let mean = mean_pool(&x, &options, true).unwrap().to_vec().unwrap()[0];
    let sum: f64 = x.to_vec().unwrap().iter().sum();
    assert!((mean - sum / 9.0).abs() < 1e-15);
    let far = PoolOptions { window: [5, 5], ..options };
    assert!(matches!(max_pool(&x, &far), Err(TensorError::Value { .. })));
}

#[test]
fn windows_that_do_not_fit_are_errors() {
    let x = random(&[1, 1, 3, 3], 1);
    let ok = PoolOptions::new([2, 2]);
    for bad in [
        PoolOptions::new([4, 4]),
        PoolOptions::new([0, 2]),
        PoolOptions { stride: [0, 1], ..ok },
        PoolOptions { dilation: [1, 0], ..ok },
        PoolOptions { padding: [usize::MAX, 0], ..ok },
        PoolOptions { dilation: [usize::MAX, 1], ..ok },
    ] {
        assert!(matches!(max_pool(&x, &bad), Err(TensorError::Value { .. })), "{bad:?}");
        assert!(matches!(mean_pool(&x, &bad, true), Err(TensorError::Value { .. })), "{bad:?}");
    }
    let dilated = PoolOptions { dilation: [2, 1], ..ok };
    assert!(matches!(mean_pool(&x, &dilated, true), Err(TensorError::Value { .. })));
    let flat = random(&[3, 3], 1);
    assert!(matches!(max_pool(&flat, &ok), Err(TensorError::Shape { .. })));
    let dy = random(&[1, 1, 1, 1], 1);
    let past = Tensor::from_vec(vec![9i64], &[1, 1, 1, 1]).unwrap();
    let error = max_pool_vjp(x.shape(), &dy, &past).unwrap_err();
    assert!(matches!(error, TensorError::Index { index: 9, size: 9, .. }), "{error}");
    let error = mean_pool_vjp(x.shape(), &x, &ok, true).unwrap_err();
    assert!(matches!(error, TensorError::ShapeMismatch { .. }), "{error}");
}
