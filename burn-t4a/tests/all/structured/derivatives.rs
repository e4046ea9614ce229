//! Every operation of the table on every backend: gradients, tangents and second derivatives.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn_backend::AutodiffBackend;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::structured::{Dual, GradedTensor};
use burn_tensor::Tensor;
use t4a_diff::{Eager, check};

use super::cases::*;

type AD = Autodiff<BurnT4a>;
type AA = Autodiff<AD>;

/// Every case, real and complex, on structures of several seeds.
fn all(seeds: u64, f: impl Fn(&str, &Operands, &[f64])) {
    for name in CASES {
        for complex in [false, true] {
            for seed in 1..=seeds {
                let of = Operands::new(name, complex, 10 * seed + u64::from(complex));
                let x = Rng::new(seed + 77).numbers(of.len());
                f(name, &of, &x);
            }
        }
    }
}

/// `Σ (w + y) y` over all results, with fixed weights.
fn loss<B: Operations>(ys: &[Floats<B>]) -> Tensor<B, 1> {
    let mut rng = Rng::new(5);
    let term = |y: &Floats<B>| {
        let y = y.tensor::<1>().unwrap();
        let w = array::<B>(&rng.numbers(y.dims()[0]));
        ((w + y.clone()) * y).sum()
    };
    ys.iter().map(term).reduce(|a, b| a + b).unwrap()
}

/// Leaves of the operands in order.
fn leaves<B: Operations>(x: &[GradedTensor<B, S>]) -> Vec<Tensor<B, 1>> {
    let parts = x.iter().flat_map(|x| [Some(x.re()), x.im()]).flatten();
    parts.map(|x| x.tensor().unwrap()).collect()
}

fn tracked<B: AutodiffBackend + Operations>(of: &Operands, x: &[f64]) -> Vec<GradedTensor<B, S>> {
    let mut rest = x;
    of.tensors(|n| {
        let (own, others) = rest.split_at(n);
        rest = others;
        Floats::from(array::<B>(own).require_grad())
    })
}

fn gradient<B: AutodiffBackend + Operations>(name: &str, of: &Operands, x: &[f64]) -> Vec<f64> {
    let x = tracked::<B>(of, x);
    let mut gradients = loss(&run(name, &x).unwrap()).backward();
    let grad = |x: Tensor<B, 1>| match x.grad_remove(&mut gradients) {
        Some(grad) => numbers(grad),
        None => vec![0.0; x.dims()[0]],
    };
    leaves(&x).into_iter().flat_map(grad).collect()
}

fn value(name: &str, of: &Operands, x: &[f64]) -> f64 {
    numbers(loss(&run(name, &on::<BurnT4a>(of, x)).unwrap()))[0]
}

/// `x + h t` and `x − h t`.
fn around(x: &[f64], t: &[f64], h: f64) -> [Vec<f64>; 2] {
    [h, -h].map(|h| x.iter().zip(t).map(|(x, t)| x + h * t).collect())
}

#[test]
fn backends_agree() {
    all(3, |name, of, x| {
        let mut rest = x;
        let engine = of.tensors(|n| {
            let (own, others) = rest.split_at(n);
            rest = others;
            check::array(&[n], |i| own[i])
        });
        let engine: Vec<Eager> = run(name, &engine).unwrap();
        let engine: Vec<f64> = engine.iter().flat_map(check::elements).collect();
        close(name, &values::<BurnT4a>(name, of, x), &engine, 1e-13);
        close(name, &values::<Flex>(name, of, x), &engine, 1e-12);
        close(name, &values::<AD>(name, of, x), &engine, 1e-13);
        #[cfg(feature = "ndarray")]
        close(name, &values::<burn_ndarray::NdArray>(name, of, x), &engine, 1e-12);
    });
}

#[test]
fn gradients_are_differences() {
    all(2, |name, of, x| {
        let grad = gradient::<AD>(name, of, x);
        let t = Rng::new(3).numbers(x.len());
        let [above, below] = around(x, &t, 1e-5);
        let want = (value(name, of, &above) - value(name, of, &below)) / 2e-5;
        let along: f64 = grad.iter().zip(&t).map(|(g, t)| g * t).sum();
        close(name, &[along], &[want], 1e-7);
        close(name, &gradient::<Autodiff<Flex>>(name, of, x), &grad, 1e-10);
        close(
            name,
            &gradient::<Autodiff<BurnT4a, BalancedCheckpointing>>(name, of, x),
            &grad,
            1e-12,
        );
        #[cfg(feature = "ndarray")]
        close(name, &gradient::<Autodiff<burn_ndarray::NdArray>>(name, of, x), &grad, 1e-10);
    });
}

fn tangents<B: Operations>(name: &str, of: &Operands, x: &[f64], t: &[f64]) -> Vec<f64> {
    let mut at = 0;
    let duals = of.tensors(|n| {
        let own = at..at + n;
        at += n;
        let [x, t] = [&x[own.clone()], &t[own]].map(|x| Floats::from(array::<B>(x)));
        Dual::new(x, t)
    });
    let results = run(name, &duals).unwrap().into_iter();
    results.flat_map(|y| numbers(y.into_tangent().tensor::<1>().unwrap())).collect()
}

#[test]
fn tangents_are_differences() {
    all(2, |name, of, x| {
        let t = Rng::new(3).numbers(x.len());
        let [above, below] = around(x, &t, 1e-5).map(|x| values::<BurnT4a>(name, of, &x));
        let want: Vec<f64> = above.iter().zip(&below).map(|(a, b)| (a - b) / 2e-5).collect();
        let own = tangents::<BurnT4a>(name, of, x, &t);
        close(name, &own, &want, 1e-7);
        close(name, &tangents::<Flex>(name, of, x, &t), &own, 1e-10);
        close(name, &tangents::<AD>(name, of, x, &t), &own, 1e-10);
    });
}

#[test]
fn second_derivatives_are_differences() {
    all(1, |name, of, x| {
        let t = Rng::new(3).numbers(x.len());
        // Derivative along t of the gradient, by nested tapes.
        let mut rest = x;
        let below = of.tensors(|n| {
            let (own, others) = rest.split_at(n);
            rest = others;
            Floats::from(array::<AD>(own).require_grad())
        });
        let lift = |x: &Floats<AD>| {
            Floats::from(Tensor::<AA, 1>::from_inner(x.tensor().unwrap()).require_grad())
        };
        let above: Vec<GradedTensor<AA, S>> = below
            .iter()
            .map(|x| {
                let im = x.im().map(lift);
                t4a_structured::GradedTensor::new(x.spec().clone(), lift(x.re()), im).unwrap()
            })
            .collect();
        let mut first = loss(&run(name, &above).unwrap()).backward();
        let mut at = 0;
        let mut along: Option<Tensor<AD, 1>> = None;
        for leaf in leaves(&above) {
            let n = leaf.dims()[0];
            if let Some(grad) = leaf.grad_remove(&mut first) {
                let term = (grad * array::<AD>(&t[at..at + n])).sum();
                along = Some(along.map_or(term.clone(), |sum| sum + term));
            }
            at += n;
        }
        let mut second = along.unwrap().backward();
        let grad = |x: Tensor<AD, 1>| match x.grad_remove(&mut second) {
            Some(grad) => numbers(grad),
            None => vec![0.0; x.dims()[0]],
        };
        let own: Vec<f64> = leaves(&below).into_iter().flat_map(grad).collect();
        let [above, below] = around(x, &t, 1e-5).map(|x| gradient::<AD>(name, of, &x));
        let want: Vec<f64> = above.iter().zip(&below).map(|(a, b)| (a - b) / 2e-5).collect();
        close(name, &own, &want, 2e-6);
    });
}
