//! Recurrences with small matrices.

use super::*;
use t4a_scan::MatrixRecurrence;

fn operands(op: &MatrixRecurrence, batch: &[usize], [n, d, k]: [usize; 3]) -> Vec<Eager> {
    let shape = |rest: &[usize]| [batch, rest].concat();
    let mut all = vec![random(&shape(&[n, d, d]), 1), random(&shape(&[n, d, k]), 2)];
    if op.initial {
        all.push(random(&shape(&[1, d, k]), 3));
    }
    all
}

fn variants() -> impl Iterator<Item = MatrixRecurrence> {
    (0..4).map(|i| MatrixRecurrence { reverse: i & 1 != 0, initial: i & 2 != 0 })
}

#[test]
fn every_size_is_the_definition() {
    for op in variants() {
        for d in 1..10 {
            for (n, k) in [(0, 1), (1, 1), (6, 1), (4, 3)] {
                let x = operands(&op, &[2], [n, d, k]);
                let own = run(&op, &x);
                let want = op.portable(&values(&x), &[]).unwrap().results;
                close(&elements(&own[0]), &elements(&want[0]), 1e-13);
            }
        }
    }
}

#[test]
fn derivatives() {
    for op in variants() {
        check(&op, &operands(&op, &[], [4, 2, 1]));
        check(&op, &operands(&op, &[2, 1], [3, 3, 2]));
        check(&op, &operands(&op, &[2], [1, 2, 1]));
    }
}

/// Scalars as 1×1 matrices.
#[test]
fn one_row_is_the_diagonal_recurrence() {
    let op = MatrixRecurrence { initial: true, reverse: false };
    let x = operands(&op, &[3], [50, 1, 1]);
    let flat = |x: &Eager| x.reshape(&[3, x.shape()[1]]);
    let diagonal =
        t4a_scan::LinearRecurrence { initial: true, ..t4a_scan::LinearRecurrence::new(1) };
    let want = run(&diagonal, &x.iter().map(flat).collect::<Vec<_>>());
    close(&elements(&run(&op, &x)[0]), &elements(&want[0]), 1e-15);
}

#[test]
fn bits_do_not_depend_on_threads() {
    let op = MatrixRecurrence { initial: true, reverse: true };
    let x = operands(&op, &[40], [300, 3, 1]);
    same_bits_on_threads(|| [run(&op, &x), gradient(&op, &x)].concat());
}

#[test]
fn what_does_not_fit_is_an_error() {
    let op = MatrixRecurrence { initial: true, reverse: false };
    let results = |shapes: &[&[usize]]| {
        let meta = |x: &&[usize]| Meta { shape: x.to_vec(), dtype: t4a_tensor::DType::F32 };
        op.results(&shapes.iter().map(meta).collect::<Vec<_>>())
    };
    assert!(results(&[&[5, 2, 2], &[5, 2, 1], &[1, 2, 1]]).is_ok());
    let mismatch = |x: &[&[usize]]| matches!(results(x), Err(TensorError::ShapeMismatch { .. }));
    assert!(mismatch(&[&[5, 2, 3], &[5, 2, 1], &[1, 2, 1]]));
    assert!(mismatch(&[&[5, 2, 2], &[4, 2, 1], &[1, 2, 1]]));
    assert!(mismatch(&[&[2, 2], &[2, 1], &[2, 1]]));
    assert!(mismatch(&[&[5, 2, 2], &[5, 2, 1], &[2, 1]]));
}
