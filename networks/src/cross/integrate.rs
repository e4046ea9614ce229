//! Integrals over boxes by cross interpolation on products of quadrature nodes.

use std::ops::ControlFlow;

use t4a_algebra::Numeric;
use t4a_linalg::LinalgScalar;

use super::driver::CrossInterpolation;
use super::function::Function;
use super::options::{CrossOptions, CrossReport};
use super::quadrature::Rule;
use crate::train::{Result, TensorTrain, magnitude};

/// An integral and what is known about its error.
#[derive(Clone, Debug)]
pub struct Integral<T: LinalgScalar> {
    /// The integral.
    pub value: T,
    /// Difference between the Kronrod rule and the Gauss rule within it, in all variables at once: an estimate, in
    /// general too large, of the error of the nodes. `None` if a rule has no other within it.
    pub quadrature_error: Option<f64>,
    /// Difference to the integral one half sweep before the last: an estimate of the error of the train. The value
    /// itself if there was one half sweep or none.
    pub change: f64,
    /// The cross interpolation of the integrand times the weights.
    pub report: CrossReport,
    /// The train of the integrand times the weights, on the nodes.
    pub train: TensorTrain<T>,
}

/// `∫ f(x₁, …, x_n) dx₁ ⋯ dx_n`, one rule for each variable.
///
/// The train is that of the integrand times the weights; tolerances refer to the maximum of that.
///
/// ```
/// use t4a_networks::cross::{CrossOptions, Rule, integrate};
/// let rules = vec![Rule::gauss_kronrod(7)?.on(0.0, 1.0)?; 5];
/// let f = |x: &[f64]| (x.iter().sum::<f64>()).exp();
/// let integral = integrate(&rules, f, &CrossOptions::new().tolerance(1e-12))?;
/// assert!((integral.value - (1f64.exp() - 1.0).powi(5)).abs() < 1e-11);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
///
/// # Errors
/// As [`CrossInterpolation::new`] and [`CrossInterpolation::run`]; points are numbers of nodes.
pub fn integrate<T: LinalgScalar>(
    rules: &[Rule],
    mut f: impl FnMut(&[f64]) -> T,
    options: &CrossOptions,
) -> Result<Integral<T>> {
    let sizes: Vec<usize> = rules.iter().map(|rule| rule.nodes().len()).collect();
    let mut x = vec![0.0; rules.len()];
    let weighted = |index: &[usize]| {
        let mut weight = 1.0;
        for ((x, rule), &i) in x.iter_mut().zip(rules).zip(index) {
            *x = rule.nodes()[i];
            weight *= rule.weights()[i];
        }
        Numeric::mul(f(&x), T::from_f64(weight))
    };
    let mut cross = CrossInterpolation::new(Function::new(&sizes, weighted), options)?;
    let mut sums = [T::ZERO; 2];
    let report = cross.run_with(|_, train| {
        sums = [sums[1], train.sum().unwrap_or(T::ZERO)];
        ControlFlow::Continue(())
    })?;
    let train = cross.into_train();
    let value = train.sum()?;
    let ratio = |rule: &Rule| {
        let pairs = rule.embedded()?.iter().zip(rule.weights());
        Some(pairs.map(|(g, k)| T::from_f64(g / k)).collect::<Vec<T>>())
    };
    let quadrature_error = match rules.iter().map(ratio).collect::<Option<Vec<_>>>() {
        Some(ratios) => Some(magnitude(Numeric::sub(value, train.weighted_sum(&ratios)?))),
        None => None,
    };
    Ok(Integral {
        value,
        quadrature_error,
        change: magnitude(Numeric::sub(value, sums[0])),
        report,
        train,
    })
}
