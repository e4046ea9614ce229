//! First and second gradients over every semiring, against finite differences and between backends.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn_backend::AutodiffBackend;
use burn_backend::ops::FloatTensorOps;
use burn_flex::Flex;
use burn_t4a::ext::einsum::{
    ArraySemiring, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard, semiring_einsum,
};
use burn_t4a::ext::operation::Operations;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_tensor::{DType, Tensor, TensorData};

use super::cases::{
    CASES, Case, close, compiled, contract, data, f64s, gradients, naive, numbers, run, tensor,
    values,
};

fn check<S: ArraySemiring>() {
    for (seed, case) in CASES.iter().enumerate() {
        let name = std::any::type_name::<S>();
        let what = |part: &str| format!("{name} {} {part}", case.text);
        let data = data(case, seed as u64);
        let (expected, _) = naive::<S>(case, &data);
        close(&run::<S, BurnT4a>(case, &data), &expected, 1e-12, &what("on the engine"));
        close(&run::<S, Flex>(case, &data), &expected, 1e-12, &what("portable"));
        close(&run::<S, Autodiff<Flex>>(case, &data), &expected, 1e-12, &what("untracked"));

        let u = numbers(expected.len(), 99);
        let loss = |data: &[Vec<f64>]| -> f64 {
            let terms = naive::<S>(case, data).0.into_iter().zip(&u);
            // Elements off an output diagonal are the zero of the semiring, a constant.
            terms.filter(|(x, _)| x.is_finite()).map(|(x, u)| x * u).sum()
        };
        let ours = gradients::<S, Autodiff<BurnT4a>>(case, &data, &u);
        let theirs = gradients::<S, Autodiff<Flex>>(case, &data, &u);
        let kept = gradients::<S, Autodiff<BurnT4a, BalancedCheckpointing>>(case, &data, &u);
        for (i, grad) in ours.iter().enumerate() {
            close(grad, &theirs[i], 1e-11, &what("engine against portable gradient"));
            close(grad, &kept[i], 1e-14, &what("balanced checkpointing"));
            for (e, &g) in grad.iter().enumerate() {
                let h = 1e-6;
                let mut moved = data.clone();
                let mut at = |x: f64| {
                    moved[i][e] = x;
                    loss(&moved)
                };
                let difference = (at(data[i][e] + h) - at(data[i][e] - h)) / (2.0 * h);
                close(&[g], &[difference], 1e-7, &what("gradient"));
            }
        }
    }
}

#[test]
fn sums_of_products() {
    check::<Standard>();
}

#[test]
fn tropical_sums() {
    check::<MaxPlus>();
    check::<MinPlus>();
    check::<MaxMul>();
    check::<MinMul>();
    check::<MaxMin>();
}

#[test]
fn marginals() {
    check::<LogSumExp>();
}

/// Hessian of the loss times a direction, by differentiating the gradient, against central differences of the
/// gradient.
fn second_order<S: ArraySemiring, B: Operations>(case: &Case)
where
    Autodiff<B>: Operations + AutodiffBackend<InnerBackend = B>,
{
    type AA<B> = Autodiff<Autodiff<B>>;
    let data = data(case, 5);
    let (expected, _) = naive::<S>(case, &data);
    let u = numbers(expected.len(), 98);
    let directions: Vec<Vec<f64>> =
        data.iter().enumerate().map(|(i, x)| numbers(x.len(), 50 + i as u64)).collect();
    let leaf = |(x, shape): (&Vec<f64>, &&[usize])| {
        Autodiff::<B>::float_set_require_grad(tensor::<Autodiff<B>>(x, shape), true)
    };
    let inner: Vec<_> = data.iter().zip(case.shapes).map(leaf).collect();
    let outer: Vec<_> = inner
        .iter()
        .map(|x| AA::<B>::float_set_require_grad(AA::<B>::from_inner(x.clone()), true))
        .collect();
    let out = contract::<S, AA<B>>(&compiled(case), outer.clone());
    // Squared, so that even a bilinear form has a Hessian in each operand.
    let out = AA::<B>::float_reshape(out, [u.len()].into());
    let out = AA::<B>::float_mul(out.clone(), out);
    let grads = AA::<B>::backward(AA::<B>::float_sum(AA::<B>::float_mul(
        out,
        tensor::<AA<B>>(&u, &[u.len()]),
    )));
    let along = |(x, v): (&_, &Vec<f64>)| {
        let g = AA::<B>::grad(x, &grads).unwrap();
        let flat = Autodiff::<B>::float_reshape(g, [v.len()].into());
        let v = tensor::<Autodiff<B>>(v, &[v.len()]);
        Autodiff::<B>::float_sum(Autodiff::<B>::float_mul(flat, v))
    };
    let slope = outer.iter().zip(&directions).map(along).reduce(Autodiff::<B>::float_add);
    let grads = Autodiff::<B>::backward(slope.unwrap());
    // The gradient of Σ u y² is that of Σ (2 u y) y at fixed weights.
    let gradient = |data: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let (y, _) = naive::<S>(case, data);
        let w: Vec<f64> = y.iter().zip(&u).map(|(y, u)| 2.0 * u * y).collect();
        gradients::<S, Autodiff<B>>(case, data, &w)
    };
    let shifted = |h: f64| -> Vec<Vec<f64>> {
        let step = |(x, v): (&Vec<f64>, &Vec<f64>)| {
            x.iter().zip(v).map(|(x, v)| x + h * v).collect::<Vec<f64>>()
        };
        gradient(&data.iter().zip(&directions).map(step).collect::<Vec<_>>())
    };
    let h = 1e-6;
    let (up, down) = (shifted(h), shifted(-h));
    for (i, x) in inner.iter().enumerate() {
        let ours = values::<B>(Autodiff::<B>::grad(x, &grads).unwrap());
        let differences: Vec<f64> =
            up[i].iter().zip(&down[i]).map(|(a, b)| (a - b) / (2.0 * h)).collect();
        close(&ours, &differences, 1e-6, &format!("Hessian of {}", case.text));
    }
}

#[test]
fn second_derivatives() {
    for case in CASES {
        second_order::<Standard, BurnT4a>(case);
        second_order::<LogSumExp, BurnT4a>(case);
        second_order::<MaxMul, BurnT4a>(case);
        second_order::<MinMul, BurnT4a>(case);
        second_order::<MaxPlus, BurnT4a>(case);
    }
    second_order::<LogSumExp, Flex>(&CASES[2]);
    second_order::<Standard, Flex>(&CASES[5]);
}

/// Rules of the engine against rules in operations of any backend for ties, zeros of the semiring and infinities,
/// in every float dtype.
#[test]
fn engine_and_portable_gradients_agree_at_ties_and_infinities() {
    fn run<S: ArraySemiring, B: AutodiffBackend + Operations>(
        seed: u64,
        dtype: DType,
        values: &[f64],
    ) -> Vec<Vec<f64>> {
        let draw = |seed: u64, count: usize| -> Vec<f64> {
            let pick = |x: f64| values[(x * 1e6) as usize % values.len()];
            numbers(count, seed).into_iter().map(pick).collect()
        };
        let leaf = |seed: u64, shape: [usize; 3]| {
            let x = f64s::<B, 3>(&draw(seed, shape.iter().product()), shape);
            x.cast(dtype).require_grad()
        };
        let (a, b) = (leaf(seed, [2, 5, 7]), leaf(seed + 50, [2, 7, 4]));
        let y: Tensor<B, 3> = semiring_einsum::<S, _, _>("bij,bjk->bki", [&a, &b]).unwrap();
        let u: Vec<f64> = numbers(40, seed).iter().map(|x| x.round()).collect();
        let u = f64s::<B, 3>(&u, [2, 4, 5]);
        let loss = y.mul(u.cast(dtype)).sum();
        let grads = loss.backward();
        let of = |x: &Tensor<B, 3>| x.grad(&grads).unwrap().into_data().iter().collect();
        vec![of(&a), of(&b)]
    }
    fn check<S: ArraySemiring>(values: &[f64]) {
        for (dtype, tolerance) in
            [(DType::F64, 1e-12), (DType::F32, 1e-5), (DType::F16, 4e-3), (DType::BF16, 3e-2)]
        {
            for seed in 0..12 {
                let ours = run::<S, Autodiff<BurnT4a>>(seed, dtype, values);
                let theirs = run::<S, Autodiff<Flex>>(seed, dtype, values);
                for (ours, theirs) in ours.iter().zip(&theirs) {
                    let what = format!("{} {dtype:?}", std::any::type_name::<S>());
                    close(ours, theirs, tolerance, &what);
                }
            }
        }
    }
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    check::<MaxPlus>(&[0.0, 1.0, 2.0, low, low]);
    check::<MinPlus>(&[0.0, 1.0, 2.0, high, high]);
    check::<MaxMul>(&[0.0, 0.0, 1.0, 2.0, 0.5]);
    check::<MinMul>(&[0.0, 1.0, 2.0, high, high]);
    check::<MaxMin>(&[0.0, 1.0, 2.0, low, high]);
    check::<LogSumExp>(&[0.0, 1.0, -2.0, low, low]);
    check::<LogSumExp>(&[0.0, 1.0, low, high]);
}

/// The terms would take three gigabytes if they were stored.
#[test]
fn large_products_have_gradients_on_the_engine() {
    type AD = Autodiff<BurnT4a>;
    const N: usize = 720;
    let matrix = |seed: u64| {
        Tensor::<AD, 2>::from_data(TensorData::new(numbers(N * N, seed), [N, N]), &T4aDevice)
            .require_grad()
    };
    fn check<S: ArraySemiring>(a: &Tensor<AD, 2>, b: &Tensor<AD, 2>) {
        let y: Tensor<AD, 2> = semiring_einsum::<S, _, _>("ij,jk->ik", [a, b]).unwrap();
        let grads = y.sum().backward();
        for x in [a, b] {
            let sum: f32 = x.grad(&grads).unwrap().sum().into_scalar();
            // One unit of cotangent per element of the result.
            assert!((sum / (N * N) as f32 - 1.0).abs() < 1e-4, "{sum}");
        }
    }
    let (a, b) = (matrix(1), matrix(2));
    check::<MaxPlus>(&a, &b);
    check::<MinPlus>(&a, &b);
    check::<LogSumExp>(&a, &b);
}
