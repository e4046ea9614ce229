use t4a_algebra::Scalar;

use super::to_contiguous;
use crate::tensor::Tensor;

fn naive(x: &Tensor<u32>) -> Vec<u32> {
    let mut index = vec![0; x.rank()];
    (0..x.numel())
        .map(|_| {
            let value = x.get(&index).unwrap();
            for axis in (0..x.rank()).rev() {
                index[axis] += 1;
                if index[axis] < x.shape()[axis] {
                    break;
                }
                index[axis] = 0;
            }
            value
        })
        .collect()
}

fn arange(shape: &[usize]) -> Tensor<u32> {
    Tensor::from_fn(shape, |i| i as u32).unwrap()
}

fn check(x: &Tensor<u32>) {
    assert_eq!(to_contiguous(x).unwrap().as_slice().unwrap(), naive(x), "{:?}", x.layout());
}

#[test]
fn permutations_of_every_kind() {
    let shapes: [&[usize]; 13] = [
        &[5],
        &[40, 70],
        &[3, 50, 33],
        &[17, 4, 2, 19],
        &[2; 12],
        &[3; 7],
        &[2; 14],
        &[3; 9],
        &[5, 6, 4, 40],
        &[1, 5, 1, 7],
        &[64, 3, 64],
        &[2, 100, 1, 3, 9],
        &[9, 2, 7, 3, 11, 20],
    ];
    for shape in shapes {
        let x = arange(shape);
        let n = shape.len();
        for k in 0..n {
            let rotated: Vec<usize> = (0..n).map(|a| (a + k) % n).collect();
            let reversed: Vec<usize> = rotated.iter().rev().copied().collect();
            let mixed: Vec<usize> = (0..n).map(|a| (a * 5 + k) % n).collect();
            for axes in [rotated, reversed, mixed] {
                if let Ok(p) = x.permute(&axes) {
                    check(&p);
                    check(&p.flip(&[0, n - 1]).unwrap_or_else(|_| p.clone()));
                }
            }
        }
    }
}

#[test]
fn strided_repeated_and_empty_operands() {
    let x = arange(&[30, 41]);
    let s = x.slice_axis(0, 3, 13, 2).unwrap().slice_axis(1, 39, 19, -2).unwrap();
    check(&s);
    check(&s.swap_axes(0, 1).unwrap());
    check(&arange(&[1, 33]).expand(&[29, 33]).unwrap());
    check(&arange(&[33, 1]).expand(&[33, 29]).unwrap());
    check(&arange(&[]).expand(&[3, 4]).unwrap());
    check(&arange(&[]).expand(&[300, 401]).unwrap());
    check(&arange(&[7, 1, 5, 1]).expand(&[7, 3, 5, 401]).unwrap().swap_axes(0, 2).unwrap());
    check(&arange(&[0, 3]).swap_axes(0, 1).unwrap());
    check(&arange(&[50]).unfold(0, 20, 3).unwrap());
    check(&arange(&[50]).unfold(0, 20, 1).unwrap().swap_axes(0, 1).unwrap());
}

#[test]
fn elements_of_odd_sizes() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Pixel([u8; 3]);
    impl Scalar for Pixel {}
    let x = Tensor::from_fn(&[20, 30], |i| Pixel([i as u8, (i >> 8) as u8, 7])).unwrap();
    let t = to_contiguous(&x.swap_axes(0, 1).unwrap()).unwrap();
    for (r, c) in [(0, 0), (19, 29), (11, 3), (5, 28)] {
        assert_eq!(t.get(&[c, r]), x.get(&[r, c]));
    }
    let y = x.slice_axis(1, 29, 1, 1).unwrap().expand(&[20, 50]).unwrap();
    let t = to_contiguous(&y).unwrap();
    assert!((0..1000).all(|i| t.get(&[i / 50, i % 50]) == x.get(&[i / 50, 29])));
}

#[test]
fn repeated_elements_of_every_size() {
    fn check<T: Scalar + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
        let x = Tensor::from_fn(&[3, 2], value).unwrap();
        // An element that is aligned for its type only, with 16 bytes the hardest case.
        let y = x.slice_axis(1, 1, 1, 1).unwrap().expand(&[3, 99]).unwrap();
        let want: Vec<T> = (0..297).map(|i| x.get(&[i / 99, 1]).unwrap()).collect();
        assert_eq!(to_contiguous(&y).unwrap().to_vec().unwrap(), want);
    }
    check(|i| i as u8);
    check(|i| i as u16);
    check(|i| i as f32);
    check(|i| i as f64);
    check(|i| t4a_algebra::c64::new(i as f64, 1.0));
}
