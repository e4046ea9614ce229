//! Text format of operations.

use t4a_diff::Operation;
use t4a_einsum::{FloatSemiring, Optimizer, Path};
use t4a_linalg::Linalg;
use t4a_linalg::pinv::PinvOp;
use t4a_nn::{LayerNorm, Softmax};
use t4a_operations::{
    AnyOperation, ContractionOptions, FORMAT, Jvp, Labelled, OperationError, Vjp, einsum,
};

use crate::table::table;

/// Round trip of every operation and its derivatives; distinct operations have distinct texts.
#[test]
fn text_of_every_operation() {
    let mut texts = std::collections::HashSet::new();
    for (op, inputs) in table() {
        let moving: Vec<bool> =
            inputs.iter().map(|x| matches!(x, t4a_diff::Value::Float(_))).collect();
        let jvp = Jvp::new(op.clone(), moving.clone()).unwrap();
        let results = op.arity().map_or(1, |[_, results]| results);
        let vjp = Vjp::new(op.clone(), vec![true; results], moving).unwrap();
        for op in [op, jvp.into(), vjp.into()] {
            let text = op.to_text().unwrap();
            let read = AnyOperation::from_text(&text).unwrap();
            assert_eq!(read, op);
            assert_eq!(read.to_text().unwrap(), text);
            assert!(texts.insert(text));
        }
    }
}

#[test]
fn the_text_is_fixed() {
    let softmax = AnyOperation::from(Softmax { axis: 1 });
    assert_eq!(FORMAT, 1);
    assert_eq!(softmax.to_text().unwrap(), r#"{"t4a":1,"op":{"softmax":{"axis":1}}}"#);
    let vjp = AnyOperation::from(Vjp::new(softmax, vec![true], vec![true]).unwrap());
    let text =
        r#"{"t4a":1,"op":{"vjp":{"op":{"softmax":{"axis":1}},"given":[true],"wanted":[true]}}}"#;
    assert_eq!(vjp.to_text().unwrap(), text);
    // Fields in any order; integers are accepted for floats.
    let read = AnyOperation::from_text(r#"{"op":{"layer_norm":{"epsilon":1}},"t4a":1}"#).unwrap();
    assert_eq!(read, LayerNorm { epsilon: 1.0 }.into());
    let epsilon = 0.1f64 + 0.2;
    let op = AnyOperation::from(LayerNorm { epsilon });
    assert_eq!(AnyOperation::from_text(&op.to_text().unwrap()).unwrap(), op);
}

#[test]
fn other_text_is_refused() {
    let refused = |text: &str, why: &str| {
        let error = AnyOperation::from_text(text).unwrap_err();
        assert!(matches!(error, OperationError::Data(_)));
        assert!(error.to_string().contains(why), "{error}");
    };
    refused(r#"{"t4a":2,"op":{"softmax":{"axis":1}}}"#, "version 2, this library reads 1");
    refused(r#"{"op":{"softmax":{"axis":1}}}"#, "missing field `t4a`");
    refused(r#"{"t4a":1,"op":{"softmax":{"axis":1,"axes":2}}}"#, "axes");
    refused(r#"{"t4a":1,"op":{"softmax":{"axis":-1}}}"#, "-1");
    refused(r#"{"t4a":1,"op":{"softmin":{"axis":1}}}"#, "softmin");
    refused(r#"{"t4a":1,"op":{"softmax":{"axis":1}},"more":0}"#, "more");
    // An optional field.
    let pinv =
        AnyOperation::from(Linalg { op: PinvOp { rtol: Some(1e-3) }.into(), complex: false });
    let text = pinv.to_text().unwrap();
    refused(&text.replace("rtol", "rtoll"), "rtoll");
    refused("", "EOF");
    let no_number = AnyOperation::from(LayerNorm { epsilon: f64::INFINITY });
    assert!(matches!(no_number.to_text(), Err(OperationError::Data(_))));
}

#[test]
fn contractions_by_labels() {
    let a = Labelled { labels: &[1, -7], shape: &[2, 3] };
    let b = Labelled { labels: &[-7, 1 << 40], shape: &[3, 4] };
    let options = ContractionOptions { semiring: FloatSemiring::MaxPlus, ..Default::default() };
    let op = einsum(&[a, b], &[1, 1 << 40], options.clone()).unwrap();
    assert_eq!(AnyOperation::from_text(&op.to_text().unwrap()).unwrap(), op);
    let meta =
        |shape: &[usize]| t4a_diff::Meta { shape: shape.into(), dtype: t4a_tensor::DType::F64 };
    assert_eq!(op.returns(&[meta(&[2, 3]), meta(&[3, 4])]).unwrap(), [meta(&[2, 4])]);
    let known = t4a_einsum::cached_plans();
    einsum(&[a, b], &[1, 1 << 40], options.clone()).unwrap();
    assert_eq!(t4a_einsum::cached_plans(), known);
    let wrong = Labelled { labels: &[1], shape: &[2, 3] };
    let error = einsum(&[wrong], &[1], options.clone()).unwrap_err().to_string();
    assert!(error.ends_with("operand 0 of a contraction has 1 labels and 2 sizes"), "{error}");
    let error = einsum(&[a, Labelled { shape: &[5, 4], ..b }], &[1], options.clone()).unwrap_err();
    assert!(matches!(error, OperationError::Einsum(_)), "{error}");
    let complex = ContractionOptions { complex: true, ..options };
    assert!(matches!(einsum(&[a, b], &[1], complex), Err(OperationError::Data(_))));
    let complex = ContractionOptions { complex: true, ..Default::default() };
    assert_eq!(
        einsum(&[a, b], &[1], complex)
            .unwrap()
            .returns(&[&[2, 3], &[2, 3], &[3, 4], &[3, 4]].map(|x: &[usize; 2]| meta(x)))
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn contractions_along_a_path() {
    // (2 × 9)(9 × 3)(3 × 8): the search contracts from the left, since the result of the first product is small.
    let operands = [
        Labelled { labels: &[0, 1], shape: &[2, 9] },
        Labelled { labels: &[1, 2], shape: &[9, 3] },
        Labelled { labels: &[2, 3], shape: &[3, 8] },
    ];
    let along = |path: Vec<Vec<usize>>| {
        let options = ContractionOptions { path: Some(Path::new(path)), ..Default::default() };
        einsum(&operands, &[0, 3], options)
    };
    let begins = |op: &AnyOperation, step: &str| {
        op.to_text().unwrap().contains(&format!(r#""path":[[{step}]"#))
    };
    let searched = einsum(&operands, &[0, 3], ContractionOptions::default()).unwrap();
    let annealing =
        ContractionOptions { optimizer: Optimizer::TreeSa, ..ContractionOptions::default() };
    let annealed = einsum(&operands, &[0, 3], annealing).unwrap();
    for op in [&searched, &annealed] {
        assert!(begins(op, "0,1") || begins(op, "1,0"));
    }
    assert!(begins(&along(vec![vec![1, 2], vec![0, 1]]).unwrap(), "1,2"));
    for wrong in [vec![vec![0, 3]], vec![vec![0, 0]], vec![vec![0, 1]]] {
        assert!(matches!(along(wrong), Err(OperationError::Einsum(_))));
    }
}
