//! One row per error.

use crate::any::{AnyTensor, Number};
use crate::dtype::DType;
use crate::error::TensorError;
use crate::index::{Reduction, Span};
use crate::tensor::Tensor;

fn any<T: crate::Element>(data: Vec<T>, shape: &[usize]) -> AnyTensor {
    Tensor::from_vec(data, shape).unwrap().into()
}

fn x() -> AnyTensor {
    any((0..6).map(|i| i as f32).collect(), &[2, 3])
}

#[test]
fn indices_out_of_bounds_name_operation_index_axis_and_size() {
    for (bad, as_seen) in [(-1i64, -1), (3, 3), (i64::MIN, i64::MIN), (i64::MAX, i64::MAX)] {
        let i = any(vec![0, 0, bad, -7], &[2, 2]);
        let want = |op| TensorError::Index { op, index: as_seen, axis: 1, size: 3 };
        assert_eq!(x().gather(1, &i).unwrap_err(), want("gather"));
        let v = any(vec![1f32; 4], &[2, 2]);
        assert_eq!(x().scatter(1, &i, &v, Reduction::Add).unwrap_err(), want("scatter"));
        let i = any(vec![0, bad], &[2]);
        assert_eq!(x().index_select(1, &i).unwrap_err(), want("index_select"));
        let error = x().index_scatter(1, &i, &v, Reduction::Add).unwrap_err();
        assert_eq!(error, want("index_scatter"));
        let i = any(vec![0, 0, 1, bad], &[2, 2]);
        assert_eq!(x().gather_nd(&i).unwrap_err(), want("gather_nd"));
        let v = any(vec![1f32; 2], &[2]);
        assert_eq!(x().scatter_nd(&i, &v, Reduction::Add).unwrap_err(), want("scatter_nd"));
    }
    // An unsigned index beyond i64 is reported as the largest i64.
    let i = any(vec![u64::MAX, 0], &[2, 1]);
    let want = TensorError::Index { op: "gather", index: i64::MAX, axis: 1, size: 3 };
    assert_eq!(x().gather(1, &i).unwrap_err(), want);
    // An index into an empty axis, and one whose result would be empty.
    let empty = AnyTensor::full(&[0, 3], Number::Int(0), DType::F32).unwrap();
    let one = any(vec![0i32], &[1]);
    assert!(matches!(empty.index_select(0, &one), Err(TensorError::Index { size: 0, .. })));
    let far = any(vec![9i32], &[1]);
    assert!(matches!(empty.index_select(1, &far), Err(TensorError::Index { index: 9, .. })));
}

#[test]
fn a_rejected_scatter_leaves_its_operand_as_it_was() {
    let x = x();
    let kept = x.clone();
    let (i, v) = (any(vec![0, 99], &[1, 2]), any(vec![5f32, 5.0], &[1, 2]));
    assert!(x.index_scatter(0, &i, &v, Reduction::Add).is_err());
    let want: Vec<f32> = (0..6).map(|i| i as f32).collect();
    assert_eq!(kept.typed::<f32>().unwrap().to_vec().unwrap(), want);
}

#[test]
fn shapes_that_do_not_fit() {
    let mismatch = |r: crate::Result<AnyTensor>| {
        assert!(matches!(r, Err(TensorError::ShapeMismatch { .. })), "{r:?}");
    };
    let i = |shape: &[usize]| AnyTensor::full(shape, Number::Int(0), DType::I32).unwrap();
    let v = |shape: &[usize]| AnyTensor::full(shape, Number::Int(0), DType::F32).unwrap();
    mismatch(x().gather(1, &i(&[3, 3])));
    mismatch(x().gather(1, &i(&[2])));
    mismatch(x().scatter(1, &i(&[3, 3]), &v(&[3, 3]), Reduction::Add));
    mismatch(x().scatter(1, &i(&[2, 3]), &v(&[2, 2]), Reduction::Add));
    mismatch(x().index_scatter(1, &i(&[2]), &v(&[2, 3]), Reduction::Add));
    mismatch(x().index_scatter(1, &i(&[2]), &v(&[3, 2]), Reduction::Add));
    mismatch(x().gather_nd(&i(&[3])));
    mismatch(x().gather_nd(&i(&[])));
    mismatch(x().scatter_nd(&i(&[4, 1]), &v(&[4, 2]), Reduction::Add));
    mismatch(
        x().mask_fill(AnyTensor::full(&[4], Number::Int(1), DType::Bool).unwrap(), 1.0.into()),
    );
    mismatch(x().slice_assign(&[], &v(&[4])));
    mismatch(AnyTensor::cat(&[x(), v(&[3, 4])], 0));
    mismatch(AnyTensor::cat(&[x(), v(&[6])], 0));
    let shape = |r: crate::Result<AnyTensor>| {
        assert!(matches!(r, Err(TensorError::Shape { .. })), "{r:?}");
    };
    shape(x().index_select(1, &i(&[2, 1])));
    shape(x().index_select(1, &i(&[])));
    let whole = Span { start: 0, len: 1, step: 1 };
    shape(x().slice_assign(&[whole; 3], &v(&[1, 1])));
}

#[test]
fn axes_and_regions_outside() {
    let i = any(vec![0i32], &[1]);
    let axis = |r: crate::Result<AnyTensor>| {
        assert!(matches!(r, Err(TensorError::Axis { axis: 2, rank: 2, .. })), "{r:?}");
    };
    axis(x().gather(2, &i));
    axis(x().index_select(2, &i));
    axis(x().scatter(2, &i, &x(), Reduction::Add));
    axis(x().index_scatter(2, &i, &x(), Reduction::Add));
    axis(AnyTensor::cat(&[x()], 2));
    axis(x().repeat(2, 1));
    let span = |start, len, step| [Span { start, len, step }];
    let one = any(vec![0f32], &[]);
    let outside = x().slice_assign(&span(1, 2, 1), &one);
    assert!(matches!(outside, Err(TensorError::Index { index: 2, axis: 0, size: 2, .. })));
    let outside = x().slice_assign(&span(1, 3, -1), &one);
    assert!(matches!(outside, Err(TensorError::Index { index: -1, .. })));
    assert!(matches!(x().slice_assign(&span(0, 1, 0), &one), Err(TensorError::Value { .. })));
    assert!(matches!(AnyTensor::cat(&[], 0), Err(TensorError::Value { .. })));
    assert!(matches!(x().repeat(0, usize::MAX), Err(TensorError::SizeOverflow { .. })));
    assert!(matches!(x().repeat(0, 1 << 61), Err(TensorError::SizeOverflow { .. })));
}

#[test]
fn dtypes_that_an_operation_does_not_take() {
    let float = x();
    let unsupported = |r: crate::Result<AnyTensor>| {
        assert!(matches!(r, Err(TensorError::DTypeUnsupported { .. })), "{r:?}");
    };
    unsupported(x().gather(1, &float));
    unsupported(x().index_select(1, &any(vec![true], &[1])));
    unsupported(x().mask_fill(float.clone(), 1.0.into()));
    unsupported(x().nonzero(DType::F32));
    let c = AnyTensor::full(&[2], Number::Int(0), DType::C64).unwrap();
    unsupported(c.clone().scatter(0, &any(vec![0i32, 1], &[2]), &c, Reduction::Max));
    let mismatch = |r: crate::Result<AnyTensor>| {
        assert!(matches!(r, Err(TensorError::DTypeMismatch { .. })), "{r:?}");
    };
    let i = any(vec![0i32; 6], &[2, 3]);
    let mask = AnyTensor::full(&[2, 3], Number::Int(1), DType::Bool).unwrap();
    mismatch(x().scatter(0, &i, &i, Reduction::Add));
    mismatch(x().mask_where(mask, i.clone()));
    mismatch(x().slice_assign(&[], &i));
    mismatch(AnyTensor::cat(&[x(), i], 0));
    let long = AnyTensor::full(&[300], Number::Int(1), DType::Bool).unwrap();
    assert!(matches!(long.nonzero(DType::I8), Err(TensorError::Value { .. })));
    assert!(long.nonzero(DType::I16).is_ok());
}
