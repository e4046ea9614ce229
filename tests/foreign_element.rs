//! An element type defined outside of the engine, using public items only: integers modulo a prime. The oracle of every
//! operation is the same operation on `i64`, reduced at the end.

use proptest::prelude::*;
use t4a_algebra::{Numeric, Scalar, Standard};
use t4a_einsum::einsum;
use t4a_tensor::kernels::arithmetic::{Add, Mul, Neg, Sub};
use t4a_tensor::kernels::fold::{Prod, Sum};
use t4a_tensor::loops::kernel::Unary;
use t4a_tensor::{Slice, Tensor, TensorError, copy, cumulative, index, map, matmul, reduce};

/// An integer modulo the prime `P`, stored in `0..P`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ModInt<const P: i64>(i64);

impl<const P: i64> Scalar for ModInt<P> {}

impl<const P: i64> Numeric for ModInt<P> {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);
    type Acc = Self;

    fn add(self, rhs: Self) -> Self {
        Self((self.0 + rhs.0) % P)
    }
    fn sub(self, rhs: Self) -> Self {
        Self((self.0 + P - rhs.0) % P)
    }
    fn mul(self, rhs: Self) -> Self {
        Self(self.0 * rhs.0 % P)
    }
    fn widen(self) -> Self {
        self
    }
    fn narrow(acc: Self) -> Self {
        acc
    }
    fn from_i64(v: i64) -> Self {
        Self(v.rem_euclid(P))
    }
    fn from_f64(v: f64) -> Self {
        Self::from_i64(v as i64)
    }
}

/// A kernel specific to this element type: the inverse `x^(P−2)`, and 0 for 0.
#[derive(Clone, Copy)]
struct Inverse;

impl<const P: i64> Unary<ModInt<P>> for Inverse {
    type Out = ModInt<P>;
    const NAME: &'static str = "inverse";
    fn apply(self, x: ModInt<P>) -> ModInt<P> {
        let (mut base, mut power, mut left) = (x, ModInt::ONE, P - 2);
        while left > 0 {
            if left & 1 == 1 {
                power = power.mul(base);
            }
            base = base.mul(base);
            left >>= 1;
        }
        power
    }
}

type M = ModInt<10007>;

/// The same tensor as residues and as integers.
fn pair(shape: &[usize], salt: usize) -> (Tensor<M>, Tensor<i64>) {
    let value = |i: usize| ((i + 1) * (2 * salt + 7919) % 10007) as i64;
    (Tensor::from_fn(shape, |i| ModInt(value(i))).unwrap(), Tensor::from_fn(shape, value).unwrap())
}

/// A view without any contiguous stride.
fn odd<T: Scalar>(x: &Tensor<T>) -> Tensor<T> {
    let axes: Vec<usize> = (0..x.rank()).rev().collect();
    x.slice(&[Slice { step: 2, ..Slice::ALL }]).unwrap().permute(&axes).unwrap().flip(&[0]).unwrap()
}

#[track_caller]
fn same(got: &Tensor<M>, want: &Tensor<i64>) {
    assert_eq!(got.shape(), want.shape());
    let want: Vec<M> = want.to_vec().unwrap().into_iter().map(ModInt::from_i64).collect();
    assert_eq!(got.to_vec().unwrap(), want);
}

#[test]
fn elementwise_on_views_that_broadcast() {
    let ((a, x), (b, y)) = (pair(&[5, 4, 3], 0), pair(&[4, 3], 1));
    let (b, y) = (b.swap_axes(0, 1).unwrap(), y.swap_axes(0, 1).unwrap());
    let (b, y) = (b.reshape(&[3, 4, 1]).unwrap(), y.reshape(&[3, 4, 1]).unwrap());
    let (a, x) = (odd(&a), odd(&x));
    same(
        &map::zip(Add, a.clone(), b.clone()).unwrap(),
        &map::zip(Add, x.clone(), y.clone()).unwrap(),
    );
    same(
        &map::zip(Sub, a.clone(), b.clone()).unwrap(),
        &map::zip(Sub, x.clone(), y.clone()).unwrap(),
    );
    same(&map::zip(Mul, a.clone(), b).unwrap(), &map::zip(Mul, x.clone(), y).unwrap());
    same(&map::map(Neg, a).unwrap(), &map::map(Neg, x).unwrap());
}

#[test]
fn a_kernel_of_its_own() {
    let (a, _) = pair(&[70, 65], 3);
    let a = a.swap_axes(0, 1).unwrap();
    let unit = map::zip(Mul, a.clone(), map::map(Inverse, a.clone()).unwrap()).unwrap();
    for (x, u) in a.to_vec().unwrap().into_iter().zip(unit.to_vec().unwrap()) {
        assert_eq!(u, if x == ModInt(0) { ModInt(0) } else { ModInt(1) });
    }
}

#[test]
fn reductions_and_running_sums() {
    let (a, x) = pair(&[6, 40, 7], 2);
    let (a, x) = (odd(&a), odd(&x));
    for axes in [&[0][..], &[1], &[2], &[0, 2], &[0, 1, 2]] {
        same(&reduce::reduce(Sum, &a, axes).unwrap(), &reduce::reduce(Sum, &x, axes).unwrap());
    }
    for axis in 0..3 {
        let (got, want) = (cumulative::cumsum(&a, axis), cumulative::cumsum(&x, axis));
        same(&got.unwrap(), &want.unwrap());
    }
    // Integer products overflow, so the oracle multiplies residues in plain Rust.
    let product = reduce::reduce(Prod, &a, &[0, 1, 2]).unwrap().to_vec().unwrap();
    let want = a.to_vec().unwrap().into_iter().fold(1, |p, x| p * x.0 % 10007);
    assert_eq!(product, [ModInt(want)]);
}

#[test]
fn movement_index_and_copies() {
    let (a, x) = pair(&[6, 5, 4], 4);
    let (a, x) = (odd(&a), odd(&x));
    same(&copy::to_contiguous(&a).unwrap(), &copy::to_contiguous(&x).unwrap());
    let i = Tensor::from_vec(vec![3i32, 0, 3, 1], &[4]).unwrap();
    same(&index::index_select(&a, 0, &i).unwrap(), &index::index_select(&x, 0, &i).unwrap());
    let ((b, y), shape) = (pair(&[4, 5, 3], 5), a.shape().to_vec());
    assert_eq!(shape, [4, 5, 3]);
    same(
        &index::index_scatter(Add, a.clone(), 0, &i, &b).unwrap(),
        &index::index_scatter(Add, x.clone(), 0, &i, &y).unwrap(),
    );
    same(&index::cat(&[a.clone(), b], 0).unwrap(), &index::cat(&[x, y], 0).unwrap());
    let wrong = Tensor::from_vec(vec![9i32], &[1]).unwrap();
    assert!(matches!(index::index_select(&a, 0, &wrong), Err(TensorError::Index { .. })));
}

#[test]
fn products_and_contractions() {
    let ((a, x), (b, y)) = (pair(&[2, 9, 33], 6), pair(&[2, 17, 33], 7));
    let (b, y) = (b.swap_axes(1, 2).unwrap(), y.swap_axes(1, 2).unwrap());
    let want = matmul::matmul::<Standard, i64>(&x, &y).unwrap();
    let got = matmul::matmul::<Standard, M>(&a, &b).unwrap();
    assert_eq!(got.route().path, t4a_tensor::route::Path::GemmSemiring);
    same(&got, &want);
    same(&einsum::<Standard, M>("bij,bjk->bik", &[&a, &b]).unwrap(), &want);
    let want = einsum::<Standard, i64>("bij,bjk->ki", &[&x, &y]).unwrap();
    same(&einsum::<Standard, M>("bij,bjk->ki", &[&a, &b]).unwrap(), &want);
}

proptest! {
    /// (Σx)² = Σᵢⱼ xᵢxⱼ, for any modulus and any values.
    #[test]
    fn the_square_of_a_sum(values in prop::collection::vec(0i64..10007, 1..40)) {
        let n = values.len();
        let x = Tensor::from_vec(values.into_iter().map(ModInt::<10007>).collect(), &[n]).unwrap();
        let sum = reduce::reduce(Sum, &x, &[0]).unwrap().to_vec().unwrap()[0];
        let all = einsum::<Standard, M>("i,j->", &[&x, &x]).unwrap().to_vec().unwrap()[0];
        prop_assert_eq!(all, sum.mul(sum));
    }
}
