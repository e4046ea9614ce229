//! Invalid arguments give one message that names the operation and the shapes, dtypes or axes.
//!
//! The tests call the backend directly: burn-tensor checks shapes itself before most calls.

use burn_backend::ops::{BoolTensorOps, ConvOptions, FloatTensorOps, IntTensorOps, ModuleOps};
use burn_backend::{BoolDType, Bytes, DType, FloatDType, IntDType, Shape, Slice, TensorData};
use burn_t4a::{BurnT4a, T4aTensor};

use crate::line::*;
use crate::material::{Read, caught};

type B = BurnT4a;

fn float(shape: &[usize]) -> T4aTensor {
    B::float_zeros(shape.to_vec().into(), &Default::default(), FloatDType::F32)
}

fn int(values: &[i64], shape: &[usize]) -> T4aTensor {
    let data = TensorData::new(values.to_vec(), shape.to_vec());
    B::int_from_data(data, &Default::default())
}

fn mask(shape: &[usize]) -> T4aTensor {
    B::bool_zeros(shape.to_vec().into(), &Default::default(), BoolDType::Native)
}

/// Checks that the call panics and that the message contains all parts.
#[track_caller]
fn rejects(call: impl FnOnce() -> T4aTensor, parts: &[&str]) {
    match caught(call) {
        Ok(result) => panic!("accepted: {result:?}"),
        Err(text) => {
            for part in parts {
                assert!(text.contains(part), "`{part}` is missing in `{text}`");
            }
        }
    }
}

#[test]
fn views() {
    rejects(|| B::float_reshape(float(&[2, 3]), Shape::new([7])), &["reshape", "[2, 3]", "[7]"]);
    rejects(
        || B::float_expand(float(&[2, 3]), Shape::new([4, 3])),
        &["expand", "[2, 3]", "[4, 3]"],
    );
    rejects(|| B::float_permute(float(&[2, 3]), &[0, 2]), &["permute", "2"]);
    rejects(|| B::float_permute(float(&[2, 3]), &[0, 0]), &["permute", "repeated"]);
    rejects(|| B::float_swap_dims(float(&[2, 3]), 0, 5), &["axis 5", "rank 2"]);
    rejects(|| B::float_flip(float(&[2, 3]), &[2]), &["flip", "axis 2", "rank 2"]);
    rejects(|| B::float_slice(float(&[2]), &[Slice::full(); 2]), &["slice", "[2]"]);
    rejects(|| B::float_unfold(float(&[2, 3]), 1, 4, 1), &["unfold", "4", "3"]);
    rejects(|| B::float_unfold(float(&[2, 3]), 1, 2, 0), &["unfold", "step 0"]);
}

/// Tensors of zeros are stored as one element, and so are elementwise results of them. Sizes beyond the address space
/// are rejected, views included.
#[test]
fn sizes() {
    let ones = B::float_exp(float(&[10_000, 10_000]));
    let last = [Slice::new(9_999, Some(10_000), 1); 2];
    let last = B::float_slice(ones, &last);
    assert_eq!(last.any().typed::<f32>().unwrap().to_vec().unwrap(), [1.0]);
    rejects(|| float(&[1 << 24, 1 << 23]), &["out of memory", "562949953421312"]);
    rejects(|| float(&[100_000_000, 100_000_000]), &["100000000", "exceeds the address space"]);
    rejects(|| B::float_expand(float(&[1, 1]), Shape::new([1 << 25, 1 << 25])), &["33554432"]);
}

#[test]
fn indices() {
    let x = || float(&[2, 3]);
    rejects(|| B::float_select(x(), 1, int(&[0, 3], &[2])), &["index 3", "axis 1", "size 3"]);
    rejects(|| B::float_select(x(), 1, int(&[-1], &[1])), &["index -1"]);
    rejects(|| B::float_select(x(), 2, int(&[0], &[1])), &["axis 2", "rank 2"]);
    rejects(|| B::float_gather(0, x(), int(&[0, 1, 2], &[1, 3])), &["gather", "index 2"]);
    rejects(|| B::float_gather(0, x(), int(&[0, 1], &[1, 2])), &["gather", "[2, 3]", "[1, 2]"]);
    rejects(|| B::float_gather(0, x(), float(&[1, 3])), &["gather", "f32", "integer"]);
    let add = |index| B::float_scatter_add(1, x(), index, float(&[2, 1]));
    rejects(|| add(int(&[0, 7], &[2, 1])), &["index 7"]);
    rejects(|| B::float_gather_nd(x(), int(&[0, 3], &[1, 2])), &["gather_nd", "index 3"]);
    rejects(|| B::float_mask_where(x(), mask(&[2, 4]), x()), &["mask", "[2, 4]"]);
    rejects(|| B::float_cat(vec![x(), float(&[3, 2])], 0), &["cat", "[2, 3]", "[3, 2]"]);
    rejects(|| B::float_cat(vec![], 0), &["cat"]);
    let assign = |v| B::float_slice_assign(x(), &[Slice::new(0, Some(1), 1)], v);
    rejects(|| assign(float(&[2, 2])), &["slice_assign", "[2, 2]"]);
    rejects(|| B::float_repeat_dim(float(&[1 << 20]), 0, 1 << 60), &["repeat"]);
}

/// The maximum of zero elements is undefined, also if the result is empty.
#[test]
fn extremes_of_empty_axes() {
    for shape in [[0, 3], [0, 0]] {
        rejects(|| B::float_max_dim(float(&shape), 0), &["max", "at least one element"]);
        rejects(|| B::float_min_dim(float(&shape), 0), &["min", "at least one element"]);
        rejects(|| B::float_max_abs_dim(float(&shape), 0), &["max_abs", "at least one element"]);
        rejects(|| B::int_max_dim(int(&[], &shape), 0), &["max", "at least one element"]);
        rejects(
            || B::float_argmax(float(&shape), 0, IntDType::I64),
            &["max", "at least one element"],
        );
        rejects(|| B::float_max(float(&shape)), &["max", "at least one element"]);
    }
    assert!(B::float_max_dim(float(&[2, 0]), 0).read()[0].bytes().is_empty());
}

#[test]
fn data() {
    let short = || TensorData::from_bytes(Bytes::from_elems(vec![0f32; 5]), [2, 3], DType::F32);
    rejects(|| B::float_from_data(short(), &Default::default()), SHORT_DATA);
}

#[test]
fn absurd_sizes() {
    let device = Default::default();
    let huge = || Shape::new([usize::MAX, 2, 2]);
    rejects(|| B::float_zeros(huge(), &device, FloatDType::F32), &["address space"]);
    rejects(|| B::float_empty(huge(), &device, FloatDType::F64), &["address space"]);
    rejects(
        || B::int_ones(Shape::new([1 << 40, 1 << 30]), &device, IntDType::I8),
        &["address space"],
    );
    rejects(
        || B::float_zeros(Shape::new([1 << 23, 1 << 24]), &device, FloatDType::F32),
        &["out of memory"],
    );
    rejects(|| B::float_expand(float(&[1, 1]), Shape::new([1 << 40, 1 << 40])), &["expand"]);
    // A shape with a zero has no elements, but the product of the other sizes must still be representable.
    let empty = B::float_zeros(Shape::new([1 << 40, 0, 2]), &device, FloatDType::F32);
    assert_eq!(empty.read()[0].bytes().len(), 0);
    let huge = || Shape::new([usize::MAX, 0, 2]);
    rejects(|| B::float_zeros(huge(), &device, FloatDType::F32), &["address space"]);
    // Windows over broadcast elements.
    let wide = || B::float_expand(float(&[1, 4]), Shape::new([(1 << 40) - 1, 4]));
    rejects(|| B::float_unfold(wide(), 0, 1 << 39, 1), &["unfold", "address space"]);
}

#[test]
fn windows() {
    let (x, w) = (|| float(&[1, 2, 4, 4]), || float(&[2, 2, 3, 3]));
    let conv = |w, stride, padding, dilation, groups| {
        B::conv2d(x(), w, None, ConvOptions::new(stride, padding, dilation, groups))
    };
    rejects(|| conv(w(), [1, 1], [usize::MAX / 2, 0], [1, 1], 1), &["conv", "padding", "2⁴⁸"]);
    rejects(|| conv(w(), [1, 1], [0, 0], [1 << 40, 1], 1), &["conv", "windows", "[1, 2, 4, 4]"]);
    rejects(|| conv(w(), [1, 1], [1 << 40, 1 << 40], [1, 1], 1), &["conv", "address space"]);
    rejects(|| conv(float(&[2, 3, 3, 3]), [1, 1], [0, 0], [1, 1], 1), &["conv", "[2, 3, 3, 3]"]);
    rejects(|| B::max_pool2d(x(), [9, 9], [1, 1], [0, 0], [1, 1], false), &["pool", "window"]);
    rejects(|| B::adaptive_avg_pool2d(x(), [1 << 40, 1 << 40]), &["pool"]);
}
