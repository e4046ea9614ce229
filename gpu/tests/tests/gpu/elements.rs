//! Einsum without derivatives on the device, against the engine: integers, counts, lists of the best values. The test
//! `settings` checks that these are kernels.

use burn::backend::Autodiff;
use burn::tensor::{DType, Int, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::ext::ExtError;
use burn_t4a::ext::einsum::{
    ArraySemiring, EinsumError, FloatCancellative, FloatSelective, IntSemiring, MaxMin, MaxMul,
    MaxPlus, MinMul, MinPlus, Standard, counting_einsum, int_einsum, k_best_einsum,
};

use super::{Card, Tested, assert_close, noise, numbers, steps, tensor};

/// Subscripts and shapes of matrices: sizes below and above those of tiles, sums within operands, diagonals of
/// operands and of the result, chains, copies, and empty sums.
const CASES: &[(&str, &[[usize; 2]])] = &[
    ("ij,jk->ik", &[[1, 1], [1, 1]]),
    ("ij,jk->ik", &[[17, 33], [33, 18]]),
    ("ji,kj->ki", &[[20, 5], [3, 20]]),
    ("ij->ji", &[[3, 5]]),
    ("ij->ii", &[[3, 4]]),
    ("ij,ij->ij", &[[4, 6], [4, 6]]),
    ("ij,kk->ij", &[[2, 3], [4, 4]]),
    ("ij,jk,kl->il", &[[6, 5], [5, 7], [7, 4]]),
    ("ij,jk->ik", &[[2, 0], [0, 3]]),
    ("ij,jk->ik", &[[0, 2], [2, 3]]),
];

fn of_each_case(check: impl Fn(&str, &[[usize; 2]], &[Vec<f32>])) {
    for (text, shapes) in CASES {
        let operands: Vec<Vec<f32>> =
            shapes.iter().enumerate().map(|(i, [m, n])| steps(m * n, i + m)).collect();
        check(text, shapes, &operands);
    }
}

fn ints<S: IntSemiring, B: Tested>(
    text: &str,
    shapes: &[[usize; 2]],
    operands: &[Vec<i64>],
    dtype: DType,
) -> Vec<i64> {
    let operand = |(x, shape): (&Vec<i64>, &[usize; 2])| {
        let data = TensorData::new(x.clone(), *shape).convert_dtype(dtype);
        Tensor::<B, 2, Int>::from_data(data, (&B::place(), dtype))
    };
    let operands: Vec<_> = operands.iter().zip(shapes).map(operand).collect();
    let y: Tensor<B, 2, Int> = int_einsum::<S, _, _>(text, operands).unwrap();
    assert_eq!(y.dtype(), dtype);
    y.into_data().iter().collect()
}

/// Integers whose sums and products leave the range, and the extreme values, which are ∞ and −∞.
#[test]
fn integers_wrap_and_saturate() {
    fn check<S: IntSemiring>(least: i64) {
        for (dtype, ends) in
            [(DType::I32, [i32::MIN as i64, i32::MAX as i64]), (DType::I64, [i64::MIN, i64::MAX])]
        {
            of_each_case(|text, shapes, operands| {
                for scale in [1, ends[1] / 5] {
                    let value = |(i, &x): (usize, &f32)| match i % 7 {
                        2 => ends[0].max(least),
                        3 => ends[1],
                        _ => (x as i64 * scale).max(least),
                    };
                    let operands: Vec<Vec<i64>> = operands
                        .iter()
                        .map(|x| x.iter().enumerate().map(value).collect())
                        .collect();
                    let given = ints::<S, Card>(text, shapes, &operands, dtype);
                    let expected = ints::<S, BurnT4a>(text, shapes, &operands, dtype);
                    let name = std::any::type_name::<S>();
                    assert_eq!(given, expected, "{name} {dtype:?} {text} {shapes:?} {scale}");
                }
            });
        }
    }
    check::<Standard>(i64::MIN);
    check::<MaxPlus>(i64::MIN);
    check::<MinPlus>(i64::MIN);
    check::<MaxMul>(0);
    check::<MinMul>(0);
    check::<MaxMin>(i64::MIN);
}

fn floats<B: Tested>(
    shapes: &[[usize; 2]],
    operands: &[Vec<f32>],
    dtype: DType,
) -> Vec<Tensor<B, 2>> {
    // Burn's cast of a tensor without elements launches a kernel of no cubes, which CUDA refuses.
    let of = |(x, shape): (&Vec<f32>, &[usize; 2])| {
        let data = TensorData::new(x.clone(), *shape).convert_dtype(dtype);
        Tensor::<B, 2>::from_data(data, (&B::place(), dtype))
    };
    operands.iter().zip(shapes).map(of).collect()
}

/// Values and counts; sums of steps have many ties.
fn counts<S: ArraySemiring + FloatCancellative, B: Tested>(
    text: &str,
    operands: Vec<Tensor<B, 2>>,
) -> (Vec<f32>, Vec<i64>) {
    let (values, counts) = counting_einsum::<S, B, 2>(text, operands).unwrap();
    (numbers(values), counts.into_data().iter().collect())
}

#[test]
fn counts_of_optimal_terms() {
    fn check<S: ArraySemiring + FloatCancellative>(low: f32, zero: f32) {
        of_each_case(|text, shapes, operands| {
            let value = |(i, &x): (usize, &f32)| if i % 5 == 3 { zero } else { x.max(low) };
            let operands: Vec<Vec<f32>> =
                operands.iter().map(|x| x.iter().enumerate().map(value).collect()).collect();
            for dtype in [DType::F32, DType::F16] {
                let given = counts::<S, Card>(text, floats(shapes, &operands, dtype));
                let expected = counts::<S, BurnT4a>(text, floats(shapes, &operands, dtype));
                let of = format!("{} {dtype:?} {text} {shapes:?}", std::any::type_name::<S>());
                assert_close(&given.0, &expected.0, 0.0, &of);
                assert_eq!(given.1, expected.1, "{of}");
            }
        });
    }
    check::<MaxPlus>(f32::MIN, f32::NEG_INFINITY);
    check::<MinPlus>(f32::MIN, f32::INFINITY);
    check::<MaxMul>(0.0, 0.0);
    check::<MinMul>(0.5, f32::INFINITY);
}

/// Counts beyond 31 bits are those of the engine; infinite values have none.
#[test]
fn counts_that_overflow_and_unknown_counts() {
    let zeros = |n: usize| tensor::<Card, 2>(&vec![0.0; n * n], [n, n]);
    let (_, ways) = counting_einsum::<MaxPlus, _, 2>("ij,jk,kl->il", vec![zeros(3); 3]).unwrap();
    assert!(ways.into_data().iter::<i64>().all(|n| n == 9));
    let chain = "ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm->am";
    let (_, ways) = counting_einsum::<MaxPlus, _, 2>(chain, vec![zeros(8); 12]).unwrap();
    assert!(ways.into_data().iter::<i64>().all(|n| n == 1 << 33));
    for value in [f32::INFINITY, f32::NAN] {
        let x = tensor::<Card, 2>(&[value, 0.0], [1, 2]);
        let error = counting_einsum::<MaxPlus, _, 2>("ij,jk->ik", [&x, &x.clone().transpose()]);
        assert!(matches!(error, Err(ExtError::Einsum(EinsumError::CountOverflow))), "{value}");
    }
}

#[test]
fn lists_of_the_best_values() {
    fn lists<S: FloatSelective, const K: usize, B: Tested>(
        text: &str,
        operands: Vec<Tensor<B, 2>>,
    ) -> Vec<f32> {
        let best: Tensor<B, 3> = k_best_einsum::<S, K, _, 3>(text, operands).unwrap();
        numbers(best)
    }
    fn check<S: FloatSelective, const K: usize>(low: f32, special: [f32; 2], dtype: DType) {
        of_each_case(|text, shapes, operands| {
            for special in [&special[..], &[special[0], f32::NAN]] {
                let value = |(i, &x): (usize, &f32)| match i % 11 {
                    4 => special[0],
                    9 => special[1],
                    _ => (x * 1.1).max(low),
                };
                let operands: Vec<Vec<f32>> =
                    operands.iter().map(|x| x.iter().enumerate().map(value).collect()).collect();
                let given = lists::<S, K, Card>(text, floats(shapes, &operands, dtype));
                let expected = lists::<S, K, BurnT4a>(text, floats(shapes, &operands, dtype));
                let of = format!("{} {K} {dtype:?} {text} {shapes:?}", std::any::type_name::<S>());
                assert_close(&given, &expected, 0.0, &of);
            }
        });
    }
    let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
    check::<MaxPlus, 3>(f32::MIN, [low, high], DType::F32);
    check::<MinPlus, 2>(f32::MIN, [high, low], DType::F16);
    check::<MaxMul, 1>(0.0, [0.0, high], DType::F32);
    check::<MinMul, 2>(0.0, [high, 0.0], DType::F32);
    check::<MaxMin, 2>(f32::MIN, [low, high], DType::F32);
    check::<MaxPlus, 5>(f32::MIN, [low, high], DType::F32);
}

/// Results are constants of a tape, values of counts have their gradient; sums of all elements have shape `[1]`.
#[test]
fn on_a_tape_and_of_rank_1() {
    fn run<B: Tested + burn::tensor::backend::AutodiffBackend>() -> [Vec<f32>; 4] {
        let x = tensor::<B, 1>(&noise(6, 1), [6]).require_grad();
        let y = tensor::<B, 1>(&noise(6, 2), [6]);
        let (best, ways) = counting_einsum::<MaxPlus, _, 1>("i,i->", [&x, &y]).unwrap();
        let list: Tensor<B, 1> = k_best_einsum::<MinPlus, 4, _, 1>("i,j->", [&x, &y]).unwrap();
        let gradient = x.grad(&best.clone().backward()).unwrap();
        let ways = ways.into_data().iter::<f32>().collect();
        [numbers(best.inner()), ways, numbers(list.inner()), numbers(gradient)]
    }
    let given = run::<Autodiff<Card>>();
    for (g, e) in given.iter().zip(run::<Autodiff<BurnT4a>>()) {
        assert_close(g, &e, 1e-6, "rank 1");
    }
}
