//! Edge cases of semirings in first derivatives: 0, infinities, NaN and ties.

use burn_tensor::DType;

use super::arrays::f64s;
use super::ext::einsum::{
    ArraySemiring, Einsum, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Path,
};
use super::{Tensor, numbers as numbers_of, semiring};

const LOW: f64 = f64::NEG_INFINITY;

fn gradient<S: ArraySemiring, const D: usize>(
    text: &str,
    x: [(&[f64], [usize; D]); 2],
    dtype: DType,
) -> (Vec<f64>, [Vec<f64>; 2]) {
    let leaves = x.map(|(values, shape)| f64s(values, shape).cast(dtype).require_grad());
    let y: Tensor<1> = semiring::<S, _>(text, [&leaves[0], &leaves[1]]).unwrap();
    let grads = y.clone().sum().backward();
    (numbers_of(y.inner()), leaves.map(|x| numbers_of(x.grad(&grads).unwrap())))
}

/// NaN propagates, and the first one receives the cotangent: for terms and factors, in every dtype, whether summed
/// in a product or before it.
#[test]
fn nan_wins_everywhere() {
    fn check<S: ArraySemiring>(partner: bool) {
        for dtype in [DType::F64, DType::F32] {
            for at in [0, 1, 5, 19] {
                let mut x = vec![1.0; 20];
                x[at] = f64::NAN;
                x[19] = f64::NAN;
                let first: Vec<f64> = (0..20).map(|i| f64::from(i == at)).collect();
                for text in ["i,i->", "i,j->"] {
                    let ones = vec![1.0; if text == "i,i->" { 20 } else { 1 }];
                    let shape = [ones.len()];
                    for swap in [false, true] {
                        let mut operands: [(&[f64], [usize; 1]); 2] = [(&x, [20]), (&ones, shape)];
                        let text = if swap && text == "i,j->" { "j,i->" } else { text };
                        if swap {
                            operands.reverse();
                        }
                        let (y, grads) = gradient::<S, 1>(text, operands, dtype);
                        let name = std::any::type_name::<S>();
                        assert!(y[0].is_nan(), "{name} {text} {dtype:?} {at}");
                        let (of_nan, of_one) = if swap { (1, 0) } else { (0, 1) };
                        assert_eq!(grads[of_nan], first, "{name} {text} {dtype:?} {at} {swap}");
                        let passed: f64 = grads[of_one].iter().sum();
                        // (max, ×) and (min, ×) pass NaN · g on, (max, min) passes nothing.
                        let expected = if partner { 1.0 } else { 0.0 };
                        assert!(passed == expected || passed.is_nan(), "{name} {text} {passed}");
                    }
                }
            }
        }
    }
    check::<MaxPlus>(true);
    check::<MinPlus>(true);
    check::<MaxMul>(true);
    check::<MinMul>(true);
    check::<MaxMin>(false);
}

/// Infinite cotangents, given or from another step, reach only terms that attain the extremum.
#[test]
fn infinite_cotangents_pass_by_what_does_not_count() {
    let high = f64::INFINITY;
    // d log y / dy at y = 0.
    let x = f64s(&[-1.0, 0.0, -2.0], [3]).require_grad();
    let y: Tensor<1> = semiring::<MaxPlus, _>("i->", [&x]).unwrap();
    let grads = y.log().backward();
    assert_eq!(numbers_of(x.grad(&grads).unwrap()), [0.0, high, 0.0]);
    // 0 · ∞ in one step; the derivative of the other step is ∞.
    let [x, y, z]: [&[f64]; 3] = [&[1.0, 0.0], &[1.0, 0.0], &[high]];
    let leaves = [(x, 2), (y, 2), (z, 1)].map(|(x, n)| f64s(x, [n]).require_grad());
    let chain = Einsum::new("i,i,j->").unwrap().path(Path::from([[0, 1], [0, 1]]));
    let y: Tensor<1> = semiring::<MaxMul, _>(chain, leaves.each_ref()).unwrap();
    let grads = y.backward();
    let grads = leaves.map(|x| numbers_of(x.grad(&grads).unwrap()));
    assert_eq!(grads, [vec![high, 0.0], vec![high, 0.0], vec![1.0]]);
}

/// A single operand, a factor of 0 beside ∞, and ties give the same result on every backend.
#[test]
fn zeros_and_ties_are_the_same_everywhere() {
    fn alone<S: ArraySemiring>(zero: f64) {
        for text in ["ij->ij", "ij->ji"] {
            let x = f64s(&[zero, 1.0, 2.0, zero], [2, 2]).require_grad();
            let y: Tensor<2> = semiring::<S, _>(text, [&x]).unwrap();
            let grads = y.sum().backward();
            assert_eq!(numbers_of(x.grad(&grads).unwrap()), [0.0, 1.0, 1.0, 0.0], "{text}");
        }
    }
    fn ties<S: ArraySemiring>() {
        // Terms (0, 1) and (1, 0) tie; the label that occurs first varies slowest.
        let (x, zeros) = ([1.0, 2.0, 2.0, 1.0], [1.0; 4]);
        for text in ["ab,ba->", "ba,ab->", "ab,ab->", "ba,ba->"] {
            let (_, grads) = gradient::<S, 2>(text, [(&x, [2, 2]), (&zeros, [2, 2])], DType::F64);
            let total = grads[0].iter().chain(&grads[1]).sum::<f64>();
            assert!(grads[0][2] == 0.0 && total > 0.0, "{text} {grads:?}");
        }
    }
    alone::<MaxPlus>(LOW);
    alone::<MinPlus>(f64::INFINITY);
    alone::<MaxMul>(0.0);
    alone::<MinMul>(f64::INFINITY);
    alone::<MaxMin>(LOW);
    alone::<LogSumExp>(LOW);
    ties::<MaxPlus>();
    ties::<MaxMul>();
    let (x, y) = ([0.0, 2.0, 0.5], [f64::INFINITY, 1.0, 3.0]);
    let (value, grads) = gradient::<MaxMul, 1>("i,i->", [(&x, [3]), (&y, [3])], DType::F64);
    assert_eq!((value[0], grads), (2.0, [vec![0.0, 1.0, 0.0], vec![0.0, 2.0, 0.0]]));
}

/// Rows whose terms are all −∞ give −∞ and a gradient of zero, not NaN, on the engine and on other backends.
#[test]
fn dead_ends_pass_nothing_on() {
    fn run<S: ArraySemiring>(dead: f64) {
        let a = f64s(&[dead, dead, 0.5, dead], [2, 2]).require_grad();
        let b = f64s(&[0.25, dead, -dead, 1.0], [2, 2]).require_grad();
        let y: Tensor<2> = semiring::<S, _>("ij,jk->ik", [&a, &b]).unwrap();
        let out: Vec<f64> = y.clone().into_data().iter().collect();
        assert_eq!(out, [dead, dead, 0.75, dead]);
        let grads = y.sum().backward();
        let of = |x: &Tensor<2>| x.grad(&grads).unwrap().into_data().iter::<f64>().collect();
        let (ga, gb): (Vec<f64>, Vec<f64>) = (of(&a), of(&b));
        assert_eq!(ga, [0.0, 0.0, 1.0, 0.0]);
        assert_eq!(gb, [1.0, 0.0, 0.0, 0.0]);
    }
    run::<MaxPlus>(f64::NEG_INFINITY);
    run::<MinPlus>(f64::INFINITY);
    run::<LogSumExp>(f64::NEG_INFINITY);
}
