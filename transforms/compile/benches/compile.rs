//! Compiled functions against the same functions run eagerly, checked first.
//!
//! ```text
//! T4A_NUM_THREADS=1 cargo bench -p burn-t4a-compile --bench compile [-- part]                 with the feature `jit`
//! T4A_NUM_THREADS=1 cargo bench -p burn-t4a-workspace --bench compile_portable [-- part]      without it
//! ```
//!
//! Parts: elementwise, norm, perceptron, transformer, scan, gradient, calls.

use std::hint::black_box;
use std::time::Instant;

use burn::backend::Autodiff;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Distribution, Tensor, TensorData, Tolerance};
use burn_t4a::ext::scan::{Memory, Options, ScanBackend, ScanPath, scan};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};

type B = BurnT4a;
type T = Traced<B>;

/// Minimum time of a call in µs, over half a second of calls.
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

/// Minimum time of the `n`-th call of new functions in µs, over half a second.
fn best_call<F: FnMut()>(n: usize, mut make: impl FnMut() -> F) -> f64 {
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed().as_secs_f64() < 0.5 {
        let mut f = make();
        (1..n).for_each(|_| f());
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

/// Collects the parameters of a module, in order, as tensors of rank 2.
struct Read<A: Backend>(Vec<Tensor<A, 2>>);

impl<A: Backend> ModuleVisitor<A> for Read<A> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<A, D>>) {
        let x = param.val();
        let n = x.shape().num_elements();
        let last = x.dims()[D - 1];
        self.0.push(x.reshape([n / last, last]));
    }
}

struct Write<A: Backend>(std::vec::IntoIter<Tensor<A, 2>>, Vec<ParamId>);

impl<A: Backend> ModuleMapper<A> for Write<A> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<A, D>>) -> Param<Tensor<A, D>> {
        let (id, old, mapper) = param.consume();
        let x = self.0.next().expect("as many parameters");
        self.1.push(id);
        Param::from_mapped_value(id, x.reshape(old.shape()), mapper)
    }
}

/// A step of gradient descent on Burn's transformer encoder.
fn transformer<A: Backend>(
    net: TransformerEncoder<Autodiff<A>>,
    parameters: Vec<Tensor<A, 2>>,
    x: Tensor<A, 3>,
) -> Vec<Tensor<A, 2>> {
    let tape: Vec<Tensor<Autodiff<A>, 2>> =
        parameters.iter().map(|x| Tensor::from_inner(x.clone()).require_grad()).collect();
    let net = net.map(&mut Write(tape.clone().into_iter(), Vec::new()));
    let y = net.forward(TransformerEncoderInput::new(Tensor::from_inner(x)));
    let gradients = y.powi_scalar(2).mean().backward();
    let moved = |(own, x): (&Tensor<Autodiff<A>, 2>, Tensor<A, 2>)| match own.grad(&gradients) {
        Some(g) => x - g * 0.01,
        None => x,
    };
    tape.iter().zip(parameters).map(moved).collect()
}

/// Four matrices of a linear system with two states.
type Model<A> = (Tensor<A, 2>, Tensor<A, 2>, Tensor<A, 2>, Tensor<A, 2>);
type State<A> = (Tensor<A, 2>, Tensor<A, 2>);

fn kalman<A: Backend>(
    (f, q, h, r): Model<A>,
    (x, p): State<A>,
    z: Tensor<A, 2>,
) -> (State<A>, Tensor<A, 2>) {
    let x = f.clone().matmul(x);
    let p = f.clone().matmul(p).matmul(f.transpose()) + q;
    let hp = h.clone().matmul(p.clone());
    let s = hp.clone().matmul(h.clone().transpose()) + r;
    let gain = hp.clone().transpose() / s;
    let x = x.clone() + gain.clone() * (z - h.matmul(x));
    let p = p - gain.matmul(hp);
    ((x.clone(), p), x)
}

/// A model, its initial state and observations.
fn observed(steps: usize, dtype: DType) -> (Model<B>, State<B>, Tensor<B, 3>) {
    let of = |x: &[f64], shape: [usize; 2]| {
        Tensor::<B, 2>::from_data(TensorData::new(x.to_vec(), shape), (&T4aDevice, dtype))
    };
    let model = (
        of(&[1.0, 0.1, 0.0, 1.0], [2, 2]),
        of(&[3e-4, 5e-3, 5e-3, 0.1], [2, 2]),
        of(&[1.0, 0.0], [1, 2]),
        of(&[0.25], [1, 1]),
    );
    let state = (of(&[0.0; 2], [2, 1]), of(&[10.0, 0.0, 0.0, 10.0], [2, 2]));
    let zs: Vec<f64> = (0..steps).map(|t| (t as f64 * 0.01).sin()).collect();
    let zs = TensorData::new(zs, [steps, 1, 1]);
    (model, state, Tensor::from_data(zs, (&T4aDevice, dtype)))
}

fn filter<A: ScanBackend>(
    (model, state, zs): (Model<A>, State<A>, Tensor<A, 3>),
    path: ScanPath,
) -> Tensor<A, 3> {
    let options = Options::default().accept(&[path]);
    let (_, means): (State<A>, Tensor<A, 3>) =
        scan(kalman::<A>, model, state, zs, &options).unwrap();
    means
}

fn scans() {
    const STEPS: usize = 10_000;
    for dtype in [DType::F64, DType::F32] {
        let all = observed(STEPS, dtype);
        let inputs = || all.clone();
        let f = |x: (Model<T>, State<T>, Tensor<T, 3>)| filter(x, ScanPath::Fused);
        let f = compile(f).fullgraph();
        f.call(inputs()).unwrap();
        let replay = f.call(inputs()).unwrap().into_data();
        let near = Tolerance::<f64>::rel_abs(1e-3, 1e-3);
        replay.assert_approx_eq(&filter(inputs(), ScanPath::Fallback).into_data(), near);
        let eager = time(|| drop(black_box(filter(inputs(), ScanPath::Fallback))));
        let compiled = time(|| drop(black_box(f.call(inputs()).unwrap())));
        row(&format!("Kalman body {} 10⁴ steps", dtype.name()), eager, compiled);
        println!("{:<32} {:>10} {:>10.1}", "  M steps/s", "", STEPS as f64 / compiled);
    }
}

/// Gradients of the filter with respect to its model and observations.
fn filter_gradients<A: ScanBackend>(
    (model, (x, p), zs): (Model<A>, State<A>, Tensor<A, 3>),
    options: &Options,
) -> (Model<A>, Tensor<A, 3>) {
    let above = |x: Tensor<A, 2>| Tensor::<Autodiff<A>, 2>::from_inner(x);
    let (f, q, h, r) = model;
    let [f, q, h, r] = [f, q, h, r].map(|x| above(x).require_grad());
    let zs = Tensor::<Autodiff<A>, 3>::from_inner(zs).require_grad();
    let model = (f.clone(), q.clone(), h.clone(), r.clone());
    let (_, means): (State<Autodiff<A>>, Tensor<Autodiff<A>, 3>) =
        scan(kalman::<Autodiff<A>>, model, (above(x), above(p)), zs.clone(), options).unwrap();
    let found = means.powi_scalar(2).sum().backward();
    let [f, q, h, r] = [f, q, h, r].map(|x| x.grad(&found).unwrap());
    ((f, q, h, r), zs.grad(&found).unwrap())
}

/// Both passes as scans, compared with a tape of every step. A compiled function unrolls the latter, which takes a
/// second for a hundred steps and minutes for a thousand.
fn gradients() {
    for steps in [100, 1000] {
        let all = observed(steps, DType::F64);
        let inputs = || all.clone();
        let tape = Options::default().memory(Memory::StoreAll);
        let eager = || filter_gradients::<B>(inputs(), &tape);
        let want = eager().1.into_data();
        let near = Tolerance::<f64>::rel_abs(1e-8, 1e-8);
        let passed = time(|| drop(black_box(eager())));
        let spans = time(|| drop(black_box(filter_gradients::<B>(inputs(), &Options::default()))));
        println!("{:<32} {spans:>10.1}", format!("  √N carries, {steps} steps"));
        let fused = Options::default().accept(&[ScanPath::Fused]);
        let unrolled = (steps == 100).then(|| ("unrolled", tape.clone()));
        for (name, options) in unrolled.into_iter().chain([("scans", fused)]) {
            let f = |x: (Model<T>, State<T>, Tensor<T, 3>)| filter_gradients::<T>(x, &options);
            let f = compile(f).fullgraph();
            let first = Instant::now();
            f.call(inputs()).unwrap();
            let first = first.elapsed().as_secs_f64() * 1e6;
            f.call(inputs()).unwrap().1.into_data().assert_approx_eq(&want, near);
            let replay = time(|| drop(black_box(f.call(inputs()).unwrap())));
            row(&format!("Kalman gradient {steps} {name}"), passed, replay);
            println!("{:<32} {:>10} {first:>10.1}", "  first call", "");
        }
    }
}

fn elementwise() {
    let near = Tolerance::<f32>::rel_abs(1e-4, 1e-5);
    let (x, y) = (random([1024, 1024]), random([1024, 1024]));
    let f = compile(|(x, y): (Tensor<T, 2>, Tensor<T, 2>)| ten(x, y)).fullgraph();
    f.call((x.clone(), y.clone())).unwrap();
    let replay = f.call((x.clone(), y.clone())).unwrap().into_data();
    replay.assert_approx_eq(&ten(x.clone(), y.clone()).into_data(), near);
    let eager = time(|| drop(black_box(ten(x.clone(), y.clone()))));
    let compiled = time(|| drop(black_box(f.call((x.clone(), y.clone())).unwrap())));
    row("ten elementwise 1024²", eager, compiled);
}

fn layer_norm() {
    let near = Tolerance::<f32>::rel_abs(1e-4, 1e-5);
    let (x, gamma) = (random([1024, 1024]), random([1024]));
    let f = compile(|(x, g): (Tensor<T, 2>, Tensor<T, 1>)| norm(x, g)).fullgraph();
    f.call((x.clone(), gamma.clone())).unwrap();
    let replay = f.call((x.clone(), gamma.clone())).unwrap();
    replay.0.into_data().assert_approx_eq(&norm(x.clone(), gamma.clone()).0.into_data(), near);
    let eager = time(|| drop(black_box(norm(x.clone(), gamma.clone()))));
    let compiled = time(|| drop(black_box(f.call((x.clone(), gamma.clone())).unwrap())));
    row("layer norm fwd+bwd 1024²", eager, compiled);
}

fn perceptron() {
    let near = Tolerance::<f32>::rel_abs(1e-4, 1e-5);
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
        // Calls of other functions with the same code: the recorder's code is already in the cache.
        let make = || {
            let f = compile(|(w, x, y): (Weights<T>, Tensor<T, 2>, Tensor<T, 2>)| step(w, x, y));
            let inputs = (weights.clone(), x.clone(), y.clone());
            move || drop(black_box(f.call(inputs.clone()).unwrap()))
        };
        let of_new = [1, 2, 3].map(|n| best_call(n, make));
        let slowest = (4..=12).map(|n| best_call(n, make)).fold(0.0, f64::max);
        row(&format!("MLP step b{batch} h{hidden}"), eager, compiled);
        println!("{:<32} {eager:>10.1} {first:>10.1}", "  first call");
        let names = ["first", "second", "third", "slowest later"];
        for (name, new) in names.into_iter().zip(of_new.into_iter().chain([slowest])) {
            println!(
                "{:<32} {eager:>10.1} {new:>10.1} {:>7.2}",
                format!("  {name} call, of many"),
                new / eager
            );
        }
    }
}

fn encoder() {
    let near = Tolerance::<f32>::rel_abs(1e-4, 1e-5);
    let config = TransformerEncoderConfig::new(128, 512, 4, 2).with_dropout(0.0);
    let net = config.init::<B>(&T4aDevice);
    let mut parameters = Read(Vec::new());
    net.visit(&mut parameters);
    let (parameters, x) = (parameters.0, random([8, 64, 128]));
    // Parameters are drawn at their first use, which would be a part of every step.
    let taped = config.init::<Autodiff<T>>(&T4aDevice);
    taped.visit(&mut Read(Vec::new()));
    let f = compile(|(w, x): (Vec<Tensor<T, 2>>, Tensor<T, 3>)| transformer(taped.clone(), w, x));
    let f = f.fullgraph();
    f.call((parameters.clone(), x.clone())).unwrap();
    let taped = config.init::<Autodiff<B>>(&T4aDevice);
    taped.visit(&mut Read(Vec::new()));
    let step = || transformer::<B>(taped.clone(), parameters.clone(), x.clone());
    let replay = f.call((parameters.clone(), x.clone())).unwrap();
    replay[0].to_data().assert_approx_eq(&step()[0].to_data(), near);
    let eager = time(|| drop(black_box(step())));
    let compiled = time(|| drop(black_box(f.call((parameters.clone(), x.clone())).unwrap())));
    row("transformer step 2×d128 b8 s64", eager, compiled);
}

fn calls() {
    // A named size has no extra cost.
    let x = random([64, 64]);
    let f = compile(|x: Tensor<T, 2>| (x.clone() * 2.0).tanh() / x.mean_dim(0)).dynamic(0, 0, "n");
    f.call(x.clone()).unwrap();
    let compiled = time(|| drop(black_box(f.call(x.clone()).unwrap())));
    println!("{:<32} {:>10} {compiled:>10.1}", "a named size, hit", "");

    // A chain that cannot be fused: overhead per instruction.
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

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    println!("{:<32} {:>10} {:>10} {:>7}", "µs", "eager", "compiled", "ratio");
    let parts: [(&str, fn()); 7] = [
        ("elementwise", elementwise),
        ("norm", layer_norm),
        ("perceptron", perceptron),
        ("transformer", encoder),
        ("scan", scans),
        ("gradient", gradients),
        ("calls", calls),
    ];
    for (name, part) in parts {
        if filter.as_ref().is_none_or(|filter| filter == name) {
            part();
        }
    }
}
