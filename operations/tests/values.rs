//! Every operation as a value: what was sent is what arrives, and computes the same.

use std::collections::HashSet;
use std::sync::Arc;

use t4a_diff::{Eager, Kept, Meta, Operation, Reverse, Value, check};
use t4a_einsum::{Contraction, Einsum, FloatSemiring, Plan, Subscripts};
use t4a_linalg::expm::ExpmOp;
use t4a_linalg::inverse::InvOp;
use t4a_linalg::lu::{LuFactorOp, Pivoting};
use t4a_linalg::qr::{Columns, QrPivotedOp};
use t4a_linalg::{Linalg, MatrixOp};
use t4a_nn::{Attention, AttentionOptions, CrossEntropy, LayerNorm, LogSoftmax, RmsNorm, Softmax};
use t4a_operations::wire::Message;
use t4a_operations::{AnyOperation, OperationError};
use t4a_scan::{
    AssociativeScan, Cell, Cumulative, FloatMonoid, KalmanFilter, LinearRecurrence, LogPartition,
    MatrixRecurrence, Recurrent, Running,
};
use t4a_structured::plan::MatrixList;
use t4a_structured::{ByMatrix, ContractOver, Direction, Inner, Leg, Norm, Pattern, Spec, U1};
use t4a_tensor::{AnyTensor, DType, Tensor};

fn floats(shape: &[usize], seed: u64) -> Value<Eager> {
    Value::Float(check::noise(&check::array(shape, |_| 0.0), seed))
}

fn plan(text: &str, shapes: &[&[usize]]) -> Arc<Plan> {
    Einsum::new(text).unwrap().plan(shapes, 8).unwrap()
}

/// One of each, with operands.
fn table() -> Vec<(AnyOperation, Vec<Value<Eager>>)> {
    let targets = Tensor::from_vec(vec![2i32, 0, 4], &[3]).unwrap();
    let targets = Value::Integers(Eager::from(AnyTensor::from(targets)));
    let options = AttentionOptions { scale: Some(0.3), softcap: None, causal: true };
    let [q, k, v] = [1, 2, 3].map(|seed| floats(&[1, 2, 3, 4], seed));
    let shapes: [&[usize]; 3] = [&[2, 3], &[3, 4], &[4]];
    let product = plan("ij,jk,k->i", &shapes);
    let mut table: Vec<(AnyOperation, Vec<Value<Eager>>)> = vec![
        (Softmax { axis: 1 }.into(), vec![floats(&[2, 3], 1)]),
        (Softmax { axis: 0 }.into(), vec![floats(&[2, 3], 1)]),
        (LogSoftmax { axis: 1 }.into(), vec![floats(&[2, 3], 1)]),
        (LayerNorm { epsilon: 1e-3 }.into(), vec![floats(&[2, 3], 1), floats(&[3], 2)]),
        (LayerNorm { epsilon: 1e-5 }.into(), vec![floats(&[2, 3], 1), floats(&[3], 2)]),
        (RmsNorm { epsilon: 1e-3 }.into(), vec![floats(&[2, 3], 1), floats(&[3], 2)]),
        (Attention { options, masked: false, biased: false }.into(), vec![q, k, v]),
        (CrossEntropy.into(), vec![floats(&[3, 5], 1), targets]),
    ];
    let operands: Vec<_> = shapes.iter().map(|shape| floats(shape, 7)).collect();
    for semiring in [FloatSemiring::Standard, FloatSemiring::LogSumExp] {
        let op = Contraction { plan: product.clone(), semiring };
        table.push((op.into(), operands.clone()));
    }
    let factors = [
        LuFactorOp { pivoting: Pivoting::Full }.into(),
        QrPivotedOp { columns: Columns::Thin }.into(),
    ];
    for op in [MatrixOp::from(InvOp), ExpmOp.into()].into_iter().chain(factors) {
        let a = check::array(&[3, 3], |i| [4.0, 1.0, 0.5, 1.0, 3.0, 0.2, 0.5, 0.2, 2.0][i]);
        table.push((Linalg { op, complex: false }.into(), vec![Value::Float(a)]));
    }
    table.extend(scans());
    table.extend(structured());
    table
}

/// Operations on flat arrays of graded tensors, and of blocks over a semiring.
fn structured() -> Vec<(AnyOperation, Vec<Value<Eager>>)> {
    let leg = Leg::new([(U1(-1), 2), (U1(0), 1), (U1(1), 2)], Direction::Out).unwrap();
    let spec = |legs: &[&Leg<U1>], rows| {
        Spec::new(legs.iter().map(|&leg| leg.clone()).collect(), U1(0), rows).unwrap()
    };
    let (out, into) = (leg.clone(), leg.dual());
    let (a, b) = (spec(&[&out, &out, &into], 1), spec(&[&out, &into], 1));
    let of = |spec: &Spec<U1>, seed| floats(&[spec.len()], seed);
    let one = || vec![of(&a, 1)];
    let both = || vec![of(&a, 1), of(&b, 2)];
    let sizes = b.matrices().iter().map(|matrix| [matrix.rows, matrix.cols]).collect();
    let sizes = MatrixList::new(sizes, vec![vec![2, 0, 1]]).unwrap();
    let network = Spec::einsum("abc,cd->adb", &[&a, &b]).unwrap().1;
    let pattern = Pattern::new(vec![vec![2, 1]; 2], vec![vec![0, 0], vec![0, 1]]).unwrap();
    let over = pattern.contract(&pattern, &[1], &[1]).unwrap().1;
    let blocks = || vec![floats(&[6], 3), floats(&[6], 4)];
    let exp = ByMatrix { op: ExpmOp.into(), complex: false, plan: sizes.into() };
    vec![
        (a.permute(&[2, 0, 1], 1).unwrap().1.into(), one()),
        (a.trace(&[(1, 2)]).unwrap().1.into(), one()),
        (a.contract(&b, &[2], &[0]).unwrap().1.into(), both()),
        (network.into(), both()),
        (exp.into(), vec![of(&b, 2)]),
        (a.numbers(1).unwrap().into(), vec![of(&a, 1), floats(&[5], 5)]),
        (Inner { complex: false }.into(), vec![of(&a, 1), of(&a, 2)]),
        (Norm { complex: false }.into(), one()),
        (ContractOver { plan: over.clone(), semiring: FloatSemiring::MaxPlus }.into(), blocks()),
        (ContractOver { plan: over, semiring: FloatSemiring::LogSumExp }.into(), blocks()),
    ]
}

fn scans() -> Vec<(AnyOperation, Vec<Value<Eager>>)> {
    let one = || vec![floats(&[4, 3], 1)];
    let two = || vec![floats(&[4, 2, 2], 1), floats(&[4, 2, 2], 2)];
    let logs = FloatMonoid::Matrix(FloatSemiring::LogSumExp);
    let unit = |n: usize| Value::Float(check::array(&[n, n], |i| (i % (n + 1) == 0) as u8 as f64));
    let filter = vec![
        unit(2),
        unit(2),
        floats(&[1, 2], 1),
        unit(1),
        floats(&[1, 3, 1], 2),
        floats(&[2], 3),
        unit(2),
    ];
    vec![
        (Cumulative::new(Running::Product, 0).into(), one()),
        (Cumulative::new(Running::LogSumExp, 0).into(), one()),
        (LinearRecurrence::new(1).into(), two()),
        (LinearRecurrence { reverse: true, ..LinearRecurrence::new(1) }.into(), two()),
        (MatrixRecurrence::default().into(), two()),
        (AssociativeScan::new(FloatMonoid::Affine, 0).into(), two()),
        (AssociativeScan::new(logs, 0).into(), vec![floats(&[4, 2, 2], 1)]),
        (Recurrent::new(Cell::Gru).into(), vec![floats(&[3, 2, 6], 1), floats(&[2, 6], 2)]),
        (KalmanFilter.into(), filter),
        (
            LogPartition { lengths: vec![3, 2] }.into(),
            vec![floats(&[2, 3, 2], 1), floats(&[2, 2], 2)],
        ),
    ]
}

fn sent(op: &AnyOperation) -> AnyOperation {
    serde_json::from_str(&serde_json::to_string(op).unwrap()).unwrap()
}

fn tensors(values: &[Value<Eager>]) -> Vec<AnyTensor> {
    let tensor = |x: &Value<Eager>| match x {
        Value::Float(x) => x.tensor().cloned(),
        Value::Integers(x) => x.tensor().cloned(),
        Value::Flags(x) => x.tensor().cloned(),
    };
    values.iter().map(|x| tensor(x).unwrap()).collect()
}

fn metas(values: &[Value<Eager>]) -> Vec<Meta> {
    let meta = |x: AnyTensor| Meta { shape: x.shape().into(), dtype: x.dtype() };
    tensors(values).into_iter().map(meta).collect()
}

/// The other side computes what this one does: results, tangents and cotangents, to the last bit.
#[test]
fn messages_are_answered() {
    for (op, inputs) in table() {
        let send = |message: Message, tensors| {
            let received = Message::from_words(&message.to_words().unwrap()).unwrap();
            assert_eq!(received, message);
            let answer = received.answer(tensors).unwrap();
            let numbers = |x: AnyTensor| match x.dtype().is_int() {
                true => x.cast(DType::F64).unwrap(),
                false => x,
            };
            let answer = answer.into_iter().map(numbers);
            answer.map(|x| check::elements(&Eager::from(x))).collect::<Vec<_>>()
        };
        assert_eq!(AnyOperation::of(&op), Some(op.clone()));
        let tracked: Vec<bool> = inputs.iter().map(|x| matches!(x, Value::Float(_))).collect();
        let out = op.forward(&inputs, &tracked).unwrap();
        let results: Vec<_> = out.results.iter().map(check::elements).collect();
        let returned = op.indices(&metas(&inputs)).len();
        let integers = |x: &Value<Eager>| {
            let x = x.integers().tensor().unwrap().clone().cast(DType::F64).unwrap();
            check::elements(&Eager::from(x))
        };
        let indices: Vec<_> = out.extra.iter().take(returned).map(integers).collect();
        let run = [&results[..], &indices].concat();
        assert_eq!(send(Message::Run(op.clone()), tensors(&inputs)), run, "{op}");

        let moving = |x: &Value<Eager>| match x {
            Value::Float(x) => Some(check::noise(x, 78)),
            _ => None,
        };
        let duals: Vec<_> = inputs.iter().map(|x| x.clone().dual(moving(x))).collect();
        let want = op.fused_jvp(&duals, &vec![false; inputs.len()]).unwrap();
        let message = Message::Jvp { op: op.clone(), moving: tracked.clone() };
        let tangents = inputs.iter().filter_map(moving).map(Value::Float);
        let with: Vec<_> = inputs.iter().cloned().chain(tangents).collect();
        let moved = send(message, tensors(&with)).split_off(run.len());
        let want: Vec<_> =
            want.results.into_iter().map(|x| check::elements(&x.into_tangent())).collect();
        assert_eq!(moved, want, "{op}");

        let given: Vec<bool> = (0..results.len()).map(|i| i == 0).collect();
        let first = check::noise(&out.results[0], 77);
        let cotangents: Vec<Option<Eager>> =
            given.iter().map(|&g| g.then(|| first.clone())).collect();
        let kept = Kept::new(op.keep(&tracked), &inputs, &out);
        let hidden = vec![None; out.hidden.len()];
        let reverse =
            Reverse { kept: &kept, cotangents: &cotangents, hidden: &hidden, wanted: &tracked };
        let want: Vec<_> = op.fused_vjp(&reverse).unwrap().into_iter().collect();
        let with: Vec<_> = inputs.iter().cloned().chain([Value::Float(first)]).collect();
        let message = Message::Vjp { op: op.clone(), given, wanted: tracked.clone() };
        let got = send(message, tensors(&with));
        let floats = tracked.iter().enumerate().filter(|&(_, &float)| float);
        for ((i, _), got) in floats.zip(got) {
            match want.get(i).and_then(Option::as_ref) {
                Some(want) => assert_eq!(check::elements(want), got, "{op} {i}"),
                None => assert!(got.iter().all(|&x| x == 0.0), "{op} {i}"),
            }
        }
    }
}

#[test]
fn damaged_messages_are_refused() {
    for (op, _) in table() {
        let words = Message::Run(op.clone()).to_words().unwrap();
        assert!(Message::from_words(&words[..words.len() - 1]).is_err(), "{op}");
        assert!(Message::from_words(&[&words[..], &[0]].concat()).is_err(), "{op}");
        // Of another bit pattern comes an error or another operation, no panic.
        for bit in 0..64 * words.len() {
            let mut damaged = words.clone();
            damaged[bit / 64] ^= 1 << (bit % 64);
            drop(Message::from_words(&damaged));
        }
    }
    assert!(Message::from_words(&[]).is_err());
    let x = || AnyTensor::from(Tensor::from_vec(vec![1.0, 2.0], &[1, 2]).unwrap());
    let op = AnyOperation::from(Softmax { axis: 1 });
    let vjp = |given: &[bool], wanted: &[bool]| Message::Vjp {
        op: op.clone(),
        given: given.to_vec(),
        wanted: wanted.to_vec(),
    };
    let text = |message: Message, tensors| message.answer(tensors).unwrap_err().to_string();
    assert_eq!(
        text(vjp(&[true], &[true]), vec![x()]),
        "a message with an operation: 1 operands and 1 cotangents are announced, 1 tensors have come"
    );
    assert!(text(vjp(&[true, false], &[true]), vec![x(), x()]).contains("softmax has 1 results"));
    let wrong = AnyTensor::from(Tensor::from_vec(vec![1.0], &[1, 1]).unwrap());
    assert!(text(vjp(&[true], &[true]), vec![x(), wrong]).contains("its cotangent"));
    let axis = Message::Run(Softmax { axis: 2 }.into());
    assert!(matches!(axis.answer(vec![x()]), Err(OperationError::Tensor(_))));
}

#[test]
fn what_is_sent_arrives() {
    for (op, inputs) in table() {
        let received = sent(&op);
        assert_eq!(received, op);
        let run = |op: &AnyOperation| {
            let out = op.forward(&inputs, &vec![false; inputs.len()]).unwrap();
            out.results.iter().map(check::elements).collect::<Vec<_>>()
        };
        assert_eq!(run(&received), run(&op), "{op}");
    }
}

#[test]
// What plans find out later is not part of their hash.
#[allow(clippy::mutable_key_type)]
fn values_differ_by_what_they_hold() {
    let table = table();
    let distinct: HashSet<AnyOperation> = table.iter().map(|(op, _)| op.clone()).collect();
    assert_eq!(distinct.len(), table.len());
    for (op, _) in &table {
        assert!(distinct.contains(&sent(op)), "{op}");
        assert!(op.to_string().contains(op.name()), "{op}");
    }
}

/// Each through the enum: forward, both vjps and jvp against differences.
#[test]
fn rules_are_those_of_the_operation() {
    for (op, inputs) in table() {
        check::operation(&op, &inputs, 1e-7);
    }
}

/// Plans of all kinds as data: slices, steps of a plan, cotangents, repeated and broadcast axes, labels
/// that are no letters, sums without a term.
#[test]
fn plans_are_data() {
    let sliced = {
        let shapes: [&[usize]; 2] = [&[32, 32], &[32, 32]];
        let whole = Einsum::new("ij,jk->ik").unwrap();
        let needed = whole.plan(&shapes, 8).unwrap().cost().bytes(8) as usize;
        whole.memory(needed - 64).plan(&shapes, 8).unwrap()
    };
    assert!(!sliced.sliced().is_empty());
    let chain = plan("ij,jk,kl,lm->im", &[&[2, 3], &[3, 4], &[4, 3], &[3, 2]]);
    let mut plans = vec![
        sliced,
        plan("i->ii", &[&[3]]),
        plan("ii->", &[&[3, 3]]),
        plan("...ij,jk->...ik", &[&[2, 1, 3, 4], &[4, 2]]),
        plan("ij,jk->ik", &[&[2, 0], &[0, 3]]),
        Einsum::new("i->ni").unwrap().size('n', 4).plan(&[&[3]], 8).unwrap(),
        Einsum::from(Subscripts::new([[1, 2], [2, 700]], [700, 1]))
            .plan(&[&[2, 3], &[3, 4]], 8)
            .unwrap(),
        chain.clone(),
    ];
    for step in chain.steps().unwrap().iter() {
        plans.extend([
            step.plan.cotangent(0).unwrap(),
            step.plan.cotangent(1).unwrap(),
            step.plan.clone(),
        ]);
    }
    for plan in plans {
        let op = AnyOperation::from(Contraction { plan, semiring: FloatSemiring::MaxPlus });
        assert_eq!(sent(&op), op);
    }
}

/// Data that no plan has is refused with what is wrong about it.
#[test]
fn wrong_data_is_refused() {
    let op = Contraction {
        plan: plan("ij,jk->ik", &[&[2, 3], &[3, 4]]),
        semiring: FloatSemiring::MaxPlus,
    };
    let data = serde_json::to_string(&AnyOperation::from(op)).unwrap();
    let refused = |from: &str, to: &str, why: &str| {
        assert!(data.contains(from), "{data}");
        let error = serde_json::from_str::<AnyOperation>(&data.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    refused("[{\"Char\":\"j\"},3]", "[{\"Char\":\"j\"},5]", "label 'j' has size 3 in operand 1");
    refused("\"path\":[[0,1]]", "\"path\":[[0,7]]", "path step 0");
    refused("\"path\":[[0,1]]", "\"path\":[]", "leaves 2 tensors");
    refused("\"sliced\":[]", "\"sliced\":[{\"Char\":\"z\"}]", "'z'");
    refused("\"sliced\":[]", "\"sliced\":[{\"Char\":\"i\"},{\"Char\":\"i\"}]", "'i'");
    refused("[{\"Char\":\"j\"},3]", "[{\"Char\":\"j\"},18446744073709551615]", "address space");
    refused("max_plus", "min_max", "unknown variant");
}
