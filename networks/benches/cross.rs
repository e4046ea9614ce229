//! Cross interpolation: function values needed for a tolerance, and values per second.
//!
//! ```text
//! lorentz     1 / (1 + Σ nᵢ²), nᵢ = 1 … 8 in five dimensions, tolerance 1e-8
//! integral    1000 cos(10 Σ xᵢ²) exp(−(Σ xᵢ)⁴/1000) on 15 Gauss–Kronrod nodes in ten dimensions, times the weights,
//!             tolerance 1e-8
//! quantics    cos(x/B) cos(x/(4√5 B)) exp(−x²) + 2 exp(−x), B = 2⁻³⁰, on 2⁴⁰ points of [0, ln 20], tolerance 1e-5
//! ```
//!
//! x/B reaches 3.2e9, so rounding errors of `f64` change the values of quantics by up to 6e-7. These errors have full rank: with a
//! smaller tolerance the bond dimension grows without end.
//!
//! The functions are examples of the documentation of TensorCrossInterpolation.jl and of Núñez Fernández et al.,
//! SciPost Phys. 18, 104 (2025). error = the largest deviation on 10⁴ random points, relative to the largest value.

use std::time::Instant;

use t4a_networks::cross::{CrossInterpolation, CrossOptions, Function, PivotSearch, Rule};
use t4a_networks::quantics::Grid;
use t4a_networks::train::Evaluator;
use t4a_tensor::random::{Generator, uniform};

type Value<'a> = Box<dyn Fn(&[usize]) -> f64 + 'a>;

fn row(name: &str, sizes: &[usize], f: &Value<'_>, tolerance: f64, search: PivotSearch) {
    let options = CrossOptions::new().tolerance(tolerance).search(search);
    let mut best = f64::INFINITY;
    let (start, mut result) = (Instant::now(), None);
    while result.is_none() || start.elapsed().as_secs_f64() < 1.0 {
        let now = Instant::now();
        let mut cross = CrossInterpolation::new(Function::new(sizes, f), &options).unwrap();
        let report = cross.run().unwrap();
        best = best.min(now.elapsed().as_secs_f64());
        result = Some((cross.into_train(), report));
    }
    let Some((train, report)) = result else { return };
    let draws = uniform::<f64>(&Generator::new(9), &[10_000, sizes.len()], 0.0, 1.0).unwrap();
    let mut evaluator = Evaluator::new(&train);
    let (mut error, mut largest) = (0.0f64, 0.0f64);
    for draws in draws.to_vec().unwrap().chunks(sizes.len()) {
        let point: Vec<usize> =
            draws.iter().zip(sizes).map(|(x, &d)| (x * d as f64) as usize).collect();
        error = error.max((evaluator.at(&point).unwrap() - f(&point)).abs());
        largest = largest.max(f(&point).abs()).max(report.max_value);
    }
    println!(
        "{name:<10} {search:<6} {:>9} {:>6} {:>5} {:>10.2} {:>12.3e} {:>9.1e} {:>9.1e} {:?}",
        report.evaluations,
        report.sweeps,
        train.max_bond(),
        1e3 * best,
        report.evaluations as f64 / best,
        report.pivot_error / report.max_value,
        error / largest,
        report.status,
        search = format!("{search:?}"),
    );
}

fn main() {
    println!(
        "{:<10} {:<6} {:>9} {:>6} {:>5} {:>10} {:>12} {:>9} {:>9}",
        "function", "search", "values", "sweeps", "bond", "ms", "values/s", "pivot", "error"
    );
    let rule = Rule::gauss_kronrod(7).unwrap();
    let grid = Grid::new(&[(0.0, 20f64.ln())], 40).unwrap();
    let lorentz =
        |n: &[usize]| 1.0 / n.iter().fold(1.0, |sum, &n| sum + ((n + 1) * (n + 1)) as f64);
    let integrand = |n: &[usize]| {
        let (mut sum, mut squares, mut weight) = (0.0, 0.0, 1000.0);
        for &n in n {
            let x = rule.nodes()[n];
            (sum, squares, weight) = (sum + x, squares + x * x, weight * rule.weights()[n]);
        }
        weight * (10.0 * squares).cos() * (-sum.powi(4) / 1000.0).exp()
    };
    let step = grid.steps()[0];
    let waves = |digits: &[usize]| {
        let x = step * digits.iter().fold(0, |n, &s| 2 * n + s) as f64;
        let b = 2f64.powi(-30);
        (x / b).cos() * (x / (4.0 * 5f64.sqrt() * b)).cos() * (-x * x).exp() + 2.0 * (-x).exp()
    };
    let rows: [(&str, Vec<usize>, Value<'_>, f64); 3] = [
        ("lorentz", vec![8; 5], Box::new(lorentz), 1e-8),
        ("integral", vec![15; 10], Box::new(integrand), 1e-8),
        ("quantics", grid.sizes(), Box::new(waves), 1e-5),
    ];
    for (name, sizes, f, tolerance) in &rows {
        for search in [PivotSearch::Full, PivotSearch::Rook] {
            row(name, sizes, f, *tolerance, search);
        }
    }
}
