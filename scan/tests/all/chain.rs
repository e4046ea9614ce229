//! ln Z of chains as one operation.

use t4a_scan::LogPartition;

use crate::*;

fn inputs(lengths: &[usize], steps: usize, tags: usize) -> (LogPartition, Vec<Value<Eager>>) {
    let arrays = [random(&[lengths.len(), steps, tags], 1), random(&[tags, tags], 2)];
    (LogPartition { lengths: lengths.to_vec() }, values(&arrays))
}

#[test]
fn derivatives_of_log_partitions() {
    for (lengths, steps) in [(&[4, 1, 3][..], 4), (&[2, 2], 2), (&[1], 1), (&[2], 5)] {
        let (op, inputs) = inputs(lengths, steps, 3);
        operation(&op, &inputs, TOLERANCE);
    }
}

/// What no sequence may do has probability 0, and where there is no sequence nothing moves.
#[test]
fn impossible_steps_do_not_move() {
    const NEVER: f64 = f64::NEG_INFINITY;
    let x = of(&[2, 3, 2], &[0.3, -0.1, 0.2, 0.5, NEVER, 0.4, 0.1, 0.2, NEVER, NEVER, 0.3, 0.1]);
    let w = of(&[2, 2], &[0.1, NEVER, 0.7, -0.2]);
    let op = LogPartition { lengths: vec![3, 3] };
    let inputs = values(&[x, w]);
    let out = op.forward(&inputs, &[true; 2]).unwrap();
    // In the first chain the tags 1 1 1 alone end in 1 without passing from 0 to it; the second has none.
    let path: f64 = [-0.1, 0.5, 0.4, -0.2, -0.2].iter().sum();
    let z = elements(&out.results[0]);
    assert!((z[0] - path).abs() < 1e-15 && z[1] == NEVER, "{z:?}");
    let kept = Kept::new(op.keep(&[true; 2]), &inputs, &out);
    let cotangents = [Some(of(&[2], &[2.0, 3.0]))];
    let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &[true; 2] };
    let back = op.vjp(&reverse).unwrap();
    let [dx, dw] = [0, 1].map(|i| elements(back[i].as_ref().unwrap()));
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14);
    assert!(near(&dx, &[0.0, 2.0, 0.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), "{dx:?}");
    assert!(near(&dw, &[0.0, 0.0, 0.0, 4.0]), "{dw:?}");
}

#[test]
fn operands_of_no_chain_are_refused() {
    let metas = |shapes: [&[usize]; 2]| {
        shapes.map(|shape| Meta { shape: shape.to_vec(), dtype: t4a_tensor::DType::F64 })
    };
    let op = LogPartition { lengths: vec![2, 3] };
    assert!(op.results(&metas([&[2, 3, 4], &[4, 4]])).is_ok());
    for shapes in [[&[2, 3, 4][..], &[4, 3][..]], [&[2, 2, 4], &[4, 4]], [&[3, 3, 4], &[4, 4]]] {
        let error = op.results(&metas(shapes)).unwrap_err().to_string();
        assert!(error.starts_with("linear_chain: "), "{error}");
    }
    assert!(op.results(&metas([&[2, 3, 4], &[4, 4]])[..1]).is_err());
}
