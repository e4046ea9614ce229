use super::{random, values};
use crate::nn::grid_sample::*;
use crate::testing::{any_layouts, assert_close, indices};
use crate::{AnyTensor, DType, Tensor, TensorError};

const SAMPLINGS: [Sampling; 4] =
    [Sampling::Nearest, Sampling::NearestEven, Sampling::Linear, Sampling::Cubic];
const PADDINGS: [Padding; 3] = [Padding::Zeros, Padding::Border, Padding::Reflection];

/// Element `i` of an axis of `n`, as the padding says.
fn element(i: i64, n: i64, padding: Padding, align: bool) -> Option<usize> {
    match padding {
        Padding::Zeros => (0..n).contains(&i).then_some(i as usize),
        Padding::Border => Some(i.clamp(0, n - 1) as usize),
        Padding::Reflection if n == 1 => Some(0),
        Padding::Reflection => {
            // 0 1 2 1 0 1 … about centres, 0 1 2 2 1 0 0 … about edges.
            let period = if align { 2 * n - 2 } else { 2 * n };
            let i = i.rem_euclid(period);
            Some(if i < n { i } else { period - i - i64::from(!align) } as usize)
        }
    }
}

/// The mirrored axis, taken for as long as one likes, is interpolated as such.
fn naive(x: &AnyTensor, grid: &AnyTensor, options: &GridSampleOptions) -> Vec<f64> {
    let GridSampleOptions { sampling, padding, align_corners } = *options;
    let (all, points) = (values(x), values(grid));
    let &[n, c, h, w] = x.shape() else { unreachable!() };
    let &[_, oh, ow, _] = grid.shape() else { unreachable!() };
    let keys = |t: f64| match t.abs() {
        t if t < 1.0 => 1.25 * t.powi(3) - 2.25 * t.powi(2) + 1.0,
        t if t < 2.0 => -0.75 * t.powi(3) + 3.75 * t.powi(2) - 6.0 * t + 3.0,
        _ => 0.0,
    };
    let taps = |u: f64, n: usize| -> Vec<(i64, f64)> {
        let size = n as f64;
        let p = if align_corners {
            (u + 1.0) / 2.0 * (size - 1.0)
        } else {
            ((u + 1.0) * size - 1.0) / 2.0
        };
        let p = if padding == Padding::Border && sampling != Sampling::Cubic {
            p.clamp(0.0, size - 1.0)
        } else {
            p
        };
        let around = p.floor() as i64 - 1..p.floor() as i64 + 3;
        match sampling {
            Sampling::Nearest => vec![(p.round() as i64, 1.0)],
            Sampling::NearestEven => vec![(p.round_ties_even() as i64, 1.0)],
            Sampling::Linear => {
                around.map(|k| (k, (1.0 - (p - k as f64).abs()).max(0.0))).collect()
            }
            Sampling::Cubic => around.map(|k| (k, keys(p - k as f64))).collect(),
        }
    };
    let mut out = Vec::new();
    for at in indices(&[n, c, oh, ow]) {
        let point = ((at[0] * oh + at[2]) * ow + at[3]) * 2;
        let mut sum = 0.0;
        for (j, wj) in taps(points[point], w) {
            for (i, wi) in taps(points[point + 1], h) {
                let i = element(i, h as i64, padding, align_corners);
                let j = element(j, w as i64, padding, align_corners);
                if let (Some(i), Some(j)) = (i, j) {
                    sum += wi * wj * all[((at[0] * c + at[1]) * h + i) * w + j];
                }
            }
        }
        out.push(sum);
    }
    out
}

fn all_options() -> impl Iterator<Item = GridSampleOptions> {
    indices(&[4, 3, 2]).map(|at| GridSampleOptions {
        sampling: SAMPLINGS[at[0]],
        padding: PADDINGS[at[1]],
        align_corners: at[2] == 1,
    })
}

#[test]
fn samples_agree_with_the_definition() {
    let tolerances =
        [(DType::F64, 1e-12), (DType::F32, 1e-4), (DType::F16, 2e-1), (DType::BF16, 1.0)];
    for options in all_options() {
        for [h, w] in [[3, 4], [1, 5], [2, 1]] {
            for (dtype, tolerance) in tolerances {
                let points = random(&[2, 5, 7, 2], 3).to_vec().unwrap();
                // Far enough to be mirrored twice.
                let points = Tensor::from_fn(&[2, 5, 7, 2], |i| 3.7 * points[i]).unwrap();
                let grid = AnyTensor::from(points).cast(dtype).unwrap();
                for (layout, x) in any_layouts(dtype, &[2, 3, h, w]) {
                    let y = x.grid_sample(&grid, &options).unwrap();
                    assert_eq!((y.dtype(), y.shape()), (dtype, &[2, 3, 5, 7][..]));
                    let context = format!("{dtype} {layout} {options:?} {h} {w}");
                    let want = naive(&x, &grid, &options);
                    assert_close(&values(&y), &want, tolerance, &context);
                }
            }
        }
    }
}

#[test]
fn grids_in_any_layout_and_of_many_points() {
    let x = random(&[2, 3, 9, 8], 1);
    let grid = random(&[2, 30, 40, 2], 2);
    let backwards = random(&[2, 40, 30, 2], 2).permute(&[0, 2, 1, 3]).unwrap();
    for options in all_options() {
        for grid in [&grid, &backwards] {
            let y = grid_sample(&x, grid, &options).unwrap();
            let want = naive(&x.clone().into(), &grid.clone().into(), &options);
            assert_close(&y.to_vec().unwrap(), &want, 1e-11, &format!("{options:?}"));
        }
    }
}

#[test]
fn halfway_points_and_points_that_are_not_finite() {
    let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], &[1, 1, 1, 4]).unwrap();
    // Positions ½, 1½ and 2½.
    let at = [-0.5, 0.0, 0.5, f32::NAN, f32::INFINITY];
    let grid =
        Tensor::from_fn(&[1, 1, 5, 2], |i| if i % 2 == 0 { at[i / 2] } else { 0.0 }).unwrap();
    let read = |sampling, padding| {
        let options = GridSampleOptions { sampling, padding, align_corners: false };
        grid_sample(&x, &grid, &options).unwrap().to_vec().unwrap()
    };
    assert_eq!(read(Sampling::Nearest, Padding::Zeros), [2.0, 3.0, 4.0, 1.0, 0.0]);
    assert_eq!(read(Sampling::NearestEven, Padding::Zeros), [1.0, 3.0, 3.0, 1.0, 0.0]);
    assert_eq!(read(Sampling::Linear, Padding::Border), [1.5, 2.5, 3.5, 2.5, 2.5]);
    for padding in [Padding::Zeros, Padding::Reflection] {
        for sampling in [Sampling::Linear, Sampling::Cubic] {
            let y = read(sampling, padding);
            assert!(y[..3].iter().all(|y| y.is_finite()) && y[3..].iter().all(|y| y.is_nan()));
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let options = all_options().next().unwrap();
    let x = random(&[2, 3, 4, 4], 1);
    for bad in [&[1, 5, 5, 2][..], &[2, 5, 5, 3], &[2, 5, 2], &[2]] {
        let error = grid_sample(&x, &random(bad, 2), &options).unwrap_err();
        assert!(matches!(error, TensorError::ShapeMismatch { .. }), "{error}");
    }
    let grid = random(&[2, 5, 5, 2], 2);
    for bad in [&[2, 3, 4][..], &[2, 3, 0, 4]] {
        let error = grid_sample(&random(bad, 1), &grid, &options).unwrap_err();
        assert!(matches!(error, TensorError::Shape { .. }), "{error}");
    }
    assert_eq!(grid_sample(&x, &random(&[2, 0, 5, 2], 2), &options).unwrap().shape(), [2, 3, 0, 5]);
    let single = AnyTensor::from(grid).cast(DType::F32).unwrap();
    let error = AnyTensor::from(x).grid_sample(&single, &options).unwrap_err();
    assert!(matches!(error, TensorError::DTypeMismatch { .. }), "{error}");
}
