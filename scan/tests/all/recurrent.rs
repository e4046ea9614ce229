//! Recurrent layers.

use super::*;
use t4a_scan::{Cell, Recurrent};

fn operands(op: &Recurrent, [n, batch, width]: [usize; 3]) -> Vec<Eager> {
    let gates = op.cell.gates() * width;
    let mut all = vec![random(&[n, batch, gates], 1), random(&[width, gates], 2)];
    if op.bias {
        all.push(random(&[gates], 3));
    }
    if op.initial {
        all.extend((0..op.cell.states() as u64).map(|k| random(&[batch, width], 4 + k)));
    }
    all
}

fn variants(cell: Cell) -> impl Iterator<Item = Recurrent> {
    (0..8).map(move |i| Recurrent {
        cell,
        reverse: i & 1 != 0,
        bias: i & 2 != 0,
        initial: i & 4 != 0,
    })
}

/// Elementwise formulas, with loops for the products.
fn naive(op: &Recurrent, x: &[Eager], [n, batch, w]: [usize; 3]) -> [Vec<f64>; 2] {
    let gates = op.cell.gates() * w;
    let x: Vec<Vec<f64>> = x.iter().map(elements).collect();
    let at = 2 + op.bias as usize;
    let first = |k: usize| if op.initial { x[at + k].clone() } else { vec![0.0; batch * w] };
    let (mut h, mut c) = (first(0), vec![0.0; batch * w]);
    if op.cell == Cell::Lstm {
        c = first(1);
    }
    let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut out = [vec![0.0; n * batch * w], vec![0.0; n * batch * w]];
    for k in 0..n {
        let t = if op.reverse { n - 1 - k } else { k };
        let before = h.clone();
        for b in 0..batch {
            for i in 0..w {
                let z = |gate: usize| x[0][(t * batch + b) * gates + gate * w + i];
                let u = |gate: usize| {
                    let bias = if op.bias { x[2][gate * w + i] } else { 0.0 };
                    let term = |j: usize| before[b * w + j] * x[1][j * gates + gate * w + i];
                    bias + (0..w).map(term).sum::<f64>()
                };
                let p = |gate| z(gate) + u(gate);
                let old = before[b * w + i];
                h[b * w + i] = match op.cell {
                    Cell::Tanh => p(0).tanh(),
                    Cell::Gated => sigma(p(0)) * old + (1.0 - sigma(p(0))) * p(1).tanh(),
                    Cell::Gru => {
                        let m = (z(2) + sigma(p(0)) * u(2)).tanh();
                        sigma(p(1)) * old + (1.0 - sigma(p(1))) * m
                    }
                    Cell::Lstm => {
                        let c = &mut c[b * w + i];
                        *c = sigma(p(1)) * *c + sigma(p(0)) * p(2).tanh();
                        sigma(p(3)) * c.tanh()
                    }
                };
                out[0][(t * batch + b) * w + i] = h[b * w + i];
                out[1][(t * batch + b) * w + i] = c[b * w + i];
            }
        }
    }
    out
}

#[test]
fn forward_is_the_loop() {
    for cell in Cell::ALL {
        for op in variants(cell) {
            for sizes in [[0, 2, 3], [1, 1, 1], [5, 2, 3], [4, 35, 7]] {
                let x = operands(&op, sizes);
                let want = naive(&op, &x, sizes);
                for (y, want) in run(&op, &x).iter().zip(&want) {
                    close(&elements(y), want, 1e-13);
                }
            }
        }
    }
}

#[test]
fn derivatives() {
    for cell in Cell::ALL {
        for op in variants(cell) {
            check(&op, &operands(&op, [4, 2, 3]));
        }
        let all = Recurrent { bias: true, initial: true, ..Recurrent::new(cell) };
        check(&all, &operands(&all, [3, 19, 2]));
    }
}

/// Gradients with the gates that the forward pass saves; [`gradient`] computes them again.
fn saved_gradient(op: &Recurrent, x: &[Eager]) -> Vec<Eager> {
    let tracked = vec![true; x.len()];
    let outcome = op.forward(&values(x), &tracked).unwrap();
    assert_eq!(outcome.extra.is_empty(), op.cell == Cell::Tanh);
    let cotangents: Vec<_> =
        outcome.results.iter().map(|y| Some(y.full(&y.shape(), 1.0))).collect();
    let kept = t4a_diff::Kept::new(op.keep(&tracked), &values(x), &outcome);
    let reverse =
        t4a_diff::Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &tracked };
    op.fused_vjp(&reverse).unwrap().into_iter().map(Option::unwrap).collect()
}

#[test]
fn saved_gates_give_the_gradients_of_recomputed_ones() {
    for cell in Cell::ALL {
        for op in variants(cell) {
            for sizes in [[0, 2, 3], [1, 1, 1], [5, 2, 3], [4, 35, 7]] {
                let x = operands(&op, sizes);
                for (own, want) in saved_gradient(&op, &x).iter().zip(gradient(&op, &x)) {
                    close(&elements(own), &elements(&want), 1e-13);
                }
            }
        }
        // Nothing is saved if no operand is tracked.
        let op = Recurrent::new(cell);
        let x = operands(&op, [5, 2, 3]);
        assert!(op.forward(&values(&x), &[false; 2]).unwrap().extra.is_empty());
    }
}

#[test]
fn an_empty_sequence_has_a_derivative() {
    for cell in Cell::ALL {
        let op = Recurrent { bias: true, initial: true, ..Recurrent::new(cell) };
        for gradient in &gradient(&op, &operands(&op, [0, 2, 3]))[1..] {
            assert!(elements(gradient).iter().all(|&g| g == 0.0));
        }
    }
}

#[test]
fn large_arguments_saturate() {
    let op = Recurrent::new(Cell::Gru);
    let x: Vec<Eager> = operands(&op, [3, 1, 2]).iter().map(|x| x.scale(1e4)).collect();
    let portable = op.portable(&values(&x), &[]).unwrap().results;
    for y in [&run(&op, &x)[0], &portable[0], &gradient(&op, &x)[0]] {
        assert!(elements(y).iter().all(|y| y.abs() <= 1.0), "{y:?}");
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    for cell in Cell::ALL {
        let op = Recurrent { initial: true, ..Recurrent::new(cell) };
        for sizes in [[20, 50, 16], [6, 3, 64]] {
            let x = operands(&op, sizes);
            same_bits_on_threads(|| [run(&op, &x), saved_gradient(&op, &x)].concat());
        }
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let op = Recurrent { bias: true, initial: true, ..Recurrent::new(Cell::Lstm) };
    let results = |shapes: [&[usize]; 5]| {
        let meta = |x: &[usize]| Meta { shape: x.to_vec(), dtype: t4a_tensor::DType::F32 };
        op.results(&shapes.map(meta))
    };
    assert!(results([&[5, 2, 12], &[3, 12], &[12], &[2, 3], &[2, 3]]).is_ok());
    for shapes in [
        [&[5, 2, 12][..], &[3, 9], &[12], &[2, 3], &[2, 3]],
        [&[5, 2, 9], &[3, 9], &[9], &[2, 3], &[2, 3]],
        [&[5, 12], &[3, 12], &[12], &[2, 3], &[2, 3]],
        [&[5, 2, 12], &[3, 12], &[1, 12], &[2, 3], &[2, 3]],
        [&[5, 2, 12], &[3, 12], &[12], &[2, 3], &[1, 3]],
    ] {
        assert!(matches!(results(shapes), Err(TensorError::ShapeMismatch { .. })), "{shapes:?}");
    }
}
