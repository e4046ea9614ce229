//! Against a stable sort of every lane.

use std::cmp::Ordering;

use t4a_algebra::{bf16, f16};

use super::*;
use crate::any::FromNumber;
use crate::dtype::Element;
use crate::testing::{Mix, SHAPES, elements, indices, layouts};

trait TotalOrder: SortKey + Element + FromNumber {
    fn total(&self, other: &Self) -> Ordering;
}

macro_rules! total {
    (ord: $($t:ident)*) => {$(
        impl TotalOrder for $t {
            fn total(&self, other: &Self) -> Ordering { self.cmp(other) }
        }
    )*};
    (float: $($t:ident)*) => {$(
        impl TotalOrder for $t {
            fn total(&self, other: &Self) -> Ordering {
                let zero = <$t>::from_bits(0);
                if *self == zero && *other == zero {
                    return Ordering::Equal;
                }
                let sign = |x: &$t| x.is_nan() && x.is_sign_negative();
                sign(self).cmp(&sign(other)).then(self.total_cmp(other))
            }
        }
    )*};
}

total!(ord: i64 i32 i16 i8 u64 u32 u16 u8 bool);
total!(float: f64 f32 f16 bf16);

/// Checks every lane of the results against a stable sort of the input.
fn check<T: TotalOrder>(x: &Tensor<T>, axis: usize, context: &str) {
    let n = x.shape()[axis];
    let mut lanes = x.shape().to_vec();
    lanes[axis] = 1;
    let k = n / 3;
    for descending in [false, true] {
        let sorted = sort(x.clone(), axis, descending).unwrap();
        let (values, places) = sort_with_indices::<T, i16>(x, axis, descending).unwrap();
        let args: Tensor<u64> = argsort(x, axis, descending).unwrap();
        let (top, top_places) = topk::<T, i32>(x, axis, k, descending).unwrap();
        assert_eq!(
            elements(&argtopk::<T, i32>(x, axis, k, descending).unwrap()),
            elements(&top_places)
        );
        assert_eq!((sorted.shape(), args.shape()), (x.shape(), x.shape()));
        for lane in indices(&lanes) {
            let at = |i: usize| {
                let mut at = lane.clone();
                at[axis] = i;
                at
            };
            let mut want: Vec<(usize, T)> = (0..n).map(|i| (i, x.get(&at(i)).unwrap())).collect();
            want.sort_by(|a, b| if descending { b.1.total(&a.1) } else { a.1.total(&b.1) });
            for (i, (place, value)) in want.into_iter().enumerate() {
                let same = |other: Option<T>| other.unwrap().total(&value).is_eq();
                assert!(same(sorted.get(&at(i))), "{context} {descending} {i}");
                assert!(same(values.get(&at(i))), "{context} {descending} {i}");
                assert_eq!(places.get(&at(i)), Some(place as i16), "{context} {descending}");
                assert_eq!(args.get(&at(i)), Some(place as u64), "{context} {descending}");
                if i < k {
                    assert!(same(top.get(&at(i))), "{context} {descending} {i}");
                    assert_eq!(
                        top_places.get(&at(i)),
                        Some(place as i32),
                        "{context} {descending}"
                    );
                }
            }
        }
    }
}

fn row<T: TotalOrder>() {
    for shape in SHAPES {
        for axis in 0..shape.len() {
            for (name, x) in layouts::<T>(shape) {
                check(&x, axis, &format!("{} {name} {shape:?} {axis}", T::DTYPE));
            }
        }
    }
}

#[test]
fn lanes_are_sorted_stably_in_every_layout() {
    row::<f64>();
    row::<f32>();
    row::<f16>();
    row::<bf16>();
    row::<i64>();
    row::<i8>();
    row::<u32>();
    row::<u16>();
    row::<bool>();
}

fn random<T: SortKey>(numel: usize, seed: u64, key: impl Fn(u64) -> T::Key) -> Tensor<T> {
    let mut rng = Mix(seed);
    let words = Tensor::from_fn(&[numel], |_| T::ORDER.word(key(rng.next()))).unwrap();
    // SAFETY: every word is an element of the types that this is called with.
    unsafe { words.retag() }
}

#[test]
fn all_bit_patterns_and_long_rows() {
    // NaN of both signs, subnormals, infinities; rows that are sorted by digits.
    check(&random::<f32>(20_000, 1, |r| r as u32), 0, "f32");
    check(&random::<f64>(9_000, 2, |r| r), 0, "f64");
    check(&random::<f16>(30_000, 3, |r| r as u16), 0, "f16");
    check(&random::<i32>(20_000, 4, |r| (r % 50) as u32), 0, "i32");
    check(&random::<u8>(5_000, 5, |r| r as u8), 0, "u8");
    check(&random::<i64>(20_000, 6, |r| r & 0xff00ff), 0, "i64");
    check(&random::<u32>(30_000, 7, |_| 7), 0, "equal");
    let many = random::<f32>(64 * 700, 8, |r| r as u32);
    check(&many.reshape(&[64, 700]).unwrap(), 1, "rows");
    check(&many.reshape(&[700, 64]).unwrap(), 0, "columns");
}

#[test]
fn a_long_row_on_threads() {
    let x = random::<f32>(400_000, 9, |r| (r as u32) >> 3);
    let mut want = x.to_vec().unwrap();
    want.sort_by(f32::total_cmp);
    assert!(
        elements(&sort(x.clone(), 0, false).unwrap())
            .iter()
            .zip(&want)
            .all(|(a, b)| a.to_bits() == b.to_bits())
    );
    let (values, places) = sort_with_indices::<f32, u32>(&x, 0, true).unwrap();
    let (values, places) = (values.to_vec().unwrap(), places.to_vec().unwrap());
    let original = x.to_vec().unwrap();
    for i in 0..want.len() {
        assert_eq!(values[i].to_bits(), original[places[i] as usize].to_bits());
        assert_eq!(values[i].to_bits(), want[want.len() - 1 - i].to_bits());
        assert!(
            i == 0 || values[i - 1].to_bits() != values[i].to_bits() || places[i - 1] < places[i]
        );
    }
    let (top, _) = topk::<f32, i64>(&x, 0, 1000, false).unwrap();
    assert!(elements(&top).iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()));
}

/// 0/0 of x86 has the sign set: NaN of either sign is greater than every number, as for `max`.
#[test]
fn every_nan_is_the_greatest_whatever_its_sign() {
    macro_rules! check {
        ($($t:ident)*) => {$({
            let of = |x: f64| <$t as t4a_algebra::Numeric>::from_f64(x);
            let nan = of(f64::NAN);
            let negative = <$t>::from_bits(nan.to_bits() | !(<$t>::MAX.to_bits() | nan.to_bits()));
            assert!(negative.is_nan() && negative.is_sign_negative());
            let x = vec![nan, of(1.0), negative, of(f64::INFINITY), of(-2.0), of(f64::NEG_INFINITY)];
            let x = Tensor::from_vec(x, &[6]).unwrap();
            let got: Tensor<i32> = argsort(&x, 0, false).unwrap();
            assert_eq!(elements(&got), [5, 4, 1, 3, 0, 2]);
            let got: Tensor<i32> = argsort(&x, 0, true).unwrap();
            assert_eq!(elements(&got), [2, 0, 3, 1, 4, 5]);
            let (values, got) = super::topk::<$t, i32>(&x, 0, 3, true).unwrap();
            assert_eq!(elements(&got), [2, 0, 3]);
            assert!(elements(&values)[..2].iter().all(|x| x.is_nan()));
            let (values, got) = super::topk::<$t, i32>(&x, 0, 2, false).unwrap();
            assert_eq!((elements(&got), elements(&values)[1]), (vec![5, 4], of(-2.0)));
        })*};
    }
    check!(f64 f32 f16 bf16);
}

#[test]
fn a_unique_tensor_is_sorted_in_place() {
    let x = Tensor::from_fn(&[10, 200], |i| (i * 7919 % 200) as i32).unwrap();
    let ptr = x.as_ptr();
    let y = sort(x, 1, false).unwrap();
    assert_eq!(y.as_ptr(), ptr);
    let z = sort(y.clone(), 1, true).unwrap();
    assert_ne!(z.as_ptr(), ptr);
    assert_eq!((y.get(&[3, 0]), z.get(&[3, 0])), (Some(0), Some(199)));
}

#[test]
fn rejected_arguments() {
    let x = Tensor::from_fn(&[3, 200], |i| i as f32).unwrap();
    assert!(matches!(sort(x.clone(), 2, false), Err(TensorError::Axis { axis: 2, rank: 2, .. })));
    assert!(matches!(sort(Tensor::full(&[], 1).unwrap(), 0, false), Err(TensorError::Axis { .. })));
    assert!(matches!(topk::<f32, i32>(&x, 1, 201, true), Err(TensorError::Value { .. })));
    assert!(matches!(
        argsort::<f32, i8>(&x, 1, false),
        Err(TensorError::Value { op: "argsort", .. })
    ));
    assert!(argsort::<f32, u8>(&x, 1, false).is_ok());
    assert_eq!(topk::<f32, i32>(&x, 1, 0, true).unwrap().0.shape(), [3, 0]);
}

/// Zeros of both signs are equal: they keep their order and their signs.
#[test]
fn zeros_keep_their_places() {
    fn zeros<T: TotalOrder>(from: impl Fn(f64) -> T, bits: impl Fn(T) -> u64) {
        let n = 1000;
        let x = Tensor::from_fn(&[n], |i| from([0.0, -0.0, -1.0, 2.0, -0.0][i % 5])).unwrap();
        for descending in [false, true] {
            let (values, places) = sort_with_indices::<T, i64>(&x, 0, descending).unwrap();
            let args: Tensor<i64> = argsort(&x, 0, descending).unwrap();
            let keep = |i: &usize| ![2, 3].contains(&(i % 5));
            let before = (0..n).filter(|i| i % 5 == if descending { 3 } else { 2 });
            let wanted: Vec<usize> = before.chain((0..n).filter(keep)).collect();
            for (i, &place) in wanted.iter().enumerate() {
                assert_eq!(places.get(&[i]), Some(place as i64), "{descending} {i}");
                assert_eq!(args.get(&[i]), Some(place as i64));
                let [got, value] = [values.get(&[i]), x.get(&[place])].map(|x| bits(x.unwrap()));
                assert_eq!(got, value, "{descending} {i}");
            }
            for k in [4, 210, 300] {
                let (top, places) = topk::<T, i64>(&x, 0, k, descending).unwrap();
                for (i, &place) in wanted.iter().take(k).enumerate() {
                    assert_eq!(places.get(&[i]), Some(place as i64), "{descending} {k} {i}");
                    let [got, value] = [top.get(&[i]), x.get(&[place])].map(|x| bits(x.unwrap()));
                    assert_eq!(got, value);
                }
            }
        }
    }
    zeros::<f64>(|x| x, f64::to_bits);
    zeros::<f32>(|x| x as f32, |x| x.to_bits().into());
    zeros::<f16>(f16::from_f64, |x| x.to_bits().into());
    zeros::<bf16>(bf16::from_f64, |x| x.to_bits().into());
}
