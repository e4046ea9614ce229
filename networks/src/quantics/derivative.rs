//! Finite differences on a grid.

use t4a_algebra::Numeric;
use t4a_linalg::LinalgScalar;
use t4a_linalg::solve::solve;
use t4a_tensor::Tensor;

use super::affine::{Boundary, Map};
use crate::train::{Result, TrainError, TrainOperator};

/// `(O f)(x) = Σ cᵢ f(x + kᵢ)` of one variable: bonds are the carries of all shifts, 3 in
/// front of the last digits.
///
/// # Errors
/// `Value` for a base below 2, no digits or no terms.
pub fn stencil<T: LinalgScalar>(
    base: usize,
    digits: usize,
    terms: &[(i64, T)],
    boundary: Boundary,
) -> Result<TrainOperator<T>> {
    let op = "stencil";
    if terms.is_empty() {
        return Err(TrainError::value(op, "at least one term is required"));
    }
    let starts: Vec<_> = terms.iter().map(|&(k, c)| (vec![i128::from(k)], c)).collect();
    Map { base, digits, matrix: vec![vec![1]], divisor: 1, boundary }.operator(op, &starts)
}

/// The derivative of an order of one variable by central differences of an even order of accuracy.
///
/// `step` is the distance between neighbouring points, [`Grid::steps`](super::Grid::steps). The weights `cₖ`,
/// `|k| ≤ p`, solve `Σ cₖ kᵐ = m! δ(m, order)` for `m ≤ 2p`.
///
/// # Errors
/// `Value` unless `order ≥ 1`, `accuracy` is even and positive, their sum is at most 20 and the step is finite and
/// not 0.
///
/// ```
/// use t4a_networks::quantics::{Boundary, derivative};
/// use t4a_networks::train::{Compression, TensorTrain};
/// use t4a_tensor::Tensor;
///
/// // d²/dx² x² = 2 on 16 points of distance 1, away from the ends.
/// let x = Tensor::from_fn(&[16], |i| (i * i) as f64)?.reshape(&[2; 4])?;
/// let (train, _) = TensorTrain::from_dense(&x, &Compression::new())?;
/// let second = derivative::<f64>(2, 4, 2, 2, 1.0, Boundary::Periodic)?;
/// let y = second.apply(&train)?;
/// assert!((y.eval(&[0, 1, 1, 1])? - 2.0).abs() < 1e-10);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
pub fn derivative<T: LinalgScalar>(
    base: usize,
    digits: usize,
    order: usize,
    accuracy: usize,
    step: f64,
    boundary: Boundary,
) -> Result<TrainOperator<T>> {
    let op = "derivative";
    let even = accuracy > 0 && accuracy.is_multiple_of(2);
    if order == 0 || !even || order.saturating_add(accuracy) > 20 {
        let message = format!(
            "order ≥ 1 and even accuracy ≥ 2 with a sum of at most 20 are required, given {order}, {accuracy}"
        );
        return Err(TrainError::value(op, message));
    }
    if !step.is_finite() || step == 0.0 {
        let message = format!("the step must be finite and not 0, given {step}");
        return Err(TrainError::value(op, message));
    }
    let p = order.div_ceil(2) + accuracy / 2 - 1;
    let size = 2 * p + 1;
    let offset = |i: usize| i as f64 - p as f64;
    let powers = Tensor::from_fn(&[size, size], |at| offset(at % size).powi((at / size) as i32))?;
    let factorial: f64 = (1..=order).map(|k| k as f64).product();
    let right = Tensor::from_fn(&[size, 1], |m| if m == order { factorial } else { 0.0 })?;
    let weights = solve(&powers, &right)?.to_vec()?;
    let scale = step.powi(order as i32).recip();
    let term = |(i, w): (usize, f64)| (i as i64 - p as i64, <T as Numeric>::from_f64(w * scale));
    let terms: Vec<_> = weights.into_iter().enumerate().map(term).collect();
    stencil(base, digits, &terms, boundary)
}
