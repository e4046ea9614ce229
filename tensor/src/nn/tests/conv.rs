use super::{inner, random, values};
use crate::nn::conv::*;
use crate::testing::{any_layouts, assert_close, indices};
use crate::{AnyTensor, DType, Tensor, TensorError};

/// One convolution: sizes of x (without images and channels), window, stride, padding before and
/// behind, dilation, and images, groups, channels per group of x and of y.
struct Row {
    x: &'static [usize],
    k: &'static [usize],
    s: &'static [usize],
    p: &'static [usize],
    q: &'static [usize],
    d: &'static [usize],
    n: usize,
    groups: usize,
    c: usize,
    o: usize,
}

macro_rules! rows {
    (@ $p:expr, $q:expr) => { &$q };
    (@ $p:expr) => { &$p };
    ($($x:expr, $k:expr, $s:expr, $p:expr $(; $q:expr)?, $d:expr
        => $n:expr, $g:expr, $c:expr, $o:expr;)*) => {
        &[$(Row {
            x: &$x, k: &$k, s: &$s, p: &$p, q: rows!(@ $p $(, $q)?), d: &$d,
            n: $n, groups: $g, c: $c, o: $o,
        }),*]
    };
}

const ROWS: &[Row] = rows! {
    // x       window  stride  padding dilation    n, groups, c, o
    [5, 6],    [3, 3], [1, 1], [0, 0], [1, 1] => 2, 1, 3, 4;
    [5, 6],    [3, 2], [2, 1], [1, 0], [1, 2] => 1, 2, 2, 3;
    [7, 9],    [3, 3], [2, 3], [2, 1], [2, 1] => 3, 3, 3, 2;
    [4, 4],    [1, 1], [1, 1], [0, 0], [1, 1] => 2, 1, 5, 3;
    [4, 4],    [1, 1], [2, 2], [1, 1], [1, 1] => 2, 2, 2, 4;
    [6, 7],    [3, 3], [1, 1], [1, 1], [1, 1] => 2, 5, 1, 1;
    [6, 7],    [3, 3], [2, 2], [1, 2], [1, 1] => 2, 3, 1, 2;
    [6, 7],    [2, 3], [1, 2], [0, 3], [3, 2] => 1, 4, 2, 1;
    [1, 1],    [3, 3], [1, 1], [3, 3], [1, 1] => 2, 1, 1, 2;
    [40, 50],  [3, 3], [1, 1], [1, 1], [1, 1] => 1, 1, 70, 3;
    [9],       [4],    [2],    [3],    [1]    => 2, 2, 2, 2;
    [9],       [3],    [1],    [1],    [1]    => 2, 4, 1, 1;
    [3, 4, 5], [2, 3, 2], [1, 2, 1], [1, 0, 1], [1, 1, 2] => 2, 2, 2, 3;
    [3, 4, 5], [2, 2, 2], [2, 1, 2], [1, 1, 0], [1, 1, 1] => 1, 3, 1, 1;
    [4, 5],    [3, 3], [1, 1], [1, 1], [1, 1] => 0, 1, 2, 2;
    // Lines of whole vectors, channels in fours and some left.
    [8, 8],    [3, 3], [1, 1], [1, 1], [1, 1] => 2, 2, 3, 8;
    [8, 7],    [3, 2], [2, 2], [1, 1], [1, 2] => 3, 1, 5, 4;
    [8, 12],   [2, 2], [1, 1], [1, 0]; [0, 1], [1, 1] => 2, 3, 6, 12;
    [4, 8],    [3, 3], [1, 2], [1, 1], [1, 1] => 2, 1, 4, 4;
    // Windows of three adjacent lines and columns, lines of whole vectors and parts of one, few channels.
    [5, 14],   [3, 3], [1, 1], [1, 1], [1, 1] => 2, 5, 1, 1;
    [3, 14],   [3, 3], [1, 1], [1, 2], [1, 1] => 1, 3, 1, 2;
    [6, 8],    [3, 3], [1, 1], [0, 0], [1, 1] => 3, 2, 2, 2;
    [4, 6],    [3, 3], [1, 1], [0, 0], [1, 1] => 2, 2, 1, 1;
    [3, 5, 8], [1, 3, 3], [1, 1, 1], [0, 1, 1], [1, 1, 1] => 2, 2, 2, 1;
    // Other zeros behind x than before it.
    [5, 6],    [3, 2], [2, 1], [0, 1]; [2, 0], [1, 2] => 2, 1, 3, 4;
    [6, 7],    [3, 3], [2, 2], [2, 0]; [0, 3], [1, 1] => 2, 3, 1, 2;
    [4, 4],    [1, 1], [1, 1], [0, 0]; [1, 2], [1, 1] => 2, 1, 5, 3;
    [9],       [4],    [2],    [0]; [3],    [1]       => 2, 2, 2, 2;
    [3, 4, 5], [2, 3, 2], [1, 2, 1], [1, 0, 0]; [0, 2, 1], [1, 1, 2] => 2, 2, 2, 3;
};

impl Row {
    fn options(&self) -> ConvOptions {
        ConvOptions {
            stride: self.s.into(),
            padding: self.p.into(),
            padding_end: self.q.into(),
            dilation: self.d.into(),
            groups: self.groups,
        }
    }
    fn x_shape(&self) -> Vec<usize> {
        [&[self.n, self.groups * self.c], self.x].concat()
    }
    fn w_shape(&self) -> Vec<usize> {
        [&[self.groups * self.o, self.c], self.k].concat()
    }
    fn y_shape(&self) -> Vec<usize> {
        let size = |i: usize| {
            (self.x[i] + self.p[i] + self.q[i] - self.d[i] * (self.k[i] - 1) - 1) / self.s[i] + 1
        };
        let sizes: Vec<usize> = (0..self.x.len()).map(size).collect();
        [&[self.n, self.groups * self.o], sizes.as_slice()].concat()
    }

    /// The definition, index by index.
    fn naive(&self, x: &Tensor<f64>, w: &Tensor<f64>, bias: Option<&Tensor<f64>>) -> Vec<f64> {
        let mut out = Vec::new();
        let window: Vec<_> = indices(self.k).collect();
        for at in indices(&self.y_shape()) {
            let (n, o) = (at[0], at[1]);
            let mut sum = bias.map_or(0.0, |b| b.get(&[o]).unwrap());
            for c in 0..self.c {
                for k in &window {
                    let mut from = vec![n, o / self.o * self.c + c];
                    for (i, &k) in k.iter().enumerate() {
                        let place = at[2 + i] * self.s[i] + k * self.d[i];
                        from.push(place.wrapping_sub(self.p[i]));
                    }
                    let weight = [&[o, c], k.as_slice()].concat();
                    sum += w.get(&weight).unwrap() * x.get(&from).unwrap_or(0.0);
                }
            }
            out.push(sum);
        }
        out
    }
}

#[test]
fn convolutions_agree_with_their_definition() {
    for row in ROWS {
        let (x, w) = (random(&row.x_shape(), 1), random(&row.w_shape(), 2));
        let bias = random(&[row.groups * row.o], 3);
        let context = format!("{:?} {:?}", row.x_shape(), row.options());
        let y = conv(&x, &w, Some(&bias), &row.options()).unwrap();
        assert_eq!(y.shape(), row.y_shape(), "{context}");
        let want = row.naive(&x, &w, Some(&bias));
        assert_close(&y.to_vec().unwrap(), &want, 1e-12, &context);
        let y = conv(&x, &w, None, &row.options()).unwrap();
        assert_close(&y.to_vec().unwrap(), &row.naive(&x, &w, None), 1e-12, &context);
    }
}

#[test]
fn layouts_and_dtypes_of_every_operand_are_read_right() {
    let tolerances =
        [(DType::F64, 1e-12), (DType::F32, 1e-4), (DType::F16, 2e-1), (DType::BF16, 2.0)];
    for row in [&ROWS[1], &ROWS[3], &ROWS[6]] {
        for (dtype, tolerance) in tolerances {
            let weights = any_layouts(dtype, &row.w_shape());
            for (i, (layout, x)) in any_layouts(dtype, &row.x_shape()).iter().enumerate() {
                let w = &weights[i % weights.len()].1;
                let as_f64 = |t: &AnyTensor| {
                    t.clone().cast(DType::F64).unwrap().into_typed::<f64>().unwrap()
                };
                let y = x.conv(w, None, &row.options()).unwrap();
                assert_eq!(y.dtype(), dtype);
                let want = row.naive(&as_f64(x), &as_f64(w), None);
                let context = format!("{dtype} {layout} {:?}", row.x_shape());
                assert_close(&values(&y), &want, tolerance, &context);
            }
        }
    }
}

#[test]
fn cotangents_satisfy_the_adjoint_identity() {
    for row in ROWS {
        let options = row.options();
        let context = format!("{:?} {options:?}", row.x_shape());
        let (x, w) = (random(&row.x_shape(), 1), random(&row.w_shape(), 2));
        let y = conv(&x, &w, None, &options).unwrap();
        // A cotangent in another order of axes.
        let order: Vec<usize> = (0..y.rank()).rev().collect();
        let backwards: Vec<usize> = y.shape().iter().rev().copied().collect();
        let dy = random(&backwards, 4).permute(&order).unwrap();
        let want = inner(&y, &dy);
        let dx = conv_x(&row.x_shape(), &w, &dy, &options).unwrap();
        let dw = conv_weight(&x, &row.w_shape(), &dy, &options).unwrap();
        assert_eq!((dx.shape(), dw.shape()), (x.shape(), w.shape()), "{context}");
        for got in [inner(&dx, &x), inner(&dw, &w)] {
            assert!((got - want).abs() <= 1e-10 * (1.0 + want.abs()), "{context}: {got} {want}");
        }
    }
}

#[test]
fn transposed_convolutions_are_adjoint_to_convolutions() {
    for row in ROWS {
        // Output padding: positions of x that no window reaches.
        let y_shape = row.y_shape();
        let extra: Vec<usize> = (0..row.x.len())
            .map(|i| {
                let reach = (y_shape[2 + i] - 1) * row.s[i] + row.d[i] * (row.k[i] - 1) + 1;
                row.x[i] + row.p[i] + row.q[i] - reach
            })
            .collect();
        let (options, context) = (row.options(), format!("{:?}", row.x_shape()));
        let (x, w) = (random(&row.x_shape(), 1), random(&row.w_shape(), 2));
        let z = random(&y_shape, 3);
        let bias = random(&[row.groups * row.c], 5);
        let zt = conv_transpose(&z, &w, None, &extra, &options).unwrap();
        assert_eq!(zt.shape(), row.x_shape(), "{context}");
        let y = Tensor::from_vec(row.naive(&x, &w, None), &y_shape).unwrap();
        let want = inner(&y, &z);
        assert!((inner(&zt, &x) - want).abs() <= 1e-10 * (1.0 + want.abs()), "{context}");
        let shifted = conv_transpose(&z, &w, Some(&bias), &extra, &options).unwrap();
        let plane: usize = row.x.iter().product();
        for (i, (a, b)) in shifted.to_vec().unwrap().iter().zip(zt.to_vec().unwrap()).enumerate() {
            let channel = i / plane % (row.groups * row.c);
            assert!((a - b - bias.get(&[channel]).unwrap()).abs() < 1e-12, "{context}");
        }
        let dz = conv_transpose_x(&y_shape, &w, &x, &extra, &options).unwrap();
        let dw = conv_transpose_weight(&z, &row.w_shape(), &x, &extra, &options).unwrap();
        for got in [inner(&dz, &z), inner(&dw, &w)] {
            assert!((got - want).abs() <= 1e-10 * (1.0 + want.abs()), "{context}: {got} {want}");
        }
    }
}

/// Planes of any size are right as sums of shifted copies and as matrix products.
#[test]
fn both_ways_agree() {
    for row in ROWS.iter().filter(|row| row.n > 0) {
        let (options, context) = (row.options(), format!("{:?}", row.x_shape()));
        let (x, w) = (random(&row.x_shape(), 1), random(&row.w_shape(), 2));
        let dy = random(&row.y_shape(), 3);
        let want = as_products(&x, &w, &dy, &options).unwrap();
        let got = [
            conv(&x, &w, None, &options).unwrap(),
            conv_x(&row.x_shape(), &w, &dy, &options).unwrap(),
            conv_weight(&x, &row.w_shape(), &dy, &options).unwrap(),
        ];
        for (got, want) in got.iter().zip(&want) {
            assert_close(&got.to_vec().unwrap(), &want.to_vec().unwrap(), 1e-12, &context);
        }
    }
}

/// Strips of planes, several images side by side, channels in eights, fours and some left.
#[test]
fn sums_of_shifted_copies_agree_with_products() {
    const WIDE: &[Row] = rows! {
        [61, 50],  [3, 3], [1, 1], [1, 1], [1, 1] => 1, 1, 3, 13;
        [47, 33],  [3, 2], [2, 3], [2, 1]; [0, 2], [1, 2] => 2, 2, 2, 8;
        [9, 7],    [3, 3], [1, 1], [2, 2], [1, 1] => 21, 1, 9, 5;
        [5, 5],    [1, 1], [2, 2], [0, 0], [1, 1] => 3, 1, 20, 9;
        [5000],    [5],    [1],    [4],    [2]    => 1, 1, 2, 9;
        [40, 9, 6], [3, 2, 2], [1, 1, 1], [1, 1, 0], [1, 1, 2] => 2, 1, 2, 8;
        [1, 64, 40], [3, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1] => 1, 1, 2, 9;
        // Zeros between lines: of windows wider than lines, of lines wider than windows, and one more before than after.
        [6, 30],   [3, 21], [1, 1], [1, 18], [1, 2] => 2, 1, 3, 9;
        [20, 9],   [3, 3], [1, 1], [1, 7], [1, 1] => 3, 1, 2, 8;
        [12, 17],  [3, 4], [1, 1], [1, 2]; [1, 1], [1, 1] => 2, 1, 2, 8;
        // Strips that read nothing but zeros.
        [2, 30],   [3, 3], [1, 1], [150, 1]; [90, 1], [1, 1] => 1, 1, 2, 9;
    };
    for row in ROWS.iter().chain(WIDE).filter(|row| row.n > 0) {
        let (options, context) = (row.options(), format!("{:?}", row.x_shape()));
        let (x, w) = (random(&row.x_shape(), 1), random(&row.w_shape(), 2));
        let dy = random(&row.y_shape(), 3);
        let want = as_products(&x, &w, &dy, &options).unwrap();
        for most in [4, 8] {
            let got = as_sums(&x, &w, &dy, &options, most).unwrap();
            // The weight in two ways.
            for (got, want) in got.iter().zip(want.iter().chain(&want[2..])) {
                let Some(got) = got else { continue };
                assert_eq!(got.shape(), want.shape(), "{context}");
                assert_close(&got.to_vec().unwrap(), &want.to_vec().unwrap(), 1e-10, &context);
            }
        }
    }
}

/// Zeros between lines meet what is not finite, and the sum is taken another way.
#[test]
fn elements_that_are_not_finite_reach_only_what_reads_them() {
    let options = ConvOptions::new(2);
    let x = Tensor::<f32>::from_fn(&[2, 8, 24, 24], |at| match at {
        // The first of its line, which zeros behind the line before meet.
        24 => f32::INFINITY,
        _ => (at % 7) as f32 - 3.0,
    });
    let dy = Tensor::<f32>::from_fn(&[2, 8, 22, 22], |at| 1.0 + (at % 5) as f32);
    let w = conv_weight(&x.unwrap(), &[8, 8, 3, 3], &dy.unwrap(), &options).unwrap();
    for (at, &w) in w.to_vec().unwrap().iter().enumerate() {
        // Channel 0 of x, first column of the window, all of its lines but the last.
        assert_eq!(w == f32::INFINITY, [0, 3].contains(&(at % 72)), "{at}: {w}");
        assert!(!w.is_nan(), "{at}");
    }
}

/// No window element meets a zero that is none of y's.
#[test]
fn an_infinite_weight_makes_no_nan_of_a_cotangent() {
    for (c, side) in [(40, 4), (40, 80), (1, 6), (3, 5)] {
        let options = ConvOptions::new(2).padded(&[1, 1]);
        let (x, y) = ([1, c, side, side], Tensor::full(&[1, c, side, side], 1.0).unwrap());
        let w = Tensor::<f64>::from_fn(&[c, c, 3, 3], |at| match at {
            0 => f64::INFINITY,
            _ => 0.5,
        });
        let dx = conv_x(&x, &w.unwrap(), &y, &options).unwrap().to_vec().unwrap();
        assert!(dx.iter().all(|x| !x.is_nan()) && dx.contains(&f64::INFINITY), "{c} {side}");
    }
}

#[test]
fn extra_positions_hold_nothing_but_the_bias() {
    let (x, w) = (random(&[1, 1, 2], 1), random(&[1, 1, 1], 2));
    let options = ConvOptions { stride: [2].as_slice().into(), ..ConvOptions::new(1) };
    let y = conv_transpose(&x, &w, None, &[3], &options).unwrap().to_vec().unwrap();
    let (a, b, w) =
        (x.get(&[0, 0, 0]).unwrap(), x.get(&[0, 0, 1]).unwrap(), w.to_vec().unwrap()[0]);
    assert_eq!(y, [a * w, 0.0, b * w, 0.0, 0.0, 0.0]);
}

#[test]
fn large_convolutions_have_the_same_bits_as_their_images_alone() {
    // Above the thresholds for threads; an image alone is cut in the same way.
    let (x, w) = (random(&[3, 16, 40, 40], 1), random(&[24, 16, 3, 3], 2));
    let options = ConvOptions::new(2).padded(&[1, 1]);
    let y = conv(&x, &w, None, &options).unwrap();
    for n in 0..3 {
        let one = conv(&x.slice_axis(0, n, 1, 1).unwrap(), &w, None, &options).unwrap();
        let want = y.slice_axis(0, n, 1, 1).unwrap();
        assert_eq!(one.to_vec().unwrap(), want.to_vec().unwrap());
    }
}

#[test]
fn shapes_and_options_that_do_not_fit_are_errors() {
    let x = random(&[1, 4, 5, 5], 1);
    let w = random(&[6, 4, 3, 3], 2);
    let ok = ConvOptions::new(2);
    let with = |f: fn(&mut ConvOptions)| {
        let mut options = ConvOptions::new(2);
        f(&mut options);
        conv(&x, &w, None, &options).unwrap_err()
    };
    assert!(matches!(with(|o| o.stride[0] = 0), TensorError::Value { op: "conv", .. }));
    assert!(matches!(with(|o| o.dilation[1] = 0), TensorError::Value { .. }));
    assert!(matches!(with(|o| o.groups = 0), TensorError::Value { .. }));
    assert!(matches!(with(|o| o.groups = 4), TensorError::Value { .. }));
    assert!(matches!(with(|o| o.groups = 2), TensorError::ShapeMismatch { .. }));
    assert!(matches!(with(|o| o.dilation[0] = 3), TensorError::ShapeMismatch { .. }));
    assert!(matches!(with(|o| o.padding[0] = usize::MAX), TensorError::Value { .. }));
    assert!(matches!(with(|o| o.padding_end[1] = usize::MAX), TensorError::Value { .. }));
    assert!(matches!(with(|o| o.padding_end.clear()), TensorError::Value { .. }));
    assert!(matches!(with(|o| o.stride.push(1)), TensorError::Value { .. }));
    let bias = random(&[4], 1);
    let error = conv(&x, &w, Some(&bias), &ok).unwrap_err();
    assert!(matches!(error, TensorError::ShapeMismatch { .. }), "{error}");
    let error = conv_x(&[1, 4, 5, 5], &w, &x, &ok).unwrap_err();
    assert!(matches!(error, TensorError::ShapeMismatch { op: "conv_x", .. }), "{error}");
    let error = conv_transpose(&x, &w, None, &[0, 0], &ok).unwrap_err();
    assert!(matches!(error, TensorError::ShapeMismatch { .. }), "{error}");
    let deep = ConvOptions::new(2).padded(&[9, 9]);
    let y = random(&[1, 6, 2, 2], 1);
    assert!(conv_transpose(&y, &w, None, &[0, 0], &deep).is_err());
    let flat = random(&[4, 5], 1);
    assert!(matches!(conv(&flat, &w, None, &ok), Err(TensorError::Shape { .. })));
    let single = AnyTensor::from(w.clone()).cast(DType::F32).unwrap();
    let error = AnyTensor::from(x).conv(&single, None, &ok).unwrap_err();
    assert!(matches!(error, TensorError::DTypeMismatch { .. }), "{error}");
}
