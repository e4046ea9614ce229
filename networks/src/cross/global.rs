//! Random search for points of large error, and for a first pivot.

use t4a_algebra::Numeric;
use t4a_linalg::LinalgScalar;

use super::pivots::Indices;
use super::samples::Samples;
use crate::train::{Evaluator, Result, TensorTrain, magnitude};

/// Passes over all sites of one search.
const PASSES: usize = 3;

/// Moves one index after another to the value at which `score` is largest, until a pass over all sites changes
/// nothing. Returns the best score.
fn climb(
    point: &mut [usize],
    sizes: &[usize],
    mut score: impl FnMut(&Indices) -> Result<Vec<f64>>,
) -> Result<f64> {
    let mut best = f64::NEG_INFINITY;
    for _ in 0..PASSES {
        let mut moved = false;
        for site in 0..sizes.len() {
            let mut line = Indices::new(point.len());
            for s in 0..sizes[site] {
                let mut moved = point.to_vec();
                moved[site] = s;
                line.push(&moved, &[]);
            }
            for (s, value) in score(&line)?.into_iter().enumerate() {
                if value > best {
                    moved |= point[site] != s;
                    (best, point[site]) = (value, s);
                }
            }
        }
        if !moved {
            break;
        }
    }
    Ok(best)
}

/// Points of large `|F − train|`, by one climb from each start, largest error first.
pub(super) fn large_errors<T: LinalgScalar>(
    op: &'static str,
    samples: &mut Samples<'_, T>,
    train: &TensorTrain<T>,
    starts: Vec<Vec<usize>>,
) -> Result<Vec<(Vec<usize>, f64)>> {
    let sizes = samples.sizes().to_vec();
    let mut evaluator = Evaluator::new(train);
    let mut found: Vec<(Vec<usize>, f64)> = Vec::new();
    for mut point in starts {
        let error = climb(&mut point, &sizes, |line| {
            let values = samples.at(op, line)?;
            let pairs = values.into_iter().zip(line.iter());
            pairs.map(|(f, x)| Ok(magnitude(Numeric::sub(f, evaluator.at(x)?)))).collect()
        })?;
        if found.iter().all(|(other, _)| *other != point) {
            found.push((point, error));
        }
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(found)
}

/// A point of large `|F|`, and its value there: the largest among the points given, then one climb.
pub(super) fn large_value<T: LinalgScalar>(
    op: &'static str,
    samples: &mut Samples<'_, T>,
    points: &[Vec<usize>],
) -> Result<(Vec<usize>, f64)> {
    let sizes = samples.sizes().to_vec();
    let mut best = (points[0].clone(), -1.0);
    for point in points {
        let mut one = Indices::new(point.len());
        one.push(point, &[]);
        let value = magnitude(samples.at(op, &one)?[0]);
        if value > best.1 {
            best = (point.clone(), value);
        }
    }
    if best.1 > 0.0 {
        best.1 = climb(&mut best.0, &sizes, |line| {
            Ok(samples.at(op, line)?.into_iter().map(magnitude).collect())
        })?;
    }
    Ok(best)
}
