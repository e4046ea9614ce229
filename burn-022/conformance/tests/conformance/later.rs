//! Operations of Burn 0.22 that Burn 0.21 does not have.

use burn_backend::ops::{
    AttentionModuleOptions, BoolTensorOps, ConvOptions, FloatTensorOps, IntTensorOps,
    InterpolateMode, InterpolateOptions, ModuleOps, PadMode, QTensorOps, UnfoldOptions,
};
use burn_backend::quantization::{QuantMode, QuantScheme, QuantStore, QuantValue, ScaleDtype};
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{BoolDType, DType, FloatDType, IntDType, TensorData, TensorMetadata};

use burn_t4a::BurnT4a;

use crate::conform;
use crate::material::*;

/// Tolerance for sums in another order.
const SUM: Ulps = Ulps(4096.0);

/// Operands of the given shapes, the first one in every layout, in 32 and 64 bits.
fn floats(shapes: &[&[usize]]) -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        for lay in LAYS {
            let operand = |(i, shape): (usize, &&[usize])| {
                let lay = if i == 0 { lay } else { Lay::RowMajor };
                Operand::new(shape, dtype, Values::Plain, lay, i)
            };
            out.push(Case { operands: shapes.iter().enumerate().map(operand).collect(), dim: 0 });
        }
    }
    out
}

const UPDATES: [IndexingUpdateOp; 2] = [IndexingUpdateOp::Add, IndexingUpdateOp::Assign];

/// Indices without repetition; the result of repeated assignments is unspecified.
fn scatters(dtypes: &[DType]) -> Vec<Case> {
    dtypes
        .iter()
        .map(|&dtype| Case {
            operands: vec![
                Operand::row_major(&[4, 5], dtype, Values::Plain, 0),
                Operand {
                    data: cast(&[2.0, 0.0, 3.0], &[3], DType::I64),
                    shape: vec![3],
                    lay: Lay::RowMajor,
                },
                Operand::row_major(&[3, 5], dtype, Values::Plain, 1),
            ],
            dim: 0,
        })
        .collect()
}

fn pad_modes() -> [PadMode; 3] {
    [PadMode::Constant(1.5), PadMode::Reflect, PadMode::Edge]
}

/// The messages that Burn's own tests look for.
#[test]
fn padding_of_too_few_elements() {
    for (mode, shape, text) in [
        (PadMode::Reflect, [2], "Reflect padding"),
        (PadMode::Reflect, [0], "Reflect padding"),
        (PadMode::Edge, [0], "edge padding"),
    ] {
        let x = BurnT4a::float_zeros(shape.into(), &Default::default(), FloatDType::F32);
        let error = caught(|| BurnT4a::float_pad(x, &[(2, 0)], mode)).unwrap_err();
        assert!(error.contains(text), "{error}");
    }
}

conform! {
    float;
    float_hypot: binary(&FLOATS, Values::Special, Values::Special), Ulps(16.0), |_c, a, b| B::float_hypot(a, b);
    float_sum_dims: floats(&[&[3, 4, 5]]), SUM, |_c, x| vec![B::float_sum_dims(x.clone(), &[0, 2]), B::float_sum_dims(x, &[1])];
    float_topk_with_indices: floats(&[&[3, 7]]), EXACT, |_c, x| B::float_topk_with_indices(x, 1, 3, IntDType::I32);
    float_mask_select: mask_cases(&FLOATS), EXACT, |_c, x, m: bool, _v| burn_backend::read_sync(B::float_mask_select(x, m));
    float_pad: floats(&[&[3, 4]]), EXACT, |_c, x| pad_modes().map(|mode| B::float_pad(x.clone(), &[(2, 1), (0, 3)], mode)).into_iter().collect::<Vec<_>>();
    float_select_assign: scatters(&FLOATS), EXACT, |_c, x, i: int, v| UPDATES.map(|update| B::float_select_assign(x.clone(), 0, i.clone(), v.clone(), update)).into_iter().collect::<Vec<_>>();
    int_select_assign: scatters(&[DType::I64, DType::I32]), EXACT, |_c, x: int, i: int, v: int| UPDATES.map(|update| B::int_select_assign(x.clone(), 0, i.clone(), v.clone(), update)).into_iter().collect::<Vec<_>>();
    int_topk_with_indices: along(&INTS[..2], Values::Plain).into_iter().filter(|c| c.size() >= 2), EXACT, |c, x: int| B::int_topk_with_indices(x, c.dim, 2).0;
    int_mask_select: mask_cases(&INTS), EXACT, |_c, x: int, m: bool, _v: int| burn_backend::read_sync(B::int_mask_select(x, m));
    int_pad: unary(&INTS, Values::Whole).into_iter().filter(|c| c.shape() == [3, 5]), EXACT, |_c, x: int| pad_modes().map(|mode| B::int_pad(x.clone(), &[(2, 1), (0, 3)], mode)).into_iter().collect::<Vec<_>>();
    int_square: unary(&INTS, Values::Count), EXACT, |_c, x: int| B::int_square(x);
    bool_mask_select: mask_cases(&BOOLS), EXACT, |_c, x: bool, m: bool, _v: bool| burn_backend::read_sync(B::bool_mask_select(x, m));

    adaptive_avg_pool3d: floats(&[&[2, 3, 5, 6, 7]]), SUM, |_c, x| vec![B::adaptive_avg_pool3d(x.clone(), [2, 3, 4]), B::adaptive_avg_pool3d(x, [5, 1, 7])];
    adaptive_avg_pool3d_backward: floats(&[&[2, 3, 5, 6, 7], &[2, 3, 2, 3, 4]]), SUM, |_c, x, g| B::adaptive_avg_pool3d_backward(x, g);
    fold4d: floats(&[&[2, 12, 12]]), SUM, |_c, x| B::fold4d(x, [5, 4], [2, 2], UnfoldOptions::new([1, 1], [0, 0], [1, 1]));
    batch_norm: floats(&[&[2, 3, 4, 5], &[3], &[3], &[3]]), SUM, |_c, x, gamma, beta, mean| {
        let variance = B::float_mul(mean.clone(), mean.clone());
        B::batch_norm(x, gamma, beta, mean, variance, 1e-5) };
    batch_norm_train: floats(&[&[2, 3, 4, 5], &[3], &[3]]), SUM, |_c, x, gamma, beta| {
        let y = B::batch_norm_train(x, gamma, beta, 1e-5);
        vec![y.output, y.mean, y.variance] };
    // With zero variance the result consists of the rounding error of the mean.
    batch_norm_train_backward: floats(&[&[2, 3, 4, 5], &[3], &[3], &[2, 3, 4, 5]]).into_iter().filter(|c| c.operands[0].lay != Lay::Scalar), Ulps(1e5), |_c, x, gamma, beta, g| {
        let y = B::batch_norm_train(x.clone(), gamma.clone(), beta, 1e-5);
        let back = B::batch_norm_train_backward(x, gamma, y.mean, y.variance, 1e-5, g);
        vec![back.x_grad, back.gamma_grad, back.beta_grad] };
    conv_with_padding_on_one_side: floats(&[&[2, 4, 7, 8], &[6, 2, 3, 2], &[6]]), SUM, of terms, |_c, x, w, b| B::conv2d(x, w, Some(b), sided());
    conv_with_padding_on_one_side_backward: floats(&[&[2, 4, 7, 8], &[6, 2, 3, 2], &[2, 6, 4, 8]]), SUM, of terms, |_c, x, w, g| vec![
        B::conv2d_x_backward(x.clone(), w.clone(), g.clone(), sided()), B::conv2d_weight_backward(x, w, g, sided())];
    conv1d_with_padding_on_one_side: floats(&[&[2, 4, 7], &[6, 2, 3]]), SUM, of terms, |_c, x, w| B::conv1d(x, w, None, ConvOptions::new_with_padding([1], [(0, 3)], [2], 2));
    interpolate_by_windowed_sinc: floats(&[&[2, 3, 4, 5]]), SUM, of terms, |_c, x| B::interpolate(x, [7, 3], InterpolateOptions::new(InterpolateMode::Lanczos3));

    two_levels_of_scales: floats(&[&[4, 8]]).into_iter().filter(|c| c.dtype() == DType::F32), EXACT, |_c, x| {
        let q = B::quantize_dynamic(x, &two_levels());
        (B::dequantize(q.clone(), FloatDType::F32), vec![q.clone(), B::q_swap_dims(q, 0, 1)]) };
    narrow_values: floats(&[&[4, 8]]).into_iter().filter(|c| c.dtype() == DType::F32), EXACT, |_c, x| {
        let narrow = scheme().with_value(QuantValue::Q4S).per_tensor(ScaleDtype::F16);
        B::dequantize(B::quantize_dynamic(x, &narrow), FloatDType::F32) };
}

fn sided() -> ConvOptions<2> {
    ConvOptions::new_with_padding([2, 1], [(1, 2), (0, 2)], [1, 2], 2)
}

fn scheme() -> QuantScheme {
    QuantScheme::default()
        .with_mode(QuantMode::Symmetric)
        .with_value(QuantValue::Q8S)
        .with_store(QuantStore::Native)
}

fn two_levels() -> QuantScheme {
    scheme().per_block([2, 4], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32)
}

#[test]
fn a_tensor_is_alone_with_its_memory_until_it_is_cloned() {
    type B = burn_t4a::BurnT4a;
    let x = B::float_ones([3].into(), &Default::default(), FloatDType::F32);
    assert!(x.can_mut());
    let y = x.clone();
    assert!(!x.can_mut() && !y.can_mut());
    drop(y);
    assert!(x.can_mut());
}

#[test]
fn attention_without_any_option_is_that_of_the_defaults() {
    type B = burn_t4a::BurnT4a;
    let q = || B::float_ones([1, 1, 2, 2].into(), &Default::default(), FloatDType::F64);
    let y = B::attention(q(), q(), q(), None, None, AttentionModuleOptions::default());
    assert_eq!(y.read()[0].to_vec::<f64>().unwrap(), [1.0; 4]);
}

/// Flex has no exact nearest neighbours: element `⌊(i + ½)·m/n⌋`.
#[test]
fn exact_neighbours() {
    type B = burn_t4a::BurnT4a;
    let x = TensorData::new((0..4).map(f64::from).collect::<Vec<_>>(), [1, 1, 1, 4]);
    let at = |n| {
        let options = InterpolateOptions::new(InterpolateMode::NearestExact);
        let x = B::float_from_data(x.clone(), &Default::default());
        B::interpolate(x, [1, n], options).read()[0].to_vec::<f64>().unwrap()
    };
    assert_eq!(at(2), [1.0, 3.0]);
    assert_eq!(at(3), [0.0, 2.0, 3.0]);
    assert_eq!(at(8), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
}

#[test]
fn bools_of_any_store_are_selected() {
    type B = burn_t4a::BurnT4a;
    let x = B::bool_ones([2].into(), &Default::default(), BoolDType::U32);
    let y = burn_backend::read_sync(B::bool_mask_select(x.clone(), x));
    assert_eq!(y.dtype(), DType::Bool(BoolDType::U32));
}
