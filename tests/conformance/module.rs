//! Every method of `ModuleOps`, on strided operands and with unusual options.

use burn_backend::DType;
use burn_backend::ops::{
    AttentionModuleOptions, ConvOptions, ConvTransposeOptions, DeformConvOptions, InterpolateMode,
    InterpolateOptions, UnfoldOptions,
};

use crate::conform;
use crate::line;
use crate::material::*;

/// Sums of products in another order, relative to the result.
const SUM: Ulps = Ulps(4096.0);
/// The same relative to the terms, of which there are up to two hundred.
const TERMS: Ulps = Ulps(64.0);

/// Operands of the given shapes, the first in every layout, in every float dtype.
fn floats(shapes: &[&[usize]]) -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in FLOATS {
        for lay in LAYS {
            let operand = |(i, shape): (usize, &&[usize])| {
                let lay = if i % 2 == 0 { lay } else { Lay::RowMajor };
                Operand::new(shape, dtype, Values::Plain, lay, i)
            };
            out.push(Case { operands: shapes.iter().enumerate().map(operand).collect(), dim: 0 });
        }
    }
    out
}

/// [`floats`] with an integer operand, of values below `n`, inserted after the first operand.
fn indexed(first: &[usize], index: &[usize], n: usize, rest: &[&[usize]]) -> Vec<Case> {
    floats(&[first])
        .into_iter()
        .enumerate()
        .map(|(i, case)| {
            let dtype = [DType::I32, DType::I64][i % 2];
            let lay = LAYS[i % LAYS.len()];
            let index = Operand::new(index, dtype, Values::Below(n), lay, 20);
            let rest = rest.iter().map(|s| Operand::row_major(s, case.dtype(), Values::Plain, 21));
            let rest: Vec<_> = rest.collect();
            case.and([index]).and(rest)
        })
        .collect()
}

/// The default backward passes use primitives of the backend: 32 and 64 bits only.
fn wide(shapes: &[&[usize]]) -> Vec<Case> {
    floats(shapes).into_iter().filter(|c| matches!(c.dtype(), DType::F32 | DType::F64)).collect()
}

fn conv2() -> ConvOptions<2> {
    ConvOptions::new([2, 1], [1, 0], [1, 2], 2)
}

fn transpose2() -> ConvTransposeOptions<2> {
    ConvTransposeOptions::new([2, 1], [1, 0], [1, 0], [1, 2], 2)
}

fn deform() -> DeformConvOptions<2> {
    DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, 1)
}

fn modes() -> Vec<InterpolateOptions> {
    let mut out = Vec::new();
    for mode in [InterpolateMode::Nearest, InterpolateMode::Bilinear, InterpolateMode::Bicubic] {
        for corners in [true, false] {
            out.push(InterpolateOptions::new(mode.clone()).with_align_corners(corners));
        }
    }
    out
}

conform! {
    float;
    embedding: indexed(&[7, 4], &[2, 3], 7, &[]), EXACT, |_c, w, i: int| B::embedding(w, i);
    embedding_backward: indexed(&[7, 4], &[2, 3], 7, &[&[2, 3, 4]]), SUM, |_c, w, i: int, g| B::embedding_backward(w, g, i);

    linear: floats(&[&[3, 5], &[5, 4], &[4]]), TERMS, of terms, |_c, x, w, b| vec![B::linear(x.clone(), w.clone(), Some(b)), B::linear(x, w, None)];
    linear_of_sequences: floats(&[&[2, 3, 5], &[5, 4], &[4]]), TERMS, of terms, |_c, x, w, b| vec![B::linear(x.clone(), w.clone(), Some(b)), B::linear(x, w, None)];
    linear_of_sequences_backward: floats(&[&[2, 3, 5], &[5, 4], &[2, 3, 4]]), TERMS, in f64, of terms, |_c, x, w, g| vec![
        B::linear_x_backward(w, g.clone()), B::linear_weight_backward(x, g.clone()), B::linear_bias_backward(g)];
    linear_x_backward: floats(&[&[3, 5], &[5, 4], &[3, 4]]), TERMS, of terms, |_c, _x, w, g| B::linear_x_backward(w, g);
    linear_weight_backward: floats(&[&[3, 5], &[5, 4], &[3, 4]]), TERMS, of terms, |_c, x, _w, g| B::linear_weight_backward(x, g);
    linear_bias_backward: floats(&[&[3, 4]]), TERMS, of terms, |_c, g| B::linear_bias_backward(g);

    conv1d: floats(&[&[2, 4, 9], &[6, 2, 3], &[6]]), TERMS, in f64, of terms, |_c, x, w, b| B::conv1d(x, w, Some(b), ConvOptions::new([2], [1], [2], 2));
    conv2d: floats(&[&[2, 4, 7, 8], &[6, 2, 3, 2], &[6]]), TERMS, in f64, of terms, |_c, x, w, b| B::conv2d(x, w, Some(b), conv2());
    conv3d: floats(&[&[1, 2, 4, 5, 6], &[3, 2, 2, 3, 2], &[3]]), TERMS, in f64, of terms, |_c, x, w, b| B::conv3d(x, w, Some(b), ConvOptions::new([1, 2, 1], [1, 0, 1], [1, 1, 2], 1));
    conv_transpose1d: floats(&[&[2, 4, 5], &[4, 3, 3], &[6]]), TERMS, in f64, of terms, |_c, x, w, b| B::conv_transpose1d(x, w, Some(b), ConvTransposeOptions::new([2], [1], [1], [1], 2));
    conv_transpose2d: floats(&[&[2, 4, 5, 4], &[4, 3, 3, 2], &[6]]), TERMS, in f64, of terms, |_c, x, w, b| B::conv_transpose2d(x, w, Some(b), transpose2());
    conv_transpose3d: floats(&[&[1, 2, 3, 4, 3], &[2, 3, 2, 3, 2], &[3]]), TERMS, in f64, of terms, |_c, x, w, b| B::conv_transpose3d(x, w, Some(b), ConvTransposeOptions::new([1, 2, 1], [0, 1, 0], [0, 1, 0], [1, 1, 1], 1));
    conv1d_backward: wide(&[&[2, 4, 9], &[6, 2, 3], &[2, 6, 4], &[6]]), TERMS, of terms, |_c, x, w, g, b| {
        let o = || ConvOptions::new([2], [1], [2], 2);
        vec![B::conv1d_x_backward(x.clone(), w.clone(), g.clone(), o()), B::conv1d_weight_backward(x.clone(), w, g.clone(), o()), B::conv1d_bias_backward(x, b, g)] };
    conv2d_backward: wide(&[&[2, 4, 7, 8], &[6, 2, 3, 2], &[2, 6, 4, 6], &[6]]), TERMS, of terms, |_c, x, w, g, b| vec![
        B::conv2d_x_backward(x.clone(), w.clone(), g.clone(), conv2()), B::conv2d_weight_backward(x.clone(), w, g.clone(), conv2()), B::conv2d_bias_backward(x, b, g)];
    conv3d_backward: wide(&[&[1, 2, 4, 5, 6], &[3, 2, 2, 3, 2], &[1, 3, 3, 3, 5], &[3]]), TERMS, of terms, |_c, x, w, g, b| {
        let o = || ConvOptions::new([1, 1, 1], [0, 0, 0], [1, 1, 1], 1);
        vec![B::conv3d_x_backward(x.clone(), w.clone(), g.clone(), o()), B::conv3d_weight_backward(x.clone(), w, g.clone(), o()), B::conv3d_bias_backward(x, b, g)] };
    conv_transpose1d_backward: wide(&[&[2, 4, 5], &[4, 3, 3], &[2, 6, 10], &[6]]), TERMS, of terms, |_c, x, w, g, b| {
        let o = || ConvTransposeOptions::new([2], [1], [1], [1], 2);
        vec![B::conv_transpose1d_x_backward(w.clone(), g.clone(), o()), B::conv_transpose1d_weight_backward(x.clone(), w, g.clone(), o()), B::conv_transpose1d_bias_backward(x, b, g)] };
    conv_transpose2d_backward: wide(&[&[2, 4, 5, 4], &[4, 3, 3, 2], &[2, 6, 10, 6], &[6]]), TERMS, in f64, of terms, |_c, x, w, g, b| vec![
        B::conv_transpose2d_x_backward(w.clone(), g.clone(), transpose2()), B::conv_transpose2d_weight_backward(x.clone(), w, g.clone(), transpose2()), B::conv_transpose2d_bias_backward(x, b, g)];
    conv_transpose3d_backward: wide(&[&[1, 2, 3, 4, 3], &[2, 3, 2, 3, 2], &[1, 3, 4, 6, 4], &[3]]), TERMS, of terms, |_c, x, w, g, b| {
        let o = || ConvTransposeOptions::new([1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1], 1);
        vec![B::conv_transpose3d_x_backward(w.clone(), g.clone(), o()), B::conv_transpose3d_weight_backward(x.clone(), w, g.clone(), o()), B::conv_transpose3d_bias_backward(x, b, g)] };
    deform_conv2d: wide(&[&[1, 2, 5, 5], &[1, 18, 5, 5], &[3, 2, 3, 3], &[1, 9, 5, 5], &[3]]), SUM, |_c, x, o, w, m, b| B::deform_conv2d(x, o, w, Some(m), Some(b), deform());
    // Flex computes in 32 bits.
    deform_conv2d_backward: wide(&[&[1, 2, 5, 5], &[1, 18, 5, 5], &[3, 2, 3, 3], &[1, 9, 5, 5], &[3], &[1, 3, 5, 5]]), SUM, except |c| c.dtype() == DType::F64, |_c, x, o, w, m, b, g| {
        let out = B::deform_conv2d_backward(x, o, w, Some(m), Some(b), g, deform());
        (vec![out.x_grad, out.offset_grad, out.weight_grad], (out.mask_grad, out.bias_grad)) };

    unfold4d: floats(&[&[2, 3, 6, 5]]), EXACT, |_c, x| vec![
        B::unfold4d(x.clone(), [2, 3], UnfoldOptions::new([1, 2], [0, 0], [1, 1])), B::unfold4d(x, [2, 2], UnfoldOptions::new([2, 1], [1, 1], [1, 2]))];

    avg_pool1d: floats(&[&[2, 3, 9]]), TERMS, in f64, of terms, |_c, x| vec![B::avg_pool1d(x.clone(), 3, 2, 1, true, false), B::avg_pool1d(x, 3, 2, 1, false, true)];
    avg_pool1d_backward: floats(&[&[2, 3, 9], &[2, 3, 5]]), TERMS, in f64, of terms, |_c, x, g| B::avg_pool1d_backward(x, g, 3, 2, 1, true, false);
    avg_pool2d: floats(&[&[2, 3, 6, 7]]), TERMS, in f64, of terms, |_c, x| vec![B::avg_pool2d(x.clone(), [2, 3], [2, 2], [1, 1], true, false), B::avg_pool2d(x, [2, 3], [2, 2], [0, 1], false, true)];
    avg_pool2d_backward: floats(&[&[2, 3, 6, 7], &[2, 3, 4, 4]]), TERMS, in f64, of terms, |_c, x, g| B::avg_pool2d_backward(x, g, [2, 3], [2, 2], [1, 1], false, false);
    adaptive_avg_pool1d: floats(&[&[2, 3, 9]]), TERMS, in f64, of terms, |_c, x| B::adaptive_avg_pool1d(x, 4);
    adaptive_avg_pool1d_backward: floats(&[&[2, 3, 9], &[2, 3, 4]]), TERMS, in f64, of terms, |_c, x, g| B::adaptive_avg_pool1d_backward(x, g);
    adaptive_avg_pool2d: floats(&[&[2, 3, 7, 5]]), TERMS, in f64, of terms, |_c, x| B::adaptive_avg_pool2d(x, [3, 2]);
    adaptive_avg_pool2d_backward: floats(&[&[2, 3, 7, 5], &[2, 3, 3, 2]]), TERMS, in f64, of terms, |_c, x, g| B::adaptive_avg_pool2d_backward(x, g);
    max_pool1d: floats(&[&[2, 3, 9]]), EXACT, |_c, x| vec![B::max_pool1d(x.clone(), 3, 2, 1, 1, false), B::max_pool1d(x, 3, 2, 1, 2, true)];
    max_pool1d_with_indices: floats(&[&[2, 3, 9]]), EXACT, |_c, x| { let y = line::max_pool1d::<B>(x, 3, 2, 1, 1, false); (y.output, y.indices) };
    max_pool1d_with_indices_backward: floats(&[&[2, 3, 9], &[2, 3, 5]]), SUM, |_c, x, g| {
        let y = line::max_pool1d::<B>(x.clone(), 3, 2, 1, 1, false);
        B::max_pool1d_with_indices_backward(x, 3, 2, 1, 1, false, g, y.indices).x_grad };
    max_pool2d: floats(&[&[2, 3, 6, 7]]), EXACT, |_c, x| vec![B::max_pool2d(x.clone(), [2, 3], [2, 2], [1, 1], [1, 1], false), B::max_pool2d(x, [2, 2], [1, 2], [0, 1], [2, 1], true)];
    max_pool2d_with_indices: floats(&[&[2, 3, 6, 7]]), EXACT, |_c, x| { let y = line::max_pool2d::<B>(x, [2, 3], [2, 2], [1, 1], [1, 1], false); (y.output, y.indices) };
    max_pool2d_with_indices_backward: floats(&[&[2, 3, 6, 7], &[2, 3, 4, 4]]), SUM, |_c, x, g| {
        let y = line::max_pool2d::<B>(x.clone(), [2, 3], [2, 2], [1, 1], [1, 1], false);
        B::max_pool2d_with_indices_backward(x, [2, 3], [2, 2], [1, 1], [1, 1], false, g, y.indices).x_grad };

    interpolate: floats(&[&[2, 3, 4, 5]]), Ulps(256.0), in f64, of terms, |_c, x| modes().into_iter().map(|m| B::interpolate(x.clone(), [7, 3], m)).collect::<Vec<_>>();
    interpolate_backward: wide(&[&[2, 3, 4, 5], &[2, 3, 7, 3]]), TERMS, of terms, |_c, x, g| B::interpolate_backward(x, g, [7, 3], InterpolateOptions::new(InterpolateMode::Nearest));

    attention: floats(&[&[2, 3, 5, 4], &[2, 3, 6, 4], &[2, 3, 6, 4]]), SUM, |_c, q, k, v| vec![
        B::attention(q.clone(), k.clone(), v.clone(), None, None, AttentionModuleOptions::default()),
        B::attention(q, k, v, None, None, AttentionModuleOptions { scale: Some(0.3), softcap: Some(5.0), is_causal: true })];
    attention_with_a_mask: floats(&[&[2, 3, 5, 4], &[2, 3, 6, 4], &[2, 3, 6, 4], &[2, 1, 5, 6]]), SUM, |_c, q, k, v, bias| {
        use burn_backend::BoolDType;
        let mask = B::float_greater_elem(bias.clone(), 0.5.into(), BoolDType::Native);
        B::attention(q, k, v, Some(mask), Some(bias), AttentionModuleOptions::default()) };
    layer_norm: floats(&[&[3, 4, 6], &[6], &[6]]), SUM, in f64, |_c, x, g, b| vec![B::layer_norm(x.clone(), g.clone(), Some(b), 1e-5), B::layer_norm(x, g, None, 1e-5)];
    ctc_loss: wide(&[&[6, 2, 4]]), SUM, |_c, x| {
        use burn_backend::TensorData;
        let device = Default::default();
        let int = |values: Vec<i32>, shape: &[usize]| B::int_from_data(TensorData::new(values, shape.to_vec()), &device);
        let log_probs = B::log_softmax(x, 2);
        B::ctc_loss(log_probs, int(vec![1, 2, 3, 1], &[2, 2]), int(vec![6, 5], &[2]), int(vec![2, 1], &[2]), 0) };
}
