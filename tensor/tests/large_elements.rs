//! Elements of every supported size, through public items only: scratch of fixed size has room for at least one of
//! them.

use t4a_algebra::Scalar;
use t4a_algebra::scalar::MAX_BYTES;
use t4a_tensor::index::{index_select, mask_where};
use t4a_tensor::kernels::fold::Fold;
use t4a_tensor::loops::kernel::Unary;
use t4a_tensor::map::map;
use t4a_tensor::reduce::reduce;
use t4a_tensor::{Tensor, copy};

#[derive(Clone, Copy, Debug, PartialEq)]
struct Wide<const N: usize>([u64; N]);
impl<const N: usize> Scalar for Wide<N> {}

/// The sum of first words.
#[derive(Clone, Copy)]
struct First;

impl<const N: usize> Fold<Wide<N>> for First {
    type Acc = u64;
    type Out = u64;
    const NAME: &'static str = "first";
    fn init(self) -> u64 {
        0
    }
    fn step(self, acc: u64, x: Wide<N>) -> u64 {
        acc + x.0[0]
    }
    fn merge(self, a: u64, b: u64) -> u64 {
        a + b
    }
    fn finish(self, acc: u64, _n: usize) -> u64 {
        acc
    }
}

#[derive(Clone, Copy)]
struct Last;

impl<const N: usize> Unary<Wide<N>> for Last {
    type Out = u64;
    const NAME: &'static str = "last";
    fn apply(self, x: Wide<N>) -> u64 {
        x.0[N - 1]
    }
}

fn check<const N: usize>() {
    let x = Tensor::from_fn(&[6, 40], |i| Wide([i as u64; N])).unwrap();
    let views = [
        x.clone(),
        x.swap_axes(0, 1).unwrap(),
        x.flip(&[0, 1]).unwrap(),
        x.slice_axis(1, 3, 12, 3).unwrap(),
        x.slice_axis(1, 3, 1, 1).unwrap().expand(&[6, 9]).unwrap(),
    ];
    for x in views {
        let (rows, cols) = (x.shape()[0], x.shape()[1]);
        let want: Vec<u64> =
            (0..rows * cols).map(|i| x.get(&[i / cols, i % cols]).unwrap().0[0]).collect();
        assert_eq!(map(Last, x.clone()).unwrap().to_vec().unwrap(), want, "{N} {:?}", x.layout());
        let copied = copy::to_contiguous(&x).unwrap();
        assert_eq!(map(Last, copied).unwrap().to_vec().unwrap(), want);
        let by_row: Vec<u64> = want.chunks(cols).map(|row| row.iter().sum()).collect();
        assert_eq!(reduce(First, &x, &[1]).unwrap().to_vec().unwrap(), by_row);
        let by_col: Vec<u64> = (0..cols).map(|c| want.iter().skip(c).step_by(cols).sum()).collect();
        assert_eq!(reduce(First, &x, &[0]).unwrap().to_vec().unwrap(), by_col);
        let one = Tensor::full(&[], Wide([1000; N])).unwrap();
        let mask = Tensor::from_fn(&[rows, cols], |i| i % 3 == 0).unwrap();
        let masked = mask_where(x.clone(), mask, one).unwrap();
        let expected: Vec<u64> =
            want.iter().enumerate().map(|(i, &v)| if i % 3 == 0 { 1000 } else { v }).collect();
        assert_eq!(map(Last, masked).unwrap().to_vec().unwrap(), expected);
        let index = Tensor::from_vec(vec![rows as i64 - 1, 0], &[2]).unwrap();
        let picked = map(Last, index_select(&x, 0, &index).unwrap()).unwrap().to_vec().unwrap();
        assert_eq!(picked, [&want[(rows - 1) * cols..], &want[..cols]].concat());
    }
}

#[test]
fn elements_of_every_size() {
    check::<1>();
    check::<2>();
    check::<5>();
    check::<16>();
    check::<33>();
    check::<{ MAX_BYTES / 8 }>();
}
