//! Every operation against finite differences, its adjoint, and the engine's kernels.

use t4a_diff::check::{array, noise, operation};
use t4a_diff::{Array, Eager, Operation, Value};
use t4a_tensor::{AnyTensor, Tensor};

use super::*;

const TOLERANCE: f64 = 1e-8;

fn random(shape: &[usize], seed: u64) -> Value<Eager> {
    Value::Float(noise(&array(shape, |_| 0.0), seed))
}

fn metas(inputs: &[Value<Eager>]) -> Vec<Meta> {
    let meta = |x: &Value<Eager>| {
        let x = tensor(x).unwrap();
        Meta { shape: x.shape().to_vec(), dtype: x.dtype() }
    };
    inputs.iter().map(meta).collect()
}

#[track_caller]
fn check<O: Operation<Error = TensorError>>(op: O, inputs: &[Value<Eager>]) {
    let results = op.results(&metas(inputs)).unwrap();
    let tracked = vec![true; inputs.len()];
    let out = op.forward(inputs, &tracked).unwrap();
    assert_eq!(out.results[0].shape(), results[0].shape);
    operation(&op, inputs, TOLERANCE);
}

#[test]
fn softmax() {
    for axis in 0..3 {
        let x = [random(&[3, 4, 5], 1)];
        check(Softmax { axis }, &x);
        check(LogSoftmax { axis }, &x);
    }
}

#[test]
fn norms() {
    let (x, gamma, beta) = (random(&[2, 3, 6], 1), random(&[6], 2), random(&[6], 3));
    let all = [x, gamma, beta];
    check(LayerNorm { epsilon: 1e-3 }, &all);
    check(LayerNorm { epsilon: 1e-3 }, &all[..2]);
    check(RmsNorm { epsilon: 1e-3 }, &all[..2]);
}

#[test]
fn cross_entropy() {
    let targets = Tensor::from_vec(vec![2i32, 0, 4], &[3]).unwrap();
    let targets = Value::Integers(Eager::from(AnyTensor::from(targets)));
    check(CrossEntropy, &[random(&[3, 5], 1), targets]);
}

#[test]
fn attention() {
    let [q, k, v] = [random(&[2, 2, 3, 4], 1), random(&[2, 2, 5, 4], 2), random(&[2, 2, 5, 6], 3)];
    // All keys of one query are masked.
    let hides = |i: usize| i.is_multiple_of(7) || (5..10).contains(&i);
    let mask = Tensor::from_vec((0..15).map(hides).collect::<Vec<bool>>(), &[1, 1, 3, 5]).unwrap();
    let mask = Value::Flags(Eager::from(AnyTensor::from(mask)));
    let bias = random(&[2, 1, 1, 5], 4);
    for causal in [false, true] {
        for softcap in [None, Some(0.7)] {
            let options = AttentionOptions { scale: None, softcap, causal };
            let op = |masked, biased| Attention { options, masked, biased };
            let plain = [q.clone(), k.clone(), v.clone()];
            check(op(false, false), &plain);
            let [q, k, v] = plain;
            check(op(true, false), &[q.clone(), k.clone(), v.clone(), mask.clone()]);
            check(op(false, true), &[q.clone(), k.clone(), v.clone(), bias.clone()]);
            check(op(true, true), &[q, k, v, mask.clone(), bias.clone()]);
        }
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let m = |shape: &[usize]| metas(&[random(shape, 1)]).remove(0);
    assert!(Softmax { axis: 2 }.results(&[m(&[2, 3])]).is_err());
    assert!(Softmax { axis: 0 }.results(&[]).is_err());
    assert!(LayerNorm { epsilon: 0.0 }.results(&[m(&[2, 3]), m(&[2])]).is_err());
    assert!(RmsNorm { epsilon: 0.0 }.results(&[m(&[]), m(&[1])]).is_err());
    assert!(CrossEntropy.results(&[m(&[2, 3]), m(&[2])]).is_err());
    let options = AttentionOptions::default();
    let op = Attention { options, masked: false, biased: false };
    assert!(op.results(&[m(&[1, 1, 2, 3]), m(&[1, 1, 2, 4]), m(&[1, 1, 2, 3])]).is_err());
}
