//! Every method of `IntTensorOps`: results are equal, including wrapped ones.

use burn_backend::ops::IntTensorOps;
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{BoolDType, DType, FloatDType, IntDType, Shape};

use crate::conform;
#[allow(unused_imports)]
use crate::line::*;
use crate::material::*;

/// True if a sum along the axis of the case may overflow its type.
fn sum_wraps(case: &Case) -> bool {
    case.dtype().size() == 1 && case.shape()[case.dim] > 20
}

fn whole() -> Vec<Case> {
    unary(&INTS, Values::Whole)
}

fn pairs() -> Vec<Case> {
    binary(&INTS, Values::Whole, Values::Whole)
}

fn filled() -> Vec<Case> {
    whole().into_iter().filter(|c| !c.shape().contains(&0)).collect()
}

fn lines() -> Vec<Case> {
    along(&INTS, Values::Whole)
}

fn created() -> Vec<Case> {
    whole().into_iter().filter(|c| c.operands[0].lay == Lay::RowMajor).collect()
}

conform! {
    int;
    int_add: pairs(), EXACT, |_c, a, b| B::int_add(a, b);
    int_sub: pairs(), EXACT, |_c, a, b| B::int_sub(a, b);
    int_mul: pairs(), EXACT, |_c, a, b| B::int_mul(a, b);
    int_div: binary(&INTS, Values::Whole, Values::Count), EXACT, |_c, a, b| B::int_div(a, b);
    int_remainder: binary(&INTS, Values::Whole, Values::Count), EXACT, |_c, a, b| B::int_remainder(a, b);
    int_powi: binary(&INTS, Values::Count, Values::Below(3)), EXACT, |_c, a, b| B::int_powi(a, b);
    bitwise_and: pairs(), EXACT, |_c, a, b| B::bitwise_and(a, b);
    bitwise_or: pairs(), EXACT, |_c, a, b| B::bitwise_or(a, b);
    bitwise_xor: pairs(), EXACT, |_c, a, b| B::bitwise_xor(a, b);
    bitwise_left_shift: binary(&INTS, Values::Whole, Values::Below(5)), EXACT, |_c, a, b| B::bitwise_left_shift(a, b);
    bitwise_right_shift: binary(&INTS, Values::Whole, Values::Below(5)), EXACT, |_c, a, b| B::bitwise_right_shift(a, b);

    int_add_scalar: whole(), EXACT, |_c, x| B::int_add_scalar(x, 3.into());
    int_sub_scalar: whole(), EXACT, |_c, x| B::int_sub_scalar(x, 3.into());
    int_mul_scalar: whole(), EXACT, |_c, x| B::int_mul_scalar(x, 3.into());
    int_div_scalar: whole(), EXACT, |_c, x| B::int_div_scalar(x, 2.into());
    int_remainder_scalar: whole(), EXACT, |_c, x| B::int_remainder_scalar(x, 3.into());
    int_powi_scalar: unary(&INTS, Values::Count), EXACT, |_c, x| vec![
        B::int_powi_scalar(x.clone(), 0.into()), B::int_powi_scalar(x.clone(), 1.into()), B::int_powi_scalar(x, 2.into())];
    int_powi_scalar_impl: unary(&INTS, Values::Below(4)), EXACT, |_c, x| B::int_powi_scalar_impl(x, 3.into());
    int_clamp: whole(), EXACT, |_c, x| B::int_clamp(x, 1.into(), 4.into());
    int_clamp_min: whole(), EXACT, |_c, x| B::int_clamp_min(x, 2.into());
    int_clamp_max: whole(), EXACT, |_c, x| B::int_clamp_max(x, 2.into());
    bitwise_and_scalar: whole(), EXACT, |_c, x| B::bitwise_and_scalar(x, 6.into());
    bitwise_or_scalar: whole(), EXACT, |_c, x| B::bitwise_or_scalar(x, 6.into());
    bitwise_xor_scalar: whole(), EXACT, |_c, x| B::bitwise_xor_scalar(x, 6.into());
    bitwise_left_shift_scalar: whole(), EXACT, |_c, x| B::bitwise_left_shift_scalar(x, 2.into());
    bitwise_right_shift_scalar: whole(), EXACT, |_c, x| B::bitwise_right_shift_scalar(x, 1.into());
    bitwise_not: whole(), EXACT, |_c, x| B::bitwise_not(x);
    int_neg: unary(&INTS[..4], Values::Whole), EXACT, |_c, x| B::int_neg(x);
    int_abs: whole(), EXACT, |_c, x| B::int_abs(x);
    int_sign: whole(), EXACT, |_c, x| B::int_sign(x);

    int_equal: pairs(), EXACT, |_c, a, b| B::int_equal(a, b, BoolDType::Native);
    int_not_equal: pairs(), EXACT, |_c, a, b| B::int_not_equal(a, b, BoolDType::U8);
    int_greater: pairs(), EXACT, |_c, a, b| B::int_greater(a, b, BoolDType::Native);
    int_greater_equal: pairs(), EXACT, |_c, a, b| B::int_greater_equal(a, b, BoolDType::Native);
    int_lower: pairs(), EXACT, |_c, a, b| B::int_lower(a, b, BoolDType::U8);
    int_lower_equal: pairs(), EXACT, |_c, a, b| B::int_lower_equal(a, b, BoolDType::Native);
    int_equal_elem: whole(), EXACT, |_c, x| B::int_equal_elem(x, 2.into(), BoolDType::Native);
    int_not_equal_elem: whole(), EXACT, |_c, x| B::int_not_equal_elem(x, 2.into(), BoolDType::Native);
    int_greater_elem: whole(), EXACT, |_c, x| B::int_greater_elem(x, 2.into(), BoolDType::U8);
    int_greater_equal_elem: whole(), EXACT, |_c, x| B::int_greater_equal_elem(x, 2.into(), BoolDType::Native);
    int_lower_elem: whole(), EXACT, |_c, x| B::int_lower_elem(x, 2.into(), BoolDType::Native);
    int_lower_equal_elem: whole(), EXACT, |_c, x| B::int_lower_equal_elem(x, 2.into(), BoolDType::Native);

    int_sum: unary(&INTS, Values::Below(2)), EXACT, |_c, x| B::int_sum(x);
    int_prod: unary(&INTS, Values::Below(2)), EXACT, |_c, x| B::int_prod(x);
    int_mean: unary(&INTS[..2], Values::Whole).into_iter().filter(|c| !c.shape().contains(&0)), EXACT, |_c, x| B::int_mean(x);
    int_sum_dim: along(&INTS, Values::Below(2)), EXACT, |c, x| B::int_sum_dim(x, c.dim);
    int_prod_dim: along(&INTS, Values::Below(2)), EXACT, |c, x| B::int_prod_dim(x, c.dim);
    int_mean_dim: along(&INTS, Values::Count), EXACT, except sum_wraps, |c, x| B::int_mean_dim(x, c.dim);
    int_max: filled(), EXACT, |_c, x| B::int_max(x);
    int_min: filled(), EXACT, |_c, x| B::int_min(x);
    int_max_abs: filled(), EXACT, |_c, x| B::int_max_abs(x);
    int_max_dim: lines(), EXACT, |c, x| B::int_max_dim(x, c.dim);
    int_min_dim: lines(), EXACT, |c, x| B::int_min_dim(x, c.dim);
    int_max_abs_dim: lines(), EXACT, |c, x| B::int_max_abs_dim(x, c.dim);
    int_max_dim_with_indices: lines(), EXACT, |c, x| B::int_max_dim_with_indices(x, c.dim);
    int_min_dim_with_indices: lines(), EXACT, |c, x| B::int_min_dim_with_indices(x, c.dim);
    int_argmax: lines(), EXACT, except |c| c.dtype().is_uint(), |c, x| B::int_argmax(x, c.dim);
    int_argmin: lines(), EXACT, except |c| c.dtype().is_uint(), |c, x| B::int_argmin(x, c.dim);
    int_any: whole(), EXACT, |_c, x| B::int_any(x, BoolDType::Native);
    int_all: whole(), EXACT, |_c, x| B::int_all(x, BoolDType::Native);
    int_any_dim: lines(), EXACT, except empty, |c, x| B::int_any_dim(x, c.dim, BoolDType::U8);
    int_all_dim: lines(), EXACT, except empty, |c, x| B::int_all_dim(x, c.dim, BoolDType::Native);
    int_cumsum: along(&INTS, Values::Below(2)), EXACT, |c, x| B::int_cumsum(x, c.dim);
    int_cumprod: along(&INTS, Values::Below(2)), EXACT, |c, x| B::int_cumprod(x, c.dim);
    int_cummax: lines(), EXACT, |c, x| B::int_cummax(x, c.dim);
    int_cummin: lines(), EXACT, |c, x| B::int_cummin(x, c.dim);

    int_sort: lines(), EXACT, |c, x| B::int_sort(x, c.dim, c.dim % 2 == 1);
    // Sorting in Flex is not stable: ties are compared through the elements.
    int_sort_with_indices: lines(), EXACT, |c, x| {
        let (sorted, at) = B::int_sort_with_indices(x.clone(), c.dim, c.dim % 2 == 1);
        (sorted, B::int_gather(c.dim, x, at)) };
    int_argsort: lines(), EXACT, |c, x| {
        let at = B::int_argsort(x.clone(), c.dim, c.dim.is_multiple_of(2));
        B::int_gather(c.dim, x, at) };

    int_matmul: products(), EXACT, except |c| !matches!(c.dtype(), DType::I32 | DType::I64), |_c, a, b| B::int_matmul(a, b);

    int_transpose: whole().into_iter().filter(|c| c.shape().len() >= 2), EXACT, |_c, x| B::int_transpose(x);
    int_swap_dims: lines(), EXACT, |c, x| B::int_swap_dims(x, 0, c.dim);
    int_permute: whole(), EXACT, |c, x| B::int_permute(x, &(0..c.shape().len()).rev().collect::<Vec<_>>());
    int_flip: lines(), EXACT, |c, x| B::int_flip(x, &[c.dim]);
    int_reshape: whole(), EXACT, |c, x| B::int_reshape(x, c.shape().iter().rev().copied().collect());
    int_slice: lines(), EXACT, except |c| c.operands[0].lay == Lay::Flipped, |c, x| slices(c).iter().map(|s| B::int_slice(x.clone(), s)).collect::<Vec<_>>();
    int_expand: whole(), EXACT, |c, x| B::int_expand(B::int_reshape(x, ones_then(c.shape())), twice(c.shape()));
    int_unfold: lines(), EXACT, |c, x| B::int_unfold(x, c.dim, c.size().min(2), 1);
    int_repeat_dim: lines(), EXACT, |c, x| B::int_repeat_dim(x, c.dim, 2);
    int_cat: lines(), EXACT, |c, x| B::int_cat(vec![x.clone(), B::int_flip(x, &[c.dim])], c.dim);

    int_gather: index_cases(&INTS, |c| c.shape().to_vec(), false), EXACT, |c, x, i| B::int_gather(c.dim, x, i);
    int_scatter_add: index_cases(&INTS[..4], |c| c.shape().to_vec(), true), EXACT, except |c| c.dtype() == DType::I8, |c, x, i, v| B::int_scatter_add(c.dim, x, i, v);
    int_select: index_cases(&INTS, |_| vec![5], false), EXACT, |c, x, i| B::int_select(x, c.dim, i);
    int_select_add: index_cases(&INTS[..4], |_| vec![5], true), EXACT, except |c| c.dtype() == DType::I8, |c, x, i, v| B::int_select_add(x, c.dim, i, v);
    int_gather_nd: nd_cases(&INTS, false), EXACT, |_c, x, i| B::int_gather_nd(x, i);
    int_scatter_nd: nd_cases(&INTS[..4], true), EXACT, |c, x, i, v| B::int_scatter_nd(x, i, v, [
        IndexingUpdateOp::Assign, IndexingUpdateOp::Add, IndexingUpdateOp::Mul, IndexingUpdateOp::Min, IndexingUpdateOp::Max][c.dim]);
    int_slice_assign: assign_cases(&INTS), EXACT, |c, x, v| B::int_slice_assign(x, &halves(c), v);
    int_mask_where: mask_cases(&INTS), EXACT, |_c, x, m: bool, v| B::int_mask_where(x, m, v);
    int_mask_fill: mask_cases(&INTS), EXACT, |_c, x, m: bool, _v| B::int_mask_fill(x, m, 7.into());

    int_into_float: whole(), EXACT, |_c, x| vec![
        B::int_into_float(x.clone(), FloatDType::F64), B::int_into_float(x.clone(), FloatDType::F32),
        B::int_into_float(x.clone(), FloatDType::F16), B::int_into_float(x, FloatDType::BF16)];
    int_cast: unary(&INTS, Values::Below(100)), EXACT, |_c, x| vec![
        B::int_cast(x.clone(), IntDType::I64), B::int_cast(x.clone(), IntDType::I8),
        B::int_cast(x.clone(), IntDType::U32), B::int_cast(x, IntDType::U64)];

    int_zeros: created(), EXACT, |c| B::int_zeros(c.shape().to_vec().into(), &Default::default(), c.dtype().into());
    int_ones: created(), EXACT, |c| B::int_ones(c.shape().to_vec().into(), &Default::default(), c.dtype().into());
    int_full: created(), EXACT, |c| B::int_full(c.shape().to_vec().into(), 7.into(), &Default::default(), c.dtype().into());
    int_arange: created(), EXACT, |c| B::int_arange(0..c.shape()[0] as i64, &Default::default(), c.dtype().into());
    int_arange_step: created(), EXACT, |c| B::int_arange_step(2..20, 3, &Default::default(), c.dtype().into());
    int_into_data: whole(), EXACT, |_c, x| burn_backend::read_sync(B::int_into_data(x)).unwrap();
    int_to_device: whole(), EXACT, |_c, x| { let device = B::int_device(&x); B::int_to_device(x, &device) };
}

fn products() -> Vec<Case> {
    let mut out = Vec::new();
    for dtype in INTS {
        for (a, b) in [
            (&[3usize, 5][..], &[5usize, 4][..]),
            (&[33, 17], &[17, 9]),
            (&[2, 3, 5], &[1, 5, 4]),
            (&[0, 5], &[5, 4]),
        ] {
            for lay in LAYS {
                let operands = vec![
                    Operand::new(a, dtype, Values::Below(2), lay, 0),
                    Operand::new(b, dtype, Values::Below(2), lay, 1),
                ];
                out.push(Case { operands, dim: 0 });
            }
        }
    }
    out
}

#[test]
fn int_empty_has_its_shape_and_dtype() {
    use burn_backend::TensorMetadata;
    let x = burn_t4a::BurnT4a::int_empty(Shape::new([2, 0]), &Default::default(), IntDType::U16);
    assert_eq!((x.shape(), x.dtype()), (Shape::new([2, 0]), DType::U16));
}

#[test]
fn sixty_four_bit_scalars_are_exact() {
    type B = burn_t4a::BurnT4a;
    let big = (1i64 << 53) + 1;
    let zeros = B::int_zeros(Shape::new([2]), &Default::default(), IntDType::I64);
    let sum = B::int_add_scalar(zeros, big.into());
    assert_eq!(sum.clone().read()[0].to_vec::<i64>().unwrap(), [big; 2]);
    let equal = B::int_equal_elem(sum, (big - 1).into(), BoolDType::Native);
    assert_eq!(equal.read()[0].to_vec::<bool>().unwrap(), [false; 2]);
}
