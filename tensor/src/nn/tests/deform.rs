use super::{assert_vjp, random, values};
use crate::nn::deform::*;
use crate::testing::{any_layouts, assert_close, indices};
use crate::{AnyTensor, DType, Tensor, TensorError};

/// Sizes of x, window, stride, padding, dilation, images, weight groups, offset groups, channels of x
/// and of y.
type Row = ([usize; 2], [usize; 2], [usize; 2], [usize; 2], [usize; 2], [usize; 5]);

const ROWS: &[Row] = &[
    ([5, 6], [3, 3], [1, 1], [1, 1], [1, 1], [2, 1, 1, 2, 3]),
    ([6, 5], [3, 2], [2, 1], [0, 1], [1, 2], [1, 2, 1, 4, 2]),
    ([4, 4], [2, 2], [1, 1], [0, 0], [1, 1], [2, 1, 3, 3, 2]),
    // Groups of offsets across those of the weight, and within.
    ([4, 5], [2, 1], [1, 2], [1, 0], [1, 1], [5, 3, 2, 6, 3]),
    ([4, 5], [1, 2], [1, 1], [0, 0], [2, 1], [1, 2, 4, 4, 4]),
    ([9, 40], [1, 1], [1, 1], [0, 0], [1, 1], [1, 1, 1, 1, 1]),
];

struct Case {
    x: Tensor<f64>,
    offset: Tensor<f64>,
    weight: Tensor<f64>,
    mask: Tensor<f64>,
    bias: Tensor<f64>,
    y: [usize; 4],
    options: DeformOptions,
}

fn case(row: &Row) -> Case {
    let &(size, k, stride, padding, dilation, [n, weight_groups, offset_groups, c, o]) = row;
    let out = |i: usize| (size[i] + 2 * padding[i] - dilation[i] * (k[i] - 1) - 1) / stride[i] + 1;
    let (h, w) = (out(0), out(1));
    let points = offset_groups * k[0] * k[1];
    let offset = random(&[n, 2 * points, h, w], 2).to_vec().unwrap();
    Case {
        x: random(&[n, c, size[0], size[1]], 1),
        // Some of them far outside.
        offset: Tensor::from_fn(&[n, 2 * points, h, w], |i| 2.5 * offset[i]).unwrap(),
        weight: random(&[o, c / weight_groups, k[0], k[1]], 3),
        mask: random(&[n, points, h, w], 4),
        bias: random(&[o], 5),
        y: [n, o, h, w],
        options: DeformOptions { stride, padding, dilation, weight_groups, offset_groups },
    }
}

impl Case {
    fn operands(&self, masked: bool) -> Deform<'_, f64> {
        let mask = masked.then_some(&self.mask);
        Deform { x: &self.x, offset: &self.offset, weight: &self.weight, mask }
    }

    /// The definition, index by index; linear interpolation as a sum over all elements.
    fn naive(&self, masked: bool, bias: bool) -> Vec<f64> {
        let DeformOptions { stride, padding, dilation, weight_groups, offset_groups } =
            self.options;
        let &[o, per, kh, kw] = self.weight.shape() else { unreachable!() };
        let &[_, c, h, w] = self.x.shape() else { unreachable!() };
        let mut out = Vec::new();
        for at in indices(&self.y) {
            let mut sum = if bias { self.bias.get(&at[1..2]).unwrap() } else { 0.0 };
            for e in indices(&[per, kh, kw]) {
                let channel = at[1] / (o / weight_groups) * per + e[0];
                let k = (channel / (c / offset_groups) * kh + e[1]) * kw + e[2];
                let moved = |axis: usize| {
                    let d = self.offset.get(&[at[0], 2 * k + axis, at[2], at[3]]).unwrap();
                    let place = at[2 + axis] * stride[axis] + e[1 + axis] * dilation[axis];
                    place as f64 - padding[axis] as f64 + d
                };
                let (p, q) = (moved(0), moved(1));
                let mut value = 0.0;
                for ij in indices(&[h, w]) {
                    let near = |p: f64, i: usize| (1.0 - (p - i as f64).abs()).max(0.0);
                    let weight = near(p, ij[0]) * near(q, ij[1]);
                    value += weight * self.x.get(&[at[0], channel, ij[0], ij[1]]).unwrap();
                }
                if masked {
                    value *= self.mask.get(&[at[0], k, at[2], at[3]]).unwrap();
                }
                sum += value * self.weight.get(&[at[1], e[0], e[1], e[2]]).unwrap();
            }
            out.push(sum);
        }
        out
    }
}

#[test]
fn deformable_convolutions_agree_with_their_definition() {
    for row in ROWS {
        let case = case(row);
        for (masked, bias) in [(true, true), (false, true), (true, false)] {
            let with = bias.then_some(&case.bias);
            let y = deform_conv(&case.operands(masked), with, &case.options).unwrap();
            assert_eq!(y.shape(), case.y, "{row:?}");
            let want = case.naive(masked, bias);
            assert_close(&y.to_vec().unwrap(), &want, 1e-12, &format!("{row:?} {masked}"));
        }
    }
}

#[test]
fn layouts_and_dtypes_of_every_operand_are_read_right() {
    for (dtype, tolerance) in
        [(DType::F64, 1e-11), (DType::F32, 1e-3), (DType::F16, 2e-1), (DType::BF16, 2.0)]
    {
        let mut case = case(&ROWS[0]);
        for (layout, x) in any_layouts(dtype, case.x.shape()) {
            let back =
                |t: &AnyTensor| t.clone().cast(DType::F64).unwrap().into_typed::<f64>().unwrap();
            let small = |t: &Tensor<f64>| AnyTensor::from(t.clone()).cast(dtype).unwrap();
            let (offset, weight) = (small(&case.offset), small(&case.weight));
            let (mask, bias) = (small(&case.mask), small(&case.bias));
            (case.x, case.offset, case.weight) = (back(&x), back(&offset), back(&weight));
            (case.mask, case.bias) = (back(&mask), back(&bias));
            let y =
                x.deform_conv([&offset, &weight], Some(&mask), Some(&bias), &case.options).unwrap();
            assert_eq!(y.dtype(), dtype);
            let context = format!("{dtype} {layout}");
            assert_close(&values(&y), &case.naive(true, true), tolerance, &context);
            let dy = small(&random(&case.y, 7));
            let d = x.deform_conv_vjp([&offset, &weight, &dy], Some(&mask), &case.options).unwrap();
            let want = deform_conv_vjp(&case.operands(true), &back(&dy), &case.options).unwrap();
            for (got, want) in d.0.iter().zip([&want.x, &want.offset, &want.weight]) {
                // 16-bit points next to a border of cells are exact, their slopes are not.
                assert_close(&values(got), &want.to_vec().unwrap(), 4.0 * tolerance, &context);
            }
            let want = want.mask.unwrap().to_vec().unwrap();
            assert_close(&values(&d.1.unwrap()), &want, 4.0 * tolerance, &context);
        }
    }
}

#[test]
fn cotangents_agree_with_finite_differences() {
    for row in ROWS {
        for masked in [true, false] {
            let case = case(row);
            let dy = random(&case.y, 6);
            let d = deform_conv_vjp(&case.operands(masked), &dy, &case.options).unwrap();
            let run =
                |operands: Deform<'_, f64>| deform_conv(&operands, None, &case.options).unwrap();
            let all = || case.operands(masked);
            assert_vjp(&case.x, &d.x, &dy, |x| run(Deform { x, ..all() }));
            assert_vjp(&case.offset, &d.offset, &dy, |offset| run(Deform { offset, ..all() }));
            assert_vjp(&case.weight, &d.weight, &dy, |weight| run(Deform { weight, ..all() }));
            match d.mask {
                Some(mask) => {
                    assert_vjp(&case.mask, &mask, &dy, |mask| {
                        run(Deform { mask: Some(mask), ..all() })
                    });
                }
                None => assert!(!masked),
            }
        }
    }
}

#[test]
fn shapes_and_options_that_do_not_fit_are_errors() {
    let case = case(&ROWS[0]);
    let ok = case.options;
    let run = |options: DeformOptions| deform_conv(&case.operands(true), None, &options);
    for bad in [
        DeformOptions { stride: [0, 1], ..ok },
        DeformOptions { dilation: [1, 0], ..ok },
        DeformOptions { weight_groups: 0, ..ok },
        DeformOptions { offset_groups: 3, ..ok },
        DeformOptions { padding: [usize::MAX, 0], ..ok },
    ] {
        assert!(matches!(run(bad), Err(TensorError::Value { .. })), "{bad:?}");
    }
    for bad in [
        DeformOptions { weight_groups: 2, ..ok },
        DeformOptions { offset_groups: 2, ..ok },
        DeformOptions { stride: [2, 1], ..ok },
        DeformOptions { dilation: [9, 9], ..ok },
    ] {
        assert!(matches!(run(bad), Err(TensorError::ShapeMismatch { .. })), "{bad:?}");
    }
    let operands = Deform { mask: Some(&case.offset), ..case.operands(true) };
    assert!(deform_conv(&operands, None, &ok).is_err());
    assert!(deform_conv(&case.operands(true), Some(&case.x), &ok).is_err());
    assert!(deform_conv_vjp(&case.operands(true), &case.x, &ok).is_err());
    let flat = random(&[3, 3], 1);
    let error = deform_conv(&Deform { x: &flat, ..case.operands(true) }, None, &ok).unwrap_err();
    assert!(matches!(error, TensorError::Shape { .. }), "{error}");
}
