//! The discrete Fourier transform as an operator of small bonds.
//!
//! `exp(∓2πi k x / N)` with the digits `x = Σ σₗ base^(R−l)` and `k = Σ τₗ base^(l−1)` is
//! `Π exp(∓2πi τₗ tₗ)` with `tₗ = (σₗ + tₗ₊₁) / base`, `t_{R+1} = 0`. As a function of `tₗ₊₁ ∈ [0, 1]` the product
//! over the first `l` factors has a phase of at most 2π, so that interpolation between `K` Chebyshev nodes is
//! exact to rounding for `K` near 25.
//!
//! Reference: J. Chen, M. Lindsey, arXiv:2404.03182 (2024).

use t4a_algebra::{Float, Numeric, Real};
use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;

use crate::train::{Compression, Result, TrainError, TrainOperator};

/// Number of Chebyshev nodes: the error of the interpolation is below rounding in double precision.
const NODES: usize = 30;

/// Sign and factor of a Fourier transform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Frequencies {
    /// `Σₓ exp(−2πi k x / N) f(x)`.
    #[default]
    Forward,
    /// `1/N Σₖ exp(2πi k x / N) g(k)`.
    Inverse,
}

/// The Fourier transform of one variable of `N = base^digits` points, compressed to a relative error.
///
/// Output site `l` is digit `l` of the frequency from the least significant one on: the result of
/// [`TrainOperator::apply`] has the digits of the input's grid in reverse order, which
/// [`TensorTrain::reverse`](crate::train::TensorTrain::reverse) restores. The transpose takes a reversed train and has its result in the
/// usual order. The type has to be complex.
///
/// Bonds are near 8 for a tolerance of 1e-8 and 11 for 1e-14, independent of `N`.
///
/// ```
/// use t4a_algebra::c64;
/// use t4a_networks::quantics::{Frequencies, fourier};
/// use t4a_networks::train::TensorTrain;
/// let transform = fourier::<c64>(2, 20, Frequencies::Forward, 1e-12)?;
/// let one = TensorTrain::constant(&[2; 20], c64::new(1.0, 0.0))?;
/// let peak = transform.apply(&one)?;
/// assert!((peak.eval(&[0; 20])?.re / 2f64.powi(20) - 1.0).abs() < 1e-9);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
///
/// # Errors
/// `Value` for a real type, a base below 2, no digits, and a tolerance that is negative or NaN.
pub fn fourier<T: LinalgScalar>(
    base: usize,
    digits: usize,
    frequencies: Frequencies,
    tolerance: f64,
) -> Result<TrainOperator<T>> {
    let op = "fourier";
    if !T::IS_COMPLEX {
        return Err(TrainError::value(op, "a complex type is required, c32 or c64"));
    }
    if base < 2 || digits == 0 {
        let message = format!("base ≥ 2 and at least 1 digit are required, given {base}, {digits}");
        return Err(TrainError::value(op, message));
    }
    let sign = if frequencies == Frequencies::Forward { -1.0 } else { 1.0 };
    // Spread over all cores: N may exceed the range of single precision.
    let factor = if frequencies == Frequencies::Forward { 1.0 } else { (base as f64).recip() };
    let nodes = chebyshev(NODES);
    let mut cores = Vec::with_capacity(digits);
    for level in 0..digits {
        let (first, last) = (level == 0, level + 1 == digits);
        let (left, right) = (if first { 1 } else { NODES }, if last { 1 } else { NODES });
        let mut data = Vec::with_capacity(left * base * base * right);
        for alpha in 0..left {
            for tau in 0..base {
                for sigma in 0..base {
                    for beta in 0..right {
                        let behind = if last { 0.0 } else { nodes[beta] };
                        let t = (sigma as f64 + behind) / base as f64;
                        let weight = if first { 1.0 } else { lagrange(&nodes, alpha, t) };
                        let phase = sign * std::f64::consts::TAU * tau as f64 * t;
                        let scaled = |x: f64| <T::R as Numeric>::from_f64(factor * weight * x);
                        data.push(T::from_parts(scaled(phase.cos()), scaled(phase.sin())));
                    }
                }
            }
        }
        cores.push(Tensor::from_vec(data, &[left, base, base, right])?);
    }
    let compression = Compression::new().tolerance(tolerance.max(epsilon::<T>()));
    if tolerance.is_nan() || tolerance < 0.0 {
        return Err(TrainError::value(op, format!("the tolerance must be ≥ 0, given {tolerance}")));
    }
    Ok(TrainOperator::new(cores)?.compress(&compression)?.0)
}

fn epsilon<T: LinalgScalar>() -> f64 {
    <T::R as Float>::EPSILON.to_f64()
}

/// Chebyshev–Lobatto nodes on [0, 1].
fn chebyshev(n: usize) -> Vec<f64> {
    let node = |k: usize| 0.5 * (1.0 - (std::f64::consts::PI * k as f64 / (n - 1) as f64).cos());
    (0..n).map(node).collect()
}

/// Lagrange polynomial `k` of Chebyshev–Lobatto nodes at `x`, by the barycentric formula with weights
/// `(−1)ᵏ`, halved at both ends (J.-P. Berrut, L. N. Trefethen, SIAM Review 46, 501 (2004)).
fn lagrange(nodes: &[f64], k: usize, x: f64) -> f64 {
    if let Some(at) = nodes.iter().position(|&node| node == x) {
        return if at == k { 1.0 } else { 0.0 };
    }
    let weight = |j: usize| {
        let end = j == 0 || j + 1 == nodes.len();
        (if j.is_multiple_of(2) { 1.0 } else { -1.0 }) * if end { 0.5 } else { 1.0 }
    };
    let term = |j: usize| weight(j) / (x - nodes[j]);
    term(k) / (0..nodes.len()).map(term).sum::<f64>()
}
