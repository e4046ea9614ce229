//! Recurrences as single kernels, with derivatives. The operations are values of [`t4a_scan`].

use burn_dispatch::Dispatch;
use burn_tensor::Tensor;
pub use t4a_scan::{
    AssociativeScan, Cell, Cumulative, FloatMonoid, KalmanFilter, LinearRecurrence,
    MatrixRecurrence, Monoid, Recurrent, Running,
};

use super::Result;
use crate::Complex;
use crate::operation::{Operand, apply, call, float};
use crate::user::tensor;

/// Cumulative operation `y_t = x_0 ⊕ … ⊕ x_t` along an axis: [`Cumulative`].
///
/// # Errors
/// If `x` has no such axis.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::scan::fused::{Running, cumulative};
///
/// let x = Tensor::<1>::from_floats([3.0, 1.0, 4.0], &Device::flex());
/// let sums = cumulative(Running::Sum, x.clone(), 0, false)?;
/// sums.into_data().assert_eq(&[3.0f32, 4.0, 8.0].into(), false);
/// // From the end.
/// let maxima = cumulative(Running::Max, x, 0, true)?;
/// maxima.into_data().assert_eq(&[4.0f32, 4.0, 4.0].into(), false);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
pub fn cumulative<const D: usize>(
    kind: Running,
    x: Tensor<D>,
    axis: usize,
    reverse: bool,
) -> Result<Tensor<D>> {
    Ok(call(&Cumulative { reverse, ..Cumulative::new(kind, axis) }, &[float(x)])?)
}

/// Linear recurrence `h_t = a_t h_{t−1} + b_t` along an axis, from h₀ (size 1 along the axis) or 0:
/// [`LinearRecurrence`].
///
/// # Errors
/// If shapes do not match.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::scan::fused::linear_recurrence;
///
/// // hₜ = hₜ₋₁ / 2 + 1 from 0.
/// let a = Tensor::<1>::full([3], 0.5, &Device::flex());
/// let h = linear_recurrence(a, Tensor::ones([3], &Device::flex()), None, 0, false)?;
/// h.into_data().assert_eq(&[1.0f32, 1.5, 1.75].into(), false);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
pub fn linear_recurrence<const D: usize>(
    a: Tensor<D>,
    b: Tensor<D>,
    initial: Option<Tensor<D>>,
    axis: usize,
    reverse: bool,
) -> Result<Tensor<D>> {
    let op =
        LinearRecurrence { reverse, initial: initial.is_some(), ..LinearRecurrence::new(axis) };
    let mut inputs = vec![float(a), float(b)];
    inputs.extend(initial.map(float));
    Ok(call(&op, &inputs)?)
}

/// As [`linear_recurrence`], over complex numbers: the kernel of diagonal state-space layers.
///
/// # Errors
/// If shapes do not match.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::Complex;
/// use burn_t4a_022_ext::scan::fused::complex_linear_recurrence;
///
/// // hₜ = i hₜ₋₁ from 1: a quarter turn per step.
/// let [zeros, ones] = [Tensor::<1>::zeros([3], &Device::flex()), Tensor::ones([3], &Device::flex())];
/// let i = Complex::new(zeros.clone(), ones)?;
/// let one = Complex::from_real(Tensor::ones([1], &Device::flex()));
/// let h = complex_linear_recurrence(i, Complex::from_real(zeros), Some(one), 0, false)?;
/// h.re().into_data().assert_eq(&[0.0f32, -1.0, 0.0].into(), false);
/// h.im().into_data().assert_eq(&[1.0f32, 0.0, -1.0].into(), false);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn complex_linear_recurrence<const D: usize>(
    a: Complex<D>,
    b: Complex<D>,
    initial: Option<Complex<D>>,
    axis: usize,
    reverse: bool,
) -> Result<Complex<D>> {
    let (complex, initialised) = (true, initial.is_some());
    let op = LinearRecurrence { reverse, complex, initial: initialised, axis };
    let parts = |x: Complex<D>| [float(x.re()), float(x.im())];
    let inputs: Vec<Operand<Dispatch>> =
        [Some(a), Some(b), initial].into_iter().flatten().flat_map(parts).collect();
    let mut results = apply(&op, &inputs)?.results.into_iter().map(tensor);
    let mut next = || results.next().unwrap_or_else(|| unreachable!("two results"));
    let (re, im) = (next(), next());
    Ok(Complex::new(re, im).unwrap_or_else(|_| unreachable!("parts of one shape and dtype")))
}

/// Associative scan `y_t = x_0 ∘ … ∘ x_t` of elements that consist of several tensors: [`AssociativeScan`].
///
/// # Errors
/// If shapes do not match.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::scan::fused::{AssociativeScan, FloatMonoid, associative_scan};
///
/// let x = Tensor::<1>::from_floats([2.0, 3.0, 4.0], &Device::flex());
/// let products = AssociativeScan::new(FloatMonoid::Product, 0);
/// let y = associative_scan(&products, vec![x])?;
/// y[0].to_data().assert_eq(&[2.0f32, 6.0, 24.0].into(), false);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
pub fn associative_scan<M: Monoid, const D: usize>(
    op: &AssociativeScan<M>,
    x: Vec<Tensor<D>>,
) -> Result<Vec<Tensor<D>>> {
    let inputs: Vec<Operand<Dispatch>> = x.into_iter().map(float).collect();
    Ok(apply(op, &inputs)?.results.into_iter().map(tensor).collect())
}

/// States of a recurrent layer over a sequence (h, and c for an LSTM): [`Recurrent`].
///
/// Shapes: `z: [n, batch, gates·width]`, `weight: [width, gates·width]`, `bias: [gates·width]`; initial states
/// `[batch, width]`, one per state of the cell, or none.
///
/// # Errors
/// If shapes do not match.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::scan::fused::{Cell, recurrent};
///
/// // Two steps, one sequence, one unit: hₜ = tanh(1 + 0 · hₜ₋₁).
/// let z = Tensor::<3>::ones([2, 1, 1], &Device::flex());
/// let weight = Tensor::zeros([1, 1], &Device::flex());
/// let states = recurrent(Cell::Tanh, z, weight, None, vec![], false)?;
/// let last: f32 = states[0].clone().narrow(0, 1, 1).into_scalar::<f32>();
/// assert!((last - 1f32.tanh()).abs() < 1e-6);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
pub fn recurrent(
    cell: Cell,
    z: Tensor<3>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    initial: Vec<Tensor<2>>,
    reverse: bool,
) -> Result<Vec<Tensor<3>>> {
    let op = Recurrent { cell, reverse, bias: bias.is_some(), initial: !initial.is_empty() };
    let mut inputs = vec![float(z), float(weight)];
    inputs.extend(bias.map(float));
    inputs.extend(initial.into_iter().map(float));
    Ok(apply(&op, &inputs)?.results.into_iter().map(tensor).collect())
}

/// Linear Gaussian state-space model, for [`kalman_filter`].
#[derive(Clone, Debug)]
pub struct System {
    /// Transition matrix F, shape `[d, d]`.
    pub transition: Tensor<2>,
    /// Covariance Q of the process noise, shape `[d, d]`.
    pub process_noise: Tensor<2>,
    /// Observation matrix H, shape `[m, d]`.
    pub observation: Tensor<2>,
    /// Covariance R of the observation noise, shape `[m, m]`.
    pub observation_noise: Tensor<2>,
}

/// Kalman filter: means `[batch, n, d]`, covariances `[n, d, d]` and log-likelihoods `[batch, n]` of observations
/// `y: [batch, n, m]`, from an initial mean and covariance: [`KalmanFilter`].
///
/// # Errors
/// If shapes do not match.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_t4a_022_ext::scan::fused::{System, kalman_filter};
///
/// // A constant with prior variance 1, observed twice with variance 1.
/// let matrix = |x: f32| Tensor::<2>::full([1, 1], x, &Device::flex());
/// let system = System {
///     transition: matrix(1.0),
///     process_noise: matrix(0.0),
///     observation: matrix(1.0),
///     observation_noise: matrix(1.0),
/// };
/// let y = Tensor::from_floats([[[3.0], [3.0]]], &Device::flex());
/// let mean = Tensor::zeros([1], &Device::flex());
/// let (means, covariances, _) = kalman_filter(system, y, mean, matrix(1.0))?;
/// let means: Vec<f32> = means.into_data().iter().collect();
/// let variances: Vec<f32> = covariances.into_data().iter().collect();
/// // Of the prior and n observations: 3 n / (n + 1), and 1 / (n + 1).
/// assert!((means[0] - 1.5).abs() < 1e-6 && (means[1] - 2.0).abs() < 1e-6);
/// assert!((variances[0] - 0.5).abs() < 1e-6 && (variances[1] - 1.0 / 3.0).abs() < 1e-6);
/// # Ok::<(), burn_t4a_022_ext::scan::ScanError>(())
/// ```
pub fn kalman_filter(
    system: System,
    y: Tensor<3>,
    mean: Tensor<1>,
    covariance: Tensor<2>,
) -> Result<(Tensor<3>, Tensor<3>, Tensor<2>)> {
    let System { transition, process_noise, observation, observation_noise } = system;
    let matrices = [transition, process_noise, observation, observation_noise];
    let mut inputs: Vec<Operand<Dispatch>> = matrices.into_iter().map(float).collect();
    inputs.extend([float(y), float(mean), float(covariance)]);
    let mut results = apply(&KalmanFilter, &inputs)?.results.into_iter();
    let mut next = || results.next().unwrap_or_else(|| unreachable!("three results"));
    Ok((tensor(next()), tensor(next()), tensor(next())))
}
