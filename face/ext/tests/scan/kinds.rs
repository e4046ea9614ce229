//! Integers and booleans among consts, carries, xs and ys, against plain loops.

use burn_backend::DType;
use burn_tensor::{Bool, Int};

use super::ext::scan::{FixedPoint, ScanError, fixed_point};
use super::ext::tree::TreeError;
use super::*;

const TOKENS: [i64; 9] = [3, 0, 2, 2, 1, 3, 3, 0, 1];
const KEPT: [bool; 9] = [true, true, false, true, true, false, true, true, true];

pub(super) fn ints(values: &[i64]) -> Tensor<1, Int> {
    Tensor::from_data(values, (&device(), DType::I64))
}

fn bools(values: &[bool]) -> Tensor<1, Bool> {
    Tensor::from_bool(burn_tensor::TensorData::from(values), &device())
}

/// A state, the number of tokens kept, and whether one of them was 2.
type Carry = (Tensor<1>, (Tensor<1, Int>, Tensor<1, Bool>));
type Ys = (Tensor<2>, Tensor<2, Int>, Tensor<2, Bool>);

/// Embeds a token; a token that is not kept leaves the state unchanged. The offset is added to returned tokens.
fn step(
    (table, offset): (Tensor<2>, Tensor<1, Int>),
    (h, (count, seen)): Carry,
    (token, kept): (Tensor<1, Int>, Tensor<1, Bool>),
) -> (Carry, (Tensor<1>, Tensor<1, Int>, Tensor<1, Bool>)) {
    let row = table.select(0, token.clone()).reshape([3]);
    let next = (h.clone() * 0.5 + row).tanh();
    let h = h.mask_where(kept.clone().expand([3]), next);
    let count = count + kept.clone().int().cast(burn_tensor::IntDType::I64);
    let seen = seen.bool_or(token.clone().equal_elem(2).bool_and(kept));
    let y = (h.clone() * 2.0, token + offset + count.clone(), seen.clone());
    ((h, (count, seen)), y)
}

fn begin() -> Carry {
    (floats(&[0.1, -0.2, 0.3]), (ints(&[0]), bools(&[false])))
}

fn scanned(table: Tensor<2>, options: &Options) -> (Carry, Ys) {
    let consts = (table, ints(&[100]));
    scan(step, consts, begin(), (ints(&TOKENS), bools(&KEPT)), options).unwrap()
}

/// Tokens, counts and the flag of token 2, in the order of steps.
fn by_hand(reverse: bool) -> Vec<(i64, i64, bool)> {
    let order: Vec<usize> = if reverse { (0..9).rev().collect() } else { (0..9).collect() };
    let (mut count, mut seen) = (0, false);
    order
        .into_iter()
        .map(|t| {
            count += i64::from(KEPT[t]);
            seen |= TOKENS[t] == 2 && KEPT[t];
            (TOKENS[t], count, seen)
        })
        .collect()
}

pub(super) fn read<const D: usize>(x: Tensor<D, Int>) -> Vec<i64> {
    x.into_data().iter::<i64>().collect()
}

fn truths<const D: usize>(x: Tensor<D, Bool>) -> Vec<bool> {
    x.into_data().iter::<bool>().collect()
}

#[test]
fn counters_tokens_and_masks_are_carried_and_stacked() {
    for reverse in [false, true] {
        for memory in POLICIES {
            for tracked in [false, true] {
                let options = Options::default().memory(memory).reverse(reverse);
                let table = random::<2>([4, 3], 5);
                let table = if tracked { table.require_grad() } else { table };
                let ((h, (count, seen)), (ys, tokens, of_seen)) = scanned(table, &options);
                let mut want = by_hand(reverse);
                let (_, last, seen_last) = want[8];
                assert_eq!((read(count), truths(seen)), (vec![last], vec![seen_last]));
                if reverse {
                    want.reverse();
                }
                let of = |(token, count, _): &(i64, i64, bool)| token + 100 + count;
                assert_eq!(tokens.dims(), [9, 1]);
                assert_eq!(read(tokens), want.iter().map(of).collect::<Vec<_>>());
                assert_eq!(truths(of_seen), want.iter().map(|x| x.2).collect::<Vec<_>>());
                let end = ys.narrow(0, if reverse { 0 } else { 8 }, 1);
                close(&numbers(end), &numbers(h * 2.0), 1e-15);
            }
        }
    }
}

#[test]
fn gradients_pass_by_what_has_none() {
    let loss = |table: Tensor<2>, options: &Options| {
        let ((h, _), (ys, ..)) = scanned(table, options);
        h.powi_scalar(2).sum() + (ys.clone() * ys).sum() * 0.1
    };
    for reverse in [false, true] {
        let value = |k: usize, d: f64| {
            let mut unit = [0.0; 12];
            unit[k] = d;
            let table = random::<2>([4, 3], 5) + floats(&unit).reshape([4, 3]);
            numbers(loss(table, &Options::default().reverse(reverse)))[0]
        };
        let want: Vec<f64> = (0..12).map(|k| (value(k, 1e-5) - value(k, -1e-5)) / 2e-5).collect();
        for memory in POLICIES {
            let table = random::<2>([4, 3], 5).require_grad();
            let options = Options::default().memory(memory).reverse(reverse);
            let gradient = table.grad(&loss(table.clone(), &options).backward()).unwrap();
            close(&numbers(gradient), &want, 1e-8);
        }
    }
}

#[test]
fn a_scan_of_integers_alone_has_no_node() {
    let x = floats(&[1.5]).require_grad();
    let step = |_: Tensor<1>, (a, b): (Tensor<1, Int>, Tensor<1, Int>), (): ()| {
        ((b.clone(), a.clone() + b), a)
    };
    let options = Options::default().length(50);
    let begin = (ints(&[0]), ints(&[1]));
    type Pair = (Tensor<1, Int>, Tensor<1, Int>);
    let ((a, _), ys): (Pair, Tensor<2, Int>) = scan(step, x, begin, (), &options).unwrap();
    assert_eq!(read(a), [12_586_269_025]);
    assert_eq!(read(ys)[47..], [2_971_215_073, 4_807_526_976, 7_778_742_049]);
}

#[test]
fn integers_beyond_those_of_floats_are_exact() {
    let step = |(): (), c: Tensor<1, Int>, x: Tensor<1, Int>| (c.clone() * x.clone() + x, c);
    let xs = ints(&[i64::MAX - 7, 1, 1]);
    let (last, ys): (Tensor<1, Int>, Tensor<2, Int>) =
        scan(step, (), ints(&[0]), xs, &Options::default()).unwrap();
    assert_eq!(read(last), [i64::MAX - 5]);
    assert_eq!(read(ys), [0, i64::MAX - 7, i64::MAX - 6]);
}

#[test]
fn no_steps_give_integers_of_no_length() {
    let consts = (random::<2>([4, 3], 5), ints(&[100]));
    let none = (ints(&[]), bools(&[]));
    let (_, (ys, tokens, seen)): (Carry, Ys) =
        scan(step, consts, begin(), none, &Options::default()).unwrap();
    assert_eq!((ys.dims(), tokens.dims(), seen.dims()), ([0, 3], [0, 1], [0, 1]));
}

#[test]
fn integers_of_another_size_are_an_error() {
    let narrower = |(): (), c: Tensor<1, Int>, (): ()| {
        let narrow = c.cast(burn_tensor::IntDType::I32);
        (narrow, ())
    };
    let options = Options::default().length(2);
    let error: Scanned<Tensor<1, Int>> = scan(narrower, (), ints(&[1]), (), &options);
    let Some(ScanError::Carry { leaves }) = error.err() else { panic!("no error") };
    assert_eq!(leaves[0].path, ".");
}

#[test]
fn a_fixed_point_has_no_integers() {
    let same = |(): (), c: (Tensor<1>, Tensor<1, Int>)| c;
    let init = (floats(&[1.0]), ints(&[1]));
    let error = fixed_point(same, (), init, &FixedPoint::default()).err();
    let reason = TreeError::NotFloats { path: ".1".into(), kind: "integers" };
    assert_eq!(error, Some(ScanError::Tree { what: "init", error: reason }));
}
