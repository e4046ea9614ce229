//! Malformed archives are errors, of `load` or of the call.

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::activation::softmax;
use burn::tensor::{Tensor, TensorData};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{CompileError, Traced, compile};

type B = BurnT4a;
type Matrix = Tensor<Traced<B>, 2>;

fn matrix(seed: usize) -> Tensor<B, 2> {
    let values: Vec<f32> = (0..20).map(|i| ((i * 37 + seed) % 19) as f32 / 9.0 - 1.0).collect();
    Tensor::from_data(TensorData::new(values, [4, 5]), &T4aDevice)
}

/// Slices, indices, sums, products, boolean masks and a constant.
fn body(x: Matrix) -> Matrix {
    let some = Matrix::from_floats([[0.5, -0.5, 1.0, 2.0, 0.0]], &T4aDevice);
    let order = x.clone().argsort(1);
    let mask = x.clone().greater(some.clone());
    let y = softmax(x.clone() + some, 1).mask_fill(mask, 0.25);
    let z = y.clone().gather(1, order).matmul(x.clone().transpose());
    let parts = vec![z.narrow(1, 1, 2), y.slice([0..4, 1..3]), x.repeat_dim(1, 2)];
    Tensor::cat(parts, 1).tanh() - 0.5
}

/// Length in bytes of magic, version and checksum, which precede the body.
const HEAD: usize = 13;

fn signed(body: &[u8], like: &[u8]) -> Vec<u8> {
    let sum = body.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    [&like[..5], &sum.to_le_bytes(), body].concat()
}

fn saved() -> Vec<u8> {
    let f = compile(body).fullgraph();
    f.call(matrix(1)).unwrap();
    f.save().unwrap()
}

/// One word of the program is changed at a time, with a valid checksum.
#[test]
fn changed_programs_are_errors_or_run() {
    let bytes = saved();
    let body_of = &bytes[HEAD..];
    // Every word starts with its tag; texts are longer than 9 bytes.
    let mut words = Vec::new();
    let mut at = 0;
    while at < body_of.len() {
        let eight: [u8; 8] = body_of[at + 1..at + 9].try_into().unwrap();
        words.push(at);
        at += 9 + if body_of[at] == 2 { u64::from_le_bytes(eight) as usize } else { 0 };
    }
    let extremes =
        [0, 1, -1, 2, 3, 5, 7, 100, 1 << 20, 1 << 31, 1 << 45, i64::MAX, i64::MIN, 1 << 62];
    let mut state = 1u64;
    let mut next = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let (mut loaded, mut failed) = (0, 0);
    for _ in 0..1500 {
        let mut body_of = body_of.to_vec();
        for _ in 0..1 + next(2) {
            let at = words[next(words.len())];
            match next(6) {
                0 => {
                    let at = next(body_of.len());
                    body_of[at] ^= 1 << next(8);
                }
                1 => body_of[at] = next(3) as u8,
                _ => {
                    let value = extremes[next(extremes.len())];
                    body_of[at + 1..at + 9].copy_from_slice(&value.to_le_bytes());
                }
            }
        }
        if next(30) == 0 {
            body_of.truncate(next(body_of.len()));
        }
        let forged = signed(&body_of, &bytes);
        let f = compile(body).fullgraph();
        let outcome = catch_unwind(AssertUnwindSafe(|| match f.load(&forged) {
            Ok(_) => f.call(matrix(2)).map(|_| true),
            Err(error @ CompileError::Load { .. }) => Err(error),
            Err(other) => panic!("{other}"),
        }));
        match outcome.expect("no panic") {
            Ok(_) => loaded += 1,
            Err(_) => failed += 1,
        }
    }
    assert!(loaded > 50 && failed > 500, "{loaded} {failed}");
}

#[test]
fn deep_trees_and_large_constants_are_errors() {
    let bytes = saved();
    let body_of = &bytes[HEAD..];
    let name: [u8; 8] = body_of[1..9].try_into().unwrap();
    let mut deep = body_of[..9 + u64::from_le_bytes(name) as usize + 9].to_vec();
    let word = |x: i64| [&[0][..], &x.to_le_bytes()].concat();
    for _ in 0..300_000 {
        deep.extend(word(0));
        deep.extend(word(1));
    }
    let f = compile(body).fullgraph();
    let refused = |bytes: &[u8]| matches!(f.load(bytes), Err(CompileError::Load { .. }));
    assert!(refused(&signed(&deep, &bytes)));
    // Shape [1, 5] and byte count of the constant.
    let find = [word(1), word(2), word(1), word(5), word(20)].concat();
    let at = body_of.windows(find.len()).position(|x| x == find).unwrap();
    for (size, length) in
        [(1i64 << 45, 1i64 << 47), (1 << 45, 20), (1 << 62, 1 << 62), (5, 1 << 45)]
    {
        let forged = [word(1), word(2), word(1), word(size), word(length)].concat();
        let mut body_of = body_of.to_vec();
        body_of[at..at + find.len()].copy_from_slice(&forged);
        assert!(refused(&signed(&body_of, &bytes)), "{size} {length}");
    }
}
