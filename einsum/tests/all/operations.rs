//! Contractions as operations: rules over all semirings against each other and against finite differences.

use std::sync::Arc;

use t4a_algebra::{MaxPlus, Semiring, Signed};
use t4a_diff::{Array, Eager, Kept, Meta, Operation, Outcome, Reverse, Value, check};
use t4a_einsum::{
    ArraySemiring, Contraction, Custom, Differentiable, Einsum, EinsumError, FloatSemiring, Plan,
    Share,
};

/// Elements of contractions: products, sums of one operand, diagonals on both sides, axes that broadcast or are
/// repeated, networks.
const SUBSCRIPTS: [(&str, &[&[usize]]); 14] = [
    ("ij,jk->ik", &[&[3, 4], &[4, 2]]),
    ("bij,bjk->bik", &[&[2, 3, 4], &[2, 4, 3]]),
    ("jb,bj->b", &[&[3, 2], &[2, 3]]),
    ("i,j->ij", &[&[3], &[4]]),
    ("ia,jb->ij", &[&[3, 2], &[2, 3]]),
    ("ija,jkb->ki", &[&[3, 2, 2], &[2, 3, 2]]),
    ("ij,jk->ik", &[&[3, 1], &[4, 2]]),
    ("iij,jkk->ki", &[&[2, 2, 3], &[3, 2, 2]]),
    ("i,i->ii", &[&[3], &[3]]),
    ("ij->j", &[&[3, 4]]),
    ("ij->", &[&[3, 4]]),
    ("ij->ji", &[&[3, 4]]),
    ("i->nii", &[&[3]]),
    ("ij,jk,kl,l->i", &[&[2, 3], &[3, 2], &[2, 3], &[3]]),
];

fn plan(text: &str, shapes: &[&[usize]]) -> Arc<Plan> {
    let einsum = Einsum::new(text).unwrap();
    let einsum = if text.contains('n') { einsum.size('n', 2) } else { einsum };
    einsum.plan(shapes, 8).unwrap()
}

/// Numbers between 0.1 and 0.9 without ties.
fn operands(shapes: &[&[usize]]) -> Vec<Value<Eager>> {
    let one = |(i, shape): (usize, &&[usize])| {
        let x = check::noise(&check::array(shape, |_| 0.0), 3 + i as u64);
        Value::Float(x.scale(0.4).shift(0.5))
    };
    shapes.iter().enumerate().map(one).collect()
}

/// Forward, both vjps and jvp over all semirings, against each other and against finite differences.
#[test]
fn rules_agree_with_differences() {
    for &semiring in FloatSemiring::ALL {
        for (text, shapes) in SUBSCRIPTS {
            let op = Contraction { plan: plan(text, shapes), semiring };
            check::operation(&op, &operands(shapes), 1e-7);
        }
    }
}

/// User-defined (max, +), whose argmax is found by a search.
#[derive(Clone, Copy)]
struct Theirs;

impl<T: Signed> Semiring<T> for Theirs {
    const ZERO: T = <MaxPlus as Semiring<T>>::ZERO;
    const ONE: T = <MaxPlus as Semiring<T>>::ONE;
    fn add(a: T, b: T) -> T {
        <MaxPlus as Semiring<T>>::add(a, b)
    }
    fn mul(a: T, b: T) -> T {
        <MaxPlus as Semiring<T>>::mul(a, b)
    }
}

impl<T: Signed> Differentiable<T> for Theirs {
    const SHARE: Share = Share::Argmax;
    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }
}

impl ArraySemiring for Theirs {
    type Tag = Custom<Self>;
    const TAG: Custom<Self> = Custom::NEW;
    fn product<A: Array>(a: &A, b: &A) -> A {
        MaxPlus::product(a, b)
    }
    fn sum<A: Array>(terms: &A, axis: usize) -> A {
        <MaxPlus as ArraySemiring>::sum(terms, axis)
    }
}

#[test]
fn semirings_of_users_have_the_same_rules() {
    for (text, shapes) in SUBSCRIPTS {
        let op = Contraction { plan: plan(text, shapes), semiring: Theirs::TAG };
        check::operation(&op, &operands(shapes), 1e-7);
    }
}

fn cotangents(
    op: &Contraction,
    inputs: &[Value<Eager>],
    out: &Outcome<Eager>,
    g: &Eager,
    fused: bool,
) -> Vec<Vec<f64>> {
    let wanted = vec![true; inputs.len()];
    let kept = Kept::new(op.keep(&wanted), inputs, out);
    let cotangents = [Some(g.clone())];
    let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &wanted };
    let all = if fused { op.fused_vjp(&reverse) } else { op.vjp(&reverse) };
    all.unwrap().iter().map(|x| check::elements(x.as_ref().unwrap())).collect()
}

/// Ties, empty sums, infinities: the argmax of the engine and that of the portable definition give the same cotangents
/// in both rules.
#[test]
fn an_argmax_serves_both_rules() {
    let (inf, zero) = (f64::INFINITY, f64::NEG_INFINITY);
    let a = [1.0, 1.0, 0.0, zero, zero, zero, inf, 2.0, inf, 0.0, zero, 3.0];
    let b = [0.0, zero, 0.0, zero, 1.0, zero, 0.5, zero];
    let subscripts = [("ij,jk->ik", [4, 3], [3, 2]), ("ji,kj->ki", [3, 4], [2, 3])];
    for (text, m, n) in subscripts {
        for semiring in [FloatSemiring::MaxPlus, FloatSemiring::MinPlus, FloatSemiring::MaxMin] {
            let tensor = |x: &[f64], shape: [usize; 2]| {
                Value::Float(check::array(&shape, |i| x[i % x.len()]))
            };
            let inputs = [tensor(&a, m), tensor(&b, n)];
            let op = Contraction { plan: plan(text, &[&m, &n]), semiring };
            let tracked = [true, true];
            let engine = op.forward(&inputs, &tracked).unwrap();
            let portable = op.portable(&inputs, &tracked).unwrap();
            assert_eq!(engine.extra.len(), 1, "{text} {semiring:?}");
            assert_eq!(portable.extra.len(), 1);
            let g = check::noise(&engine.results[0], 5);
            let want = cotangents(&op, &inputs, &engine, &g, true);
            assert_eq!(cotangents(&op, &inputs, &engine, &g, false), want, "{text} {semiring:?}");
            assert_eq!(cotangents(&op, &inputs, &portable, &g, false), want, "{text} {semiring:?}");
            // Without a tracked operand no argmax is stored, and the rule searches for it.
            let plain = op.forward(&inputs, &[false, false]).unwrap();
            assert!(plain.extra.is_empty());
            assert_eq!(cotangents(&op, &inputs, &plain, &g, true), want, "{text} {semiring:?}");
        }
    }
}

/// Over (+, ×) a factor is stored only if the other one needs a cotangent.
#[test]
fn a_product_keeps_what_its_rule_reads() {
    let shapes: [&[usize]; 2] = [&[3, 4], &[4, 2]];
    let op = Contraction { plan: plan("ij,jk->ik", &shapes), semiring: FloatSemiring::Standard };
    let inputs = operands(&shapes);
    let out = op.forward(&inputs, &[true, false]).unwrap();
    let kept = Kept::new(op.keep(&[true, false]), &inputs, &out);
    assert!(kept.given(0).is_none() && kept.given(1).is_some());
    let cotangents = [Some(out.results[0].clone())];
    let wanted = [true, false];
    let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &wanted };
    let all = op.fused_vjp(&reverse).unwrap();
    assert!(all[0].is_some() && all[1].is_none());
}

#[test]
fn values_compare_and_print() {
    let shapes: [&[usize]; 2] = [&[3, 4], &[4, 2]];
    let op = |semiring| Contraction { plan: plan("ij,jk->ik", &shapes), semiring };
    assert_eq!(op(FloatSemiring::MaxPlus), op(FloatSemiring::MaxPlus));
    assert_ne!(op(FloatSemiring::MaxPlus), op(FloatSemiring::MinPlus));
    assert_eq!(
        op(FloatSemiring::MaxPlus).to_string(),
        "max_plus einsum ij,jk->ik of [3, 4], [4, 2]"
    );
}

#[test]
fn operands_are_checked_before_any_work() {
    let shapes: [&[usize]; 2] = [&[3, 4], &[4, 2]];
    let op = Contraction { plan: plan("ij,jk->ik", &shapes), semiring: FloatSemiring::MaxPlus };
    let meta = |shape: &[usize], dtype| Meta { shape: shape.to_vec(), dtype };
    use t4a_tensor::DType::{F32, F64, I32};
    assert_eq!(
        op.results(&[meta(&[3, 4], F32), meta(&[4, 2], F32)]).unwrap()[0],
        meta(&[3, 2], F32)
    );
    let error = op.results(&[meta(&[3, 4], F32)]).unwrap_err();
    assert_eq!(error, EinsumError::OperandCount { expected: 2, given: 1 });
    let error = op.results(&[meta(&[3, 4], F32), meta(&[4, 2], F64)]).unwrap_err();
    assert!(matches!(error, EinsumError::DTypeMismatch { operand: 1, .. }), "{error}");
    let error = op.results(&[meta(&[3, 4], F32), meta(&[2, 4], F32)]).unwrap_err();
    assert!(matches!(error, EinsumError::PlanShape { operand: 1, .. }), "{error}");
    let error = op.results(&[meta(&[3, 4], I32), meta(&[4, 2], I32)]).unwrap_err();
    assert!(error.to_string().contains("a float"), "{error}");
}

#[test]
fn a_sliced_sum_of_one_operand_keeps_it_for_the_reverse_pass() {
    let plan = Einsum::new("ij->").unwrap().memory(30).plan(&[&[3, 4]], 8).unwrap();
    assert!(!plan.sliced().is_empty());
    let op = Contraction { plan, semiring: FloatSemiring::Standard };
    let inputs = operands(&[&[3, 4]]);
    let out = Eager::apply(&op, &inputs, &[true]).unwrap();
    let kept = Kept::new(op.keep(&[true]), &inputs, &out);
    let g = out.results[0].full(&[], 2.0);
    let reverse = Reverse { kept: &kept, cotangents: &[Some(g)], hidden: &[], wanted: &[true] };
    let got = op.fused_vjp(&reverse).unwrap().remove(0).unwrap();
    assert_eq!(check::elements(&got), [2.0; 12]);
}
