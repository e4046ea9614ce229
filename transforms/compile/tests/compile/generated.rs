//! Random groups: interpreted, as machine code, and run one by one, with bitwise equal results.

use burn::tensor::activation::{leaky_relu, relu, sigmoid};
use burn::tensor::{Bool, DType, Tensor};
use burn_t4a::BurnT4a;
use burn_t4a_compile::{Traced, compile};
use proptest::prelude::*;

use crate::fused::{bits, noise};

type B = BurnT4a;
type M = Tensor<Traced<B>, 2>;
type Words = Vec<[u8; 4]>;

fn unary(kind: u8, x: M) -> M {
    match kind % 20 {
        0 => x.neg(),
        1 => x.abs(),
        2 => x.sqrt(),
        3 => x.recip(),
        4 => x.powi_scalar(2),
        5 => x.powi_scalar(3),
        6 => x.powf_scalar(0.5),
        7 => x.floor(),
        8 => x.ceil(),
        9 => x.round(),
        10 => x.trunc(),
        11 => x.sign(),
        12 => relu(x),
        13 => leaky_relu(x, 0.1),
        14 => x.clamp(-0.75, 1.0),
        15 => x * 1.5,
        16 => x - 0.25,
        17 => x.exp(),
        18 => sigmoid(x),
        _ => x.tanh(),
    }
}

fn binary(kind: u8, x: M, y: M) -> M {
    match kind % 6 {
        0 => x + y,
        1 => x - y,
        2 => x * y,
        3 => x / y,
        4 => x.max_pair(y),
        _ => x.min_pair(y),
    }
}

/// A function of two matrices, a row, a column and a number; every choice of words is valid.
fn function(words: &Words, [x, y, row, column, number]: [M; 5]) -> Vec<M> {
    let full = [x.clone(), y.clone()];
    let (mut values, mut columns) = (vec![x.clone() + y.clone() * number, x, y], vec![column]);
    let mut masks: Vec<Tensor<Traced<B>, 2, Bool>> = Vec::new();
    for &[kind, a, b, c] in words {
        let of = |all: &[M], k: u8| all[k as usize % all.len()].clone();
        let (u, v) = (of(&values, a), of(&values, b));
        match kind % 12 {
            0 => values.push(unary(c, u)),
            1 => values.push(binary(c, u, v)),
            2 => values.push(binary(c, u, row.clone())),
            3 => values.push(binary(c, row.clone(), u)),
            4 => values.push(binary(c, u, of(&columns, b))),
            5 => values.push(binary(c, of(&columns, b), u)),
            6 => masks.push(match c % 4 {
                0 => u.greater(v),
                1 => u.lower_equal(v),
                2 => u.equal(v),
                _ => u.greater_equal_elem(0.25),
            }),
            7 if !masks.is_empty() => {
                let mask = masks[b as usize % masks.len()].clone();
                values.push(match c % 3 {
                    0 => u.mask_where(mask, v),
                    1 => u.mask_fill(mask, -1.5),
                    // Of the type of the others, also for f64.
                    _ => mask.float().cast(u.dtype()) * u,
                });
            }
            8 => columns.push(u.clamp(-3.0, 3.0).sum_dim(1)),
            9 => columns.push(u.clamp(-3.0, 3.0).mean_dim(1)),
            10 => columns.push(unary(c, of(&columns, a))),
            _ => columns.push(binary(c, of(&columns, a), of(&columns, b))),
        }
    }
    let indicators = masks.into_iter().map(|mask| full[0].clone().mask_fill(mask, 2.0));
    values
        .into_iter()
        .skip(1)
        .step_by(2)
        .chain(columns.into_iter().skip(1))
        .chain(indicators)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 400 }))]

    #[test]
    fn random_groups(
        words in prop::collection::vec(any::<[u8; 4]>(), 1..40),
        rows in 1_usize..6,
        n in prop_oneof![1_usize..131, Just(128), Just(256), Just(640), 512_usize..560],
        double in any::<bool>(),
    ) {
        let dtype = if double { DType::F64 } else { DType::F32 };
        let shapes = [[rows, n], [rows, n], [1, n], [rows, 1], [1, 1]];
        let inputs = |seed: usize| {
            let mut seeds = seed..;
            shapes.map(|shape| noise(shape, seeds.next().unwrap_or(0), dtype))
        };
        let f = |x: [M; 5]| function(&words, x);
        let [fused, plain] = [true, false].map(|fused| compile(f).fullgraph().fused(fused));
        // The first call records, the second one interprets small groups, the next ones generate machine code.
        for seed in (3..).step_by(13).take(11) {
            let [x, y] = [&fused, &plain].map(|f| f.call(inputs(seed)).unwrap());
            for (k, (x, y)) in x.into_iter().zip(y).enumerate() {
                prop_assert_eq!(bits(x), bits(y), "{} of {} × {}, {:?}\n{}", k, rows, n, dtype, fused.explain());
            }
        }
    }
}
