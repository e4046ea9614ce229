//! Cumulative operations, complex recurrences and layers with gradients, against the engine.

use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{DType, Tensor};
use burn_t4a::ext::scan::fused::{Running, complex_linear_recurrence, cumulative};
use burn_t4a::ext::{Complex, nn};

use super::{Engine, Gpu, Tested, assert_close, noise, numbers, steps, tensor};

/// Lanes of one chunk and of many, of few units and of whole cubes.
const SHAPES: &[[usize; 3]] = &[[2, 1, 3], [3, 7, 5], [1, 300, 1], [2, 257, 3], [1, 5000, 2]];

/// The states, and the gradient of their sum with weights 1, 2, 3.
fn states<B: Tested + AutodiffBackend>(
    kind: Running,
    x: &[f32],
    shape: [usize; 3],
    reverse: bool,
    dtype: DType,
) -> [Vec<f32>; 2] {
    let x = tensor::<B, 3>(x, shape).cast(dtype).require_grad();
    let y = cumulative(kind, x.clone(), 1, reverse).unwrap();
    let weights: Vec<f32> = (0..y.shape().num_elements()).map(|i| (i % 3 + 1) as f32).collect();
    let weights = tensor::<B, 3>(&weights, shape).cast(dtype);
    let values = y.clone().inner();
    // Weights of 0 for values without a number leave the other gradients finite.
    let odd = y.clone().is_nan().bool_or(y.clone().abs().equal_elem(f32::INFINITY));
    let grads = (y * weights.mask_fill(odd, 0.0)).sum().backward();
    [numbers(values), numbers(x.grad(&grads).unwrap())]
}

#[test]
fn extrema_and_log_sums() {
    let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
    for kind in [Running::Max, Running::Min, Running::LogSumExp] {
        let log_sums = kind == Running::LogSumExp;
        let make = |n, seed| if log_sums { noise(n, seed) } else { steps(n, seed) };
        let tolerance = if log_sums { 2e-6 } else { 0.0 };
        for &shape in SHAPES {
            for special in [&[][..], &[low], &[low, high], &[f32::NAN]] {
                let mut x = make(shape.iter().product(), 5);
                for (i, &value) in special.iter().enumerate() {
                    // The first elements of some lanes, and one in the middle.
                    let n = x.len().max(1);
                    x.iter_mut().take(2).for_each(|x| *x = low);
                    x.get_mut(n * (i + 1) / 3).into_iter().for_each(|x| *x = value);
                }
                for reverse in [false, true] {
                    let of = format!("{kind:?} {shape:?} {special:?} {reverse}");
                    let run = |gpu: bool| match gpu {
                        true => states::<Gpu>(kind, &x, shape, reverse, DType::F32),
                        false => states::<Engine>(kind, &x, shape, reverse, DType::F32),
                    };
                    let ([y, g], [values, gradient]) = (run(true), run(false));
                    assert_close(&y, &values, tolerance, &of);
                    if special.iter().all(|x| *x == low) {
                        // Factors of the rule are exponentials of rounded differences of values.
                        assert_close(&g, &gradient, 5e-5, &format!("{of} gradient"));
                    }
                }
            }
        }
        let x = make(60, 3);
        let given = states::<Gpu>(kind, &x, [3, 20, 1], false, DType::F16);
        let expected = states::<Engine>(kind, &x, [3, 20, 1], false, DType::F16);
        assert_close(&given[0], &expected[0], 1e-3, &format!("{kind:?} f16"));
    }
}

/// Terms that are tiny relative to the sum, large numbers, and long sums.
#[test]
fn log_sums_keep_their_precision() {
    let n = 20_000;
    for offset in [0.0, 1000.0, -1000.0] {
        let x: Vec<f32> = (0..n).map(|i| offset - (i % 5) as f32).collect();
        let mut sum = 0.0f64;
        let exact = x.iter().map(|&x| {
            sum += f64::from(x - offset).exp();
            (f64::from(offset) + sum.ln()) as f32
        });
        let exact: Vec<f32> = exact.collect();
        let [y, _] = states::<Gpu>(Running::LogSumExp, &x, [1, n, 1], false, DType::F32);
        assert_close(&y, &exact, 1e-6, &format!("{offset}"));
    }
}

/// Parts of the states, and gradients of all operands.
fn complex_states<B: Tested + AutodiffBackend>(
    shape: [usize; 3],
    initial: bool,
    reverse: bool,
) -> Vec<Vec<f32>> {
    let start = [shape[0], 1, shape[2]];
    let part = |seed, shape: [usize; 3]| {
        tensor::<B, 3>(&noise(shape.iter().product(), seed), shape).require_grad()
    };
    let [a, b] = [1, 3].map(|seed| [part(seed, shape), part(seed + 1, shape)]);
    let h0 = [part(5, start), part(6, start)];
    let complex = |[re, im]: &[Tensor<B, 3>; 2]| Complex::new(re.clone(), im.clone()).unwrap();
    let first = initial.then(|| complex(&h0));
    let h = complex_linear_recurrence(complex(&a), complex(&b), first, 1, reverse).unwrap();
    let grads = (h.re() + h.im() * 2.0).powi_scalar(2).sum().backward();
    let leaves = a.iter().chain(&b).chain(h0.iter().filter(|_| initial));
    let values = [h.re(), h.im()].map(|x| numbers(x.inner()));
    values.into_iter().chain(leaves.map(|x| numbers(x.grad(&grads).unwrap()))).collect()
}

#[test]
fn complex_recurrences_and_their_gradients() {
    for &shape in SHAPES {
        for (initial, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
            let given = complex_states::<Gpu>(shape, initial, reverse);
            let expected = complex_states::<Engine>(shape, initial, reverse);
            for (i, (g, e)) in given.iter().zip(&expected).enumerate() {
                assert_close(g, e, 2e-5, &format!("{shape:?} {initial} {reverse} {i}"));
            }
        }
    }
}

fn layers<B: Tested + AutodiffBackend>() -> Vec<Vec<f32>> {
    let x = tensor::<B, 2>(&noise(12 * 7, 1), [12, 7]).require_grad();
    let gamma = tensor::<B, 1>(&noise(7, 2), [7]).require_grad();
    let all = [
        nn::softmax(x.clone() * 30.0, 0),
        nn::log_softmax(x.clone(), 1),
        nn::rms_norm(x.clone(), gamma.clone(), 1e-5),
        nn::layer_norm(x.clone(), gamma.clone(), None, 1e-5),
    ];
    let weights = tensor::<B, 2>(&noise(12 * 7, 3), [12, 7]);
    let sum = all.iter().map(|y| (y.clone() * weights.clone()).sum()).reduce(|a, b| a + b);
    let grads = sum.unwrap().backward();
    let values = all.map(|y| numbers(y.inner()));
    let grads = [numbers(x.grad(&grads).unwrap()), numbers(gamma.grad(&grads).unwrap())];
    values.into_iter().chain(grads).collect()
}

#[test]
fn softmax_and_norms() {
    for (i, (given, expected)) in layers::<Gpu>().iter().zip(layers::<Engine>()).enumerate() {
        assert_close(given, &expected, 1e-5, &format!("part {i}"));
    }
}
