//! The Hessian spectrum of a small network, before and after training, from Hessian-vector products.
//!
//! ```text
//! cargo run --release --example hessian_spectrum
//! ```
//!
//! A product is the derivative of a gradient along a vector, `hvp`: a tape on tensors with tangents. The Lanczos
//! process reduces some dozens of products to a small matrix whose eigenvalues approximate the ends of the spectrum;
//! the weights of its eigenvectors, over several random starts, approximate the density in between (Ghorbani and others
//! 2019). Both are checked against the full Hessian, which is feasible for this network.

use std::path::PathBuf;

use burn::backend::Autodiff;
use burn::tensor::activation::log_softmax;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Distribution, Int, Tensor, TensorData, TensorPrimitive};
use burn_t4a::ext::linalg::{Eigh, eigh, eigvalsh};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::derivatives::{grad, hessian, hvp};
use burn_t4a_transforms::jvp::{Jvp, JvpTensor};
use indicatif::ProgressBar;
use plotters::prelude::*;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
type B = BurnT4a;

const HIDDEN: usize = 12;
const CLASSES: usize = 3;
const PARAMETERS: usize = 3 * HIDDEN + (HIDDEN + 1) * CLASSES;
const STEPS: usize = 40;
const STARTS: usize = 6;

/// Points on three arms of a spiral.
struct Spiral {
    points: Tensor<B, 2>,
    classes: Tensor<B, 1, Int>,
}

impl Spiral {
    fn new(count: usize) -> Self {
        let (mut points, mut classes) = (Vec::new(), Vec::new());
        for i in 0..count {
            let class = i % CLASSES;
            let radius = (i / CLASSES) as f64 * CLASSES as f64 / count as f64;
            let turn = std::f64::consts::TAU * class as f64 / CLASSES as f64;
            let angle = 3.0 * radius + turn + 0.15 * ((i * 7919 % 97) as f64 / 48.5 - 1.0);
            points.extend([radius * angle.sin(), radius * angle.cos()]);
            classes.push(class as i64);
        }
        Self {
            points: doubles(points, [count, 2]),
            classes: Tensor::from_data(TensorData::new(classes, [count]), &T4aDevice),
        }
    }
}

fn doubles<const D: usize>(values: Vec<f64>, shape: [usize; D]) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, DType::F64))
}

/// Mean cross-entropy of a perceptron whose parameters are one vector.
fn loss<A: Backend>(
    parameters: Tensor<A, 1>,
    points: Tensor<A, 2>,
    classes: Tensor<A, 1, Int>,
) -> Tensor<A, 1> {
    let mut at = 0;
    let mut next = |count: usize| {
        at += count;
        parameters.clone().narrow(0, at - count, count)
    };
    let w = next(2 * HIDDEN).reshape([2, HIDDEN]);
    let b = next(HIDDEN).unsqueeze();
    let v = next(HIDDEN * CLASSES).reshape([HIDDEN, CLASSES]);
    let c = next(CLASSES).unsqueeze();
    let scores = (points.matmul(w) + b).tanh().matmul(v) + c;
    let chosen = log_softmax(scores, 1).gather(1, classes.unsqueeze_dim(1));
    chosen.mean().neg()
}

fn number(x: Tensor<B, 1>) -> f64 {
    x.into_data().iter::<f64>().next().expect("one number")
}

/// A random direction of length 1.
fn direction() -> Tensor<B, 1> {
    let normal = Distribution::Normal(0.0, 1.0);
    let x = Tensor::<B, 1>::random([PARAMETERS], normal, (&T4aDevice, DType::F64));
    let length = number(x.clone().powi_scalar(2).sum()).sqrt();
    x / length
}

/// Ritz values of the Hessian in a Krylov space, with their weights.
fn lanczos(product: impl Fn(Tensor<B, 1>) -> Result<Tensor<B, 1>>) -> Result<Vec<(f64, f64)>> {
    let (mut basis, mut alpha, mut beta) = (vec![direction()], Vec::new(), Vec::new());
    for step in 0..STEPS {
        let mut w = product(basis[step].clone())?;
        alpha.push(number((w.clone() * basis[step].clone()).sum()));
        // Orthogonalisation against the full basis, twice: rounding errors would otherwise reintroduce converged
        // eigenvalues.
        for _ in 0..2 {
            for q in &basis {
                let along = number((w.clone() * q.clone()).sum());
                w = w - q.clone() * along;
            }
        }
        let length = number(w.clone().powi_scalar(2).sum()).sqrt();
        if length < 1e-10 || step + 1 == STEPS {
            break;
        }
        beta.push(length);
        basis.push(w / length);
    }
    let n = alpha.len();
    let mut small = vec![0.0; n * n];
    for i in 0..n {
        small[i * n + i] = alpha[i];
        if i + 1 < n {
            small[i * n + i + 1] = beta[i];
            small[(i + 1) * n + i] = beta[i];
        }
    }
    let Eigh { values, vectors } = eigh(doubles(small, [n, n]))?;
    let weights = vectors.narrow(0, 0, 1).powi_scalar(2);
    Ok(values.into_data().iter().zip(weights.into_data().iter()).collect())
}

/// A tape on tensors with tangents.
type Twice = Autodiff<Jvp<B>>;

fn curved(x: Tensor<Twice, 1>, data: &Spiral) -> Tensor<Twice, 1> {
    let points = data.points.clone().into_primitive().tensor();
    let points = Tensor::from_primitive(TensorPrimitive::Float(JvpTensor::constant(points)));
    let classes = Tensor::from_primitive(data.classes.clone().into_primitive());
    loss(x, Tensor::from_inner(points), classes)
}

/// Spectrum at these parameters: nodes of all starts, with weights that sum to 1.
fn spectrum(parameters: &Tensor<B, 1>, data: &Spiral) -> Result<Vec<(f64, f64)>> {
    let mut nodes = Vec::new();
    for _ in 0..STARTS {
        let product = |v| Ok(hvp(|x| curved(x, data), parameters.clone(), v)?.1);
        let one = lanczos(product)?;
        nodes.extend(one.into_iter().map(|(x, weight)| (x, weight / STARTS as f64)));
    }
    Ok(nodes)
}

/// Compares largest, least and mean eigenvalue from the nodes with those of the full Hessian.
fn check(parameters: &Tensor<B, 1>, data: &Spiral, nodes: &[(f64, f64)]) -> Result<()> {
    let whole: Tensor<B, 2> = hessian(|x| curved(x, data), parameters.clone())?;
    let exact: Vec<f64> = eigvalsh(whole)?.into_data().iter().collect();
    let [least, most] = [exact[0], exact[exact.len() - 1]];
    let found = nodes.iter().map(|node| node.0);
    let (low, high) =
        (found.clone().fold(f64::INFINITY, f64::min), found.fold(most.min(0.0), f64::max));
    println!(
        "  eigenvalues from {low:.5} to {high:.5}; of the whole Hessian {least:.5} to {most:.5}"
    );
    assert!((high - most).abs() < 1e-6 * most && (low - least).abs() < 1e-3 * most);
    let mean = exact.iter().sum::<f64>() / exact.len() as f64;
    let estimate: f64 = nodes.iter().map(|(x, weight)| x * weight).sum();
    println!("  mean {estimate:.5} by {STARTS} random starts; exactly {mean:.5}");
    Ok(())
}

/// Densities over a logarithmic axis of magnitudes, with broadened nodes.
fn draw(before: &[(f64, f64)], after: &[(f64, f64)]) -> Result<PathBuf> {
    let dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    std::fs::create_dir_all(&dir)?;
    let path = dir.join("hessian_spectrum.svg");
    let root = SVGBackend::new(path.as_path(), (820, 440)).into_drawing_area();
    root.fill(&WHITE)?;
    let ends = before.iter().chain(after).map(|node| node.0);
    let (low, high) = (ends.clone().fold(0.0, f64::min), ends.fold(0.0, f64::max));
    let width = (high - low) / 120.0;
    let density = |nodes: &[(f64, f64)], at: f64| -> f64 {
        let scale = 1.0 / (width * std::f64::consts::TAU.sqrt());
        let bell = |x: f64| scale * (-0.5 * ((at - x) / width).powi(2)).exp();
        nodes.iter().map(|&(x, weight)| weight * bell(x)).sum::<f64>().max(1e-4)
    };
    let top = 2.0 / (width * std::f64::consts::TAU.sqrt());
    let range = low - 5.0 * width..high + 5.0 * width;
    let mut chart = ChartBuilder::on(&root)
        .caption("density of eigenvalues of the Hessian", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(60)
        .build_cartesian_2d(range.clone(), (1e-4..top).log_scale())?;
    chart.configure_mesh().light_line_style(WHITE).x_desc("eigenvalue").draw()?;
    for (name, color, nodes) in [("before training", RED, before), ("after", BLUE, after)] {
        let at = |i: i32| range.start + (range.end - range.start) * f64::from(i) / 600.0;
        let points = (0..=600).map(|i| (at(i), density(nodes, at(i))));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
    }
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    root.present()?;
    drop((chart, root));
    Ok(path)
}

fn main() -> Result<()> {
    B::seed(&T4aDevice, 5);
    let data = Spiral::new(150);
    let flat = |x: Tensor<Autodiff<B>, 1>| {
        let classes = Tensor::from_primitive(data.classes.clone().into_primitive());
        loss(x, Tensor::from_inner(data.points.clone()), classes)
    };
    let mut parameters = direction() * (PARAMETERS as f64).sqrt() * 0.5;
    let value = |x: &Tensor<B, 1>| number(flat(Tensor::from_inner(x.clone())).inner());

    println!("loss {:.4} before training", value(&parameters));
    let before = spectrum(&parameters, &data)?;
    check(&parameters, &data, &before)?;
    let mut velocity = parameters.zeros_like();
    let bar = ProgressBar::new(400);
    for _ in 0..400 {
        velocity = velocity * 0.9 - grad(flat, parameters.clone())? * 0.2;
        parameters = parameters + velocity.clone();
        bar.inc(1);
    }
    bar.finish_and_clear();
    println!("loss {:.4} after it", value(&parameters));
    let after = spectrum(&parameters, &data)?;
    check(&parameters, &data, &after)?;
    assert!(value(&parameters) < 0.5);
    println!("drawn in {}", draw(&before, &after)?.display());
    Ok(())
}
