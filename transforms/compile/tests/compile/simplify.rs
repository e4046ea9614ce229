//! Simplification does not change any bit of the results.

use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{Traced, compile};

type B = BurnT4a;
type M = Tensor<Traced<B>, 2>;

fn matrix(shape: [usize; 2], dtype: DType) -> Tensor<B, 2> {
    let value = |i: usize| (i * 7919 % 10_007) as f64 / 5003.0 - 1.0;
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, dtype))
}

/// A constant of one number, materialised in memory.
fn constant(number: f64, x: &M) -> M {
    let shape = x.dims();
    let data = TensorData::new(vec![number; shape.iter().product()], shape);
    Tensor::from_data(data, (&T4aDevice, x.dtype()))
}

/// Compares the results of a recording bitwise, simplified and not; returns the number of instructions of the former.
fn check(shape: [usize; 2], f: impl Fn(M) -> M) -> usize {
    let mut count = 0;
    for dtype in [DType::F32, DType::F64] {
        let x = matrix(shape, dtype);
        let run = |fused: bool| {
            let compiled = compile(&f).fullgraph().fused(fused);
            let want = compiled.call(x.clone()).unwrap().into_data();
            let call = || compiled.call(x.clone()).unwrap().into_data();
            // Interpreted, and machine code.
            let (got, again) = (call(), call());
            assert_eq!(got.bytes, again.bytes);
            (want, got, compiled.explain())
        };
        for fused in [false, true] {
            let (want, got, text) = run(fused);
            assert_eq!(want.bytes, got.bytes, "{text}");
            let lines = text.lines().filter(|line| line.starts_with('%'));
            count = lines.count();
        }
    }
    count
}

#[test]
fn sums_over_one_element_are_left_out() {
    let f = |x: M| x.sum_dim(1).sum_dim(1).mean_dim(1);
    assert_eq!(check([5, 7], f), 1);
    let once = |x: M| x.sum_dim(0).mean_dim(0);
    assert_eq!(check([1, 7], once), 1);
    assert_eq!(check([2, 7], once), 1);
}

/// A sum of one −0 is +0, at the first call and at later ones.
#[test]
fn sums_of_one_negative_zero() {
    type Case = (fn(M) -> M, fn(Tensor<B, 2>) -> Tensor<B, 2>);
    for dtype in [DType::F32, DType::F64] {
        let data = TensorData::new(vec![-0.0f64, 0.0, -1.5, -0.0], [4, 1]);
        let x = Tensor::<B, 2>::from_data(data, (&T4aDevice, dtype));
        let functions: [Case; 3] = [
            (|x| x.sum_dim(1), |x| x.sum_dim(1)),
            (|x| x.mean_dim(1), |x| x.mean_dim(1)),
            (|x| x.neg().sum_dim(1).neg(), |x| x.neg().sum_dim(1).neg()),
        ];
        for ((f, own), fused) in functions.into_iter().flat_map(|f| [(f, false), (f, true)]) {
            let compiled = compile(f).fullgraph().fused(fused);
            let want = own(x.clone()).into_data();
            for call in 0..3 {
                let got = compiled.call(x.clone()).unwrap().into_data();
                assert_eq!(got.bytes, want.bytes, "{dtype:?}, call {call}, fused: {fused}");
            }
        }
        assert!(
            x.clone()
                .sum_dim(1)
                .into_data()
                .iter::<f64>()
                .all(|x| x != 0.0 || x.is_sign_positive())
        );
    }
}

#[test]
fn products_with_ones_are_left_out() {
    assert_eq!(check([3, 5], |x| x.clone() * constant(1.0, &x)), 0);
    assert_eq!(check([3, 5], |x| constant(1.0, &x) * x.clone()), 0);
    assert_eq!(check([3, 5], |x| x.clone() / constant(1.0, &x)), 0);
    assert_eq!(check([3, 5], |x| x * 1.0), 0);
    // These are not identities.
    assert_eq!(check([3, 5], |x| constant(1.0, &x) / x.clone()), 1);
    assert_eq!(check([3, 1], |x| x.clone() * constant(1.0, &x.repeat_dim(1, 4))), 1);
}

#[test]
fn constants_of_one_number_are_that_number() {
    for number in [2.5, 0.0, -0.0, f64::NAN, f64::INFINITY] {
        check([33, 65], |x| x.clone() * constant(number, &x) + constant(number, &x));
        check([33, 65], |x| constant(number, &x).matmul(x.clone().transpose()) + 1.0);
    }
    // Zeros that differ in sign.
    check([2, 2], |x| {
        let zeros = TensorData::from([[0.0f64, -0.0], [0.0, 0.0]]);
        Tensor::<Traced<B>, 2>::from_data(zeros, (&T4aDevice, x.dtype())).mul(x)
    });
}

#[test]
fn numbers_of_rows_meet_long_and_short_rows() {
    for n in [2, 63, 64, 100, 4096, 4097] {
        check([9, n], |x| {
            let mean = x.clone().mean_dim(1);
            let centred = x.clone() - mean.clone();
            let scale = (centred.clone() * centred.clone()).mean_dim(1).sqrt();
            mean.clone() * (centred / scale.clone()) + scale + (mean - x)
        });
    }
}
