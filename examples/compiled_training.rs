//! A training step as one program: forward pass, backward pass and update are recorded once per batch size, which grows
//! while the loss decreases.
//!
//! ```text
//! cargo run --release --example compiled_training
//! ```
//!
//! The network classifies the points of two spirals. Increasing the batch size has the same effect as decreasing the
//! learning rate (Smith, Kindermans, Ying and Le 2018). The batch size is a named axis, shared by inputs and labels;
//! each step is compared with an eager one from the same weights.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::tensor::activation::log_softmax;
use burn::tensor::backend::Backend;
use burn::tensor::{Int, Tensor, TensorData};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};
use indicatif::ProgressBar;

type B = BurnT4a;
type T = Traced<B>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const HIDDEN: usize = 32;
const POINTS: usize = 2048;

/// Weights and biases of three layers.
type Weights<A> = [(Tensor<A, 2>, Tensor<A, 2>); 3];
type Step<A> = (Weights<A>, Weights<A>, Tensor<A, 1>);

fn scores<A: Backend>(weights: &Weights<A>, x: Tensor<A, 2>) -> Tensor<A, 2> {
    let [first, second, last] = weights;
    let layer =
        |x: Tensor<A, 2>, (w, b): &(Tensor<A, 2>, Tensor<A, 2>)| x.matmul(w.clone()) + b.clone();
    layer(layer(layer(x, first).tanh(), second).tanh(), last)
}

/// Gradient descent with momentum: weights, velocities, loss.
fn step<A: Backend>(
    (weights, velocity): (Weights<A>, Weights<A>),
    x: Tensor<A, 2>,
    labels: Tensor<A, 2, Int>,
) -> Step<A> {
    type Tape<A> = Tensor<Autodiff<A>, 2>;
    let track = |x: Tensor<A, 2>| Tape::<A>::from_inner(x).require_grad();
    let tracked = weights.clone().map(|(w, b)| (track(w), track(b)));
    let scores = log_softmax(scores(&tracked, Tensor::from_inner(x)), 1);
    let loss = -scores.gather(1, Tensor::from_inner(labels)).mean();
    let gradients = loss.backward();
    let moved = |(own, v): (&Tape<A>, Tensor<A, 2>)| {
        let g = own.grad(&gradients).expect("every weight has a gradient");
        v * 0.9 - g * 0.1
    };
    let mut tracked = tracked.iter();
    let velocity = velocity.map(|(v, u)| {
        let (w, b) = tracked.next().expect("as many layers");
        (moved((w, v)), moved((b, u)))
    });
    let mut by = velocity.clone().into_iter();
    let weights = weights.map(|(w, b)| {
        let (v, u) = by.next().expect("as many layers");
        (w + v, b + u)
    });
    (weights, velocity, loss.inner())
}

/// Pseudo-random numbers in [0, 1).
fn numbers(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    }
}

/// Points of two spirals and their labels.
fn spirals() -> (Tensor<B, 2>, Tensor<B, 2, Int>) {
    let mut next = numbers(3);
    let (mut x, mut labels) = (Vec::new(), Vec::new());
    for i in 0..POINTS {
        let (t, side) = (next(), (i % 2) as i64);
        let angle = 7.0 * t + std::f32::consts::PI * side as f32;
        let radius = 0.2 + t;
        x.extend([radius * angle.cos() + 0.04 * next(), radius * angle.sin() + 0.04 * next()]);
        labels.push(side);
    }
    (
        Tensor::from_data(TensorData::new(x, [POINTS, 2]), &T4aDevice),
        Tensor::from_data(TensorData::new(labels, [POINTS, 1]), &T4aDevice),
    )
}

fn start() -> Weights<B> {
    let mut next = numbers(11);
    [(2, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 2)].map(|(n, m)| {
        let scale = 3.0 / (n as f32).sqrt();
        let w: Vec<f32> = (0..n * m).map(|_| scale * (next() - 0.5)).collect();
        let w = Tensor::from_data(TensorData::new(w, [n, m]), &T4aDevice);
        (w, Tensor::zeros([1, m], &T4aDevice))
    })
}

/// Weights and velocities.
type State<B> = (Weights<B>, Weights<B>);

fn zeros(like: &Weights<B>) -> Weights<B> {
    like.clone().map(|(w, b)| (w.zeros_like(), b.zeros_like()))
}

fn main() -> Result<()> {
    let (x, labels) = spirals();
    // Weights and velocities are the first 12 leaves.
    let compiled = compile(|(state, x, labels): (State<T>, Tensor<T, 2>, Tensor<T, 2, Int>)| {
        step(state, x, labels)
    })
    .dynamic(12, 0, "batch")
    .dynamic(13, 0, "batch")
    .fullgraph();

    let mut weights = start();
    let mut velocity = zeros(&weights);
    let (mut times, mut worst) = ([Duration::ZERO; 2], 0.0f32);
    println!("batch   steps   loss     compiled   eager");
    let bar = ProgressBar::new(1200);
    for batch in [16, 32, 64, 128, 256, 512] {
        let (before, steps) = (times, 200);
        let (mut total, mut at) = (0.0, 0);
        for _ in 0..steps {
            at = if at + batch > POINTS { 0 } else { at };
            let (x, labels) = (x.clone().narrow(0, at, batch), labels.clone().narrow(0, at, batch));
            at += batch;
            let state = (weights.clone(), velocity.clone());
            let begin = Instant::now();
            let (eager, _, other) = step(state, x.clone(), labels.clone());
            times[1] += begin.elapsed();
            let begin = Instant::now();
            let loss;
            (weights, velocity, loss) = compiled.call(((weights, velocity), x, labels))?;
            times[0] += begin.elapsed();
            let [loss, other] = [loss, other].map(Tensor::into_scalar);
            let apart = (weights[1].0.clone() - eager[1].0.clone()).abs().max().into_scalar();
            worst = worst.max((loss - other).abs()).max(apart);
            total += loss;
            bar.inc(1);
        }
        let per = |k: usize| (times[k] - before[k]).as_secs_f64() / f64::from(steps) * 1e6;
        let loss = total / steps as f32;
        let row =
            format!("{batch:>5} {steps:>7} {loss:>8.4} {:>9.0} µs {:>5.0} µs", per(0), per(1));
        bar.suspend(|| println!("{row}"));
    }
    bar.finish_and_clear();
    let guess: Tensor<B, 2, Int> = scores(&weights, x).argmax(1);
    let right = guess.equal(labels).int().sum().into_scalar() as f64 / POINTS as f64;
    println!("right: {:.1} %, largest difference from an eager step: {worst:.1e}", 100.0 * right);
    println!("{:?}", compiled.counters());
    // The cost of the step, and a drawing of its instructions.
    let report = compiled.explain();
    println!("{}", report.lines().last().unwrap_or_default());
    let dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let file = dir.join("compiled_training.svg");
    std::fs::create_dir_all(&dir)?;
    std::fs::write(&file, compiled.svg().unwrap_or_default())?;
    println!("graph of the step: {}", file.display());

    // One recording for each of six sizes, and the same training trajectory.
    assert_eq!((compiled.counters().traces, compiled.counters().fallbacks), (6, 0));
    assert_eq!(compiled.counters().hits, 6 * 200 - 6);
    assert!(worst < 1e-4, "{worst}");
    assert!(right > 0.98, "{right}");
    Ok(())
}
