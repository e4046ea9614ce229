//! `QTensorOps`: quantisation per tensor and per block, operations on quantized values, and a sample of the operations
//! that dequantise.

use burn_backend::ops::{FloatTensorOps, QTensorOps};
use burn_backend::quantization::{QuantMode, QuantScheme, QuantStore, QuantValue};
use burn_backend::{
    BoolDType, DType, FloatDType, IntDType, Slice, TensorData, TensorMetadata, TensorPrimitive,
};
use burn_flex::{Flex, FlexQTensor};
use burn_t4a::{BurnT4a, T4aQTensor};

use crate::conform;
use crate::line::*;
use crate::material::*;

macro_rules! read_quantized {
    ($($Q:ident of $B:ident),*) => {$(
        impl Read for $Q {
            fn read(self) -> Vec<TensorData> {
                vec![plain(burn_backend::read_sync($B::q_into_data(self)).unwrap())]
            }
        }
    )*};
}
read_quantized!(FlexQTensor of Flex, T4aQTensor of BurnT4a);

/// Dequantized values of quantized data.
pub fn plain(data: TensorData) -> TensorData {
    let shape = data.shape().clone();
    let tensor = Flex::q_from_data(data, &Default::default());
    let values = Flex::dequantize(tensor, FloatDType::F32).into_data();
    assert_eq!(values.shape(), &shape);
    values
}

fn scheme(block: bool) -> QuantScheme {
    let scheme = QuantScheme::default()
        .with_mode(QuantMode::Symmetric)
        .with_value(QuantValue::Q8S)
        .with_store(QuantStore::Native);
    if block { in_blocks(scheme, 4) } else { scheme }
}

/// Matrices whose rows consist of blocks of four; `dim` selects the quantisation level.
fn matrices() -> Vec<Case> {
    let mut out = Vec::new();
    for lay in LAYS {
        for dim in 0..2 {
            let operands = vec![
                Operand::new(&[4, 8], DType::F32, Values::Plain, lay, 0),
                Operand::new(&[4, 8], DType::F32, Values::Positive, lay, 1),
            ];
            out.push(Case { operands, dim });
        }
    }
    out
}

const FLOAT: Ulps = Ulps(64.0);

conform! {
    float;
    quantize_dynamic: matrices(), EXACT, |c, x, _y| B::quantize_dynamic(x, &scheme(c.dim == 1));
    quantize: matrices(), EXACT, |c, x, _y| {
        let blocks = if c.dim == 1 { 8 } else { 1 };
        let scales = B::float_full([blocks].into(), 0.05.into(), &Default::default(), FloatDType::F32);
        B::quantize(x, &scheme(c.dim == 1), parameters(scales)) };
    dequantize: matrices(), EXACT, |c, x, _y| {
        let q = B::quantize_dynamic(x, &scheme(c.dim == 1));
        vec![B::dequantize(q.clone(), FloatDType::F32), B::dequantize(q.clone(), FloatDType::F64), B::dequantize(q, FloatDType::F16)] };
    q_movement: matrices(), FLOAT, |c, x, _y| {
        let q = B::quantize_dynamic(x, &scheme(c.dim == 1));
        vec![
            B::q_reshape(q.clone(), [8, 4].into()), B::q_swap_dims(q.clone(), 0, 1), B::q_transpose(q.clone()),
            B::q_permute(q.clone(), &[1, 0]), B::q_flip(q.clone(), &[1]), B::q_expand(B::q_reshape(q.clone(), [1, 4, 8].into()), [2, 4, 8].into()),
            B::q_slice(q.clone(), &[Slice::new(1, Some(3), 1)]), B::q_repeat_dim(q.clone(), 0, 2), B::q_cat(vec![q.clone(), q], 0)] };
    q_index: index_cases(&[DType::F32], |c| c.shape().to_vec(), false).into_iter().filter(|c| c.shape() == [3, 5]), FLOAT, |c, x, i: int| {
        let q = B::quantize_dynamic(x, &scheme(false));
        vec![B::q_gather(c.dim, q.clone(), i), B::q_sort(q, c.dim, true)] };
    q_select: index_cases(&[DType::F32], |_| vec![4], false).into_iter().filter(|c| c.shape() == [3, 5]), FLOAT, |c, x, i: int| B::q_select(B::quantize_dynamic(x, &scheme(false)), c.dim, i);
    q_extrema: matrices(), FLOAT, |c, x, _y| {
        let q = B::quantize_dynamic(x, &scheme(false));
        (vec![B::q_argmax(q.clone(), c.dim, IntDType::I64), B::q_argmin(q.clone(), c.dim, IntDType::I32), B::q_argsort(q.clone(), c.dim, false, IntDType::I64)],
         (vec![B::q_max(q.clone()), B::q_min_dim(q.clone(), c.dim), B::q_max_abs(q.clone())], B::q_max_dim_with_indices(q, c.dim, IntDType::I64))) };
    q_arithmetic: matrices(), FLOAT, |_c, x, y| {
        let (a, b) = (B::quantize_dynamic(x, &scheme(false)), B::quantize_dynamic(y, &scheme(false)));
        vec![
            B::q_add(a.clone(), b.clone()), B::q_sub(a.clone(), b.clone()), B::q_mul(a.clone(), b.clone()), B::q_div(a.clone(), b.clone()),
            B::q_add_scalar(a.clone(), 2.into()), B::q_mul_scalar(a.clone(), 2.into()), B::q_clamp(a.clone(), (-1).into(), 1.into()),
            B::q_powf(b.clone(), a.clone()), B::q_sqrt(b.clone()), B::q_log(b), B::q_exp(a.clone()), B::q_tanh(a.clone()), B::q_neg(a)] };
    q_functions: matrices(), Ulps(256.0), |_c, x, y| {
        let (a, b) = (B::quantize_dynamic(x, &scheme(false)), B::quantize_dynamic(y, &scheme(false)));
        let whole = B::q_argsort(b.clone(), 1, false, IntDType::I64);
        (B::q_abs(a.clone()), vec![
            B::q_recip(b.clone()), B::q_log1p(b.clone()), B::q_powi(b.clone(), whole), B::q_powi_scalar(b.clone(), 3.into()), B::q_powf_scalar(b, 1.5.into()),
            B::q_cos(a.clone()), B::q_sin(a.clone()), B::q_cosh(a.clone()), B::q_sinh(a.clone()), B::q_erf(a.clone()),
            B::q_clamp_min(a.clone(), (-1).into()), B::q_clamp_max(a.clone(), 1.into()), B::q_sub_scalar(a.clone(), 2.into()), B::q_div_scalar(a, 2.into())]) };
    // tan is tested away from its poles.
    q_tan: matrices(), Ulps(256.0), |_c, x, _y| B::q_tan(B::quantize_dynamic(B::float_tanh(x), &scheme(false)));
    q_products: matrices(), Ulps(2048.0), |c, _x, y| {
        let q = B::quantize_dynamic(y, &scheme(false));
        vec![B::q_prod(q.clone()), B::q_prod_dim(q.clone(), c.dim), B::q_cumprod(q, c.dim)] };
    q_running_extrema: matrices(), EXACT, |c, x, _y| {
        let q = B::quantize_dynamic(x, &scheme(false));
        vec![B::q_cummin(q.clone(), c.dim), B::q_cummax(q, c.dim)] };
    q_order: matrices(), FLOAT, |c, x, _y| {
        let q = B::quantize_dynamic(x, &scheme(false));
        (vec![B::q_max_dim(q.clone(), c.dim), B::q_min(q.clone()), B::q_max_abs_dim(q.clone(), c.dim), B::q_topk(q.clone(), c.dim, 2)],
         B::q_min_dim_with_indices(q, c.dim, IntDType::I32)) };
    q_truth: matrices(), EXACT, |c, x, _y| {
        let q = B::quantize_dynamic(x, &scheme(false));
        vec![B::q_any(q.clone(), BoolDType::Native), B::q_any_dim(q.clone(), c.dim, BoolDType::Native), B::q_all(q.clone(), BoolDType::Native), B::q_all_dim(q, c.dim, BoolDType::Native)] };
    q_reductions: matrices(), Ulps(2048.0), |c, x, _y| {
        let q = B::quantize_dynamic(x, &scheme(false));
        vec![B::q_sum(q.clone()), B::q_mean(q.clone()), B::q_sum_dim(q.clone(), c.dim), B::q_mean_dim(q.clone(), c.dim), B::q_cumsum(q, c.dim)] };
    q_matmul: matrices(), Ulps(2048.0), |_c, x, y| {
        let (a, b) = (B::quantize_dynamic(x, &scheme(false)), B::quantize_dynamic(y, &scheme(false)));
        B::q_matmul(TensorPrimitive::QFloat(a), TensorPrimitive::QFloat(B::q_swap_dims(b, 0, 1))) };
}

/// Quantized values often tie, so positions are compared through the values at them.
#[test]
fn positions_point_at_the_values() {
    let x = float::<BurnT4a>(&Operand::row_major(&[4, 8], DType::F32, Values::Plain, 0));
    let q = BurnT4a::quantize_dynamic(x, &scheme(false));
    let read = |q| plain(burn_backend::read_sync(BurnT4a::q_into_data(q)).unwrap());
    for dim in 0..2 {
        let at = BurnT4a::q_argtopk(q.clone(), dim, 2, IntDType::I64);
        let largest = BurnT4a::q_topk(q.clone(), dim, 2);
        assert_eq!(read(BurnT4a::q_gather(dim, q.clone(), at)), read(largest));
        let (sorted, at) = BurnT4a::q_sort_with_indices(q.clone(), dim, false, IntDType::I64);
        assert_eq!(read(BurnT4a::q_gather(dim, q.clone(), at)), read(sorted));
    }
}

#[test]
fn a_quantized_tensor_has_no_tape_and_stays_on_its_device() {
    let x = float::<BurnT4a>(&Operand::row_major(&[4, 8], DType::F32, Values::Plain, 0));
    let q = BurnT4a::quantize_dynamic(x, &scheme(false));
    let data = |q| burn_backend::read_sync(BurnT4a::q_into_data(q)).unwrap();
    let want = data(q.clone());
    let device = BurnT4a::q_device(&q);
    let q = BurnT4a::q_set_require_grad(BurnT4a::q_detach(BurnT4a::q_to_device(q, &device)), true);
    assert!(!BurnT4a::q_is_require_grad(&q));
    assert_eq!(data(q), want);
}

#[test]
fn quantized_data_round_trips() {
    for block in [false, true] {
        let x = float::<BurnT4a>(&Operand::row_major(&[4, 8], DType::F32, Values::Plain, 0));
        let q = BurnT4a::quantize_dynamic(x.clone(), &scheme(block));
        assert!(matches!(q.dtype(), DType::QFloat(_)));
        let data = burn_backend::read_sync(BurnT4a::q_into_data(q)).unwrap();
        let again = BurnT4a::q_from_data(data.clone(), &Default::default());
        let values = BurnT4a::dequantize(again.clone(), FloatDType::F32).read().remove(0);
        let exact = x.read().remove(0);
        let error = values.iter::<f32>().zip(exact.iter::<f32>()).map(|(a, b)| (a - b).abs());
        // Half a quantisation step of 3/127.
        assert!(error.fold(0.0, f32::max) <= 0.5 * 3.0 / 127.0 + 1e-6);
        assert_eq!(burn_backend::read_sync(BurnT4a::q_into_data(again)).unwrap(), data);
    }
}

/// A block has its own scale, so integers of different blocks cannot be compared.
#[test]
fn the_largest_of_blocks_is_found_by_value() {
    let x = [1.0f32, 0.5, -1.0, 0.25, 90.0, 100.0, -50.0, 0.0];
    let x = BurnT4a::float_from_data(TensorData::new(x.to_vec(), [1, 8]), &Default::default());
    let q = BurnT4a::quantize_dynamic(x, &scheme(true));
    let at = |x: burn_t4a::T4aTensor| x.read()[0].iter::<i64>().collect::<Vec<_>>();
    assert_eq!(at(BurnT4a::q_argmax(q.clone(), 1, IntDType::I64)), [5]);
    assert_eq!(at(BurnT4a::q_argmin(q, 1, IntDType::I64)), [6]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let x = |shape: &[usize]| {
        float::<BurnT4a>(&Operand::row_major(shape, DType::F32, Values::Plain, 0))
    };
    if !SHORT_BLOCKS {
        let text = caught(|| BurnT4a::quantize_dynamic(x(&[3, 5]), &scheme(true))).unwrap_err();
        assert!(text.contains("not a whole number of blocks"), "{text}");
    }
    let scales = float::<BurnT4a>(&Operand::row_major(&[3], DType::F32, Values::Positive, 0));
    let few = caught(|| BurnT4a::quantize(x(&[4, 8]), &scheme(true), parameters(scales)));
    let text = few.unwrap_err();
    assert!(text.contains("8 scales are required, given 3"), "{text}");
    let packed = scheme(false).with_value(QuantValue::E4M3).with_store(QuantStore::PackedU32(0));
    let data = TensorData::from_bytes_vec(vec![0; 8], [4], DType::QFloat(packed));
    let text = caught(|| BurnT4a::q_from_data(data, &Default::default())).unwrap_err();
    assert!(text.contains("E4M3 stored as PackedU32(0) is not supported"), "{text}");
    let q = BurnT4a::quantize_dynamic(x(&[4, 8]), &scheme(true));
    let dtype = q.dtype();
    let data = burn_backend::read_sync(BurnT4a::q_into_data(q)).unwrap();
    let data = TensorData::from_bytes_vec(data.as_bytes().to_vec(), [4, 16], dtype);
    let text = caught(|| BurnT4a::q_from_data(data, &Default::default())).unwrap_err();
    assert!(text.contains("takes 128 bytes, the data has 64"), "{text}");
    let none = BurnT4a::quantize_dynamic(x(&[0, 4]), &scheme(false));
    assert_eq!(BurnT4a::dequantize(none, FloatDType::F32).read()[0].shape().to_vec(), [0, 4]);
}

/// Half an ulp of a floating-point format with the given mantissa bits and least exponent.
fn half_a_unit(x: f64, mantissa: i32, least: i32) -> f64 {
    let binade = if x == 0.0 { least } else { (x.abs().log2().floor() as i32).max(least) };
    0.5 * 2f64.powi(binade - mantissa)
}

/// Flex 0.21 and 0.22.1 store float codes as 8-bit integers, limited to 127, so the oracle is the spacing of the
/// formats.
#[test]
fn floats_of_eight_and_four_bits() {
    let formats = [
        (QuantValue::E4M3, 448.0, 3, -6),
        (QuantValue::E5M2, 57344.0, 2, -14),
        (QuantValue::E2M1, 6.0, 1, 0),
    ];
    let x: Vec<f32> = (0..32).map(|i| (i as f32 - 11.5) * 1.75f32.powi(i % 5)).collect();
    let tensor = BurnT4a::float_from_data(TensorData::new(x.clone(), [4, 8]), &Default::default());
    for (value, max, mantissa, least) in formats {
        for block in [false, true] {
            let scheme = scheme(block).with_value(value);
            let q = BurnT4a::quantize_dynamic(tensor.clone(), &scheme);
            let y = BurnT4a::dequantize(q.clone(), FloatDType::F64).read().remove(0);
            let y: Vec<f64> = y.iter::<f64>().collect();
            let size = if block { 4 } else { 32 };
            for (x, y) in x.chunks(size).zip(y.chunks(size)) {
                let peak = x.iter().fold(0.0f64, |peak, &x| peak.max(f64::from(x.abs())));
                let scale = peak / max;
                for (&x, &y) in x.iter().zip(y) {
                    let exact = f64::from(x) / scale;
                    let bound = scale * half_a_unit(exact, mantissa, least) + 1e-6 * peak;
                    assert!((f64::from(x) - y).abs() <= bound, "{value:?} {x} {y}");
                    // The value is representable in the format: an integral number of ulps.
                    let units = y / scale / (2.0 * half_a_unit(y / scale, mantissa, least));
                    assert!((units - units.round()).abs() < 1e-4, "{value:?} {y}");
                }
            }
            // Data movement under one scale keeps the codes; data round-trips.
            let at = BurnT4a::q_argmax(q.clone(), 1, IntDType::I64).read().remove(0);
            for (row, at) in y.chunks(8).zip(at.iter::<i64>()) {
                assert!(row.iter().all(|&v| v <= row[at as usize]));
            }
            let data = burn_backend::read_sync(BurnT4a::q_into_data(q)).unwrap();
            let again = BurnT4a::q_from_data(data.clone(), &Default::default());
            let z = BurnT4a::dequantize(again.clone(), FloatDType::F64).read().remove(0);
            assert_eq!(z.iter::<f64>().collect::<Vec<_>>(), y);
            assert_eq!(burn_backend::read_sync(BurnT4a::q_into_data(again)).unwrap(), data);
        }
    }
}

/// The last block of a row-major run is shorter in Burn 0.21; Flex with debug assertions panics there.
#[test]
fn the_last_block_is_shorter() {
    if !SHORT_BLOCKS {
        return;
    }
    let x: Vec<f32> = (0..15).map(|i| (i as f32 - 6.0) * 3f32.powi(i / 4)).collect();
    for value in [QuantValue::Q8S, QuantValue::Q4F, QuantValue::E4M3] {
        let scheme = scheme(true).with_value(value);
        let (low, high) = value.range();
        let data = TensorData::new(x.clone(), [3, 5]);
        let tensor = BurnT4a::float_from_data(data, &Default::default());
        let q = BurnT4a::quantize_dynamic(tensor.clone(), &scheme);
        let y: Vec<f32> =
            BurnT4a::dequantize(q.clone(), FloatDType::F32).read()[0].iter().collect();
        let mut scales = Vec::new();
        for (x, y) in x.chunks(4).zip(y.chunks(4)) {
            let peak = x.iter().fold(0.0f32, |peak, x| peak.max(x.abs()));
            let scale = 2.0 * peak / (high - low);
            let half = if value == QuantValue::E4M3 { 16.0 } else { 1.0 };
            for (&x, &y) in x.iter().zip(y) {
                assert!((x - y).abs() <= half * scale * 1.0001, "{value:?} {x} {y}");
            }
            scales.push(scale);
        }
        let scales = TensorData::new(scales, [4]);
        let scales = BurnT4a::float_from_data(scales, &Default::default());
        let given = BurnT4a::quantize(tensor, &scheme, parameters(scales));
        let data = |q| burn_backend::read_sync(BurnT4a::q_into_data(q)).unwrap();
        assert_eq!(data(given), data(q.clone()));
        let again = BurnT4a::q_from_data(data(q.clone()), &Default::default());
        let z: Vec<f32> = BurnT4a::dequantize(again, FloatDType::F32).read()[0].iter().collect();
        assert_eq!(z, y);
        // Row 1 starts within a block.
        let row = BurnT4a::q_slice(q, &[Slice::new(1, Some(2), 1)]);
        assert_eq!(row.shape().to_vec(), [1, 5]);
    }
    // Four bits per value, the first value in the lowest bits, in whole words; a block of four and a block of one.
    let word = [1i8, -2, 3, -4, 5].iter().rev().fold(0u32, |word, &v| word << 4 | v as u32 & 15);
    let mut bytes = word.to_ne_bytes().to_vec();
    bytes.extend([0.5f32, 2.0].iter().flat_map(|scale| scale.to_ne_bytes()));
    let packed = scheme(true).with_value(QuantValue::Q4S).with_store(QuantStore::PackedU32(0));
    let data = TensorData::from_bytes_vec(bytes, [5], DType::QFloat(packed));
    let q = BurnT4a::q_from_data(data, &Default::default());
    let y: Vec<f32> = BurnT4a::dequantize(q, FloatDType::F32).read()[0].iter().collect();
    assert_eq!(y, [0.5, -1.0, 1.5, -2.0, 10.0]);
}
