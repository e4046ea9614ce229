//! Derivatives as operations, for every operation and for nested derivatives, against finite differences.

use t4a_diff::{Array, Eager, Meta, Operation, Value, check};
use t4a_einsum::{Contraction, FloatSemiring};
use t4a_linalg::cholesky::CholeskyOp;
use t4a_linalg::eigh::EighOp;
use t4a_linalg::qr::{Columns, QrOp};
use t4a_linalg::solve::SolveOp;
use t4a_linalg::svd::{SvdOp, Vectors};
use t4a_linalg::{Degeneracy, Linalg, MatrixOp};
use t4a_nn::{CrossEntropy, LayerNorm, Softmax};
use t4a_operations::{
    AnyOperation, ContractionOptions, Jvp, Labelled, MAX_ORDER, OperationError, Vjp, einsum,
};
use t4a_scan::{Cumulative, LinearRecurrence, Running};
use t4a_tensor::{AnyTensor, DType};

use crate::table::{floats, plan, table};

type Case = (AnyOperation, Vec<Value<Eager>>);

fn metas(inputs: &[Value<Eager>]) -> Vec<Meta> {
    let meta = |x: &Value<Eager>| {
        let x = match x {
            Value::Float(x) => x.tensor(),
            Value::Integers(x) => x.tensor(),
            Value::Flags(x) => x.tensor(),
        };
        let x = x.unwrap();
        Meta { shape: x.shape().into(), dtype: x.dtype() }
    };
    inputs.iter().map(meta).collect()
}

fn moving(inputs: &[Value<Eager>]) -> Vec<bool> {
    inputs.iter().map(|x| matches!(x, Value::Float(_))).collect()
}

fn like(meta: &Meta, seed: u64) -> Value<Eager> {
    floats(&meta.shape, seed)
}

/// Vjp of a case with respect to all its float operands, with fixed cotangents for all results.
fn vjp((op, inputs): &Case) -> Case {
    let results = op.results(&metas(inputs)).unwrap();
    let vjp = Vjp::new(op.clone(), vec![true; results.len()], moving(inputs)).unwrap();
    let cotangents = results.iter().enumerate().map(|(i, y)| like(y, 31 + i as u64));
    (vjp.into(), inputs.iter().cloned().chain(cotangents).collect())
}

fn jvp((op, inputs): &Case) -> Case {
    let moving = moving(inputs);
    let of_floats = metas(inputs).into_iter().zip(&moving).filter(|(_, moves)| **moves);
    let tangents = of_floats.enumerate().map(|(i, (x, _))| like(&x, 61 + i as u64));
    let all = inputs.iter().cloned().chain(tangents).collect();
    (Jvp::new(op.clone(), moving).unwrap().into(), all)
}

/// Every operation of the table: forward pass, both modes, and second derivatives through Jvp and Vjp.
#[test]
fn derivatives_are_operations() {
    for case in table() {
        if case.0.check_second_order().is_err() {
            continue;
        }
        for (op, inputs) in [vjp(&case), jvp(&case)] {
            check::operation(&op, &inputs, 1e-6);
        }
    }
}

/// With the results as operands a vjp has the same values, and reads them: results of other operands give other cotangents.
#[test]
fn results_that_are_given_are_not_computed_again() {
    let numbers = |all: &[Eager]| -> Vec<f64> { all.iter().flat_map(check::elements).collect() };
    let run = |op: &AnyOperation, inputs: Vec<Value<Eager>>| {
        numbers(&op.forward(&inputs, &vec![false; inputs.len()]).unwrap().results)
    };
    let mut names = Vec::new();
    for case in table().into_iter().chain(cases()) {
        let (op, inputs) = &case;
        let (plain, operands) = vjp(&case);
        let given = vec![true; operands.len() - inputs.len()];
        let Ok(own) = Vjp::of_results(op.clone(), given, moving(inputs)) else { continue };
        let own = AnyOperation::from(own);
        let results = op.forward(inputs, &vec![false; inputs.len()]).unwrap().results;
        let with = |factor: f64| -> Vec<Value<Eager>> {
            let scale = |x: &Eager| Value::Float(x.scale(factor));
            let (before, behind) = operands.split_at(inputs.len());
            let results = results.iter().map(scale);
            before.iter().cloned().chain(results).chain(behind.iter().cloned()).collect()
        };
        let want = run(&plain, operands.clone());
        let found = run(&own, with(1.0));
        let apart = |x: &[f64], y: &[f64]| {
            x.iter().zip(y).map(|(x, y)| (x - y).abs() / (1.0 + y.abs())).fold(0.0, f64::max)
        };
        assert_eq!(found.len(), want.len(), "{op}");
        assert!(apart(&found, &want) < 1e-12, "{op}: {found:?} and {want:?}");
        // Other results are taken as they are, or refused.
        let inputs = with(1.25);
        let none = vec![false; inputs.len()];
        let is_read = |all: &[Eager]| apart(&numbers(all), &want) > 1e-6;
        if own.forward(&inputs, &none).map_or(true, |out| is_read(&out.results)) {
            names.push(op.to_string());
        }
    }
    for name in ["svd", "eigh", "softmax", "inv", "cumprod"] {
        assert!(names.iter().any(|text| text.contains(name)), "{name} in {names:?}");
    }
}

fn matrix(size: [usize; 2], seed: u64) -> Value<Eager> {
    let [m, n] = size;
    let noise = check::noise(&check::array(&[m, n], |_| 0.0), seed);
    // Well-separated singular values, so that finite differences of singular vectors exist.
    let noise = check::elements(&noise);
    let spread = |i: usize| if i / n == i % n { 3.0 + 2.0 * (i % n) as f64 } else { 0.0 };
    Value::Float(check::array(&[m, n], |i| 0.3 * noise[i] + spread(i)))
}

/// An operation on B applied to B + Bᵀ: finite differences stay in the symmetric matrices.
fn cases() -> Vec<Case> {
    let degeneracy = Degeneracy::default();
    let real = |op: MatrixOp| AnyOperation::from(Linalg { op, complex: false });
    let mut all: Vec<Case> = vec![
        (real(SvdOp { vectors: Vectors::Thin, degeneracy }.into()), vec![matrix([4, 3], 1)]),
        (real(EighOp { degeneracy }.into()), vec![matrix([3, 3], 2)]),
        (real(QrOp { columns: Columns::Thin }.into()), vec![matrix([4, 3], 3)]),
        (real(CholeskyOp.into()), vec![matrix([3, 3], 4)]),
        (real(SolveOp.into()), vec![matrix([3, 3], 5), matrix([3, 2], 6)]),
        (Cumulative::new(Running::Product, 0).into(), vec![floats(&[4, 3], 7)]),
        (Cumulative::new(Running::LogSumExp, 0).into(), vec![floats(&[4, 3], 7)]),
        (LinearRecurrence::new(0).into(), vec![floats(&[4, 2], 8), floats(&[4, 2], 9)]),
    ];
    let shapes: [&[usize]; 3] = [&[2, 3], &[3, 4], &[4]];
    for semiring in [
        FloatSemiring::Standard,
        FloatSemiring::LogSumExp,
        FloatSemiring::MaxPlus,
        FloatSemiring::MinPlus,
    ] {
        let op = Contraction { plan: plan("ij,jk,k->i", &shapes), semiring };
        all.push((op.into(), shapes.iter().map(|shape| floats(shape, 7)).collect()));
    }
    all
}

/// Nested Jvp and Vjp, each checked to second order: up to the fourth derivative.
#[test]
fn derivatives_of_derivatives() {
    for case in cases() {
        for first in [vjp(&case), jvp(&case)] {
            for (op, inputs) in [vjp(&first), jvp(&first)] {
                check::operation(&op, &inputs, 1e-5);
            }
        }
    }
}

/// Hessians are symmetric: ⟨v, H w⟩ = ⟨w, H v⟩, with H w the vjp of a vjp.
#[test]
fn hessians_are_symmetric() {
    for case in cases() {
        let (gradient, at) = vjp(&case);
        let wanted = moving(&case.1);
        let count = gradient.results(&metas(&at)).unwrap().len();
        let mask = [&wanted[..], &vec![false; at.len() - wanted.len()]].concat();
        let hessian = Vjp::new(gradient, vec![true; count], mask).unwrap();
        let along = |seed: u64| -> Vec<Value<Eager>> {
            case.1
                .iter()
                .enumerate()
                .map(|(i, x)| Value::Float(check::noise(x.float(), seed + i as u64)))
                .collect()
        };
        let times = |v: &[Value<Eager>]| {
            let inputs: Vec<_> = at.iter().chain(v).cloned().collect();
            hessian.forward(&inputs, &vec![false; inputs.len()]).unwrap().results
        };
        let inner = |x: &[Eager], y: &[Value<Eager>]| -> f64 {
            let dot = |(x, y): (&Eager, &Value<Eager>)| {
                check::elements(x)
                    .iter()
                    .zip(check::elements(y.float()))
                    .map(|(a, b)| a * b)
                    .sum::<f64>()
            };
            x.iter().zip(y).map(dot).sum()
        };
        let (v, w) = (along(101), along(201));
        let (a, b) = (inner(&times(&v), &w), inner(&times(&w), &v));
        assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{}: {a} and {b}", case.0);
    }
}

/// The numbers of operands and results are those of the shapes, for operations and their derivatives.
#[test]
fn arity_of_every_operation() {
    for case in table() {
        for (op, inputs) in [jvp(&case), vjp(&case), case] {
            let own = [inputs.len(), op.results(&metas(&inputs)).unwrap().len()];
            assert!(op.arity().is_none_or(|arity| arity == own), "{op}: {own:?}");
        }
    }
}

/// The order is bounded; a derivative of the maximum order is correct.
#[test]
fn orders_are_bounded() {
    // Derivatives of x³ as a contraction of x with itself, in forward mode; the third is 6.
    let shape: &[usize] = &[1];
    let one = Labelled { labels: &[1], shape };
    let cube = einsum(&[one; 3], &[1], ContractionOptions::default()).unwrap();
    let mut op = cube.clone();
    for order in 1..=MAX_ORDER {
        op = Jvp::new(op, vec![true; 3 << (order - 1)]).unwrap().into();
    }
    let error = Jvp::new(op, vec![true; 3 << MAX_ORDER]).unwrap_err();
    assert!(matches!(error, OperationError::Derivative { .. }), "{error}");
    // With x = 2 and all first-order tangents 1: the third derivative of x³ is 6.
    let mut op = cube;
    let mut inputs = vec![2.0; 3];
    for _ in 0..3 {
        op = Jvp::new(op, vec![true; inputs.len()]).unwrap().into();
        let tangents: Vec<f64> = inputs.iter().map(|&x| if x == 2.0 { 1.0 } else { 0.0 }).collect();
        inputs.extend(tangents);
    }
    let inputs: Vec<_> = inputs.iter().map(|&x| Value::Float(check::array(&[1], |_| x))).collect();
    let out = op.forward(&inputs, &vec![false; inputs.len()]).unwrap();
    assert_eq!(check::elements(out.results.last().unwrap()), [6.0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let op = || AnyOperation::from(Softmax { axis: 1 });
    let text = |error: OperationError| error.to_string();
    assert_eq!(
        text(Jvp::new(op(), vec![false]).unwrap_err()),
        "a derivative of softmax: no operand moves"
    );
    assert_eq!(
        text(Vjp::new(op(), vec![false], vec![true]).unwrap_err()),
        "a derivative of softmax: no result has a cotangent"
    );
    let integers = Jvp::new(CrossEntropy, vec![true, true]).unwrap_err();
    assert_eq!(
        text(integers),
        "a derivative of cross_entropy: operand 1 has no tangent: it holds no floats"
    );
    let x = || AnyTensor::ones(&[1, 2], DType::F64).unwrap();
    let vjp =
        |given: &[bool]| AnyOperation::from(Vjp::new(op(), given.to_vec(), vec![true]).unwrap());
    assert_eq!(
        text(vjp(&[true]).run(vec![x()]).unwrap_err()),
        "a derivative of softmax: 1 operands and 1 cotangents, given 1 arrays"
    );
    for (made, what) in [
        (Vjp::new(op(), vec![true, false], vec![true]).err(), "2 flags for 1 results"),
        (Vjp::new(op(), vec![true], vec![]).err(), "0 flags for 1 operands"),
        (Jvp::new(op(), vec![true, true]).err(), "2 flags for 1 operands"),
    ] {
        assert_eq!(made.map(text), Some(format!("a derivative of softmax: {what}")));
    }
    // The operands determine the number of operands of a layer normalisation.
    let layer = AnyOperation::from(LayerNorm { epsilon: 1.0 });
    assert_eq!(layer.arity(), None);
    let two = AnyOperation::from(Vjp::new(layer, vec![true, false], vec![true, false]).unwrap());
    let weight = AnyTensor::ones(&[2], DType::F64).unwrap();
    assert_eq!(
        text(two.run(vec![x(), weight, x()]).unwrap_err()),
        "a derivative of layer_norm: it has 1 results, the mask has 2"
    );
    let wide = AnyTensor::ones(&[2, 2], DType::F64).unwrap();
    assert_eq!(
        text(vjp(&[true]).run(vec![x(), wide]).unwrap_err()),
        "a derivative of softmax: the cotangent of f64 [1, 2] is f64 [2, 2]"
    );
    let narrow = AnyTensor::ones(&[1, 2], DType::F32).unwrap();
    let jvp = AnyOperation::from(Jvp::new(op(), vec![true]).unwrap());
    assert_eq!(
        text(jvp.run(vec![x(), narrow]).unwrap_err()),
        "a derivative of softmax: the tangent of f64 [1, 2] is f32 [1, 2]"
    );
    let axis = AnyOperation::from(Softmax { axis: 2 });
    assert!(matches!(axis.run(vec![x()]), Err(OperationError::Tensor(_))));
}

/// A batched derivative equals the derivatives of the examples.
#[test]
fn derivatives_of_batches() {
    use t4a_diff::OnBatch;
    let case: Case = (
        Linalg { op: SolveOp.into(), complex: false }.into(),
        vec![matrix([3, 3], 5), matrix([3, 2], 6)],
    );
    for (op, inputs) in [vjp(&case), jvp(&case)] {
        let Some(OnBatch::Front { op: whole, .. }) = op.on_batch(2, &vec![true; inputs.len()])
        else {
            panic!("{op} has a batch in front");
        };
        let scaled = |k: usize| -> Vec<AnyTensor> {
            inputs
                .iter()
                .map(|x| {
                    x.float()
                        .tensor()
                        .unwrap()
                        .clone()
                        .mul_scalar(t4a_tensor::any::Number::Float(1.0 + k as f64))
                        .unwrap()
                })
                .collect()
        };
        let stacked = scaled(0).into_iter().zip(scaled(1)).map(|(a, b)| {
            let unit = |x: AnyTensor| x.reshape(&[&[1], x.shape()].concat()).unwrap();
            AnyTensor::cat(&[unit(a), unit(b)], 0).unwrap()
        });
        let got = whole.run(stacked.collect()).unwrap();
        for k in 0..2 {
            for (got, want) in got.iter().zip(op.run(scaled(k)).unwrap()) {
                let got = check::elements(&Eager::from(got.slice_axis(0, k, 1, 1).unwrap()));
                for (a, b) in got.iter().zip(check::elements(&Eager::from(want))) {
                    assert!((a - b).abs() < 1e-12, "{a} {b}");
                }
            }
        }
    }
}
