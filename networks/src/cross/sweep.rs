//! Half sweeps over all bonds: pivots and the train that they define.

use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;

use super::options::CrossOptions;
use super::pivots::Indices;
use super::samples::Samples;
use super::search::{Candidates, Direction, search};
use crate::train::{Result, Stop, TensorTrain};

/// Pivots of all bonds: `left[b]` indices of the sites before bond `b`, `right[b]` of those behind it.
#[derive(Clone, Debug)]
pub(super) struct Pivots {
    pub(super) left: Vec<Indices>,
    pub(super) right: Vec<Indices>,
}

impl Pivots {
    /// Bonds `0 … n` without pivots, but the empty index at both ends.
    pub(super) fn new(n: usize) -> Self {
        let mut left: Vec<Indices> = (0..=n).map(Indices::new).collect();
        let mut right: Vec<Indices> = (0..=n).rev().map(Indices::new).collect();
        left[0] = Indices::empty_index();
        right[n] = Indices::empty_index();
        Self { left, right }
    }

    /// Adds a point to every inner bond.
    pub(super) fn add(&mut self, point: &[usize]) {
        for b in 1..point.len() {
            self.left[b].push_new(&point[..b]);
            self.right[b].push_new(&point[b..]);
        }
    }

    fn candidates(&self, b: usize, sizes: &[usize], nested: bool) -> Candidates {
        let mut rows = self.left[b - 1].times_site(sizes[b - 1]);
        let mut cols = self.right[b + 1].site_times(sizes[b]);
        let known = |old: &Indices, all: &mut Indices| {
            let products = all.len();
            let mut known = Vec::new();
            for index in old.iter() {
                match all.position(index) {
                    Some(at) if at < products || !nested => known.push(at),
                    None if !nested => {
                        known.push(all.len());
                        all.push(index, &[]);
                    }
                    _ => {}
                }
            }
            known
        };
        let known_rows = known(&self.left[b], &mut rows);
        let known_cols = known(&self.right[b], &mut cols);
        Candidates { rows, cols, known_rows, known_cols }
    }
}

/// A half sweep: the pivots, the train, the largest rejected pivot.
pub(super) struct Swept<T: LinalgScalar> {
    pub(super) pivots: Pivots,
    pub(super) train: TensorTrain<T>,
    pub(super) error: f64,
}

/// Updates all bonds of `n ≥ 2` sites in order. Pivots given are not changed if the function fails.
pub(super) fn half_sweep<T: LinalgScalar>(
    op: &'static str,
    samples: &mut Samples<'_, T>,
    pivots: &Pivots,
    options: &CrossOptions,
    direction: Direction,
    random: &mut dyn FnMut(usize, usize) -> Result<Vec<usize>>,
) -> Result<Swept<T>> {
    let sizes = samples.sizes().to_vec();
    let n = sizes.len();
    let mut pivots = pivots.clone();
    let mut cores: Vec<Tensor<T>> = Vec::with_capacity(n);
    let mut error: f64 = 0.0;
    let stop = |max: f64| Stop {
        absolute: options.tolerance * max,
        relative: 0.0,
        rank: options.max_bond,
    };
    for step in 1..n {
        let b = if direction == Direction::Right { step } else { n - step };
        let (products, tails) =
            (pivots.left[b - 1].len() * sizes[b - 1], sizes[b] * pivots.right[b + 1].len());
        let candidates = pivots.candidates(b, &sizes, options.nested);
        let mut found = search(op, samples, &candidates, options.search, stop, direction, random)?;
        error = error.max(found.error);
        let zero = found.lu.rank() == 0;
        if zero {
            (found.rows, found.cols) = (vec![0], vec![0]);
        }
        let bond = found.rows.len();
        let shape = match direction {
            Direction::Right => [pivots.left[b - 1].len(), sizes[b - 1], bond],
            Direction::Left => [bond, sizes[b], pivots.right[b + 1].len()],
        };
        let core = match direction {
            _ if zero => Tensor::zeros(&shape)?,
            Direction::Right => found.lu.left_interpolation()?.slice_axis(0, 0, products, 1)?,
            Direction::Left => found.lu.right_interpolation()?.slice_axis(1, 0, tails, 1)?,
        };
        cores.push(core.reshape(&shape)?);
        pivots.left[b] = candidates.rows.pick(&found.rows);
        pivots.right[b] = candidates.cols.pick(&found.cols);
    }
    // The values on the last site, whose other indices are pivots.
    let (rows, cols, shape) = match direction {
        Direction::Right => {
            let rows = pivots.left[n - 1].clone();
            let shape = [rows.len(), sizes[n - 1], 1];
            (rows, pivots.right[n].site_times(sizes[n - 1]), shape)
        }
        Direction::Left => {
            let cols = pivots.right[1].clone();
            let shape = [1, sizes[0], cols.len()];
            (pivots.left[0].times_site(sizes[0]), cols, shape)
        }
    };
    cores.push(Tensor::from_vec(samples.block(op, &rows, &cols)?, &shape)?);
    if direction == Direction::Left {
        cores.reverse();
    }
    Ok(Swept { pivots, train: TensorTrain::new(cores)?, error })
}
