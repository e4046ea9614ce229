//! Semirings without a derivative.

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_t4a::ext::einsum::{
    EinsumError, HostOperand, MaxMul, MaxPlus, MinPlus, Subscripts, bool_einsum, counting_einsum,
    int_einsum, k_best_einsum,
};
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::{ExtError, MismatchError};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::{Bool, DType, Int, Tensor, TensorData};

use crate::cases::{CASES, Vector, data, f64s, naive};

/// Booleans, integers, counts and lists against the loop, on two backends.
#[test]
fn semirings_without_derivatives() {
    fn run<B: Operations>()
    where
        Autodiff<B>: Operations,
    {
        let device = B::Device::default();
        for (seed, case) in CASES.iter().enumerate().filter(|(_, case)| case.given.is_empty()) {
            let data: Vec<Vec<f64>> = data(case, seed as u64)
                .into_iter()
                .map(|x| x.into_iter().map(|x| (2.0 * x).floor()).collect())
                .collect();
            let ints = |i: usize| {
                let x: Vec<i32> = data[i].iter().map(|&x| x as i32).collect();
                TensorData::new(x, case.shapes[i].to_vec())
            };
            let bools = |i: usize| {
                let x: Vec<bool> = data[i].iter().map(|&x| x > 1.0).collect();
                TensorData::new(x, case.shapes[i].to_vec())
            };
            let of = |x: TensorData| -> Vec<f64> { x.iter().collect() };
            let zeroed: Vec<Vec<f64>> =
                data.iter().map(|x| x.iter().map(|&x| f64::from(x > 1.0)).collect()).collect();
            // Operands of ranks 1 to 3 by hand: the kind is in the type, the rank is not.
            macro_rules! operands {
                ($kind:ty, $data:expr, $options:expr) => {
                    (0..data.len())
                        .map(|i| {
                            let x = $data(i);
                            match case.shapes[i].len() {
                                1 => {
                                    HostOperand::from(Tensor::<B, 1, $kind>::from_data(x, $options))
                                }
                                2 => {
                                    HostOperand::from(Tensor::<B, 2, $kind>::from_data(x, $options))
                                }
                                _ => {
                                    HostOperand::from(Tensor::<B, 3, $kind>::from_data(x, $options))
                                }
                            }
                        })
                        .collect::<Vec<HostOperand<B, $kind>>>()
                };
            }
            macro_rules! by_rank {
                ($rank:expr, $d:ident => $body:expr) => {
                    match $rank {
                        0 | 1 => {
                            const $d: usize = 1;
                            $body
                        }
                        2 => {
                            const $d: usize = 2;
                            $body
                        }
                        3 => {
                            const $d: usize = 3;
                            $body
                        }
                        _ => {
                            const $d: usize = 4;
                            $body
                        }
                    }
                };
            }
            let (expected, shape) = naive::<MaxPlus>(case, &data);
            let i32s = || operands!(Int, ints, (&device, DType::I32));
            let got = by_rank!(shape.len(), D => {
                let y: Tensor<B, D, Int> = int_einsum::<MaxPlus, _, _>(case.text, i32s()).unwrap();
                of(y.into_data())
            });
            // −∞ is the least integer.
            let expected: Vec<f64> = expected
                .iter()
                .map(|&x| if x.is_finite() { x } else { f64::from(i32::MIN) })
                .collect();
            assert_eq!(got, expected, "{}", case.text);

            let (expected, _) = naive::<MaxMul>(case, &zeroed);
            let got = by_rank!(shape.len(), D => {
                let y: Tensor<B, D, Bool> =
                    bool_einsum(case.text, operands!(Bool, bools, &device)).unwrap();
                of(y.into_data())
            });
            assert_eq!(got, expected, "{}", case.text);
        }
        // All pairs: the sorted sums, and how often the largest occurs.
        let (a, b) = ([1.0, 3.0, 2.0, 3.0], [0.0, 2.0, 2.0, 1.0]);
        let (x, y) = (f64s::<B, 1>(&a, [4]), f64s::<B, 1>(&b, [4]));
        let mut sums: Vec<f64> = a.iter().flat_map(|a| b.map(|b| a + b)).collect();
        sums.sort_by(|a, b| b.total_cmp(a));
        let best: Vector<B> = k_best_einsum::<MaxPlus, 6, _, _>("i,j->", (&x, &y)).unwrap();
        assert_eq!(best.into_data().iter::<f64>().collect::<Vec<_>>(), sums[..6]);
        let best: Tensor<B, 2> = k_best_einsum::<MinPlus, 2, _, _>("i,i->i", (&x, &y)).unwrap();
        let rows: Vec<f64> = best.into_data().iter().collect();
        assert_eq!(
            rows,
            [1.0, f64::INFINITY, 5.0, f64::INFINITY, 4.0, f64::INFINITY, 4.0, f64::INFINITY]
        );
        let (most, ways) = counting_einsum::<MaxPlus, _, 1>("i,j->", (&x, &y)).unwrap();
        assert_eq!(most.into_data().iter::<f64>().next(), Some(5.0));
        assert_eq!(ways.into_data().iter::<i64>().next(), Some(4));
        // On the tape: the values have their gradient.
        let inner = Tensor::<Autodiff<B>, 1>::from_inner(x).require_grad();
        let other = Tensor::<Autodiff<B>, 1>::from_inner(y);
        let (most, ways) = counting_einsum::<MaxPlus, _, 1>("i,j->", (&inner, &other)).unwrap();
        assert_eq!(ways.into_data().iter::<i64>().next(), Some(4));
        let g: Vec<f64> = inner.grad(&most.backward()).unwrap().into_data().iter().collect();
        assert_eq!(g, [0.0, 1.0, 0.0, 0.0]);
    }
    run::<BurnT4a>();
    run::<Flex>();
}

#[test]
fn mistakes_without_derivatives_are_typed_errors() {
    type B = BurnT4a;
    let ints = |dtype| Tensor::<B, 1, Int>::from_data([1, 2], (&T4aDevice, dtype));
    let unsigned = int_einsum::<MinPlus, B, 1>("i,i->i", [ints(DType::U8), ints(DType::U8)]);
    assert!(matches!(unsigned, Err(ExtError::Einsum(EinsumError::Tensor(_)))));
    let mixed = int_einsum::<MinPlus, B, 1>("i,i->i", [ints(DType::I32), ints(DType::I64)]);
    assert!(matches!(mixed, Err(ExtError::Mismatch(MismatchError::DType { argument: 1, .. }))));
    let rank = int_einsum::<MinPlus, B, 2>("i,i->i", [ints(DType::I32), ints(DType::I32)]);
    let wrong = MismatchError::ResultRank { op: "einsum", required: 1, given: 2 };
    assert_eq!(rank.unwrap_err(), ExtError::Mismatch(wrong));
    // 2⁶⁴ ways to choose nothing.
    let free = Tensor::<B, 1>::zeros([2], &T4aDevice);
    let text = (b'a'..=b'z').chain(b'A'..=b'Z').map(|c| (c as char).to_string());
    let text: Vec<String> = text.take(52).collect();
    let many = format!("{}->", text.join(","));
    let few = counting_einsum::<MaxPlus, B, 1>(&*many, vec![free.clone(); 52]).unwrap();
    assert_eq!(few.1.into_data().iter::<i64>().next(), Some(1 << 52));
    let more: Vec<usize> = (0..64).collect();
    let labels = Subscripts::new(more.iter().map(|&l| vec![l]), Vec::<usize>::new());
    let over = counting_einsum::<MaxPlus, B, 1>(labels, vec![free; 64]).unwrap_err();
    assert_eq!(over, ExtError::Einsum(EinsumError::CountOverflow));
}

/// One pair of each tie, none of what underflows, and no number for what absorbs others.
#[test]
fn counts_at_the_edges() {
    fn run<B: Operations>() {
        let x = |values: &[f64]| f64s::<B, 1>(values, [values.len()]);
        let count = |ways: Tensor<B, 1, Int>| ways.into_data().iter::<i64>().next();
        // 10⁻⁴⁰⁰ is 0, and nothing attains that.
        let (likely, ways) =
            counting_einsum::<MaxMul, B, 1>("i,i->", (&x(&[1e-200; 2]), &x(&[1e-200; 2]))).unwrap();
        assert_eq!((likely.into_data().iter::<f64>().sum::<f64>(), count(ways)), (0.0, Some(0)));
        let far = x(&[f64::INFINITY, 1.0]);
        for text in ["i,j->", "i,j->i"] {
            let counted = counting_einsum::<MaxPlus, B, 1>(text, (&far, &x(&[1.0, 2.0])));
            assert_eq!(
                counted.unwrap_err(),
                ExtError::Einsum(EinsumError::CountOverflow),
                "{text}"
            );
        }
        let nan = counting_einsum::<MinPlus, B, 1>("i->", [&x(&[f64::NAN, 1.0])]);
        assert_eq!(nan.unwrap_err(), ExtError::Einsum(EinsumError::CountOverflow));
        // −∞ of (min, +) absorbs, its +∞ is 0.
        let low = counting_einsum::<MinPlus, B, 1>("i->", [&x(&[f64::NEG_INFINITY, 1.0])]);
        assert_eq!(low.unwrap_err(), ExtError::Einsum(EinsumError::CountOverflow));
        let (_, ways) =
            counting_einsum::<MinPlus, B, 1>("i->", [&x(&[f64::INFINITY, 1.0, 1.0])]).unwrap();
        assert_eq!(count(ways), Some(2));
    }
    run::<BurnT4a>();
    run::<Flex>();
}

/// A NaN is one of the values, in front.
#[test]
fn one_nan_is_listed_once() {
    let x = f64s::<BurnT4a, 1>(&[f64::NAN, 1.0, 3.0], [3]);
    let y = f64s::<BurnT4a, 1>(&[2.0], [1]);
    let best: Vector<BurnT4a> = k_best_einsum::<MaxPlus, 4, _, _>("i,j->", (&x, &y)).unwrap();
    let best: Vec<f64> = best.into_data().iter().collect();
    assert!(best[0].is_nan());
    assert_eq!(best[1..], [5.0, 3.0, f64::NEG_INFINITY]);
}
