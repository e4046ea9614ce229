//! Noise parameters and trajectory of a moving point, estimated from noisy measurements.
//!
//! ```text
//! cargo run --release --example kalman
//! ```
//!
//! A point with position and velocity in the plane is driven by random forces, and its position is measured. The
//! strength q of the forces and the variance r of the measurements are unknown; they are estimated by maximum
//! likelihood. The log-likelihood is one fused Kalman filter, its gradient another. With q and r known, a reverse scan
//! computes smoothed states (Rauch, Tung and Striebel 1965):
//!
//! ```text
//! x̂_t = x_t + C_t (x̂_{t+1} − F x_t),   C_t = P_t Fᵀ (F P_t Fᵀ + Q)⁻¹
//! ```
//!
//! The picture is in `target/kalman`.

use std::path::PathBuf;

use burn::backend::Autodiff;
use burn::tensor::{DType, FloatDType, Tensor, TensorData};
use burn_t4a::ext::linalg::solve;
use burn_t4a::ext::scan::fused::{System, kalman_filter};
use burn_t4a::ext::scan::{Options, scan};
use burn_t4a::{BurnT4a, T4aDevice};
use plotters::prelude::*;

type B = BurnT4a;
type AD = Autodiff<B>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
type Point = [f64; 2];

const STEPS: usize = 400;
const TIME: f64 = 0.1;
const TRUTH: (f64, f64) = (0.8, 0.25);

/// Covariance of position and velocity under a force of strength 1, exactly integrated over a step.
const FORCE: [[f64; 2]; 2] =
    [[TIME * TIME * TIME / 3.0, TIME * TIME / 2.0], [TIME * TIME / 2.0, TIME]];

fn matrix(f: impl Fn(usize, usize) -> f64, rows: usize) -> Tensor<AD, 2> {
    let data: Vec<f64> = (0..rows * 4).map(|i| f(i / 4, i % 4)).collect();
    Tensor::from_data(TensorData::new(data, [rows, 4]), (&T4aDevice, DType::F64))
}

/// States are x, ẋ, y, ẏ, with the same block for both coordinates.
fn block(a: [[f64; 2]; 2]) -> Tensor<AD, 2> {
    matrix(|i, j| if i / 2 == j / 2 { a[i % 2][j % 2] } else { 0.0 }, 4)
}

fn system(q: Tensor<AD, 1>, r: Tensor<AD, 1>) -> System<AD> {
    let unit = Tensor::<AD, 2>::eye(2, &T4aDevice).cast(FloatDType::F64);
    System {
        transition: block([[1.0, TIME], [0.0, 1.0]]),
        process_noise: block(FORCE) * q.reshape([1, 1]),
        observation: matrix(|i, j| if j == 2 * i { 1.0 } else { 0.0 }, 2),
        observation_noise: unit * r.reshape([1, 1]),
    }
}

/// The path of the point and its measurements.
fn simulate() -> (Vec<Point>, Vec<Point>) {
    let mut state = 20u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let (q, r) = TRUTH;
    // Cholesky factor of the covariance of a force.
    let a = (q * FORCE[0][0]).sqrt();
    let b = q * FORCE[0][1] / a;
    let c = (q * FORCE[1][1] - b * b).sqrt();
    let (mut at, mut velocity) = ([0.0; 2], [1.0, 0.0]);
    let (mut path, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..STEPS {
        for i in 0..2 {
            let (z, w) = (normal(), normal());
            at[i] += TIME * velocity[i] + a * z;
            velocity[i] += b * z + c * w;
        }
        path.push(at);
        seen.push(at.map(|x| x + r.sqrt() * normal()));
    }
    (path, seen)
}

type Estimates = (Tensor<AD, 3>, Tensor<AD, 3>, Tensor<AD, 2>);

/// Means, covariances and log-likelihoods, from an uninformative prior.
fn filter(system: System<AD>, seen: &[Point]) -> Result<Estimates> {
    let data = TensorData::new(seen.concat(), [1, STEPS, 2]);
    let y = Tensor::<AD, 3>::from_data(data, (&T4aDevice, DType::F64));
    let mean = Tensor::<AD, 1>::zeros([4], &T4aDevice).cast(FloatDType::F64);
    let unit = Tensor::<AD, 2>::eye(4, &T4aDevice).cast(FloatDType::F64);
    Ok(kalman_filter(system, y, mean, unit * 10.0)?)
}

fn number(x: Tensor<AD, 1>) -> f64 {
    x.into_data().iter::<f64>().sum()
}

fn logarithm(x: f64) -> Tensor<AD, 1> {
    Tensor::from_data(TensorData::new(vec![x.ln()], [1]), (&T4aDevice, DType::F64)).require_grad()
}

/// Maximum-likelihood q and r, and the log-likelihood: gradient ascent on ln q and ln r.
fn fit(seen: &[Point]) -> Result<(f64, f64, f64)> {
    let (mut q, mut r, mut likelihood) = (0.05, 2.0, f64::NEG_INFINITY);
    for round in 0..200 {
        let (log_q, log_r) = (logarithm(q), logarithm(r));
        let (_, _, l) = filter(system(log_q.clone().exp(), log_r.clone().exp()), seen)?;
        let l = l.sum();
        likelihood = number(l.clone());
        let grads = l.backward();
        let slope = |x: &Tensor<AD, 1>| -> Result<f64> {
            let g = x.grad(&grads).ok_or("no gradient")?;
            Ok(g.into_data().iter::<f64>().sum::<f64>() / STEPS as f64)
        };
        let (of_q, of_r) = (slope(&log_q)?, slope(&log_r)?);
        if round % 20 == 0 {
            println!("{round:>5}   q {q:.4}   r {r:.4}   log-likelihood {likelihood:.3}");
        }
        if of_q.abs() + of_r.abs() < 1e-6 {
            break;
        }
        (q, r) = (q * (3.0 * of_q).exp(), r * of_r.exp());
    }
    Ok((q, r, likelihood))
}

type State = (Tensor<AD, 2>, Tensor<AD, 2>);

/// Smoothed means.
fn smooth(
    system: &System<AD>,
    means: Tensor<AD, 3>,
    covariances: Tensor<AD, 3>,
) -> Result<Tensor<AD, 3>> {
    let last = STEPS - 1;
    let means = means.swap_dims(0, 1).swap_dims(1, 2);
    let step = |(f, q): State, (next,): (Tensor<AD, 2>,), (x, p): State| {
        let predicted = f.clone().matmul(p.clone()).matmul(f.clone().transpose()) + q;
        // C = P Fᵀ S⁻¹ with symmetric S.
        let gain = solve(predicted, f.clone().matmul(p)).expect("positive definite").transpose();
        let x = x.clone() + gain.matmul(next - f.matmul(x));
        ((x.clone(),), x)
    };
    let init = (means.clone().narrow(0, last, 1).reshape([4, 1]),);
    let consts = (system.transition.clone(), system.process_noise.clone());
    let xs = (means.clone().narrow(0, 0, last), covariances.narrow(0, 0, last));
    let ((_,), ys): ((Tensor<AD, 2>,), Tensor<AD, 3>) =
        scan(step, consts, init, xs, &Options::default().reverse(true))?;
    Ok(Tensor::cat(vec![ys, means.narrow(0, last, 1)], 0))
}

/// Positions of states.
fn positions(states: Tensor<AD, 3>) -> Vec<Point> {
    let all: Vec<f64> = states.into_data().iter::<f64>().collect();
    all.chunks(4).map(|x| [x[0], x[2]]).collect()
}

/// Root-mean-square distance.
fn distance(a: &[Point], b: &[Point]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2));
    (squares.sum::<f64>() / a.len() as f64).sqrt()
}

fn picture(path: &[Point], seen: &[Point], smoothed: &[Point]) -> Result<PathBuf> {
    let dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let file = dir.join("kalman").join("track.svg");
    std::fs::create_dir_all(dir.join("kalman"))?;
    let range = |i: usize| {
        let all = seen.iter().map(|p| p[i]);
        all.clone().fold(f64::INFINITY, f64::min)..all.fold(f64::NEG_INFINITY, f64::max)
    };
    let root = SVGBackend::new(&file, (900, 600)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("measurements, the path, and the smoothed path", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(32)
        .y_label_area_size(48)
        .build_cartesian_2d(range(0), range(1))?;
    chart.configure_mesh().draw()?;
    let dot = |p: &Point| Circle::new((p[0], p[1]), 2, RGBColor(170, 170, 170).filled());
    chart.draw_series(seen.iter().map(dot))?;
    for (line, color) in [(path, &BLACK), (smoothed, &RED)] {
        chart.draw_series(LineSeries::new(line.iter().map(|p| (p[0], p[1])), color))?;
    }
    root.present()?;
    drop(chart);
    drop(root);
    Ok(file)
}

fn main() -> Result<()> {
    let (path, seen) = simulate();
    let (q, r, likelihood) = fit(&seen)?;
    let at = |q: f64, r: f64| filter(system(logarithm(q).exp(), logarithm(r).exp()), &seen);
    let truth = number(at(TRUTH.0, TRUTH.1)?.2.sum());
    println!("fit     q {q:.4}   r {r:.4}   log-likelihood {likelihood:.3}");
    println!("truth   q {:.4}   r {:.4}   log-likelihood {truth:.3}", TRUTH.0, TRUTH.1);

    let fitted = system(logarithm(q).exp(), logarithm(r).exp());
    let (means, covariances, _) = filter(fitted.clone(), &seen)?;
    let smoothed = positions(smooth(&fitted, means.clone(), covariances)?);
    let errors = [&seen, &positions(means), &smoothed].map(|x| distance(x, &path));
    println!(
        "distance to the path: measured {:.3}, filtered {:.3}, smoothed {:.3}",
        errors[0], errors[1], errors[2]
    );
    println!("{}", picture(&path, &seen, &smoothed)?.display());

    // No nearby parameters have a larger likelihood, nor do the true ones.
    for (q, r) in [TRUTH, (q * 1.05, r), (q / 1.05, r), (q, r * 1.05), (q, r / 1.05)] {
        assert!(number(at(q, r)?.2.sum()) < likelihood);
    }
    assert!((r / TRUTH.1).ln().abs() < 0.15 && (q / TRUTH.0).ln().abs() < 0.5);
    assert!(errors[2] < 0.8 * errors[1] && errors[1] < 0.6 * errors[0]);
    Ok(())
}
