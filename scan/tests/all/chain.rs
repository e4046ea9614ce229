//! ln Z of chains as one operation.

use t4a_scan::{LinearChain, LogPartition, mask_lengths};

use crate::*;

fn inputs(lengths: &[usize], steps: usize, tags: usize) -> (LogPartition, Vec<Value<Eager>>) {
    let arrays = [random(&[lengths.len(), steps, tags], 1), random(&[tags, tags], 2)];
    (LogPartition { lengths: lengths.to_vec() }, values(&arrays))
}

#[test]
fn derivatives_of_log_partitions() {
    // Messages are normalised every eighth step.
    let cases =
        [(&[4, 1, 3][..], 4), (&[2, 2], 2), (&[1], 1), (&[2], 5), (&[], 3), (&[20, 9, 8, 17], 20)];
    for (lengths, steps) in cases {
        let (op, inputs) = inputs(lengths, steps, 3);
        operation(&op, &inputs, TOLERANCE);
    }
}

/// From scores that are summed as probabilities to those whose probabilities underflow, with and without forbidden
/// tags and transitions.
#[test]
fn wide_scores_have_the_sum_of_the_definition() {
    let lengths: Vec<usize> = (0..19).map(|i| 1 + i * 5 % 12).collect();
    for (seed, scale) in [1.0, 30.0, 60.0, 100.0, 300.0, 1e4].into_iter().enumerate() {
        for forbidden in [0, 7] {
            let (op, inputs) = inputs(&lengths, 12, 5);
            let scores = |x: &Value<Eager>| {
                let x = elements(&x.float().scale(scale));
                let all = x.iter().enumerate().map(|(i, &x)| match (i + seed) % 9 < forbidden {
                    true if i % 3 == 0 => f64::NEG_INFINITY,
                    _ => x,
                });
                all.collect::<Vec<f64>>()
            };
            let [x, w] = [0, 1].map(|i| of(&inputs[i].float().shape(), &scores(&inputs[i])));
            let inputs = values(&[x, w]);
            let own = op.forward(&inputs, &[false; 2]).unwrap();
            let definition = op.portable(&inputs, &[false; 2]).unwrap();
            close(&elements(&own.results[0]), &elements(&definition.results[0]), 1e-14);
            let kept = Kept::new(op.keep(&[true; 2]), &inputs, &own);
            let cotangents = [Some(random(&[lengths.len()], 3))];
            let wanted = &[true; 2];
            let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted };
            let (own, definition) = (op.fused_vjp(&reverse).unwrap(), op.vjp(&reverse).unwrap());
            for (own, definition) in own.iter().zip(&definition) {
                let [own, definition] = [own, definition].map(|x| elements(x.as_ref().unwrap()));
                // The definition subtracts messages, whose rounding is that of the scores.
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-14 * scale.max(100.0);
                assert!(own.iter().zip(&definition).all(near), "{scale}: {own:?} {definition:?}");
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let lengths: Vec<usize> = (0..67).map(|i| 100 + i).collect();
    let (op, inputs) = inputs(&lengths, 166, 20);
    let cotangents = [Some(random(&[lengths.len()], 3))];
    same_bits_on_threads(|| {
        let out = op.forward(&inputs, &[true; 2]).unwrap();
        let kept = Kept::new(op.keep(&[true; 2]), &inputs, &out);
        let wanted = &[true; 2];
        let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted };
        let back = op.fused_vjp(&reverse).unwrap();
        out.results.iter().cloned().chain(back.into_iter().flatten()).collect()
    });
}

/// In `f32` one unit in the last place of ln Z of a long chain exceeds a probability.
#[test]
fn long_chains_keep_their_probabilities() {
    let (steps, tags) = (5000, 4);
    let scores: Vec<f64> =
        (0..steps * tags).map(|i| f64::from((i * 7919 % 1000) as i32 - 350) / 50.0).collect();
    let [x, w] = [of(&[1, steps, tags], &scores), random(&[tags, tags], 2).scale(10.0)];
    let narrow = |x: &Eager| Eager::from(x.elements().and_then(|x| x.cast(t4a_tensor::DType::F32)));
    // The reversed chain has another order of summation.
    let backwards = LinearChain::new(x.flip(&[1]), w.transpose(), None).unwrap();
    let backwards = elements(&backwards.marginals().unwrap().flip(&[1]));
    let exact = LinearChain::new(x.clone(), w.clone(), None).unwrap();
    let marginals = elements(&exact.marginals().unwrap());
    let rough = LinearChain::new(narrow(&x), narrow(&w), None).unwrap();
    let found = elements(&rough.marginals().unwrap());
    for (k, ((a, b), c)) in marginals.iter().zip(&backwards).zip(&found).enumerate() {
        assert!((a - b).abs() < 1e-12 && (a - c).abs() < 2e-5, "{k}: {a} {b} {c}");
    }
    // The vjp, and the reverse pass of the definition.
    let op = LogPartition { lengths: vec![steps] };
    let inputs = values(&[narrow(&x), narrow(&w)]);
    let out = op.forward(&inputs, &[true; 2]).unwrap();
    let z = elements(&exact.log_partition().unwrap())[0];
    assert!((elements(&out.results[0])[0] - z).abs() < 1e-5 * z, "{z}");
    let kept = Kept::new(op.keep(&[true; 2]), &inputs, &out);
    let cotangents = [Some(narrow(&of(&[1], &[1.0])))];
    let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &[true; 2] };
    for (back, tolerance) in [(op.vjp(&reverse), 2e-5), (op.fused_vjp(&reverse), 1e-6)] {
        let back = back.unwrap();
        let [dx, dw] = [0, 1].map(|i| elements(back[i].as_ref().unwrap()));
        assert!(marginals.iter().zip(&dx).all(|(a, b)| (a - b).abs() < tolerance));
        let pairs: f64 = dw.iter().sum();
        assert!((pairs - (steps - 1) as f64).abs() < 0.1, "{pairs}");
    }
}

/// Forbidden tags have probability 0; if no sequence is allowed all derivatives are 0.
#[test]
fn impossible_steps_do_not_move() {
    const NEVER: f64 = f64::NEG_INFINITY;
    let x = of(&[2, 3, 2], &[0.3, -0.1, 0.2, 0.5, NEVER, 0.4, 0.1, 0.2, NEVER, NEVER, 0.3, 0.1]);
    let w = of(&[2, 2], &[0.1, NEVER, 0.7, -0.2]);
    let op = LogPartition { lengths: vec![3, 3] };
    let inputs = values(&[x, w]);
    let out = op.forward(&inputs, &[true; 2]).unwrap();
    // In the first chain only the tags 1 1 1 have a finite score; in the second no sequence has.
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

#[test]
fn masks_give_lengths() {
    let mask = [true, true, false, true, false, false, true, true, true];
    assert_eq!(mask_lengths(&mask, 3), Ok(vec![2, 1, 3]));
    assert_eq!(mask_lengths(&[], 3), Ok(vec![]));
    let text = |mask: &[bool]| mask_lengths(mask, 3).unwrap_err().to_string();
    let hole = text(&[true, true, true, true, false, true]);
    assert!(hole.contains("sequence 1: the mask is true at step 2 and false at step 1"), "{hole}");
    let empty = text(&[true, false, false, false, false, false]);
    assert!(empty.contains("sequence 1: the mask is false at every step"), "{empty}");
}
