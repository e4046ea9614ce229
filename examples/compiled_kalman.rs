//! A Kalman filter written as one step in Burn operations, and executed as a program: the body of a scan in a compiled
//! function is recorded once, and its steps access a single memory arena.
//!
//! ```text
//! cargo run --release --example compiled_kalman
//! ```
//!
//! The state is a position and a velocity; the position is measured. The result is compared with the same body executed
//! step by step, and both with the filter in one kernel (`ext::scan::fused`).

use std::time::Instant;

use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::ext::scan::fused::{System, kalman_filter};
use burn_t4a::ext::scan::{Options, ScanBackend, ScanPath, scan};
use burn_t4a_transforms::compile::{Traced, compile};

type B = BurnT4a;
type T = Traced<B>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const STEPS: usize = 10_000;

/// Transition matrix and its noise, observation matrix and its noise.
type Model<A> = (Tensor<A, 2>, Tensor<A, 2>, Tensor<A, 2>, Tensor<A, 2>);
/// Mean and covariance.
type State<A> = (Tensor<A, 2>, Tensor<A, 2>);

/// Prediction, then correction by a measurement: `K = P Hᵀ / S`, `x + K (z − H x)`, `P − K H P`.
fn step<A: Backend>(
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

fn filter<A: ScanBackend>(
    (model, state, zs): (Model<A>, State<A>, Tensor<A, 3>),
    path: ScanPath,
) -> (State<A>, Tensor<A, 3>) {
    let options = Options::default().accept(&[path]);
    scan(step::<A>, model, state, zs, &options).expect("shapes fit, and the path is taken")
}

fn tensor<A: Backend, const D: usize>(x: Vec<f64>, shape: [usize; D]) -> Tensor<A, D> {
    Tensor::from_data(TensorData::new(x, shape), (&A::Device::default(), DType::F64))
}

fn model<A: Backend>() -> (Model<A>, State<A>) {
    let f = tensor(vec![1.0, 0.1, 0.0, 1.0], [2, 2]);
    let q = tensor(vec![3e-4, 5e-3, 5e-3, 0.1], [2, 2]);
    let (h, r) = (tensor(vec![1.0, 0.0], [1, 2]), tensor(vec![0.25], [1, 1]));
    let state = (tensor(vec![0.0; 2], [2, 1]), tensor(vec![10.0, 0.0, 0.0, 10.0], [2, 2]));
    ((f, q, h, r), state)
}

/// A slow oscillation with measurement noise.
fn measurements(seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut noise = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..STEPS).map(|t| (t as f64 * 0.01).sin() * 3.0 + noise()).collect()
}

fn main() -> Result<()> {
    let compiled =
        compile(|inputs: (Model<T>, State<T>, Tensor<T, 3>)| filter(inputs, ScanPath::Fused))
            .fullgraph();
    let inputs = |seed| {
        let (model, state) = model::<B>();
        (model, state, tensor::<B, 3>(measurements(seed), [STEPS, 1, 1]))
    };
    compiled.call(inputs(1))?;

    let seconds =
        |mut run: Box<dyn FnMut() -> Result<Tensor<B, 3>> + '_>| -> Result<(f64, Tensor<B, 3>)> {
            let (mut best, mut result) = (f64::INFINITY, run()?);
            for _ in 0..3 {
                let begin = Instant::now();
                result = run()?;
                best = best.min(begin.elapsed().as_secs_f64());
            }
            Ok((best, result))
        };
    let (fast, means) = seconds(Box::new(|| Ok(compiled.call(inputs(2))?.1)))?;
    let (slow, eager) = seconds(Box::new(|| Ok(filter(inputs(2), ScanPath::Fallback).1)))?;
    let (kernel, judge) = seconds(Box::new(|| {
        let ((transition, process_noise, observation, observation_noise), (mean, covariance)) =
            model::<B>();
        let system = System { transition, process_noise, observation, observation_noise };
        let zs = tensor::<B, 3>(measurements(2), [1, STEPS, 1]);
        let (means, _, _) = kalman_filter(system, zs, mean.reshape([2]), covariance)?;
        Ok(means.reshape([STEPS, 2, 1]))
    }))?;

    println!("steps per second, {STEPS} steps of two states in f64");
    for (name, time) in [("step by step", slow), ("recorded", fast), ("in one kernel", kernel)] {
        println!("{name:>14} {:>8.2} M", STEPS as f64 / time / 1e6);
    }
    let difference = |other: &Tensor<B, 3>| -> f64 {
        (means.clone() - other.clone()).abs().max().into_data().iter::<f64>().sum()
    };
    let (to_eager, to_judge) = (difference(&eager), difference(&judge));
    println!(
        "differences of the means: {to_eager:.1e} from step by step, {to_judge:.1e} from the kernel"
    );
    assert!(to_eager < 1e-9 && to_judge < 1e-9, "{to_eager} and {to_judge}");
    assert!(fast < slow, "recorded {fast} s, step by step {slow} s");
    assert_eq!(compiled.counters().traces, 1);
    Ok(())
}
