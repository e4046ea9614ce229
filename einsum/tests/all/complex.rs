//! Contractions of pairs of arrays as complex numbers: against the loops of the definition over complex numbers, and
//! their derivatives against finite differences.

use std::sync::Arc;

use crate::oracle::{Case, naive, networks};
use proptest::prelude::*;
use t4a_algebra::{Field, Float, Standard, c32, c64};
use t4a_diff::{
    Array, Eager, Kept, Meta, OnBatch, OnPairs, Operation, Pairs, Reverse, Value, check,
};
use t4a_einsum::{Contraction, Einsum, EinsumError, FloatSemiring, Plan, Subscripts};
use t4a_tensor::{AnyTensor, DType, Element, Tensor, TensorError};

const SUBSCRIPTS: [(&str, &[&[usize]]); 14] = [
    ("ij,jk->ik", &[&[3, 4], &[4, 2]]),
    ("bij,bjk->bik", &[&[2, 3, 4], &[2, 4, 3]]),
    ("jb,bj->b", &[&[3, 2], &[2, 3]]),
    ("i,j->ij", &[&[3], &[4]]),
    ("ij,ij->ij", &[&[3, 2], &[3, 2]]),
    ("ia,jb->ij", &[&[3, 2], &[2, 3]]),
    ("ij,jk->ik", &[&[3, 1], &[4, 2]]),
    ("iij,jkk->ki", &[&[2, 2, 3], &[3, 2, 2]]),
    ("i,i->ii", &[&[3], &[3]]),
    ("ij->j", &[&[3, 4]]),
    ("ij->", &[&[3, 4]]),
    ("ii->i", &[&[3, 3]]),
    ("ij,j->i", &[&[3, 0], &[0]]),
    ("ij,jk,kl,l->i", &[&[2, 3], &[3, 2], &[2, 3], &[3]]),
];

fn contraction(text: &str, shapes: &[&[usize]]) -> Contraction {
    let plan = Einsum::new(text).unwrap().plan(shapes, 16).unwrap();
    Contraction { plan, semiring: FloatSemiring::Standard }
}

fn noise(shape: &[usize], seed: u64) -> Eager {
    check::noise(&check::array(shape, |_| 0.0), seed)
}

fn pairs(shapes: &[&[usize]]) -> Vec<Value<Eager>> {
    let part = |i: usize| Value::Float(noise(shapes[i / 2], 3 + i as u64));
    (0..2 * shapes.len()).map(part).collect()
}

/// Forward, both vjps, jvp and second derivatives, with every choice of conjugated operands.
#[test]
fn rules_agree_with_differences() {
    for (text, shapes) in SUBSCRIPTS {
        for conj in [[false, false], [true, false], [false, true], [true, true]] {
            let op = Pairs { op: contraction(text, shapes), conj };
            check::operation(&op, &pairs(shapes), 1e-7);
        }
    }
}

/// Small integers, different for every operand and part, so that sums are exact.
fn part<T: Float>(shape: &[usize], seed: usize) -> Tensor<T> {
    Tensor::from_fn(shape, |i| T::from_f64(((i * 7919 + seed * 104_729 + 13) % 11) as f64 - 4.0))
        .unwrap()
}

fn close<C: Field>(what: &str, plan: &Plan, got: &[Eager], want: &[C])
where
    C::Real: Element,
{
    for (got, take) in got.iter().zip([C::re, C::im]) {
        assert_eq!(got.shape(), plan.shape(), "{what} {plan}");
        let got = got.tensor().unwrap().typed::<C::Real>().unwrap().to_vec().unwrap();
        let want: Vec<C::Real> = want.iter().map(|&z| take(z)).collect();
        assert!(got == want, "{what} {plan}: {got:?}, wanted {want:?}");
    }
}

fn against_loops<C: Field + Element>(case: &Case)
where
    C::Real: Element,
{
    let shapes = case.shapes();
    let parts: Vec<Tensor<C::Real>> =
        (0..2 * shapes.len()).map(|i| part(&shapes[i / 2], i)).collect();
    let joined = |i: usize, conj: bool| {
        let (re, im) = (parts[2 * i].to_vec().unwrap(), parts[2 * i + 1].to_vec().unwrap());
        let numbers = re.into_iter().zip(im).map(|(re, im)| C::from_parts(re, im));
        let numbers = numbers.map(|z| if conj { z.conj() } else { z }).collect();
        Tensor::<C>::from_vec(numbers, &shapes[i]).unwrap()
    };
    let subscripts = Subscripts::new(case.inputs.clone(), case.output.clone());
    let einsum = case.given().into_iter().fold(subscripts.into(), |e: Einsum, (l, n)| e.size(l, n));
    let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    let plan: Arc<Plan> = einsum.plan(&views, size_of::<C>()).unwrap();
    let op = Contraction { plan: plan.clone(), semiring: FloatSemiring::Standard };
    let values = |x: &[Tensor<C::Real>]| -> Vec<Value<Eager>> {
        x.iter().map(|x| Value::Float(Eager::from(AnyTensor::from(x.clone())))).collect()
    };
    let n = parts.len();
    for conj in [[false, false], [true, false], [true, true]] {
        let operands: Vec<Tensor<C>> =
            (0..shapes.len()).map(|i| joined(i, conj.get(i) == Some(&true))).collect();
        let operands: Vec<&Tensor<C>> = operands.iter().collect();
        let (_, want) = naive::<Standard, C>(case, &operands);
        let op = Pairs { op: op.clone(), conj };
        let untracked = vec![false; n];
        let engine = op.forward(&values(&parts), &untracked).unwrap();
        close("engine", &plan, &engine.results, &want);
        let portable = op.portable(&values(&parts), &untracked).unwrap();
        close("portable", &plan, &portable.results, &want);
        // Parts that are views with different strides.
        let moved = |(i, x): (usize, &Tensor<C::Real>)| {
            let axes: Vec<usize> = (0..x.rank()).rev().collect();
            let turned = x.permute(&axes).unwrap();
            let copy = Tensor::from_vec(turned.to_vec().unwrap(), turned.shape()).unwrap();
            if i % 2 == 0 { copy.permute(&axes).unwrap() } else { x.clone() }
        };
        let views: Vec<_> = parts.iter().enumerate().map(moved).collect();
        let out = op.forward(&values(&views), &untracked).unwrap();
        close("views", &plan, &out.results, &want);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn networks_agree_with_loops(case in networks()) {
        against_loops::<c64>(&case);
        against_loops::<c32>(&case);
    }
}

/// Sizes larger than those of products without packing, a long sum, and few columns.
#[test]
fn sizes_of_every_kernel_agree_with_products_of_parts() {
    let cases: [(&str, &[&[usize]]); 6] = [
        ("ij,jk->ik", &[&[120, 90], &[90, 100]]),
        ("ij,jk->ik", &[&[40, 30], &[30, 50]]),
        ("ij,j->i", &[&[300, 200], &[200]]),
        ("ij,jk->ik", &[&[200, 100], &[100, 3]]),
        ("ijb,jkb->ikb", &[&[4, 4, 100], &[4, 4, 100]]),
        ("iajb,kbla->ikjl", &[&[5, 6, 7, 8], &[5, 8, 7, 6]]),
    ];
    for (text, shapes) in cases {
        let op = Pairs { op: contraction(text, shapes), conj: [false, true] };
        let inputs = pairs(shapes);
        let engine = op.forward(&inputs, &[false; 4]).unwrap().results;
        let portable = op.portable(&inputs, &[false; 4]).unwrap().results;
        for (x, y) in engine.iter().zip(&portable) {
            let difference = check::elements(&x.sub(y));
            assert!(difference.iter().all(|d| d.abs() < 1e-11), "{text}");
        }
    }
}

/// A loss of one part only: the missing cotangent is zero.
#[test]
fn a_missing_cotangent_is_zero() {
    let shapes: [&[usize]; 2] = [&[3, 4], &[4, 2]];
    for conj in [[false, false], [true, false], [false, true], [true, true]] {
        let op = Pairs { op: contraction("ij,jk->ik", &shapes), conj };
        let inputs = pairs(&shapes);
        let out = op.forward(&inputs, &[true; 4]).unwrap();
        let kept = Kept::new(op.keep(&[true; 4]), &inputs, &out);
        let g = noise(&[3, 2], 5);
        let zero = g.full(&[3, 2], 0.0);
        for part in 0..2 {
            let vjp = |other: Option<Eager>| {
                let mut cotangents = vec![other; 2];
                cotangents[part] = Some(g.clone());
                let cotangents = &cotangents[..];
                let wanted = &[true; 4];
                op.fused_vjp(&Reverse { kept: &kept, cotangents, hidden: &[], wanted }).unwrap()
            };
            for (x, y) in vjp(None).iter().zip(vjp(Some(zero.clone()))) {
                let difference = check::elements(&x.as_ref().unwrap().sub(&y.unwrap()));
                assert!(difference.iter().all(|d| d.abs() < 1e-14));
            }
        }
    }
}

/// The cotangent of one factor needs only the other one.
#[test]
fn a_product_keeps_the_other_factor() {
    let shapes: [&[usize]; 2] = [&[3, 4], &[4, 2]];
    let op = Pairs::new(contraction("ij,jk->ik", &shapes));
    let inputs = pairs(&shapes);
    let out = op.forward(&inputs, &[true, true, false, false]).unwrap();
    for (tracked, wanted) in
        [([true, false, false, false], [0, 0, 1, 1]), ([false, false, true, true], [1, 1, 0, 0])]
    {
        let kept = Kept::new(op.keep(&tracked), &inputs, &out);
        let given = [0, 1, 2, 3].map(|i| usize::from(kept.given(i).is_some()));
        assert_eq!(given, wanted);
        let cotangents = [Some(out.results[0].clone()), None];
        let own = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &tracked };
        let all = op.fused_vjp(&own).unwrap();
        assert_eq!([all[0].is_some(), all[2].is_some()], [tracked[0], tracked[2]]);
    }
}

/// The batch is one more label if both parts of an operand have it; otherwise the operation is not batched.
#[test]
fn a_batch_of_pairs_is_a_label() {
    let shapes: [&[usize]; 2] = [&[3, 4], &[4, 2]];
    let op = Pairs { op: contraction("ij,jk->ik", &shapes), conj: [false, true] };
    let Some(OnBatch::Front { op: batched, .. }) = op.on_batch(5, &[true, true, false, false])
    else {
        panic!("a batch of contractions is a contraction");
    };
    assert!(op.on_batch(5, &[true, false, false, false]).is_none());
    let mut inputs = pairs(&shapes);
    let stack = [noise(&[5, 3, 4], 1), noise(&[5, 3, 4], 2)];
    inputs.splice(0..2, stack.iter().cloned().map(Value::Float));
    let all = batched.forward(&inputs, &[false; 4]).unwrap().results;
    for example in 0..5 {
        let one = stack.each_ref().map(|x| Value::Float(x.narrow(0, example, 1).reshape(&[3, 4])));
        let inputs = [&one[..], &inputs[2..]].concat();
        for (x, y) in op.forward(&inputs, &[false; 4]).unwrap().results.iter().zip(&all) {
            let difference = check::elements(&x.sub(&y.narrow(0, example, 1).reshape(&[3, 2])));
            assert!(difference.iter().all(|d| d.abs() < 1e-14));
        }
    }
}

#[test]
fn pairs_are_checked_before_any_work() {
    let shapes: [&[usize]; 2] = [&[3, 4], &[4, 2]];
    let op = Pairs::new(contraction("ij,jk->ik", &shapes));
    let meta = |shape: &[usize], dtype| Meta { shape: shape.to_vec(), dtype };
    let (a, b) = (meta(&[3, 4], DType::F32), meta(&[4, 2], DType::F32));
    let fits = [a.clone(), a.clone(), b.clone(), b.clone()];
    assert_eq!(op.results(&fits).unwrap(), vec![meta(&[3, 2], DType::F32); 2]);
    let error = op.results(&fits[..3]).unwrap_err();
    assert!(matches!(error, EinsumError::Tensor(TensorError::ShapeMismatch { .. })), "{error}");
    let error = op.results(&fits[..2]).unwrap_err();
    assert_eq!(error, EinsumError::OperandCount { expected: 2, given: 1 });
    let error = op.results(&[a.clone(), b.clone(), b.clone(), b.clone()]).unwrap_err();
    assert!(matches!(error, EinsumError::Tensor(TensorError::ShapeMismatch { .. })), "{error}");
    let wide = meta(&[3, 4], DType::F64);
    let error = op.results(&[a.clone(), wide, b.clone(), b.clone()]).unwrap_err();
    assert!(matches!(error, EinsumError::Tensor(TensorError::DTypeMismatch { .. })), "{error}");
    let tropical = Contraction { semiring: FloatSemiring::MaxPlus, ..op.op.clone() };
    let error = Pairs::new(tropical).results(&fits).unwrap_err();
    assert!(matches!(error, EinsumError::Tensor(TensorError::DTypeUnsupported { .. })), "{error}");
    let plan = Einsum::new("ij->").unwrap().memory(60).plan(&[&[3, 4]], 16).unwrap();
    assert!(!plan.sliced().is_empty());
    let sliced = Contraction { plan, semiring: FloatSemiring::Standard };
    assert!(matches!(
        Pairs::new(sliced).results(&[a.clone(), a]),
        Err(EinsumError::NotSliced { .. })
    ));
}

/// Parts of long vectors are not joined; small operands and those with many steps are. A network is joined if all of
/// its steps are.
#[test]
fn sizes_choose_the_kernel() {
    let joined =
        |text: &str, shapes: &[&[usize]]| match contraction(text, shapes).on_pairs().unwrap() {
            OnPairs::Linear => panic!("two operands or more"),
            OnPairs::Bilinear { joined, .. } | OnPairs::Steps { joined, .. } => joined,
        };
    assert!(joined("ij,jk->ik", &[&[4, 4], &[4, 4]]));
    assert!(joined("ij,jk->ik", &[&[256, 256], &[256, 256]]));
    assert!(joined("i,j->ij", &[&[1000], &[1000]]));
    assert!(!joined("ij,j->i", &[&[1000, 1000], &[1000]]));
    assert!(!joined("ij,jk->ik", &[&[1000, 1000], &[1000, 8]]));
    assert!(!joined("ij,jk->ik", &[&[1024, 1024], &[1024, 1024]]));
    assert!(joined("ij,jk,kl->il", &[&[4, 4][..]; 3]));
    assert!(!joined("ij,jk,k->i", &[&[1000, 1000], &[1000, 1000], &[1000]]));
}

/// There is no complex dtype of 16-bit parts: products of parts are used.
#[test]
fn sixteen_bits_are_products_of_parts() {
    let shapes: [&[usize]; 2] = [&[3, 4], &[4, 2]];
    let op = Pairs::new(contraction("ij,jk->ik", &shapes));
    let small = |i: usize| {
        let x = AnyTensor::from(part::<f32>(shapes[i / 2], i)).cast(DType::BF16).unwrap();
        Value::Float(Eager::from(x))
    };
    let wide = |i: usize| Value::Float(Eager::from(AnyTensor::from(part::<f32>(shapes[i / 2], i))));
    let x: Vec<_> = (0..4).map(small).collect();
    let y: Vec<_> = (0..4).map(wide).collect();
    let x = op.forward(&x, &[false; 4]).unwrap().results;
    let y = op.forward(&y, &[false; 4]).unwrap().results;
    for (x, y) in x.iter().zip(&y) {
        assert_eq!(x.dtype(), DType::BF16);
        let (x, y) = (check::elements(x), check::elements(y));
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() <= y.abs() / 100.0 + 1.0));
    }
}
