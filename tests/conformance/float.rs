//! Every method of `FloatTensorOps`.

use burn_backend::ops::{
    FloatTensorOps, GridSampleOptions, GridSamplePaddingMode, IntTensorOps, InterpolateMode,
};
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{BoolDType, DType, FloatDType, IntDType, Shape, Slice};

use crate::conform;
#[allow(unused_imports)]
use crate::line::*;
use crate::material::*;

/// Elementary functions of two implementations: a few ulps, more for ill-conditioned arguments.
const FUNCTION: Ulps = Ulps(16.0);
/// A difference that is small compared with its terms.
const CANCELS: Ulps = Ulps(4096.0);
/// Sums of a few thousand terms in another order.
const SUM: Ulps = Ulps(2048.0);
/// Sums in another order, relative to their terms: half an ulp for each of up to 4550.
const TERMS: Ulps = Ulps(2275.0);

fn special() -> Vec<Case> {
    unary(&FLOATS, Values::Special)
}

fn pairs() -> Vec<Case> {
    binary(&FLOATS, Values::Special, Values::Special)
}

conform! {
    float;
    float_add: pairs(), EXACT, |_c, a, b| B::float_add(a, b);
    float_sub: pairs(), EXACT, |_c, a, b| B::float_sub(a, b);
    float_mul: pairs(), EXACT, |_c, a, b| B::float_mul(a, b);
    float_div: pairs(), EXACT, |_c, a, b| B::float_div(a, b);
    float_remainder: binary(&FLOATS, Values::Plain, Values::Positive), CANCELS, |_c, a, b| B::float_remainder(a, b);
    float_powf: binary(&FLOATS, Values::Positive, Values::Plain), FUNCTION, |_c, a, b| B::float_powf(a, b);
    float_atan2: binary(&FLOATS, Values::Plain, Values::Plain), FUNCTION, |_c, a, b| B::float_atan2(a, b);

    float_add_scalar: special(), EXACT, |_c, x| B::float_add_scalar(x, 1.5.into());
    float_sub_scalar: special(), EXACT, |_c, x| B::float_sub_scalar(x, 1.5.into());
    float_mul_scalar: special(), EXACT, |_c, x| B::float_mul_scalar(x, (-2.5).into());
    float_div_scalar: special(), EXACT, |_c, x| B::float_div_scalar(x, 3.0.into());
    float_remainder_scalar: unary(&FLOATS, Values::Plain), CANCELS, |_c, x| B::float_remainder_scalar(x, 0.75.into());
    float_powf_scalar: unary(&FLOATS, Values::Positive), FUNCTION, |_c, x| B::float_powf_scalar(x, 1.7.into());
    float_powf_scalar_impl: unary(&FLOATS, Values::Positive), FUNCTION, |_c, x| B::float_powf_scalar_impl(x, (-0.3).into());
    float_powi_scalar: unary(&FLOATS, Values::Plain), FUNCTION, |_c, x| vec![
        B::float_powi_scalar(x.clone(), 0.into()), B::float_powi_scalar(x.clone(), 2.into()),
        B::float_powi_scalar(x.clone(), 3.into()), B::float_powi_scalar(x, (-1).into())];
    float_powi_scalar_impl: unary(&FLOATS, Values::Plain), FUNCTION, |_c, x| B::float_powi_scalar_impl(x, 3.into());
    float_powi: with_exponents(), FUNCTION, |_c, x, n: int| B::float_powi(x, n);
    float_clamp: special(), EXACT, |_c, x| B::float_clamp(x, (-1).into(), 1.5.into());
    float_clamp_min: unary(&FLOATS, Values::Plain), EXACT, |_c, x| B::float_clamp_min(x, 0.5.into());
    float_clamp_max: unary(&FLOATS, Values::Plain), EXACT, |_c, x| B::float_clamp_max(x, 0.5.into());

    float_neg: special(), EXACT, |_c, x| B::float_neg(x);
    float_recip: special(), EXACT, |_c, x| B::float_recip(x);
    float_abs: special(), EXACT, |_c, x| B::float_abs(x);
    float_sign: special(), EXACT, |_c, x| B::float_sign(x);
    float_sqrt: special(), EXACT, |_c, x| B::float_sqrt(x);
    float_exp: special(), FUNCTION, |_c, x| B::float_exp(x);
    float_log: special(), FUNCTION, |_c, x| B::float_log(x);
    float_log1p: special(), FUNCTION, |_c, x| B::float_log1p(x);
    float_sin: unary(&FLOATS, Values::Plain), FUNCTION, |_c, x| B::float_sin(x);
    float_cos: unary(&FLOATS, Values::Plain), FUNCTION, |_c, x| B::float_cos(x);
    float_tan: unary(&FLOATS, Values::Unit), FUNCTION, |_c, x| B::float_tan(x);
    float_sinh: special(), FUNCTION, |_c, x| B::float_sinh(x);
    float_cosh: special(), FUNCTION, |_c, x| B::float_cosh(x);
    float_tanh: special(), FUNCTION, |_c, x| B::float_tanh(x);
    float_asin: special(), FUNCTION, |_c, x| B::float_asin(x);
    float_acos: special(), FUNCTION, |_c, x| B::float_acos(x);
    float_atan: special(), FUNCTION, |_c, x| B::float_atan(x);
    float_asinh: unary(&FLOATS, Values::Plain), FUNCTION, |_c, x| B::float_asinh(x);
    float_acosh: unary(&FLOATS, Values::Plain), FUNCTION, |_c, x| B::float_acosh(x);
    float_atanh: unary(&FLOATS, Values::Unit), FUNCTION, |_c, x| B::float_atanh(x);
    float_round: special(), EXACT, |_c, x| B::float_round(x);
    float_floor: special(), EXACT, |_c, x| B::float_floor(x);
    float_ceil: special(), EXACT, |_c, x| B::float_ceil(x);
    float_trunc: special(), EXACT, |_c, x| B::float_trunc(x);
    float_erf: unary(&FLOATS, Values::Plain), FUNCTION, |_c, x| B::float_erf(x);

    float_equal: pairs(), EXACT, |_c, a, b| B::float_equal(a, b, BoolDType::Native);
    float_not_equal: pairs(), EXACT, |_c, a, b| B::float_not_equal(a, b, BoolDType::Native);
    float_greater: pairs(), EXACT, |_c, a, b| B::float_greater(a, b, BoolDType::Native);
    float_greater_equal: pairs(), EXACT, |_c, a, b| B::float_greater_equal(a, b, BoolDType::U8);
    float_lower: pairs(), EXACT, |_c, a, b| B::float_lower(a, b, BoolDType::Native);
    float_lower_equal: pairs(), EXACT, |_c, a, b| B::float_lower_equal(a, b, BoolDType::U8);
    float_equal_elem: special(), EXACT, |_c, x| B::float_equal_elem(x, 1.into(), BoolDType::Native);
    float_not_equal_elem: special(), EXACT, |_c, x| B::float_not_equal_elem(x, 1.into(), BoolDType::Native);
    float_greater_elem: special(), EXACT, |_c, x| B::float_greater_elem(x, 0.5.into(), BoolDType::Native);
    float_greater_equal_elem: special(), EXACT, |_c, x| B::float_greater_equal_elem(x, 1.into(), BoolDType::U8);
    float_lower_elem: special(), EXACT, |_c, x| B::float_lower_elem(x, 0.5.into(), BoolDType::Native);
    float_lower_equal_elem: special(), EXACT, |_c, x| B::float_lower_equal_elem(x, 1.into(), BoolDType::U8);
    float_is_nan: special(), EXACT, |_c, x| B::float_is_nan(x, BoolDType::Native);
    float_is_inf: special(), EXACT, |_c, x| B::float_is_inf(x, BoolDType::Native);

    float_sum: unary(&FLOATS, Values::Plain), TERMS, of terms, |_c, x| B::float_sum(x);
    float_mean: unary(&FLOATS, Values::Positive), SUM, |_c, x| B::float_mean(x);
    float_prod: small(Values::Positive), SUM, |_c, x| B::float_prod(x);
    float_sum_dim: along(&FLOATS, Values::Plain), TERMS, of terms, |c, x| B::float_sum_dim(x, c.dim);
    float_mean_dim: along(&FLOATS, Values::Plain), TERMS, of terms, |c, x| B::float_mean_dim(x, c.dim);
    float_prod_dim: along(&FLOATS, Values::Unit), SUM, |c, x| B::float_prod_dim(x, c.dim);
    float_max: filled(Values::Plain), EXACT, |_c, x| B::float_max(x);
    float_min: filled(Values::Plain), EXACT, |_c, x| B::float_min(x);
    float_max_abs: filled(Values::Plain), EXACT, |_c, x| B::float_max_abs(x);
    float_max_dim: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_max_dim(x, c.dim);
    float_min_dim: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_min_dim(x, c.dim);
    float_max_abs_dim: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_max_abs_dim(x, c.dim);
    float_max_dim_with_indices: along(&FLOATS, Values::Whole), EXACT, |c, x| B::float_max_dim_with_indices(x, c.dim, IntDType::I64);
    float_min_dim_with_indices: along(&FLOATS, Values::Whole), EXACT, |c, x| B::float_min_dim_with_indices(x, c.dim, IntDType::I32);
    float_argmax: along(&FLOATS, Values::Whole), EXACT, |c, x| B::float_argmax(x, c.dim, IntDType::I32);
    float_argmin: along(&FLOATS, Values::Whole), EXACT, |c, x| B::float_argmin(x, c.dim, IntDType::U8);
    float_any: unary(&FLOATS, Values::Whole), EXACT, |_c, x| B::float_any(x, BoolDType::Native);
    float_all: unary(&FLOATS, Values::Whole), EXACT, |_c, x| B::float_all(x, BoolDType::U8);
    float_any_dim: along(&FLOATS, Values::Whole), EXACT, except empty, |c, x| B::float_any_dim(x, c.dim, BoolDType::Native);
    float_all_dim: along(&FLOATS, Values::Whole), EXACT, except empty, |c, x| B::float_all_dim(x, c.dim, BoolDType::Native);
    float_cumsum: along(&FLOATS, Values::Plain), TERMS, of terms, |c, x| B::float_cumsum(x, c.dim);
    float_cumprod: along(&FLOATS, Values::Unit), SUM, |c, x| B::float_cumprod(x, c.dim);
    float_cummax: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_cummax(x, c.dim);
    float_cummin: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_cummin(x, c.dim);

    float_sort: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_sort(x, c.dim, c.dim % 2 == 1);
    // Sorting in Flex is not stable: ties are compared through the elements.
    float_sort_with_indices: along(&FLOATS, Values::Whole), EXACT, |c, x| {
        let (sorted, at) = B::float_sort_with_indices(x.clone(), c.dim, c.dim % 2 == 1, IntDType::I64);
        (sorted, B::float_gather(c.dim, x, at)) };
    float_argsort: along(&FLOATS, Values::Whole), EXACT, |c, x| {
        let at = B::float_argsort(x.clone(), c.dim, c.dim.is_multiple_of(2), IntDType::I32);
        B::float_gather(c.dim, x, at) };

    float_matmul: products(), TERMS, of terms, |_c, a, b| B::float_matmul(a, b);
    float_cross: crossed(), FUNCTION, |c, a, b| B::float_cross(a, b, c.dim);

    float_transpose: matrices(), EXACT, |_c, x| B::float_transpose(x);
    float_swap_dims: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_swap_dims(x, 0, c.dim);
    float_permute: unary(&FLOATS, Values::Plain), EXACT, |c, x| B::float_permute(x, &(0..c.shape().len()).rev().collect::<Vec<_>>());
    float_flip: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_flip(x, &[c.dim]);
    float_reshape: unary(&FLOATS, Values::Plain), EXACT, |c, x| vec![
        B::float_reshape(x.clone(), Shape::new([c.shape().iter().product::<usize>()])),
        B::float_reshape(x, c.shape().iter().rev().copied().collect())];
    float_slice: along(&FLOATS, Values::Plain), EXACT, except |c| c.operands[0].lay == Lay::Flipped, |c, x| slices(c).iter().map(|s| B::float_slice(x.clone(), s)).collect::<Vec<_>>();
    float_expand: unary(&FLOATS, Values::Plain), EXACT, |c, x| B::float_expand(B::float_reshape(x, ones_then(c.shape())), twice(c.shape()));
    float_unfold: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_unfold(x, c.dim, c.size().min(2), 2);
    float_repeat_dim: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_repeat_dim(x, c.dim, 3);
    float_cat: along(&FLOATS, Values::Plain), EXACT, |c, x| B::float_cat(vec![x.clone(), B::float_flip(x.clone(), &[c.dim]), x], c.dim);

    float_gather: gathers(), EXACT, |c, x, i: int| B::float_gather(c.dim, x, i);
    float_scatter_add: scatters(), TERMS, of terms, |c, x, i: int, v| B::float_scatter_add(c.dim, x, i, v);
    float_select: selects(), EXACT, |c, x, i: int| B::float_select(x, c.dim, i);
    float_select_add: select_adds(), TERMS, of terms, |c, x, i: int, v| B::float_select_add(x, c.dim, i, v);
    float_gather_nd: gather_nds(), EXACT, |_c, x, i: int| B::float_gather_nd(x, i);
    float_scatter_nd: scatter_nds(), SUM, |c, x, i: int, v| B::float_scatter_nd(x, i, v, [
        IndexingUpdateOp::Assign, IndexingUpdateOp::Add, IndexingUpdateOp::Mul, IndexingUpdateOp::Min, IndexingUpdateOp::Max][c.dim]);
    float_slice_assign: assigned(), EXACT, |c, x, v| B::float_slice_assign(x, &halves(c), v);
    float_mask_where: masked(), EXACT, |_c, x, m: bool, v| B::float_mask_where(x, m, v);
    float_mask_fill: masked(), EXACT, |_c, x, m: bool, _v| B::float_mask_fill(x, m, 2.5.into());

    float_into_int: unary(&FLOATS, Values::Special), EXACT, |_c, x| vec![
        B::float_into_int(x.clone(), IntDType::I64), B::float_into_int(x.clone(), IntDType::I32),
        B::float_into_int(x.clone(), IntDType::I8), B::float_into_int(x.clone(), IntDType::U64),
        B::float_into_int(x, IntDType::U8)];
    float_cast: unary(&FLOATS, Values::Special), EXACT, |_c, x| vec![
        B::float_cast(x.clone(), FloatDType::F64), B::float_cast(x.clone(), FloatDType::F32),
        B::float_cast(x.clone(), FloatDType::F16), B::float_cast(x, FloatDType::BF16)];

    float_zeros: created(), EXACT, |c| B::float_zeros(c.shape().to_vec().into(), &Default::default(), c.dtype().into());
    float_ones: created(), EXACT, |c| B::float_ones(c.shape().to_vec().into(), &Default::default(), c.dtype().into());
    float_full: created(), EXACT, |c| B::float_full(c.shape().to_vec().into(), 2.75.into(), &Default::default(), c.dtype().into());
    float_into_data: special(), EXACT, |_c, x| burn_backend::read_sync(B::float_into_data(x)).unwrap();
    float_to_device: special(), EXACT, |_c, x| { let device = B::float_device(&x); B::float_to_device(x, &device) };
    float_detach: special(), EXACT, |_c, x| { assert!(!B::float_is_require_grad(&x)); B::float_set_require_grad(B::float_detach(x), true) };
    float_grid_sample_2d: grids(), CANCELS, |c, x, g| B::float_grid_sample_2d(x, g, GridSampleOptions {
        mode: InterpolateMode::Bilinear,
        padding_mode: [GridSamplePaddingMode::Zeros, GridSamplePaddingMode::Border, GridSamplePaddingMode::Reflection][c.dim],
        align_corners: c.dim == 1 });
}

/// Shape and dtype of a tensor to be created.
fn created() -> Vec<Case> {
    unary(&FLOATS, Values::Plain)
        .into_iter()
        .filter(|c| c.operands[0].lay == Lay::RowMajor)
        .map(|mut c| {
            c.operands.truncate(1);
            c
        })
        .collect()
}

fn filled(values: Values) -> Vec<Case> {
    unary(&FLOATS, values).into_iter().filter(|c| !c.shape().contains(&0)).collect()
}

/// Products of thousands of factors overflow: few elements only.
fn small(values: Values) -> Vec<Case> {
    let few = |c: &Case| c.shape().iter().product::<usize>() <= 24;
    unary(&FLOATS, values).into_iter().filter(few).collect()
}

fn matrices() -> Vec<Case> {
    unary(&FLOATS, Values::Plain).into_iter().filter(|c| c.shape().len() >= 2).collect()
}

fn with_exponents() -> Vec<Case> {
    unary(&FLOATS, Values::Positive)
        .into_iter()
        .map(|c| {
            let n = Operand::row_major(c.shape(), DType::I32, Values::Whole, 3);
            c.and([n])
        })
        .collect()
}

fn products() -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in FLOATS {
        for (a, b) in [
            (&[1usize, 1][..], &[1usize, 1][..]),
            (&[3, 5], &[5, 4]),
            (&[33, 70], &[70, 17]),
            (&[2, 3, 5], &[2, 5, 4]),
            (&[2, 3, 5], &[1, 5, 4]),
            (&[1, 3, 5], &[4, 5, 2]),
            (&[3, 1, 2, 5], &[1, 4, 5, 2]),
            (&[0, 5], &[5, 4]),
            (&[3, 0], &[0, 4]),
            (&[64, 1], &[1, 64]),
            (&[1, 64], &[64, 1]),
        ] {
            for la in LAYS {
                for lb in LAYS {
                    let operands = vec![
                        Operand::new(a, dtype, Values::Plain, la, 0),
                        Operand::new(b, dtype, Values::Plain, lb, 1),
                    ];
                    out.push(Case { operands, dim: 0 });
                }
            }
        }
    }
    out
}

fn crossed() -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in FLOATS {
        for (shape, dim) in [(&[3usize][..], 0), (&[4, 3], 1), (&[2, 3, 4], 1)] {
            for lay in LAYS {
                let operands = vec![
                    Operand::new(shape, dtype, Values::Plain, lay, 0),
                    Operand::row_major(shape, dtype, Values::Plain, 1),
                ];
                out.push(Case { operands, dim });
            }
        }
    }
    out
}

fn grids() -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in [DType::F64, DType::F32] {
        for lay in LAYS {
            for dim in 0..3 {
                let operands = vec![
                    Operand::new(&[2, 3, 4, 5], dtype, Values::Plain, lay, 0),
                    Operand::row_major(&[2, 3, 3, 2], dtype, Values::Unit, 1),
                ];
                out.push(Case { operands, dim });
            }
        }
    }
    out
}

fn gathers() -> Vec<Case> {
    index_cases(&FLOATS, |c| c.shape().to_vec(), false)
}

fn scatters() -> Vec<Case> {
    index_cases(&FLOATS, |c| c.shape().to_vec(), true)
}

fn selects() -> Vec<Case> {
    index_cases(&FLOATS, |_| vec![5], false)
}

fn select_adds() -> Vec<Case> {
    index_cases(&FLOATS, |_| vec![5], true)
}

fn gather_nds() -> Vec<Case> {
    nd_cases(&FLOATS, false)
}

fn scatter_nds() -> Vec<Case> {
    nd_cases(&FLOATS, true)
}

fn assigned() -> Vec<Case> {
    assign_cases(&FLOATS)
}

fn masked() -> Vec<Case> {
    mask_cases(&FLOATS)
}

#[test]
fn float_empty_has_its_shape_and_dtype() {
    use burn_backend::TensorMetadata;
    let x =
        burn_t4a::BurnT4a::float_empty(Shape::new([2, 3]), &Default::default(), FloatDType::F16);
    assert_eq!((x.shape(), x.dtype()), (Shape::new([2, 3]), DType::F16));
}

#[test]
fn slices_are_those_of_burn() {
    // One case computed by hand, to detect an error common to both backends.
    let x = burn_t4a::BurnT4a::int_arange(0..6, &Default::default(), IntDType::I64);
    let read = |slice| {
        burn_t4a::BurnT4a::int_slice(x.clone(), &[slice]).read()[0].to_vec::<i64>().unwrap()
    };
    assert_eq!(read(Slice::new(1, Some(5), -1)), [4, 3, 2, 1]);
    assert_eq!(read(Slice::new(1, Some(5), -2)), [4, 2]);
    assert_eq!(read(Slice::new(-2, None, 1)), [4, 5]);
}
