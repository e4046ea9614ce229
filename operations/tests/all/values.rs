//! Operations as values: serialisation round trips, and equality of their results.

use std::collections::HashSet;

use t4a_diff::{Eager, Kept, Meta, Operation, Reverse, Value, check};
use t4a_einsum::{Contraction, Einsum, FloatSemiring, Subscripts};
use t4a_nn::{Attention, AttentionOptions, CrossEntropy};
use t4a_operations::{AnyOperation, Jvp, OperationError, Vjp};
use t4a_tensor::{AnyTensor, DType, TensorError};

use crate::table::{floats, plan, table};

fn sent(op: &AnyOperation) -> AnyOperation {
    AnyOperation::from_text(&op.to_text().unwrap()).unwrap()
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

/// A deserialised operation computes bit-identical results, tangents and cotangents.
#[test]
fn messages_are_answered() {
    for (op, inputs) in table() {
        let send = |op: AnyOperation, tensors| {
            let received = AnyOperation::from_words(&op.to_words().unwrap()).unwrap();
            assert_eq!(received, op);
            let answer = received.run(tensors).unwrap();
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
        assert_eq!(send(op.clone(), tensors(&inputs)), run, "{op}");
        assert_eq!(op.returns(&metas(&inputs)).unwrap().len(), run.len(), "{op}");

        let moving = |x: &Value<Eager>| match x {
            Value::Float(x) => Some(check::noise(x, 78)),
            _ => None,
        };
        let duals: Vec<_> = inputs.iter().map(|x| x.clone().dual(moving(x))).collect();
        let want = op.fused_jvp(&duals, &vec![false; inputs.len()]).unwrap();
        let jvp = Jvp::new(op.clone(), tracked.clone()).unwrap();
        let tangents = inputs.iter().filter_map(moving).map(Value::Float);
        let with: Vec<_> = inputs.iter().cloned().chain(tangents).collect();
        let got = send(jvp.into(), tensors(&with));
        let tangents = want.results.iter().map(|x| check::elements(&x.clone().into_tangent()));
        let values = want.results.iter().map(|x| check::elements(&x.value));
        let want: Vec<_> = values.chain(tangents).chain(indices).collect();
        assert_eq!(got, want, "{op}");

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
        let vjp = Vjp::new(op.clone(), given, tracked.clone()).unwrap();
        let got = send(vjp.into(), tensors(&with));
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
        let words = op.to_words().unwrap();
        assert!(AnyOperation::from_words(&words[..words.len() - 1]).is_err(), "{op}");
        assert!(AnyOperation::from_words(&[&words[..], &[0]].concat()).is_err(), "{op}");
        let mut later = words.clone();
        later[0] += 1;
        let error = AnyOperation::from_words(&later).unwrap_err().to_string();
        assert!(error.contains("version 2"), "{error}");
        // A flipped bit gives an error or another operation, never a panic.
        for bit in 0..64 * words.len() {
            let mut damaged = words.clone();
            damaged[bit / 64] ^= 1 << (bit % 64);
            drop(AnyOperation::from_words(&damaged));
        }
    }
    assert!(AnyOperation::from_words(&[]).is_err());
}

/// Deeply nested derivatives of invalid operations, as a hostile caller may send them.
#[test]
fn deep_messages_are_refused() {
    for depth in [20, 200, 100_000] {
        let (open, close) = (r#"{"jvp":{"op":"#, r#","moving":[true]}}"#);
        let text = |op: &str| format!(r#"{{"t4a":1,"op":{op}}}"#);
        let deep = format!("{}{}", open.repeat(depth), close.repeat(depth));
        assert!(AnyOperation::from_text(&text(&deep)).is_err());
        let inner = format!("{}{}", r#"{"softmax":{"axis":1}}"#, close.repeat(depth));
        let error = AnyOperation::from_text(&text(&format!("{}{inner}", open.repeat(depth))));
        assert!(error.is_err());
        // The same in MessagePack: a map of one field, its name, a map of two fields, the name of the first.
        let mut bytes = [b"\x81\xa3jvp\x82\xa2op".as_slice()].repeat(depth).concat();
        bytes.extend([0xc0; 8]);
        let words = bytes.chunks(8).map(|part| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(word)
        });
        let words: Vec<u64> = [1, bytes.len() as u64].into_iter().chain(words).collect();
        assert!(AnyOperation::from_words(&words).is_err());
    }
}

/// Operands of a wrong kind, one at a time: the error names the operation and the operand.
#[test]
fn operands_of_another_kind_are_refused() {
    for (op, inputs) in table() {
        let given = tensors(&inputs);
        for (operand, x) in given.iter().enumerate() {
            let other = match x.dtype().is_float() {
                true => DType::I32,
                false => DType::F32,
            };
            for dtype in [other, DType::Bool, DType::C64] {
                let mut wrong = given.clone();
                wrong[operand] = AnyTensor::zeros(x.shape(), dtype).unwrap();
                let error = op.clone().run(wrong).unwrap_err();
                let OperationError::Tensor(TensorError::OperandKind {
                    op: name, operand: at, ..
                }) = error
                else {
                    panic!("{op}: {error}");
                };
                assert_eq!((name, at), (op.name(), operand));
            }
        }
    }
    // The mask of attention is the only boolean operand.
    let options = AttentionOptions { scale: None, softcap: None, causal: false };
    let op = Attention { options, masked: true, biased: true };
    let mut all = tensors(&[1, 2, 3].map(|seed| floats(&[1, 2, 3, 4], seed)));
    all.push(AnyTensor::zeros(&[1, 1, 3, 3], DType::Bool).unwrap());
    all.push(AnyTensor::zeros(&[1, 1, 3, 3], DType::F64).unwrap());
    let op = AnyOperation::from(op);
    assert_eq!(op.run(all.clone()).unwrap().len(), 1);
    all.swap(3, 4);
    let error = op.run(all).unwrap_err();
    assert_eq!(error.to_string(), "attention: operand 3 has dtype f64, truth values are required");
}

/// Without cotangents no work is done; operands and cotangents are still checked.
#[test]
fn cotangents_of_nothing() {
    for (op, inputs) in table() {
        let results = op.results(&metas(&inputs)).unwrap();
        let given = vec![true; results.len()];
        let vjp = Vjp::new(op.clone(), given, vec![false; inputs.len()]).unwrap();
        let vjp = AnyOperation::from(vjp);
        let ones = results.iter().map(|y| AnyTensor::ones(&y.shape, y.dtype).unwrap());
        let all: Vec<AnyTensor> = tensors(&inputs).into_iter().chain(ones).collect();
        assert!(vjp.run(all.clone()).unwrap().is_empty(), "{op}");
        assert!(vjp.run(all[1..].to_vec()).is_err(), "{op}");
    }
    let logits = AnyTensor::ones(&[2, 3], DType::F32).unwrap();
    let targets = AnyTensor::zeros(&[2], DType::I64).unwrap();
    let given = AnyTensor::ones(&[2], DType::F32).unwrap();
    let vjp = |wanted: [bool; 2]| Vjp::new(CrossEntropy, vec![true], wanted.to_vec());
    assert!(vjp([false, true]).unwrap_err().to_string().contains("operand 1 has no cotangent"));
    let vjp = AnyOperation::from(vjp([true, false]).unwrap());
    assert_eq!(vjp.run(vec![logits, targets, given]).unwrap().len(), 1);
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
// Values derived lazily by plans are not part of their hash.
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

/// Every operation through the enum: forward pass, vjp and jvp against finite differences.
#[test]
fn rules_are_those_of_the_operation() {
    for (op, inputs) in table() {
        check::operation(&op, &inputs, 1e-7);
    }
}

/// Serialised plans of all kinds: slices, steps of a plan, cotangents, repeated and broadcast axes, labels that are
/// not letters, sums without a term.
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

/// Invalid plans are rejected with a description of the error.
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
    refused("[{\"char\":\"j\"},3]", "[{\"char\":\"j\"},5]", "label 'j' has size 3 in operand 1");
    refused("\"path\":[[0,1]]", "\"path\":[[0,7]]", "path step 0");
    refused("\"path\":[[0,1]]", "\"path\":[]", "leaves 2 tensors");
    refused("\"sliced\":[]", "\"sliced\":[{\"char\":\"z\"}]", "'z'");
    refused("\"sliced\":[]", "\"sliced\":[{\"char\":\"i\"},{\"char\":\"i\"}]", "'i'");
    refused("[{\"char\":\"j\"},3]", "[{\"char\":\"j\"},18446744073709551615]", "address space");
    refused("max_plus", "min_max", "unknown variant");
}
