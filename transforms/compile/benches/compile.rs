//! Compiled functions against the same functions run eagerly, checked first.
//!
//! ```text
//! T4A_NUM_THREADS=1 cargo bench -p burn-t4a-compile --bench compile
//! ```

use std::hint::black_box;
use std::time::Instant;

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{Distribution, Tensor, Tolerance};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{Traced, compile};

type B = BurnT4a;
type T = Traced<B>;

/// The least time of a call in µs, of as many as fit into half a second.
fn time(mut f: impl FnMut()) -> f64 {
    f();
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed().as_secs_f64() < 0.5 {
        let one = Instant::now();
        f();
        best = best.min(one.elapsed().as_secs_f64());
    }
    best * 1e6
}

fn random<const D: usize>(shape: [usize; D]) -> Tensor<B, D> {
    Tensor::random(shape, Distribution::Uniform(-1.0, 1.0), &T4aDevice)
}

fn row(name: &str, eager: f64, compiled: f64) {
    println!("{name:<32} {eager:>10.1} {compiled:>10.1} {:>7.2}", eager / compiled);
}

fn ten<A: Backend>(x: Tensor<A, 2>, y: Tensor<A, 2>) -> Tensor<A, 2> {
    let a = (x.clone() * 2.0 + y.clone()) * x.clone();
    let b = (a - y.clone()).abs() + 1.0;
    (x * b.clone()) / (b + y) * 0.5
}

/// A layer norm of small operations, and its gradients.
fn norm<A: Backend>(x: Tensor<A, 2>, gamma: Tensor<A, 1>) -> (Tensor<A, 2>, Tensor<A, 1>) {
    let x = Tensor::<Autodiff<A>, 2>::from_inner(x).require_grad();
    let gamma = Tensor::<Autodiff<A>, 1>::from_inner(gamma).require_grad();
    let centred = x.clone() - x.clone().mean_dim(1);
    let variance = (centred.clone() * centred.clone()).mean_dim(1);
    let y = centred / (variance + 1e-5).sqrt() * gamma.clone().unsqueeze();
    let gradients = (y.clone() * y).sum().backward();
    (x.grad(&gradients).unwrap(), gamma.grad(&gradients).unwrap())
}

type Weights<A> = (Tensor<A, 2>, Tensor<A, 1>, Tensor<A, 2>, Tensor<A, 1>);

/// A step of gradient descent on a perceptron.
fn step<A: Backend>((w, b, v, c): Weights<A>, x: Tensor<A, 2>, y: Tensor<A, 2>) -> Weights<A> {
    type Tape<A, const D: usize> = Tensor<Autodiff<A>, D>;
    let (tw, tv) = (Tape::<A, 2>::from_inner(w.clone()), Tape::<A, 2>::from_inner(v.clone()));
    let (tb, tc) = (Tape::<A, 1>::from_inner(b.clone()), Tape::<A, 1>::from_inner(c.clone()));
    let (tw, tv, tb, tc) =
        (tw.require_grad(), tv.require_grad(), tb.require_grad(), tc.require_grad());
    let hidden = (Tape::from_inner(x).matmul(tw.clone()) + tb.clone().unsqueeze()).tanh();
    let error = hidden.matmul(tv.clone()) + tc.clone().unsqueeze() - Tape::from_inner(y);
    let gradients = (error.clone() * error).mean().backward();
    (
        w - tw.grad(&gradients).unwrap() * 0.01,
        b - tb.grad(&gradients).unwrap() * 0.01,
        v - tv.grad(&gradients).unwrap() * 0.01,
        c - tc.grad(&gradients).unwrap() * 0.01,
    )
}

fn main() {
    println!("{:<32} {:>10} {:>10} {:>7}", "µs", "eager", "compiled", "ratio");
    let near = Tolerance::<f32>::rel_abs(1e-4, 1e-5);

    let (x, y) = (random([1024, 1024]), random([1024, 1024]));
    let f = compile(|(x, y): (Tensor<T, 2>, Tensor<T, 2>)| ten(x, y)).fullgraph();
    f.call((x.clone(), y.clone())).unwrap();
    let replay = f.call((x.clone(), y.clone())).unwrap().into_data();
    replay.assert_approx_eq(&ten(x.clone(), y.clone()).into_data(), near);
    let eager = time(|| drop(black_box(ten(x.clone(), y.clone()))));
    let compiled = time(|| drop(black_box(f.call((x.clone(), y.clone())).unwrap())));
    row("ten elementwise 1024²", eager, compiled);

    let gamma = random([1024]);
    let f = compile(|(x, g): (Tensor<T, 2>, Tensor<T, 1>)| norm(x, g)).fullgraph();
    f.call((x.clone(), gamma.clone())).unwrap();
    let replay = f.call((x.clone(), gamma.clone())).unwrap();
    replay.0.into_data().assert_approx_eq(&norm(x.clone(), gamma.clone()).0.into_data(), near);
    let eager = time(|| drop(black_box(norm(x.clone(), gamma.clone()))));
    let compiled = time(|| drop(black_box(f.call((x.clone(), gamma.clone())).unwrap())));
    row("layer norm fwd+bwd 1024²", eager, compiled);

    for (batch, hidden) in [(8, 32), (64, 512)] {
        let weights =
            (random([hidden, hidden]), random([hidden]), random([hidden, 10]), random([10]));
        let (x, y) = (random([batch, hidden]), random([batch, 10]));
        let f = |(w, x, y): (Weights<T>, Tensor<T, 2>, Tensor<T, 2>)| step(w, x, y);
        let f = compile(f).fullgraph();
        let call = || f.call((weights.clone(), x.clone(), y.clone())).unwrap();
        let first = Instant::now();
        call();
        let first = first.elapsed().as_secs_f64() * 1e6;
        let want = step(weights.clone(), x.clone(), y.clone());
        call().0.into_data().assert_approx_eq(&want.0.into_data(), near);
        let eager = time(|| drop(black_box(step(weights.clone(), x.clone(), y.clone()))));
        let compiled = time(|| drop(black_box(call())));
        row(&format!("MLP step b{batch} h{hidden}"), eager, compiled);
        println!("{:<32} {eager:>10.1} {first:>10.1}", "  first call");
    }

    // A chain that cannot be fused: what an instruction costs beyond its work.
    let x = random([2, 2]);
    for count in [1, 50] {
        let chain = |x: Tensor<T, 2>| {
            (0..count).fold(x, |x, _| x.transpose().reshape([4, 1]).reshape([2, 2]))
        };
        let f = compile(chain).fullgraph();
        f.call(x.clone()).unwrap();
        let compiled = time(|| drop(black_box(f.call(x.clone()).unwrap())));
        println!("{:<32} {:>10} {compiled:>10.2}", format!("{} instructions", 3 * count), "");
    }
}
