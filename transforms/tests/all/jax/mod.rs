//! Composed transformations against JAX: numbers stored in `jax_numbers.rs`, which `jax_numbers.py` generates. The programs are
//! those of the script, line by line.

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Int, Tensor, TensorData, activation};
use burn_t4a::BurnT4a;
use burn_t4a::ext::custom::{CustomBackend, CustomJvp, CustomVjp, custom_jvp, custom_vjp};
use burn_t4a::ext::scan::{Branch, Options, ScanBackend, scan, switch, while_loop};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::{
    batched, grad, hessian_tree, hvp, jacfwd_tree, jacrev_tree, value_and_grad,
};
use burn_t4a_transforms::jvp::{Jvp, jvp};
use burn_t4a_transforms::vmap::collective::{Own, all_gather, axis_index, pmax, pmean, psum};
use burn_t4a_transforms::vmap::{Vmap, vmap};

use jax_numbers as jax;

#[rustfmt::skip]
mod factorisation_numbers;
mod factorisations;
#[rustfmt::skip]
mod jax_numbers;
mod random;
#[rustfmt::skip]
mod random_numbers;

type B = BurnT4a;
type A = Autodiff<B>;
type T = Traced<B>;

fn of<C: Backend, const D: usize>(values: Vec<f64>, shape: [usize; D]) -> Tensor<C, D> {
    Tensor::from_data(TensorData::new(values, shape), (&C::Device::default(), DType::F64))
}

/// `sin(seed)`, `sin(seed + 1)`, …
fn wave<C: Backend, const D: usize>(seed: usize, shape: [usize; D]) -> Tensor<C, D> {
    let count = shape.iter().product();
    of((0..count).map(|k| ((seed + k) as f64).sin()).collect(), shape)
}

fn numbers<C: Backend, const D: usize>(x: Tensor<C, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

#[track_caller]
fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    let size = want.iter().fold(1.0f64, |size, x| size.max(x.abs()));
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= 1e-12 * size, "{got} {want}");
    }
}

type Pair<C> = (Tensor<C, 2>, Tensor<C, 1>);

fn f<C: Backend>((w, b): Pair<C>) -> Pair<C> {
    let y = activation::softmax(w.clone(), 1).matmul(w.clone().transpose());
    let y = (y + b.clone().narrow(0, 1, 2).unsqueeze()).tanh();
    (y, b.narrow(0, 0, 1).sin() * w.sum())
}

fn loss<C: Backend>((x, b): Pair<C>) -> Tensor<C, 1> {
    let scale = x.clone().slice([0..1, 0..1]).exp().reshape([1]);
    (x * b.unsqueeze()).sum_dim(1).powi_scalar(2).sum() * scale
}

#[test]
fn matrices_of_derivatives() {
    let x = || (wave(1, [2, 3]), wave(2, [3]));
    for j in [
        jacfwd_tree(f, x()).unwrap(),
        jacrev_tree(f, x()).unwrap(),
        batched::jacfwd(f, x(), None).unwrap(),
        batched::jacrev(f, x(), Some(2)).unwrap(),
    ] {
        close(&numbers::<B, 2>(j.matrix()), jax::JACOBIAN);
    }
    let x = || (wave(1, [2, 2]), wave(2, [2]));
    for h in [hessian_tree(loss, x()).unwrap(), batched::hessian(loss, x(), None).unwrap()] {
        close(&numbers::<B, 2>(h.matrix()), jax::HESSIAN);
    }
    let v = wave::<B, 1>(3, [6]);
    let v = (v.clone().narrow(0, 0, 4).reshape([2, 2]), v.narrow(0, 4, 2));
    let (gradient, product): (Pair<B>, Pair<B>) = hvp(loss, x(), v).unwrap();
    let all = [gradient.0, product.0].map(numbers).into_iter();
    let all = all.zip([gradient.1, product.1].map(numbers)).map(|(a, b)| [a, b].concat());
    close(&all.collect::<Vec<_>>().concat(), jax::HVP);
}

type Weights<C> = (Tensor<C, 2>, Tensor<C, 2>);

fn perceptron<C: Backend>((w, v): Weights<C>, x: Tensor<C, 1>) -> Tensor<C, 1> {
    x.unsqueeze::<2>().matmul(w).tanh().matmul(v).sum()
}

#[test]
fn gradients_per_example() {
    fn each<C: Backend>(weights: Weights<C>, x: Tensor<C, 2>) -> (Tensor<C, 3>, Tensor<C, 3>) {
        type Tape<C> = Autodiff<Vmap<C>>;
        let one = |(weights, x): (Weights<Vmap<C>>, Tensor<Vmap<C>, 1>)| -> Weights<Vmap<C>> {
            grad(|w: Weights<Tape<C>>| perceptron(w, Tensor::from_inner(x)), weights).unwrap()
        };
        vmap(one).in_axes((None, 0)).call((weights, x)).unwrap()
    }
    let weights = || (wave(1, [3, 4]), wave(2, [4, 2]));
    let (w, v) = each::<B>(weights(), wave(3, [5, 3]));
    close(&[numbers(w), numbers(v)].concat(), jax::PER_EXAMPLE);
    let compiled = compile(|(w, x): (Weights<T>, Tensor<T, 2>)| each(w, x)).fullgraph();
    for _ in 0..2 {
        let (w, v) = compiled.call((weights(), wave(3, [5, 3]))).unwrap();
        close(&[numbers(w), numbers(v)].concat(), jax::PER_EXAMPLE);
    }
}

/// `ln(1 + eˣ)`, whose derivative has no overflow.
#[derive(Clone)]
struct Log1pExp;

impl CustomJvp for Log1pExp {
    type Arguments<C: CustomBackend> = Tensor<C, 1>;
    type Results<C: CustomBackend> = Tensor<C, 1>;

    fn jvp<C: CustomBackend>(
        &self,
        x: Tensor<C, 1>,
        tangent: Tensor<C, 1>,
    ) -> (Tensor<C, 1>, Tensor<C, 1>) {
        let e = x.exp() + 1.0;
        (e.clone().log(), (e.recip() * -1.0 + 1.0) * tangent)
    }
}

/// x, whose cotangents are limited.
#[derive(Clone)]
struct Clipped;

impl CustomVjp for Clipped {
    type Arguments<C: CustomBackend> = Tensor<C, 1>;
    type Results<C: CustomBackend> = Tensor<C, 1>;
    type Residuals<C: CustomBackend> = ();

    fn forward<C: CustomBackend>(&self, x: Tensor<C, 1>) -> (Tensor<C, 1>, ()) {
        (x, ())
    }

    fn backward<C: CustomBackend>(&self, (): (), u: Tensor<C, 1>) -> Tensor<C, 1> {
        u.clamp(-0.5, 0.5)
    }
}

#[test]
fn rules_of_users() {
    let x = || of::<B, 1>(vec![-3.0, 0.5, 100.0], [3]);
    let one = |x: Tensor<Vmap<B>, 1>| -> (Tensor<Vmap<B>, 1>, Tensor<Vmap<B>, 1>) {
        value_and_grad(|x: Tensor<_, 1>| custom_jvp(Log1pExp, x).unwrap(), x).unwrap()
    };
    let (y, slope): (Tensor<B, 1>, Tensor<B, 1>) = vmap(one).call(x()).unwrap();
    close(&[numbers(y), numbers(slope)].concat(), jax::CUSTOM_JVP);
    let weighted =
        |x: Tensor<A, 1>| (custom_vjp(Clipped, x).unwrap() * of(vec![3.0, 0.1, -2.0], [3])).sum();
    close(&numbers(grad(weighted, x()).unwrap()), jax::CUSTOM_VJP);
}

#[test]
fn examples_exchange_values() {
    fn mapped<C: Backend>(x: Tensor<C, 2>) -> Tensor<C, 2> {
        let exchange = |x: Tensor<Vmap<C>, 1>| {
            let centred = x.clone() - pmean::<Own, C, _>(x.clone()).unwrap();
            let squares = psum::<Own, C, _>((x.clone() * x.clone()).sum()).unwrap();
            let scale = squares + pmax::<Own, C, _>(x.clone().sum().detach()).unwrap();
            let index = axis_index::<Own, C>(&x.device()).unwrap().float().cast(DType::F64);
            let all: Tensor<Vmap<C>, 2> = all_gather::<Own, C, 1, 2>(x).unwrap();
            let [a, b, c] = [0, 1, 2].map(|i| all.clone().narrow(0, i, 1).squeeze_dim::<1>(0));
            centred * index / scale + a * b * c
        };
        vmap(exchange).call(x).unwrap()
    }
    close(&numbers(mapped::<B>(wave(1, [3, 2]))), jax::EXCHANGE);
    let squares = |x: Tensor<A, 2>| mapped(x).powi_scalar(2).sum();
    close(&numbers(grad(squares, wave(1, [3, 2])).unwrap()), jax::EXCHANGE_GRADIENT);
}

fn newton<C: ScanBackend>(a: Tensor<C, 1>, x: Tensor<C, 1>) -> Tensor<C, 1> {
    let far = |a: Tensor<C, 1>, x: Tensor<C, 1>| (x.powi_scalar(3) - a).abs().greater_elem(1e-4);
    let step = |a: Tensor<C, 1>, x: Tensor<C, 1>| {
        x.clone() - (x.clone().powi_scalar(3) - a) / (x.powi_scalar(2) * 3.0)
    };
    while_loop(far, step, a, x, &Options::default()).unwrap()
}

#[test]
fn loops_of_different_lengths() {
    fn mapped<C: ScanBackend>((a, x): (Tensor<C, 1>, Tensor<C, 1>)) -> Tensor<C, 1>
    where
        Vmap<C>: ScanBackend,
    {
        vmap(|(a, x): (Tensor<Vmap<C>, 1>, Tensor<Vmap<C>, 1>)| newton(a, x)).call((a, x)).unwrap()
    }
    let at = || (of(vec![2.0, 27.0, 8.0], [3]), of(vec![1.0, 100.0, 2.0], [3]));
    close(&numbers(mapped::<B>(at())), jax::MAPPED_WHILE);
    let (y, tangent): (Tensor<B, 1>, Tensor<B, 1>) =
        jvp(mapped::<Jvp<B>>, at(), (wave(1, [3]), wave(2, [3]))).unwrap();
    close(&numbers(y), jax::MAPPED_WHILE);
    close(&numbers(tangent), jax::MAPPED_WHILE_TANGENT);
}

#[test]
fn branches_of_examples() {
    type V = Vmap<B>;
    let one = |(i, x): (Tensor<V, 1, Int>, Tensor<V, 1>)| -> (Tensor<V, 1>, Tensor<V, 1>) {
        type Tape = Tensor<Autodiff<V>, 1>;
        let chosen = |x: Tape| {
            let branches: Vec<Branch<Tape, Tape>> = vec![
                Box::new(|x: Tape| x.clone() * x),
                Box::new(|x: Tape| x.sin()),
                Box::new(|x: Tape| x.clone().exp() * x),
            ];
            switch(Tensor::from_inner(i.clone()), branches, x).unwrap()
        };
        value_and_grad(chosen, x).unwrap()
    };
    let i = Tensor::<B, 1, Int>::from_ints([2, 0, 1, 7], &Default::default());
    let (y, slope): (Tensor<B, 1>, Tensor<B, 1>) = vmap(one).call((i, wave(1, [4]))).unwrap();
    close(&[numbers(y), numbers(slope)].concat(), jax::MAPPED_SWITCH);
}

fn recurrence<C: ScanBackend>(w: Tensor<C, 2>, x: Tensor<C, 2>) -> Tensor<C, 1> {
    let step = |w: Tensor<C, 2>, h: Tensor<C, 1>, x: Tensor<C, 1>| {
        let h = (w.matmul(h.reshape([2, 1])).reshape([2]) + x).tanh();
        (h.clone(), h)
    };
    let init = of(vec![0.0; 2], [2]);
    let (last, ys): (Tensor<C, 1>, Tensor<C, 2>) =
        scan(step, w, init, x, &Options::default()).unwrap();
    ys.powi_scalar(2).sum() + last.sum()
}

#[test]
fn second_derivatives_of_scans() {
    type Twice<C> = Autodiff<Jvp<C>>;
    let xs = || wave::<B, 2>(2, [4, 2]);
    let lifted = || Tensor::<Twice<B>, 2>::from_inner(constant(xs()));
    let h = hessian_tree(|w: Tensor<Twice<B>, 2>| recurrence(w, lifted()), wave(1, [2, 2]));
    close(&numbers::<B, 2>(h.unwrap().matrix()), jax::SCAN_HESSIAN);
    let squared = |(w, x): (Tensor<A, 2>, Tensor<A, 2>)| {
        let x = Tensor::<Autodiff<A>, 2>::from_inner(x);
        let inner: Tensor<A, 2> = grad(|w| recurrence(w, x), w).unwrap();
        inner.powi_scalar(2).sum()
    };
    let (of_w, of_x) = grad(squared, (wave(1, [2, 2]), xs())).unwrap();
    close(&[numbers(of_w), numbers(of_x)].concat(), jax::GRADIENT_OF_GRADIENT);
}

fn constant<const D: usize>(x: Tensor<B, D>) -> Tensor<Jvp<B>, D> {
    burn_t4a_transforms::jvp::constant(x).unwrap()
}

#[test]
fn gradients_of_series() {
    type V<C> = Vmap<C>;
    type Both<C> = (Tensor<C, 2>, Tensor<C, 2>);
    let series = |(w, x): (Tensor<T, 2>, Tensor<T, 3>)| -> (Tensor<T, 3>, Tensor<T, 3>) {
        let one = |both: Both<V<T>>| -> Both<V<T>> {
            grad(|(w, x)| recurrence::<Autodiff<V<T>>>(w, x), both).unwrap()
        };
        vmap(one).in_axes((None, 0)).call((w, x)).unwrap()
    };
    let one = |both: Both<V<B>>| -> Both<V<B>> {
        grad(|(w, x)| recurrence::<Autodiff<V<B>>>(w, x), both).unwrap()
    };
    let at = || (wave(1, [2, 2]), wave(3, [3, 4, 2]));
    let (w, x): (Tensor<B, 3>, Tensor<B, 3>) = vmap(one).in_axes((None, 0)).call(at()).unwrap();
    close(&[numbers(w), numbers(x)].concat(), jax::MAPPED_SCAN_GRADIENTS);
    let compiled = compile(series).fullgraph();
    for _ in 0..2 {
        let (w, x) = compiled.call(at()).unwrap();
        close(&[numbers(w), numbers(x)].concat(), jax::MAPPED_SCAN_GRADIENTS);
    }
}
