//! Calls on which Flex 0.21 panics or returns a wrong result: the correct result, computed by hand.

use burn_backend::ops::{ActivationOps, FloatTensorOps, IntTensorOps};
use burn_backend::{BoolDType, DType, FloatDType, IntDType, Shape, Slice, TensorData};
use burn_flex::Flex;
use burn_t4a::BurnT4a;

use crate::material::{Read, caught};

type B = BurnT4a;

fn float(values: &[f32], shape: &[usize]) -> burn_t4a::T4aTensor {
    B::float_from_data(TensorData::new(values.to_vec(), shape.to_vec()), &Default::default())
}

/// sign(−0.0) is +0, and the gradient of relu at NaN is propagated.
#[test]
fn sign_of_negative_zero_and_relu_of_nan() {
    let zeros = B::float_sign(float(&[-0.0, 0.0], &[2])).read()[0].to_vec::<f32>().unwrap();
    assert!(zeros.iter().all(|zero| *zero == 0.0 && zero.is_sign_positive()), "{zeros:?}");
    let y = float(&[f32::NAN, -1.0, 0.0, 2.0], &[4]);
    let gradient = B::relu_backward(y, float(&[3.0; 4], &[4])).read().remove(0);
    assert_eq!(gradient, TensorData::from([3.0f32, 0.0, 0.0, 3.0]));
}

/// Not implemented in Flex.
#[test]
fn argtopk() {
    let x = || TensorData::from([[3.0f32, -1.0, 7.0, 5.0], [0.5, 9.0, 8.0, 1.0]]);
    let theirs = Flex::float_from_data(x(), &Default::default());
    assert!(caught(|| Flex::float_argtopk(theirs, 1, 2, IntDType::I32)).is_err());
    let ours = B::float_from_data(x(), &Default::default());
    let at = B::float_argtopk(ours.clone(), 1, 2, IntDType::I32).read().remove(0);
    assert_eq!(at, TensorData::from([[2i32, 3], [1, 2]]));
    let top = B::float_topk(ours, 1, 2).read().remove(0);
    assert_eq!(top, TensorData::from([[7.0f32, 5.0], [9.0, 8.0]]));
    let ints = B::int_from_data(TensorData::from([4i64, 9, 2, 9]), &Default::default());
    assert_eq!(B::int_topk(ints.clone(), 0, 3).read()[0].to_vec::<i64>().unwrap(), [9, 9, 4]);
    assert_eq!(B::int_argtopk(ints, 0, 3).read()[0].to_vec::<i64>().unwrap(), [1, 3, 0]);
}

#[test]
fn products_with_negative_and_zero_factors() {
    let x = float(&[-2.0, 3.0, -4.0, 0.5, 0.0, 7.0], &[2, 3]);
    assert_eq!(B::float_prod_dim(x.clone(), 1).read()[0].to_vec::<f32>().unwrap(), [24.0, 0.0]);
    assert_eq!(B::float_prod(x).read()[0], TensorData::from([0.0f32]));
}

#[test]
fn the_mean_of_many_16_bit_floats_does_not_overflow() {
    let x = B::float_full(Shape::new([4096]), 100.into(), &Default::default(), DType::F16.into());
    assert_eq!(B::float_mean(x).read()[0].iter::<f32>().collect::<Vec<_>>(), [100.0]);
}

/// Flex reads past the end of an empty result.
#[test]
fn any_and_all_of_nothing() {
    let none =
        || Flex::float_from_data(TensorData::new(Vec::<f32>::new(), [0, 3]), &Default::default());
    assert!(caught(|| Flex::float_all_dim(none(), 1, BoolDType::Native)).is_err());
    let x = float(&[], &[0, 3]);
    for (dim, shape, values) in [(1, [0, 1], vec![]), (0, [1, 3], vec![true; 3])] {
        let all = B::float_all_dim(x.clone(), dim, BoolDType::Native).read().remove(0);
        assert_eq!(all, TensorData::new(values.clone(), shape));
        let any = B::float_any_dim(x.clone(), dim, BoolDType::Native).read().remove(0);
        assert_eq!(any, TensorData::new(vec![false; values.len()], shape));
    }
}

/// Flex computes a negative offset for an empty slice of a flipped tensor.
#[test]
fn slices_of_flipped_tensors() {
    let x = B::float_flip(float(&[0.0, 1.0, 2.0, 3.0, 4.0], &[5]), &[0]);
    let at = |start, end, step| {
        let part = B::float_slice(x.clone(), &[Slice::new(start, end, step)]);
        part.read()[0].to_vec::<f32>().unwrap()
    };
    assert_eq!(at(5, Some(5), 1), [0f32; 0]);
    assert_eq!(at(1, Some(4), 1), [3.0, 2.0, 1.0]);
    assert_eq!(at(1, Some(4), -1), [1.0, 2.0, 3.0]);
    assert_eq!(at(0, None, -2), [0.0, 2.0, 4.0]);
    assert_eq!(at(-2, None, 1), [1.0, 0.0]);
}

/// Flex has no unsigned extrema and no products of narrow integers.
#[test]
fn narrow_and_unsigned_integers() {
    let device = Default::default();
    for dtype in crate::material::INTS {
        let x = crate::material::cast(&[3.0, 5.0, 1.0, 5.0, 0.0, 7.0], &[2, 3], dtype);
        let x = B::int_from_data(x, &device);
        let at = |x: burn_t4a::T4aTensor| x.read()[0].iter::<i64>().collect::<Vec<_>>();
        assert_eq!(at(B::int_argmax(x.clone(), 1)), [1, 2]);
        assert_eq!(at(B::int_argmin(x.clone(), 1)), [2, 1]);
        let product = B::int_matmul(x.clone(), B::int_transpose(x));
        assert_eq!(at(product), [35, 22, 22, 74]);
    }
}

/// In Flex, the sums of means overflow.
#[test]
fn means_of_narrow_integers() {
    let x = TensorData::new(vec![100i8; 70], [70]);
    let mean = B::int_mean_dim(B::int_from_data(x, &Default::default()), 0);
    assert_eq!(mean.read()[0].to_vec::<i8>().unwrap(), [100]);
}

/// Flex panics on overflow in builds with overflow checks; everywhere else integers wrap.
#[test]
fn scattered_sums_wrap() {
    let device = Default::default();
    let x = B::int_from_data(TensorData::from([100i8]), &device);
    let index = B::int_from_data(TensorData::from([0i32, 0]), &device);
    let value = B::int_from_data(TensorData::from([100i8, 100]), &device);
    let sum = B::int_select_add(x, 0, index, value);
    assert_eq!(sum.read()[0].to_vec::<i8>().unwrap(), [44]);
}

/// Flex replaces NaN by the bound in `clamp_min`, `clamp_max` and `relu`, though not in `clamp`; Burn's definitions of
/// all four propagate it.
#[test]
fn nan_passes_through_clamp_and_relu() {
    use burn_backend::ops::ActivationOps;
    let x = || float(&[f32::NAN, -1.0, 2.0], &[3]);
    let read = |x: burn_t4a::T4aTensor| x.read()[0].to_vec::<f32>().unwrap();
    for (got, rest) in [
        (B::float_clamp_min(x(), 0.5.into()), [0.5, 2.0]),
        (B::float_clamp_max(x(), 0.5.into()), [-1.0, 0.5]),
        (B::float_clamp(x(), 0.into(), 1.into()), [0.0, 1.0]),
        (B::relu(x()), [0.0, 2.0]),
    ] {
        let got = read(got);
        assert!(got[0].is_nan());
        assert_eq!(got[1..], rest);
    }
}

/// Sorting in Flex is not stable; here equal elements keep their order.
#[test]
fn sorting_is_stable() {
    let x = || float(&[1.0, 0.0, 1.0, 0.0, 1.0], &[5]);
    let read = |x: burn_t4a::T4aTensor| x.read()[0].to_vec::<i64>().unwrap();
    assert_eq!(read(B::float_argsort(x(), 0, false, IntDType::I64)), [1, 3, 0, 2, 4]);
    assert_eq!(read(B::float_argsort(x(), 0, true, IntDType::I64)), [0, 2, 4, 1, 3]);
    let many = B::float_zeros(Shape::new([1000]), &Default::default(), DType::F32.into());
    let at = read(B::float_sort_with_indices(many, 0, true, IntDType::I64).1);
    assert!(at.into_iter().eq(0..1000));
}

/// Flex rounds every intermediate value to 16 bits; here only the result is rounded.
#[test]
fn log_softmax_of_16_bit_floats_rounds_once() {
    use burn_backend::ops::ActivationOps;
    for dtype in [DType::F16, DType::BF16] {
        let values: Vec<f64> = (0..40).map(|i| (f64::from(i) * 0.7).sin() * 3.0).collect();
        let x = B::float_from_data(
            crate::material::cast(&values, &[4, 10], dtype),
            &Default::default(),
        );
        let wide = B::float_cast(x.clone(), FloatDType::F32);
        let want = B::float_cast(B::log_softmax(wide, 1), dtype.into());
        assert_eq!(B::log_softmax(x, 1).read(), want.read());
    }
}
