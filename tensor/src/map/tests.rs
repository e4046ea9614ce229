use t4a_algebra::{Numeric, f16};

use super::{add_terms, map, zip};
use crate::kernels::math::Exp;
use crate::layout::broadcast_shapes;
use crate::loops::kernel::{Binary, Promoted, Unary};
use crate::route::{Path, Reason, Route};
use crate::tensor::Tensor;

#[derive(Clone, Copy)]
struct Sub;
impl<T: Numeric> Binary<T> for Sub {
    type Out = T;
    const NAME: &'static str = "sub";
    fn apply(self, a: T, b: T) -> T {
        a.sub(b)
    }
}
#[derive(Clone, Copy)]
struct Square;
impl<T: Numeric> Unary<T> for Square {
    type Out = T;
    const NAME: &'static str = "square";
    fn apply(self, x: T) -> T {
        x.mul(x)
    }
}

fn arange(shape: &[usize]) -> Tensor<i32> {
    Tensor::from_fn(shape, |i| i as i32).unwrap()
}

/// Layouts of one shape: row-major, transposed, reversed, strided, repeated, offset.
fn layouts(shape: &[usize]) -> Vec<Tensor<i32>> {
    let n = shape.len();
    let rev: Vec<usize> = (0..n).rev().collect();
    let flipped: Vec<usize> = shape.iter().rev().copied().collect();
    let doubled: Vec<usize> = shape.iter().map(|s| 2 * s + 1).collect();
    let mut strided = arange(&doubled);
    for axis in 0..n {
        strided = strided.slice_axis(axis, 1, shape[axis], 2).unwrap();
    }
    let mut out = vec![
        arange(shape),
        arange(&flipped).permute(&rev).unwrap(),
        arange(shape).flip(&rev).unwrap(),
        strided,
    ];
    if n > 0 {
        let mut ones = shape.to_vec();
        ones[n - 1] = 1;
        out.push(arange(&ones).expand(shape).unwrap());
        out.push(arange(&shape[n - 1..]).expand(shape).unwrap());
    }
    out.push(arange(&[]).expand(shape).unwrap());
    out
}

#[test]
fn every_pair_of_layouts_gives_the_elementwise_result() {
    let shapes: [&[usize]; 8] =
        [&[], &[7], &[3, 5], &[70, 130], &[2, 3, 41], &[0, 4], &[5, 1, 6], &[17, 3, 33, 2]];
    for shape in shapes {
        for a in layouts(shape) {
            let got = map(Square, a.clone()).unwrap();
            let want: Vec<i32> = a.to_vec().unwrap().iter().map(|x| x.wrapping_mul(*x)).collect();
            assert_eq!(got.to_vec().unwrap(), want, "{a:?}");
            for b in layouts(shape) {
                let got = zip(Sub, a.clone(), b.clone()).unwrap();
                assert_eq!(got.shape(), shape);
                let (av, bv) = (a.to_vec().unwrap(), b.to_vec().unwrap());
                let want: Vec<i32> = av.iter().zip(&bv).map(|(x, y)| x - y).collect();
                assert_eq!(got.to_vec().unwrap(), want, "{:?} {:?}", a.layout(), b.layout());
            }
        }
    }
}

#[test]
fn small_row_major_operands_broadcast_by_rows_columns_and_elements() {
    let pairs: [(&[usize], &[usize]); 9] = [
        (&[4, 5], &[1, 5]),
        (&[4, 5], &[5]),
        (&[4, 5], &[4, 1]),
        (&[4, 5], &[1, 1]),
        (&[4, 5], &[]),
        (&[2, 3, 4], &[3, 1]),
        (&[2, 3, 4], &[2, 1, 1]),
        (&[2, 3, 4], &[2, 3, 1]),
        (&[4, 1], &[1, 5]),
    ];
    for (full, part) in pairs {
        let shape = broadcast_shapes("test", full, part).unwrap();
        // From an offset, as a view.
        let part = [&[2][..], part].concat();
        let part = arange(&part).slice_axis(0, 1, 1, 1).unwrap().squeeze(0).unwrap();
        let full = arange(full);
        let values = |x: &Tensor<i32>| x.expand(&shape).unwrap().to_vec().unwrap();
        let (a, b) = (values(&full), values(&part));
        let want: Vec<i32> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
        let got = zip(Sub, full.clone(), part.clone()).unwrap();
        assert_eq!((got.shape(), got.to_vec().unwrap()), (&shape[..], want), "{part:?}");
        let want: Vec<i32> = a.iter().zip(&b).map(|(x, y)| y - x).collect();
        assert_eq!(zip(Sub, part, full).unwrap().to_vec().unwrap(), want);
    }
}

#[test]
fn a_unique_operand_is_overwritten_and_a_shared_one_is_not() {
    let fresh = || Tensor::full(&[100, 100], 3i32).unwrap();
    let (a, b) = (fresh(), fresh());
    let ptr = a.as_ptr();
    let out = zip(Sub, a, b.clone()).unwrap();
    assert_eq!(out.as_ptr(), ptr);
    assert!(out.to_vec().unwrap().iter().all(|&x| x == 0));
    // The right operand, transposed, with a shared left one.
    let (a, ptr) = (fresh(), b.as_ptr());
    let out = zip(Sub, a.clone(), b.permute(&[1, 0]).unwrap()).unwrap();
    assert_ne!(out.as_ptr(), ptr);
    drop(out);
    let out = zip(Sub, a.clone(), b).unwrap();
    assert_eq!(out.as_ptr(), ptr);
    assert!(a.to_vec().unwrap().iter().all(|&x| x == 3));
    // Both operands are the same tensor.
    let out = zip(Sub, a.clone(), a.clone()).unwrap();
    assert_ne!(out.as_ptr(), a.as_ptr());
}

#[test]
fn a_dense_order_of_axes_is_kept() {
    let t = arange(&[80, 90]).permute(&[1, 0]).unwrap();
    let out = map(Square, t.clone()).unwrap();
    assert_eq!(out.layout().strides(), t.layout().strides());
    assert_eq!(out.route().path, Path::LoopContiguous);
}

#[test]
fn the_walk_tells_how_operands_were_read() {
    let path =
        |a: &Tensor<i32>, b: &Tensor<i32>| zip(Sub, a.clone(), b.clone()).unwrap().route().path;
    let x = arange(&[80, 90]);
    let every_other = arange(&[80, 180]).slice_axis(1, 0, 90, 2).unwrap();
    assert_eq!(path(&x, &x), Path::LoopContiguous);
    assert_eq!(path(&x, &arange(&[90])), Path::LoopContiguous);
    assert_eq!(path(&x, &arange(&[80, 1])), Path::LoopContiguous);
    assert_eq!(path(&x, &every_other), Path::LoopStrided);
    // Copied into the order of the result first.
    assert_eq!(path(&x, &arange(&[90, 80]).swap_axes(0, 1).unwrap()), Path::LoopStrided);
    // Staged because the result overwrites the operand, not because of strides.
    let heavy = map(Promoted(Exp), Tensor::full(&[80, 90], 1.0f32).unwrap()).unwrap();
    assert_eq!(heavy.route(), Route::native(Path::LoopContiguous));
    let half = Tensor::full(&[2], <f16 as Numeric>::ONE).unwrap();
    let route = map(Promoted(Exp), half).unwrap().route();
    assert_eq!((route.path, route.reason), (Path::LoopContiguous, Reason::DtypePromoted));
}

#[test]
fn shapes_that_do_not_broadcast_are_errors() {
    let error = zip(Sub, arange(&[3]), arange(&[4])).unwrap_err();
    assert!(error.to_string().contains("sub: shapes [3] and [4]"), "{error}");
}

#[test]
fn repeated_axes_are_computed_once() {
    let column = arange(&[80, 1]).expand(&[80, 90]).unwrap();
    let one = Tensor::full(&[1, 1], 3).unwrap().expand(&[80, 90]).unwrap();
    let squares = map(Square, column.clone()).unwrap();
    assert_eq!(squares.layout().strides()[1], 0);
    let want: Vec<i32> = (0..80 * 90).map(|i| (i / 90) * (i / 90) - 3).collect();
    let out = zip(Sub, squares.clone(), one.clone()).unwrap();
    assert_eq!((out.layout().strides()[1], out.to_vec().unwrap()), (0, want));
    // Another operand varies along the axis: all elements are computed.
    let out = zip(Sub, arange(&[2, 80, 90]), squares).unwrap();
    assert!(out.layout().is_contiguous());
    let want = |i: i32| i - (i % 7200 / 90) * (i % 7200 / 90);
    assert_eq!(out.to_vec().unwrap(), (0..14400).map(want).collect::<Vec<_>>());
    assert_eq!(map(Square, one).unwrap().layout().strides(), [0, 0]);
    assert_eq!(column.to_vec().unwrap()[..91], *[vec![0; 90], vec![1]].concat());
}

/// Sums of multiples beside their definition, in place if the memory has one owner.
#[test]
fn sums_of_multiples() {
    for x in layouts(&[3, 5]) {
        let y = arange(&[3, 5]);
        let required = x.to_vec().unwrap().into_iter().zip(0..).map(|(x, y)| x + 2 * y - 3 * x);
        let required: Vec<i32> = required.collect();
        let sum = add_terms(x.clone(), &[(2, &y), (-3, &x)]).unwrap();
        assert_eq!(sum.to_vec().unwrap(), required);
        assert_eq!(add_terms(y.clone(), &[]).unwrap().to_vec().unwrap(), y.to_vec().unwrap());
    }
    for n in [0, 1, 2047, 2048, 2049, 3 * 65_536 + 7] {
        let x = Tensor::from_fn(&[n], |i| i as f64).unwrap();
        let y = Tensor::from_fn(&[n], |i| (i % 19) as f64).unwrap();
        let own = crate::copy::to_contiguous(&x).unwrap();
        let at = own.as_ptr();
        let sum = add_terms(own, &[(0.5, &y), (-2.0, &x)]).unwrap();
        assert_eq!(sum.as_ptr(), at);
        let required: Vec<f64> = (0..n).map(|i| 0.5 * (i % 19) as f64 - i as f64).collect();
        assert_eq!(sum.to_vec().unwrap(), required);
    }
    let e =
        add_terms(arange(&[2, 3]), &[(1, &arange(&[2, 3])), (1, &arange(&[3, 2]))]).unwrap_err();
    assert!(matches!(e, crate::TensorError::ShapeMismatch { op: "add terms", .. }), "{e}");
}
