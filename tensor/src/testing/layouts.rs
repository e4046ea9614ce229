//! Tensors of one shape in eight memory layouts.

use t4a_algebra::Scalar;

use super::value;
use crate::any::{AnyTensor, FromNumber};
use crate::dtype::{DType, Element};
use crate::tensor::Tensor;
use crate::with_dtype;

/// Shapes that exercise the edges of a loop: rank 0, empty, size-1 axes, odd sizes, more than one
/// tile, more axes than two.
pub const SHAPES: [&[usize]; 9] =
    [&[], &[7], &[3, 5], &[37, 66], &[2, 3, 41], &[0, 4], &[3, 0, 2], &[5, 1, 6], &[7, 3, 11, 2]];

/// Tensors of the given shape in different memory layouts, each with its name. The element at position `i` of the
/// underlying memory is `f(i)`.
///
/// Contiguous, transposed, flipped, every second element from an offset, repeated along the last
/// axis, repeated along all axes but the last, and one element repeated everywhere.
pub fn layouts_of<T: Scalar>(
    shape: &[usize],
    f: impl Fn(usize) -> T,
) -> Vec<(&'static str, Tensor<T>)> {
    let rank = shape.len();
    let fresh = |shape: &[usize]| Tensor::from_fn(shape, &f).expect("a small tensor");
    let reversed: Vec<usize> = (0..rank).rev().collect();
    let backwards: Vec<usize> = shape.iter().rev().copied().collect();
    let transposed = fresh(&backwards).permute(&reversed).expect("a permutation");
    let doubled: Vec<usize> = shape.iter().map(|n| 2 * n + 1).collect();
    let mut sliced = fresh(&doubled);
    for (axis, &size) in shape.iter().enumerate() {
        sliced = sliced.slice_axis(axis, 1, size, 2).expect("inside of the doubled shape");
    }
    let flipped = fresh(shape).flip(&reversed).expect("axes of the tensor");
    let mut out = vec![
        ("contiguous", fresh(shape)),
        ("transposed", transposed),
        ("flipped", flipped),
        ("sliced", sliced),
    ];
    if rank > 1 {
        let mut rotated: Vec<usize> = (1..rank).collect();
        rotated.push(0);
        let mut from = vec![shape[rank - 1]];
        from.extend_from_slice(&shape[..rank - 1]);
        out.push(("rotated", fresh(&from).permute(&rotated).expect("a permutation")));
    }
    if rank > 0 {
        let mut column = shape.to_vec();
        column[rank - 1] = 1;
        let expand = |t: Tensor<T>| t.expand(shape).expect("sizes of 1");
        out.push(("repeated columns", expand(fresh(&column))));
        out.push(("repeated rows", expand(fresh(&shape[rank - 1..]))));
        out.push(("one element", expand(fresh(&[]))));
    }
    out
}

/// [`layouts_of`] with the elements of [`value`].
pub fn layouts<T: Element + FromNumber>(shape: &[usize]) -> Vec<(&'static str, Tensor<T>)> {
    layouts_of(shape, value::<T>)
}

/// [`layouts`] of a dtype known at run time.
pub fn any_layouts(dtype: DType, shape: &[usize]) -> Vec<(&'static str, AnyTensor)> {
    with_dtype!(dtype, T in all => {
        layouts::<T>(shape).into_iter().map(|(name, t)| (name, AnyTensor::from(t))).collect()
    }, else => Vec::new())
}
