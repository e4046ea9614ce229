//! Einsum over semirings with gradients, against the engine.

use burn::backend::Autodiff;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Bool, DType, Tensor};
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{
    ArraySemiring, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard, bool_einsum,
    semiring_einsum,
};

use super::{Card, Engine, Gpu, Tested, assert_close, noise, numbers, steps, tensor};

/// An operand: its elements and shape.
type Given<const D: usize> = (Vec<f32>, [usize; D]);

/// The einsum, and the gradients of the sum of its elements with weights 1, 2, 3.
fn differentiated<S: ArraySemiring, B: Tested + AutodiffBackend, const D: usize>(
    text: &str,
    [a, b]: [&Given<D>; 2],
) -> [Vec<f32>; 3] {
    let [a, b] = [a, b].map(|(x, shape)| tensor::<B, D>(x, *shape).require_grad());
    let y: Tensor<B, D> = semiring_einsum::<S, _, D>(text, [&a, &b]).unwrap();
    let weights: Vec<f32> = (0..y.shape().num_elements()).map(|i| (i % 3 + 1) as f32).collect();
    let g = tensor::<B, D>(&weights, y.dims());
    let of = numbers(y.clone().inner());
    let grads = (y * g).sum().backward();
    [of, numbers(a.grad(&grads).unwrap()), numbers(b.grad(&grads).unwrap())]
}

fn as_on_the_engine<S: ArraySemiring, const D: usize>(
    text: &str,
    operands: [&Given<D>; 2],
    tolerance: f32,
) {
    let given = differentiated::<S, Gpu, D>(text, operands);
    let expected = differentiated::<S, Engine, D>(text, operands);
    let name = std::any::type_name::<S>();
    for (what, (g, e)) in ["y", "ā", "b̄"].iter().zip(given.iter().zip(&expected)) {
        let of = format!("{name} {text} {:?} {what}", operands.map(|x| x.1));
        assert_close(g, e, tolerance, &of);
    }
}

/// Inserts each special value at several positions, two of them in one row and in one column.
fn with_specials<const D: usize>(mut x: Given<D>, special: &[f32], seed: usize) -> Given<D> {
    let n = x.0.len();
    for (i, &value) in special.iter().enumerate() {
        for j in 0..n.div_ceil(40) {
            x.0[(seed + 7 * i + 37 * j) % n] = value;
        }
    }
    x
}

/// Sizes below and above those of tiles, with many ties.
#[test]
fn tropical_products_and_their_gradients() {
    fn check<S: ArraySemiring>(low: f32) {
        for [m, k, n] in [[1, 1, 1], [1, 40, 1], [16, 17, 15], [70, 20, 34]] {
            let raise = |x: Vec<f32>| -> Vec<f32> { x.into_iter().map(|x| x.max(low)).collect() };
            let a = (raise(steps(m * k, m)), [m, k]);
            let b = (raise(steps(k * n, n)), [k, n]);
            as_on_the_engine::<S, 2>("ij,jk->ik", [&a, &b], 0.0);
            // Other strides need another kernel, which compiles slowly for large tiles.
            if m.max(n) < 33 {
                let (a, b) = ((a.0, [k, m]), (b.0, [n, k]));
                as_on_the_engine::<S, 2>("ji,kj->ki", [&a, &b], 0.0);
            }
        }
    }
    check::<MaxPlus>(f32::MIN);
    check::<MinPlus>(f32::MIN);
    check::<MaxMul>(0.0);
    check::<MinMul>(0.0);
    check::<MaxMin>(f32::MIN);
}

#[test]
fn tropical_products_of_infinities_and_nan() {
    fn check<S: ArraySemiring>(low: f32, special: &[f32]) {
        let [m, k, n] = [9, 12, 17];
        let raise = |x: Vec<f32>| -> Vec<f32> { x.into_iter().map(|x| x.max(low)).collect() };
        for special in [special, &[special, &[f32::NAN]].concat()] {
            let a = with_specials((raise(steps(m * k, 3)), [m, k]), special, 5);
            let b = with_specials((raise(steps(k * n, 4)), [k, n]), special, 11);
            as_on_the_engine::<S, 2>("ij,jk->ik", [&a, &b], 0.0);
        }
        // A row of zeros of the semiring, and operands of nothing else.
        let zero = special[0];
        let mut a = (raise(steps(m * k, 5)), [m, k]);
        a.0[..2 * k].fill(zero);
        let b = (raise(steps(k * n, 6)), [k, n]);
        as_on_the_engine::<S, 2>("ij,jk->ik", [&a, &b], 0.0);
        as_on_the_engine::<S, 2>("ij,jk->ik", [&(vec![zero; m * k], [m, k]), &b], 0.0);
    }
    let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
    check::<MaxPlus>(f32::MIN, &[low, high]);
    check::<MinPlus>(f32::MIN, &[high, low]);
    check::<MaxMul>(0.0, &[0.0, high]);
    check::<MinMul>(0.0, &[high, 0.0]);
    check::<MaxMin>(f32::MIN, &[low, high]);
}

#[test]
fn batches_and_axes_in_any_order() {
    let a = (steps(3 * 5 * 4, 1), [3, 5, 4]);
    let b = (steps(3 * 4 * 6, 2), [3, 4, 6]);
    as_on_the_engine::<MaxPlus, 3>("bij,bjk->bik", [&a, &b], 0.0);
    as_on_the_engine::<MinPlus, 3>("bij,bjk->kbi", [&a, &b], 0.0);
    let b = (b.0, [4, 6, 3]);
    as_on_the_engine::<MaxPlus, 3>("bij,jkb->ikb", [&a, &b], 0.0);
    // Labels summed in one operand alone, and a broadcast batch.
    as_on_the_engine::<MaxMin, 3>("bij,jkc->ikb", [&a, &b], 0.0);
    as_on_the_engine::<Standard, 3>("bij,jkc->ikb", [&a, &b], 1e-6);
    as_on_the_engine::<LogSumExp, 3>("bij,jkb->ikb", [&a, &b], 1e-5);
}

/// Sizes below and above those of tiles; terms of +∞ have weights, sums of −∞ have none, and −∞ absorbs.
#[test]
fn log_sum_exp_and_its_gradients() {
    let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
    for [m, k, n] in [[1, 7, 1], [17, 33, 5], [40, 1, 16], [33, 17, 35]] {
        let a = (noise(m * k, 1), [m, k]);
        let b = (noise(k * n, 2), [k, n]);
        as_on_the_engine::<LogSumExp, 2>("ij,jk->ik", [&a, &b], 1e-5);
        as_on_the_engine::<LogSumExp, 2>(
            "ji,kj->ki",
            [&(a.0.clone(), [k, m]), &(b.0.clone(), [n, k])],
            1e-5,
        );
        for special in [&[low][..], &[low, high], &[high, f32::NAN, low]] {
            let a = with_specials(a.clone(), special, 3);
            let b = with_specials(b.clone(), special, 2);
            as_on_the_engine::<LogSumExp, 2>("ij,jk->ik", [&a, &b], 1e-5);
        }
        // Numbers whose exponentials overflow, and a row of zeros of the semiring.
        let mut a = (a.0.iter().map(|x| x * 1e4).collect::<Vec<f32>>(), a.1);
        as_on_the_engine::<LogSumExp, 2>("ij,jk->ik", [&a, &b], 1e-5);
        a.0[..k].fill(low);
        as_on_the_engine::<LogSumExp, 2>("ij,jk->ik", [&a, &b], 1e-5);
    }
}

/// Gradients are sums in a fixed order: every run has the same bits.
#[test]
fn gradients_of_log_sum_exp_are_the_same_in_every_run() {
    let a = (noise(30 * 50, 1), [30, 50]);
    let b = (noise(50 * 20, 2), [50, 20]);
    let run = || differentiated::<LogSumExp, Gpu, 2>("ij,jk->ik", [&a, &b]);
    assert_eq!(run(), run());
}

/// Nested tapes: the second derivative equals that of the definition.
#[test]
fn second_derivatives_of_log_sum_exp() {
    fn second<B: Tested + AutodiffBackend>() -> Vec<f32>
    where
        B::InnerBackend: Tested + AutodiffBackend,
    {
        let inner = |x: &[f32]| tensor::<B::InnerBackend, 2>(x, [4, 5]).require_grad();
        let x = inner(&noise(20, 1));
        let a = Tensor::<B, 2>::from_inner(x.clone()).require_grad();
        let b = tensor::<B, 2>(&noise(15, 2), [5, 3]);
        let y: Tensor<B, 2> = semiring_einsum::<LogSumExp, _, _>("ij,jk->ik", [&a, &b]).unwrap();
        let slope = a.grad(&y.powi_scalar(2).sum().backward()).unwrap();
        numbers(x.grad(&slope.powi_scalar(2).sum().backward()).unwrap())
    }
    let given = second::<Autodiff<Gpu>>();
    assert_close(&given, &second::<Autodiff<Engine>>(), 1e-4, "second derivative");
}

/// Half precision elements with `f32` arithmetic, as in the engine; ties are equal.
#[test]
fn products_of_half_precision() {
    fn run<S: ArraySemiring, B: Tested + AutodiffBackend>(low: f32, dtype: DType) -> [Vec<f32>; 3] {
        let [m, k, n] = [17, 30, 18];
        let raise = |x: Vec<f32>| -> Vec<f32> { x.into_iter().map(|x| x.max(low)).collect() };
        let half = |x: &[f32], shape| tensor::<B, 2>(x, shape).cast(dtype).require_grad();
        let a = half(&raise(steps(m * k, 1)), [m, k]);
        let b = half(&raise(steps(k * n, 2)), [k, n]);
        let y: Tensor<B, 2> = semiring_einsum::<S, _, _>("ij,jk->ik", [&a, &b]).unwrap();
        assert_eq!(y.dtype(), dtype);
        let grads = y.clone().sum().backward();
        [numbers(y.inner()), numbers(a.grad(&grads).unwrap()), numbers(b.grad(&grads).unwrap())]
    }
    fn check<S: ArraySemiring>(low: f32, tolerance: f32) {
        // Software Vulkan has no `bf16`.
        let cuda = cfg!(feature = "cuda").then_some((DType::BF16, 8.0 * tolerance));
        for (dtype, tolerance) in [(DType::F16, tolerance)].into_iter().chain(cuda) {
            let (given, expected) = (run::<S, Gpu>(low, dtype), run::<S, Engine>(low, dtype));
            for (g, e) in given.iter().zip(&expected) {
                assert_close(g, e, tolerance, std::any::type_name::<S>());
            }
        }
    }
    check::<MaxPlus>(f32::MIN, 0.0);
    check::<MinPlus>(f32::MIN, 0.0);
    check::<MaxMul>(0.0, 0.0);
    check::<MinMul>(0.0, 0.0);
    check::<MaxMin>(f32::MIN, 0.0);
    check::<LogSumExp>(f32::MIN, 2e-3);
}

/// Operands with strides of 0, transposed operands, and axes of size 0.
#[test]
fn views_and_empty_axes() {
    fn views<S: ArraySemiring, B: Tested>() -> Vec<f32> {
        let a = tensor::<B, 3>(&steps(3 * 7, 1), [3, 1, 7]).expand([3, 5, 7]);
        let b = tensor::<B, 3>(&steps(4 * 7 * 3, 2), [4, 7, 3]).permute([2, 1, 0]);
        let y: Tensor<B, 3> = semiring_einsum::<S, _, _>("bij,bjk->bik", [&a, &b]).unwrap();
        numbers(y)
    }
    fn empty<S: ArraySemiring, B: Tested>([m, k, n]: [usize; 3]) -> Vec<f32> {
        let (a, b) =
            (tensor::<B, 2>(&steps(m * k, 1), [m, k]), tensor::<B, 2>(&steps(k * n, 2), [k, n]));
        numbers(semiring_einsum::<S, B, 2>("ij,jk->ik", [&a, &b]).unwrap())
    }
    fn check<S: ArraySemiring>() {
        let name = std::any::type_name::<S>();
        assert_close(&views::<S, Card>(), &views::<S, BurnT4a>(), 1e-6, name);
        for sizes in [[2, 0, 3], [0, 4, 3], [2, 4, 0]] {
            let (given, expected) = (empty::<S, Card>(sizes), empty::<S, BurnT4a>(sizes));
            assert_close(&given, &expected, 0.0, &format!("{name} {sizes:?}"));
        }
    }
    check::<MaxPlus>();
    check::<MinPlus>();
    check::<MaxMin>();
    check::<LogSumExp>();
}

/// (or, and) on booleans, with one, two and three operands.
#[test]
fn booleans() {
    fn run<B: Tested>(text: &str, count: usize) -> Vec<bool> {
        let x = tensor::<B, 2>(&noise(36, 4), [6, 6]).greater_elem(0.3);
        let y: Tensor<B, 2, Bool> = bool_einsum(text, vec![x; count]).unwrap();
        y.into_data().iter::<bool>().collect()
    }
    for (text, count) in [("ij->ji", 1), ("ij,jk->ik", 2), ("ij,jk,kl->il", 3)] {
        assert_eq!(run::<Card>(text, count), run::<BurnT4a>(text, count), "{text}");
    }
}

/// A plan of several steps, whose first results are operands of the next.
#[test]
fn chains_of_products() {
    fn run<B: Tested + AutodiffBackend>() -> [Vec<f32>; 2] {
        let x = [(6, 5), (5, 7), (7, 4)].map(|(m, n)| steps(m * n, m));
        let a = tensor::<B, 2>(&x[0], [6, 5]).require_grad();
        let (b, c) = (tensor::<B, 2>(&x[1], [5, 7]), tensor::<B, 2>(&x[2], [7, 4]));
        let y: Tensor<B, 2> =
            semiring_einsum::<MaxPlus, _, _>("ij,jk,kl->il", [&a, &b, &c]).unwrap();
        let grads = y.clone().sum().backward();
        [numbers(y.inner()), numbers(a.grad(&grads).unwrap())]
    }
    let (given, expected) = (run::<Gpu>(), run::<Engine>());
    assert_close(&given[0], &expected[0], 0.0, "y");
    assert_close(&given[1], &expected[1], 0.0, "gradient");
}
