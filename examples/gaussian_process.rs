//! Learning the kernel of a Gaussian process: the marginal likelihood by a Cholesky factorisation,
//! its gradient through it.
//!
//! `−ln p(y) = ½ yᵀ K⁻¹ y + ½ ln det K + n/2 ln 2π` with `K = a² exp(−(x−x')²/2ℓ²) + σ² I`. With
//! `K = L Lᵀ` the first term is `½‖L⁻¹ y‖²`, the second `Σ ln Lᵢᵢ`.
//!
//! `cargo run --example gaussian_process`

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::linalg::{LinalgError, Triangle, cholesky, solve_triangular};
use burn_t4a::{BurnT4a, T4aDevice};

type B = Autodiff<BurnT4a>;

const POINTS: usize = 40;
const NOISE: f64 = 0.1;

fn truth(x: f64) -> f64 {
    (1.5 * x).sin()
}

/// Nearly normal numbers: sums of twelve uniform ones.
fn normal(i: u64) -> f64 {
    let unit = |i: u64| {
        let hash = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((hash ^ (hash >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 * 0.5f64.powi(53)
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

fn covariance(theta: &Tensor<B, 1>, x: &Tensor<B, 2>) -> Tensor<B, 2> {
    let noise = theta.clone().narrow(0, 2, 1).exp().unsqueeze::<2>();
    let unit = Tensor::<B, 2>::eye(POINTS, &T4aDevice).cast(DType::F64);
    kernel(theta, x.clone(), x.clone()) + unit * (noise.clone() * noise)
}

/// `−ln p(y)`.
fn loss(
    theta: &Tensor<B, 1>,
    x: &Tensor<B, 2>,
    y: &Tensor<B, 2>,
) -> Result<Tensor<B, 1>, LinalgError> {
    let l = cholesky(covariance(theta, x))?;
    let z = solve_triangular(l.clone(), y.clone(), Triangle::LOWER)?;
    let unit = Tensor::<B, 2>::eye(POINTS, &T4aDevice).cast(DType::F64);
    let log_det = (l * unit).sum_dim(1).log().sum();
    Ok((z.clone() * z).sum() * 0.5 + log_det + POINTS as f64 / 2.0 * std::f64::consts::TAU.ln())
}

fn main() -> Result<(), LinalgError> {
    let at: Vec<f64> = (0..POINTS).map(|i| 6.0 * i as f64 / (POINTS - 1) as f64).collect();
    let noise: Vec<f64> = (0..POINTS as u64).map(|i| NOISE * normal(i)).collect();
    let observed = at.iter().zip(&noise).map(|(x, noise)| truth(*x) + noise).collect();
    let (x, y) = (column(at), column(observed));

    // Adam in three dimensions.
    let (mut theta, mut mean, mut square) = ([0.0f64; 3], [0.0; 3], [0.0; 3]);
    let tensor = |theta: [f64; 3]| {
        Tensor::<B, 1>::from_data(TensorData::from(theta), (&T4aDevice, DType::F64)).require_grad()
    };
    println!("step   −ln p(y)   length   size    noise   |gradient|");
    let mut steepness = f64::INFINITY;
    for step in 1..=240 {
        let leaf = tensor(theta);
        let value = loss(&leaf, &x, &y)?;
        let gradients = value.clone().backward();
        let gradient = leaf.grad(&gradients).map(Tensor::from_inner).map_or(vec![], values);
        steepness = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        if step % 40 == 0 || step == 1 {
            let [length, size, noise] = theta.map(f64::exp);
            let value = values(value)[0];
            println!(
                "{step:>4}   {value:>8.3}   {length:.4}   {size:.4}  {noise:.4}   {steepness:.1e}"
            );
        }
        for i in 0..3 {
            mean[i] = 0.9 * mean[i] + 0.1 * gradient[i];
            square[i] = 0.999 * square[i] + 0.001 * gradient[i] * gradient[i];
            let bias = (1.0 - 0.9f64.powi(step), 1.0 - 0.999f64.powi(step));
            theta[i] -= 0.05 * (mean[i] / bias.0) / ((square[i] / bias.1).sqrt() + 1e-8);
        }
    }

    // The prediction K* K⁻¹ y between the points.
    let fit = tensor(theta);
    let l = cholesky(covariance(&fit, &x))?;
    let half = solve_triangular(l.clone(), y, Triangle::LOWER)?;
    let weights = solve_triangular(l, half, Triangle::LOWER.adjoint())?;
    let grid: Vec<f64> = (0..60).map(|i| 6.0 * (i as f64 + 0.5) / 60.0).collect();
    let predicted = values(kernel(&fit, column(grid.clone()), x).matmul(weights));
    plot(&predicted);

    let off = grid.iter().zip(&predicted).map(|(x, y)| (truth(*x) - y).powi(2)).sum::<f64>();
    let off = (off / grid.len() as f64).sqrt();
    let sample = (noise.iter().map(|x| x * x).sum::<f64>() / POINTS as f64).sqrt();
    let learnt = theta[2].exp();
    println!(
        "\nnoise in the data {sample:.3}, learnt {learnt:.3}; prediction off by {off:.3} (rms)"
    );
    assert!(steepness < 1e-2, "the likelihood is at its maximum");
    assert!((learnt / sample - 1.0).abs() < 0.2 && off < 0.06);
    Ok(())
}

/// The curve in 11 lines.
fn plot(curve: &[f64]) {
    println!();
    for line in 0..11 {
        let level = 1.0 - line as f64 / 5.0;
        let cell = |y: &f64| if (y - level).abs() <= 0.1 { '•' } else { ' ' };
        println!("{level:>5.1} │{}", curve.iter().map(cell).collect::<String>());
    }
}
