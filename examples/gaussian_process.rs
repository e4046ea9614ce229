//! Hyperparameter learning for a Gaussian process: the marginal likelihood by a Cholesky factorisation, and its
//! gradient through it.
//!
//! `−ln p(y) = ½ yᵀ K⁻¹ y + ½ ln det K + n/2 ln 2π` with `K = a² exp(−(x−x')²/2ℓ²) + σ² I`. With `K = L Lᵀ` the first
//! term is `½‖L⁻¹ y‖²`, the second `Σ ln Lᵢᵢ`. The data are drawn from a process with known parameters; the gradient is
//! compared with differences. [`GaussianProcess`] provides the same model. The picture has the hidden function and its
//! prediction between the observed points.
//!
//! `cargo run --example gaussian_process`

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::linalg::{LinalgError, cholesky};
use burn_t4a::models::GaussianProcess;
use burn_t4a::{BurnT4a, T4aDevice};

#[path = "picture/lines.rs"]
mod picture;

type B = Autodiff<BurnT4a>;

const POINTS: usize = 48;
const WIDTH: f64 = 12.0;
/// ℓ, a, σ of the process that generates the data.
const TRUTH: [f64; 3] = [0.9, 1.2, 0.15];

/// Approximately normal numbers: sums of twelve uniform ones.
fn normal(i: u64) -> f64 {
    let unit = |i: u64| {
        // SplitMix64: G. Steele et al. 2014.
        let z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 * 0.5f64.powi(53)
    };
    (0..12).map(|k| unit(12 * i + k)).sum::<f64>() - 6.0
}

fn column(values: Vec<f64>) -> Tensor<B, 2> {
    let shape = [values.len(), 1];
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, DType::F64))
}

fn values<const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

/// `a² exp(−(x − x')²/2ℓ²)`; `theta` holds ln ℓ, ln a, ln σ.
fn kernel(theta: &Tensor<B, 1>, x: Tensor<B, 2>, other: Tensor<B, 2>) -> Tensor<B, 2> {
    let parameter = |i| theta.clone().narrow(0, i, 1).exp().unsqueeze::<2>();
    let (length, size) = (parameter(0), parameter(1));
    let distance = (x - other.transpose()) / length;
    (distance.clone() * distance * -0.5).exp() * (size.clone() * size)
}

/// A multiple of the identity matrix.
fn diagonal(n: usize, c: Tensor<B, 2>) -> Tensor<B, 2> {
    Tensor::<B, 2>::eye(n, &T4aDevice).cast(DType::F64) * c
}

fn covariance(theta: &Tensor<B, 1>, x: &Tensor<B, 2>) -> Tensor<B, 2> {
    let noise = theta.clone().narrow(0, 2, 1).exp().unsqueeze::<2>();
    kernel(theta, x.clone(), x.clone()) + diagonal(POINTS, noise.clone() * noise)
}

/// `−ln p(y)`.
fn loss(
    theta: &Tensor<B, 1>,
    x: &Tensor<B, 2>,
    y: &Tensor<B, 2>,
) -> Result<Tensor<B, 1>, LinalgError> {
    let process = GaussianProcess::new(covariance(theta, x), y.clone().squeeze_dim(1))?;
    Ok(process.log_likelihood().neg())
}

/// ln ℓ, ln a, ln σ on the tape.
fn parameters(theta: [f64; 3]) -> Tensor<B, 1> {
    Tensor::from_data(TensorData::from(theta), (&T4aDevice, DType::F64)).require_grad()
}

fn value_and_gradient(
    theta: [f64; 3],
    x: &Tensor<B, 2>,
    y: &Tensor<B, 2>,
) -> Result<(f64, Vec<f64>), LinalgError> {
    let leaf = parameters(theta);
    let value = loss(&leaf, x, y)?;
    let gradients = value.clone().backward();
    let gradient = leaf.grad(&gradients).map(Tensor::from_inner).map_or(vec![], values);
    Ok((values(value)[0], gradient))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One path of the process, f = L z. Every other point is observed, with noise.
    let at: Vec<f64> =
        (0..2 * POINTS).map(|i| WIDTH * i as f64 / (2 * POINTS - 1) as f64).collect();
    let grid = column(at.clone());
    let prior = kernel(&parameters(TRUTH.map(f64::ln)), grid.clone(), grid);
    let jitter = diagonal(2 * POINTS, column(vec![1e-10]));
    let z = column((0..2 * POINTS as u64).map(normal).collect());
    let path = values(cholesky(prior + jitter)?.matmul(z));
    let half = |x: &[f64], odd: usize| x.iter().copied().skip(odd).step_by(2).collect::<Vec<_>>();
    let noise = (1000..1000 + POINTS as u64).map(|i| TRUTH[2] * normal(i));
    let observed = half(&path, 0).into_iter().zip(noise).map(|(f, noise)| f + noise).collect();
    let (x, y) = (column(half(&at, 0)), column(observed));

    // The gradient against central differences of fourth order.
    let start = [0.3f64, 0.5, 0.5].map(f64::ln);
    let (_, gradient) = value_and_gradient(start, &x, &y)?;
    for i in 0..3 {
        let shifted = |h: f64| {
            let mut theta = start;
            theta[i] += h;
            value_and_gradient(theta, &x, &y).map(|(value, _)| value)
        };
        let h = 1e-3;
        let near = shifted(h)? - shifted(-h)?;
        let far = shifted(2.0 * h)? - shifted(-2.0 * h)?;
        let slope = (8.0 * near - far) / (12.0 * h);
        assert!((gradient[i] - slope).abs() < 1e-7 * slope.abs().max(1.0), "parameter {i}");
    }

    // Adam on three parameters.
    let (mut theta, mut mean, mut square) = (start, [0.0; 3], [0.0; 3]);
    println!("step   −ln p(y)   length    size   noise   |gradient|");
    let mut steepness = f64::INFINITY;
    for step in 1..=240 {
        let (value, gradient) = value_and_gradient(theta, &x, &y)?;
        steepness = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        if step % 40 == 0 || step == 1 {
            let [length, size, noise] = theta.map(f64::exp);
            println!(
                "{step:>4}   {value:>8.3}   {length:>6.3}  {size:>6.3}  {noise:>6.3}   {steepness:.1e}"
            );
        }
        for i in 0..3 {
            mean[i] = 0.9 * mean[i] + 0.1 * gradient[i];
            square[i] = 0.999 * square[i] + 0.001 * gradient[i] * gradient[i];
            let bias = (1.0 - 0.9f64.powi(step), 1.0 - 0.999f64.powi(step));
            theta[i] -= 0.05 * (mean[i] / bias.0) / ((square[i] / bias.1).sqrt() + 1e-8);
        }
    }
    let learnt = theta.map(f64::exp);
    println!("truth             {:>6.3}  {:>6.3}  {:>6.3}", TRUTH[0], TRUTH[1], TRUTH[2]);

    // Prediction K* K⁻¹ y at the points between the observed ones.
    let fit = parameters(theta);
    let (between, hidden) = (column(half(&at, 1)), half(&path, 1));
    let across = kernel(&fit, x.clone(), between.clone());
    let prior = kernel(&fit, between.clone(), between);
    let process = GaussianProcess::new(covariance(&fit, &x), y.squeeze_dim(1))?;
    let predicted = values(process.posterior(across, prior)?.0);
    let line = |y: &[f64]| half(&at, 1).into_iter().zip(y.iter().copied()).collect();
    let curves = [line(&hidden), line(&predicted)];

    let off = hidden.iter().zip(&predicted).map(|(f, p)| (f - p).powi(2)).sum::<f64>();
    let off = (off / POINTS as f64).sqrt();
    println!("\nunseen points are predicted to {off:.3} (rms), the noise is {:.3}", TRUTH[2]);
    assert!(steepness < 1e-2, "the likelihood is at its maximum");
    for ((name, got), want) in ["length", "size", "noise"].iter().zip(learnt).zip(TRUTH) {
        assert!((got / want).ln().abs() < 0.4, "{name}: {got} instead of {want}");
    }
    assert!(off < TRUTH[2]);
    picture::lines("gaussian_process", "x", &curves)
}
