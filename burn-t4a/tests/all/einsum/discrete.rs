//! Booleans and integers. Counts and lists are tested in `face/ext/tests`, for all versions of Burn.

use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{HostOperand, MaxMul, MaxPlus, bool_einsum, int_einsum};
use burn_t4a::ext::operation::Operations;
use burn_tensor::{Bool, DType, Int, Tensor, TensorData};

use super::cases::{CASES, data, naive};

/// Booleans and integers against the loop, on two backends.
#[test]
fn semirings_without_derivatives() {
    fn run<B: Operations>() {
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
            // Operands of ranks 1 to 3, written out: the kind is in the type, the rank is not.
            macro_rules! operands {
                ($operand:ident, $kind:ty, $data:expr, $options:expr) => {
                    (0..data.len())
                        .map(|i| {
                            let x = $data(i);
                            match case.shapes[i].len() {
                                1 => $operand::from(Tensor::<B, 1, $kind>::from_data(x, $options)),
                                2 => $operand::from(Tensor::<B, 2, $kind>::from_data(x, $options)),
                                _ => $operand::from(Tensor::<B, 3, $kind>::from_data(x, $options)),
                            }
                        })
                        .collect::<Vec<_>>()
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
            let i32s = || operands!(HostOperand, Int, ints, (&device, DType::I32));
            let got = by_rank!(shape.len(), D => {
                let y: Tensor<B, D, Int> = int_einsum::<MaxPlus, _, _>(case.text, i32s()).unwrap();
                of(y.into_data())
            });
            // −∞ is represented by the least integer.
            let expected: Vec<f64> = expected
                .iter()
                .map(|&x| if x.is_finite() { x } else { f64::from(i32::MIN) })
                .collect();
            assert_eq!(got, expected, "{}", case.text);

            let (expected, _) = naive::<MaxMul>(case, &zeroed);
            let got = by_rank!(shape.len(), D => {
                let y: Tensor<B, D, Bool> =
                    bool_einsum(case.text, operands!(HostOperand, Bool, bools, &device)).unwrap();
                of(y.into_data())
            });
            assert_eq!(got, expected, "{}", case.text);
        }
    }
    run::<BurnT4a>();
    run::<Flex>();
}
