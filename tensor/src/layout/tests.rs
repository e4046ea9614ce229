use super::*;
use crate::error::TensorError;

fn layout(shape: &[usize]) -> Layout {
    Layout::contiguous("test", shape, 4).unwrap()
}

fn positions(layout: &Layout) -> Vec<usize> {
    let mut out = Vec::new();
    let mut index = vec![0; layout.rank()];
    for _ in 0..layout.numel() {
        out.push(layout.position(&index));
        for axis in (0..layout.rank()).rev() {
            index[axis] += 1;
            if index[axis] < layout.shape()[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

#[test]
fn slices_of_either_sign() {
    let v = layout(&[10]);
    assert_eq!(positions(&v.slice_axis(0, 1, 3, 4).unwrap()), [1, 5, 9]);
    assert_eq!(positions(&v.slice_axis(0, 8, 4, -2).unwrap()), [8, 6, 4, 2]);
    assert_eq!(positions(&v.flip(&[0]).unwrap().slice_axis(0, 1, 2, 3).unwrap()), [8, 5]);
    assert!(v.slice_axis(0, 8, 2, 2).is_err());
    assert!(v.slice_axis(0, 1, 3, -1).is_err());
    assert!(v.slice_axis(0, 0, 1, 0).is_err());
    assert_eq!(v.slice_axis(0, 99, 0, 1).unwrap().shape(), [0]);
}

#[test]
fn reshape_is_a_view_exactly_when_runs_allow_it() {
    let t = layout(&[2, 3, 4]);
    assert!(t.reshape(&[6, 4]).unwrap().is_some());
    let p = t.permute(&[0, 2, 1]).unwrap();
    assert!(p.reshape(&[8, 3]).unwrap().is_none());
    let split = p.reshape(&[2, 2, 2, 3]).unwrap().unwrap();
    assert_eq!(positions(&split), positions(&p));
    let merged = t.flip(&[0, 1, 2]).unwrap().reshape(&[24]).unwrap().unwrap();
    assert_eq!(positions(&merged), (0..24).rev().collect::<Vec<_>>());
    assert!(t.reshape(&[5, 5]).is_err());
    let e = layout(&[1, 3]).expand(&[4, 3]).unwrap();
    assert!(e.reshape(&[12]).unwrap().is_none());
    assert_eq!(positions(&e.reshape(&[2, 2, 3]).unwrap().unwrap()), positions(&e));
    let one = layout(&[3, 1, 4]).permute(&[1, 0, 2]).unwrap();
    assert_eq!(positions(&one.reshape(&[12, 1]).unwrap().unwrap()), (0..12).collect::<Vec<_>>());
}

#[test]
fn diagonal_and_unfold() {
    let m = layout(&[3, 4]);
    assert_eq!(positions(&m.diagonal(0, 1, 0).unwrap()), [0, 5, 10]);
    assert_eq!(positions(&m.diagonal(0, 1, 1).unwrap()), [1, 6, 11]);
    assert_eq!(positions(&m.diagonal(0, 1, -1).unwrap()), [4, 9]);
    assert_eq!(positions(&m.diagonal(1, 0, 1).unwrap()), [4, 9]);
    assert_eq!(m.diagonal(0, 1, 9).unwrap().shape(), [0]);
    let w = layout(&[5]).unfold(0, 3, 2).unwrap();
    assert_eq!((w.shape(), positions(&w)), (&[2, 3][..], vec![0, 1, 2, 2, 3, 4]));
    assert!(layout(&[5]).unfold(0, 6, 1).is_err());
}

#[test]
fn sizes_that_overflow_are_errors() {
    let huge = 1usize << 40;
    assert!(matches!(
        Layout::contiguous("x", &[huge, huge], 4),
        Err(TensorError::SizeOverflow { .. })
    ));
    // A size of 0 does not exempt the others: partial products of the shape must not overflow.
    assert!(Layout::contiguous("x", &[huge, huge, 0], 4).is_err());
    assert_eq!(Layout::contiguous("x", &[huge, 0], 4).unwrap().numel(), 0);
    let window = layout(&[1, 4]).expand(&[huge - 1, 4]).unwrap();
    assert!(matches!(window.unfold(0, huge / 2, 1), Err(TensorError::SizeOverflow { .. })));
    let empty = layout(&[0, 2, 1 << 40]);
    assert_eq!(empty.flip(&[1, 2]).unwrap().shape(), empty.shape());
    assert!(Layout::contiguous("x", &[0, 2, 1 << 63], 4).is_err());
    // Strides of axes of size 1 do not enter sums.
    let one = Layout::from_parts(&[1, 1], &[isize::MAX, isize::MAX], 0, 1).unwrap();
    assert_eq!(one.diagonal(0, 1, 0).unwrap().numel(), 1);
    assert!(Layout::from_parts(&[0, 3], &[isize::MIN, isize::MAX], usize::MAX, 6).is_ok());
    assert!(layout(&[1]).expand(&[huge, huge]).is_err());
    assert!(Layout::from_parts(&[2, 3], &[3, 1], 1, 6).is_err());
    assert!(Layout::from_parts(&[2, 3], &[-3, 1], 3, 6).is_ok());
    assert!(Layout::from_parts(&[2], &[isize::MAX], 0, 6).is_err());
}

#[test]
fn predicates() {
    let t = layout(&[2, 3, 4]);
    let p = t.permute(&[2, 0, 1]).unwrap();
    assert!(t.is_contiguous() && t.is_dense() && t.is_injective());
    assert!(!p.is_contiguous() && p.is_dense());
    let s = t.slice_axis(2, 0, 2, 2).unwrap();
    assert!(s.is_injective() && !s.is_dense());
    let e = layout(&[1, 3]).expand(&[2, 3]).unwrap();
    assert!(!e.is_injective() && !e.is_dense());
    assert!(!layout(&[5]).unfold(0, 3, 1).unwrap().is_injective());
    assert!(layout(&[3, 1]).permute(&[1, 0]).unwrap().is_contiguous());
}

#[test]
fn broadcasting() {
    assert_eq!(broadcast_shapes("x", &[3, 1], &[4]).unwrap().as_slice(), [3, 4]);
    assert_eq!(broadcast_shapes("x", &[0, 1], &[1, 5]).unwrap().as_slice(), [0, 5]);
    assert!(broadcast_shapes("x", &[3], &[4]).is_err());
}
