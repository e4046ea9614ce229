//! Every method of `BoolTensorOps`, in both one-byte stores; `Bool(U32)`, which Flex does not support, is compared with
//! `Native`.

use burn_backend::ops::BoolTensorOps;
use burn_backend::{BoolDType, DType, FloatDType, IntDType, TensorMetadata};
use burn_t4a::BurnT4a;

use crate::conform;
use crate::line::*;
use crate::material::*;

fn whole() -> Vec<Case> {
    unary(&BOOLS, Values::Whole)
}

fn pairs() -> Vec<Case> {
    binary(&BOOLS, Values::Whole, Values::Whole)
}

fn lines() -> Vec<Case> {
    along(&BOOLS, Values::Whole)
}

conform! {
    bool;
    bool_equal: pairs(), EXACT, |_c, a, b| B::bool_equal(a, b);
    bool_not_equal: pairs(), EXACT, |_c, a, b| B::bool_not_equal(a, b);
    bool_and: pairs(), EXACT, |_c, a, b| B::bool_and(a, b);
    bool_or: pairs(), EXACT, |_c, a, b| B::bool_or(a, b);
    bool_xor: pairs(), EXACT, |_c, a, b| B::bool_xor(a, b);
    bool_not: whole(), EXACT, |_c, x| B::bool_not(x);
    bool_equal_elem: whole(), EXACT, |_c, x| B::bool_equal_elem(x, true.into());
    bool_not_equal_elem: whole(), EXACT, |_c, x| B::bool_not_equal_elem(x, true.into());
    bool_any: whole(), EXACT, |_c, x| B::bool_any(x);
    bool_all: whole(), EXACT, |_c, x| B::bool_all(x);
    bool_any_dim: lines(), EXACT, except empty, |c, x| B::bool_any_dim(x, c.dim);
    bool_all_dim: lines(), EXACT, except empty, |c, x| B::bool_all_dim(x, c.dim);

    bool_transpose: whole().into_iter().filter(|c| c.shape().len() >= 2), EXACT, |_c, x| B::bool_transpose(x);
    bool_swap_dims: lines(), EXACT, |c, x| B::bool_swap_dims(x, 0, c.dim);
    bool_permute: whole(), EXACT, |c, x| B::bool_permute(x, &(0..c.shape().len()).rev().collect::<Vec<_>>());
    bool_flip: lines(), EXACT, |c, x| B::bool_flip(x, &[c.dim]);
    bool_reshape: whole(), EXACT, |c, x| B::bool_reshape(x, c.shape().iter().rev().copied().collect());
    bool_slice: lines(), EXACT, except |c| c.operands[0].lay == Lay::Flipped, |c, x| slices(c).iter().map(|s| B::bool_slice(x.clone(), s)).collect::<Vec<_>>();
    bool_expand: whole(), EXACT, |c, x| B::bool_expand(B::bool_reshape(x, ones_then(c.shape())), twice(c.shape()));
    bool_unfold: lines(), EXACT, |c, x| B::bool_unfold(x, c.dim, c.size().min(2), 1);
    bool_repeat_dim: lines(), EXACT, |c, x| B::bool_repeat_dim(x, c.dim, 2);
    bool_cat: lines(), EXACT, |c, x| B::bool_cat(vec![x.clone(), B::bool_flip(x, &[c.dim])], c.dim);

    bool_gather: index_cases(&BOOLS, |c| c.shape().to_vec(), false), EXACT, |c, x, i: int| B::bool_gather(c.dim, x, i);
    bool_scatter_or: index_cases(&BOOLS, |c| c.shape().to_vec(), true), EXACT, |c, x, i: int, v| B::bool_scatter_or(c.dim, x, i, v);
    bool_select: index_cases(&BOOLS, |_| vec![5], false), EXACT, |c, x, i: int| B::bool_select(x, c.dim, i);
    bool_select_or: index_cases(&BOOLS, |_| vec![5], true), EXACT, |c, x, i: int, v| B::bool_select_or(x, c.dim, i, v);
    bool_slice_assign: assign_cases(&BOOLS), EXACT, |c, x, v| B::bool_slice_assign(x, &halves(c), v);
    bool_mask_where: mask_cases(&BOOLS), EXACT, |_c, x, m, v| B::bool_mask_where(x, m, v);
    bool_mask_fill: mask_cases(&BOOLS), EXACT, |_c, x, m, _v| B::bool_mask_fill(x, m, true.into());

    bool_into_int: whole(), EXACT, |_c, x| vec![B::bool_into_int(x.clone(), IntDType::I64), B::bool_into_int(x, IntDType::U8)];
    bool_into_float: whole(), EXACT, |_c, x| vec![
        B::bool_into_float(x.clone(), FloatDType::F32), B::bool_into_float(x.clone(), FloatDType::F64),
        B::bool_into_float(x, FloatDType::BF16)];
    bool_argwhere: whole(), EXACT, |_c, x| burn_backend::read_sync(B::bool_argwhere(x, IntDType::I64));
    bool_zeros: whole(), EXACT, |c, _x| B::bool_zeros(c.shape().to_vec().into(), &Default::default(), c.dtype().into());
    bool_ones: whole(), EXACT, |c, _x| B::bool_ones(c.shape().to_vec().into(), &Default::default(), c.dtype().into());
    bool_into_data: whole(), EXACT, |_c, x| burn_backend::read_sync(B::bool_into_data(x)).unwrap();
    bool_to_device: whole(), EXACT, |_c, x| { let device = B::bool_device(&x); B::bool_to_device(x, &device) };
}

/// Calls on `Native` and `Bool(U32)` operands return equal results, except for the store.
#[test]
fn four_byte_booleans_are_the_native_ones_under_another_tag() {
    type B = BurnT4a;
    let wide = DType::Bool(BoolDType::U32);
    for case in pairs().into_iter().filter(|c| c.dtype() == BOOLS[0]) {
        let mut recast = case.clone();
        for operand in &mut recast.operands {
            operand.data = operand.data.clone().convert_dtype(wide);
        }
        let run = |case: &Case| {
            let [a, b] = [0, 1].map(|i| bool::<B>(&case.operands[i]));
            vec![
                B::bool_and(a.clone(), b.clone()),
                B::bool_xor(a.clone(), b.clone()),
                B::bool_not(a.clone()),
                B::bool_equal(a.clone(), b),
                B::bool_flip(a.clone(), &[0]),
                B::bool_any(a.clone()),
                B::bool_cat(vec![a.clone(), a], 0),
            ]
        };
        for (native, wide) in run(&case).into_iter().zip(run(&recast)) {
            assert_eq!(wide.dtype(), DType::Bool(BoolDType::U32));
            let (native, wide) = (native.read().remove(0), wide.read().remove(0));
            assert_eq!(wide.bytes().len(), 4 * wide.num_elements());
            assert_eq!(wide.convert_dtype(BOOLS[0]), native);
        }
    }
}

#[test]
fn comparisons_return_the_store_asked_for() {
    use burn_backend::ops::{FloatTensorOps, IntTensorOps};
    type B = BurnT4a;
    let x = B::float_ones([3].into(), &Default::default(), FloatDType::F32);
    let i = B::int_ones([3].into(), &Default::default(), IntDType::I32);
    for store in [BoolDType::Native, BoolDType::U8, BoolDType::U32] {
        let results = [
            B::float_equal(x.clone(), x.clone(), store),
            B::float_greater_elem(x.clone(), 2.into(), store),
            B::float_is_nan(x.clone(), store),
            B::float_any(x.clone(), store),
            B::int_lower_equal(i.clone(), i.clone(), store),
            B::int_all(i.clone(), store),
            B::bool_ones([3].into(), &Default::default(), store),
            B::bool_empty([3].into(), &Default::default(), store),
        ];
        for result in results {
            assert_eq!(result.dtype(), DType::Bool(store));
        }
    }
}
