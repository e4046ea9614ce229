//! Runs of half sweeps until the errors are within the tolerance.

use std::ops::ControlFlow;

use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;
use t4a_tensor::random::{Generator, uniform};

use super::function::Function;
use super::global::{large_errors, large_value};
use super::options::{CrossOptions, CrossReport, Progress, Status};
use super::pivots::Indices;
use super::samples::Samples;
use super::search::Direction;
use super::sweep::{Pivots, Swept, half_sweep};
use crate::train::{Result, TensorTrain};

const OP: &str = "cross_interpolation";
/// Random points among which a first pivot is searched, and their number once more for a function that is zero there.
const FIRST_POINTS: usize = 20;
const ZERO_POINTS: usize = 2000;

/// The train of a function, and the report. One run of [`CrossInterpolation`].
///
/// # Errors
/// As [`CrossInterpolation::new`] and [`CrossInterpolation::run`].
pub fn interpolate<T: LinalgScalar>(
    function: Function<'_, T>,
    options: &CrossOptions,
) -> Result<(TensorTrain<T>, CrossReport)> {
    let mut cross = CrossInterpolation::new(function, options)?;
    let report = cross.run()?;
    Ok((cross.into_train(), report))
}

/// A cross interpolation that can be stopped and continued.
///
/// If the function fails or returns NaN, the run ends with an error; pivots and train are then those of the
/// last complete half sweep, and the values computed since are kept.
///
/// ```
/// use std::ops::ControlFlow;
/// use t4a_networks::cross::{CrossInterpolation, CrossOptions, Function, Status};
/// let f = Function::new(&[2; 12], |x| (x.iter().fold(0, |n, s| 2 * n + s) as f64 * 0.001).sin());
/// let mut cross = CrossInterpolation::new(f, &CrossOptions::new())?;
/// let report = cross.run_with(|progress, _train| match progress.sweep {
///     1 => ControlFlow::Break(()),
///     _ => ControlFlow::Continue(()),
/// })?;
/// assert_eq!(report.status, Status::Stopped);
/// assert!(cross.run()?.converged());
/// assert_eq!(cross.train().max_bond(), 2);
/// # Ok::<(), t4a_networks::train::TrainError>(())
/// ```
pub struct CrossInterpolation<'a, T: LinalgScalar> {
    samples: Samples<'a, T>,
    options: CrossOptions,
    pivots: Pivots,
    train: TensorTrain<T>,
    generator: Generator,
    sweeps: usize,
    pivot_error: f64,
    global_error: f64,
}

impl<'a, T: LinalgScalar> CrossInterpolation<'a, T> {
    /// Searches first pivots. The train is zero until the first half sweep.
    ///
    /// # Errors
    /// `Sites`, `Value` for a function without sites or with sites of size 0 and for options outside of their
    /// range; `Length`, `Index` for initial pivots; `Function`, `Batch`, `NonFinite` with the point at which the
    /// function failed.
    pub fn new(function: Function<'a, T>, options: &CrossOptions) -> Result<Self> {
        let mut samples = Samples::new(OP, function, options.cache_values)?;
        let sizes = samples.sizes().to_vec();
        options.validate(OP, &sizes)?;
        let generator = Generator::new(options.seed);
        let mut pivots = Pivots::new(sizes.len());
        if options.initial_pivots.is_empty() {
            let middle = sizes.iter().map(|&d| d / 2).collect();
            let mut points = vec![vec![0; sizes.len()], middle];
            points.extend(random_points(&generator, &sizes, FIRST_POINTS)?);
            let (mut first, mut value) = large_value(OP, &mut samples, &points)?;
            if value == 0.0 {
                let points = random_points(&generator, &sizes, ZERO_POINTS)?;
                (first, value) = large_value(OP, &mut samples, &points)?;
            }
            debug_assert!(value >= 0.0);
            pivots.add(&first);
        }
        for pivot in &options.initial_pivots {
            let mut point = Indices::new(sizes.len());
            point.push(pivot, &[]);
            samples.at(OP, &point)?;
            pivots.add(pivot);
        }
        let train = TensorTrain::constant(&sizes, T::ZERO)?;
        let options = options.clone();
        let (pivot_error, global_error) = (f64::INFINITY, 0.0);
        Ok(Self {
            samples,
            options,
            pivots,
            train,
            generator,
            sweeps: 0,
            pivot_error,
            global_error,
        })
    }

    /// Half sweeps until the run ends.
    ///
    /// A function that is 0 on all points sampled at first has the train 0, which is reported as converged with
    /// `max_value` 0.
    ///
    /// # Errors
    /// `Function`, `Batch`, `NonFinite` with the point at which the function failed.
    pub fn run(&mut self) -> Result<CrossReport> {
        self.run_with(|_, _| ControlFlow::Continue(()))
    }

    /// As [`CrossInterpolation::run`], with a callback after each half sweep, which receives the train so far and can stop the
    /// run.
    ///
    /// # Errors
    /// As [`CrossInterpolation::run`].
    pub fn run_with(
        &mut self,
        mut callback: impl FnMut(&Progress, &TensorTrain<T>) -> ControlFlow<()>,
    ) -> Result<CrossReport> {
        if self.samples.sizes().len() == 1 {
            return self.single_site();
        }
        if self.samples.max_value() == 0.0 {
            self.pivot_error = 0.0;
            return Ok(self.report(Status::Converged));
        }
        // Of the last half sweeps: within the tolerance, and the largest bond.
        let (mut good, mut ranks) = (Vec::new(), Vec::new());
        for _ in 0..self.options.max_sweeps {
            let added = self.half_sweep()?;
            let limit = self.options.tolerance * self.samples.max_value();
            good.push(self.pivot_error <= limit && added == 0);
            ranks.push(self.train.max_bond());
            let progress = Progress {
                sweep: self.sweeps,
                pivot_error: self.pivot_error,
                global_error: self.global_error,
                max_value: self.samples.max_value(),
                global_pivots: added,
                max_bond: self.train.max_bond(),
                evaluations: self.samples.evaluations(),
            };
            if callback(&progress, &self.train).is_break() {
                return Ok(self.report(Status::Stopped));
            }
            let patience = self.options.patience;
            if good.len() >= patience {
                let recent = ranks.len() - patience..;
                let grows = ranks[recent.clone()].windows(2).any(|pair| pair[1] > pair[0]);
                if good[recent.clone()].iter().all(|&good| good) && !grows {
                    return Ok(self.report(Status::Converged));
                }
                if ranks[recent].iter().all(|&rank| rank >= self.options.max_bond) {
                    return Ok(self.report(Status::MaxBond));
                }
            }
        }
        Ok(self.report(Status::MaxSweeps))
    }

    /// The train of the last complete half sweep.
    pub fn train(&self) -> &TensorTrain<T> {
        &self.train
    }

    /// The train by value.
    pub fn into_train(self) -> TensorTrain<T> {
        self.train
    }

    /// Number of function values, each point counted once.
    pub fn evaluations(&self) -> usize {
        self.samples.evaluations()
    }

    /// The pivots of inner bond `b = 1 … n − 1`: multi-indices of the sites before it and behind it, as many of each.
    /// After an error of the function or a global search there may be more of one kind.
    pub fn pivots(&self, b: usize) -> Option<[Vec<Vec<usize>>; 2]> {
        let inner = b > 0 && b < self.samples.sizes().len();
        let list = |indices: &Indices| indices.iter().map(<[usize]>::to_vec).collect();
        inner.then(|| [list(&self.pivots.left[b]), list(&self.pivots.right[b])])
    }

    /// One half sweep and one global search; the number of pivots that the search added.
    fn half_sweep(&mut self) -> Result<usize> {
        let direction =
            if self.sweeps.is_multiple_of(2) { Direction::Right } else { Direction::Left };
        let generator = &self.generator;
        let mut random = |count, below| random_indices(generator, count, below);
        let Swept { pivots, train, error } =
            half_sweep(OP, &mut self.samples, &self.pivots, &self.options, direction, &mut random)?;
        (self.pivots, self.train, self.pivot_error) = (pivots, train, error);
        self.sweeps += 1;
        if self.options.global_starts == 0 {
            return Ok(0);
        }
        let starts =
            random_points(&self.generator, self.samples.sizes(), self.options.global_starts)?;
        let found = large_errors(OP, &mut self.samples, &self.train, starts)?;
        self.global_error = found.first().map_or(0.0, |(_, error)| *error);
        let limit = self.options.global_margin * self.options.tolerance * self.samples.max_value();
        let large = found.iter().filter(|(_, error)| *error > limit);
        Ok(large.map(|(point, _)| self.pivots.add(point)).count())
    }

    /// A function of one index is its values.
    fn single_site(&mut self) -> Result<CrossReport> {
        let d = self.samples.sizes()[0];
        let points = Indices::empty_index().times_site(d);
        let values = self.samples.at(OP, &points)?;
        self.train = TensorTrain::new(vec![Tensor::from_vec(values, &[1, d, 1])?])?;
        self.pivot_error = 0.0;
        Ok(self.report(Status::Converged))
    }

    fn report(&self, status: Status) -> CrossReport {
        CrossReport {
            status,
            pivot_error: self.pivot_error,
            global_error: self.global_error,
            max_value: self.samples.max_value(),
            evaluations: self.samples.evaluations(),
            sweeps: self.sweeps,
            bonds: self.train.bonds(),
        }
    }
}

fn random_indices(generator: &Generator, count: usize, below: usize) -> Result<Vec<usize>> {
    let draws = uniform::<f64>(generator, &[count], 0.0, 1.0)?.to_vec()?;
    Ok(draws.into_iter().map(|x| ((x * below as f64) as usize).min(below - 1)).collect())
}

fn random_points(generator: &Generator, sizes: &[usize], count: usize) -> Result<Vec<Vec<usize>>> {
    let draws = uniform::<f64>(generator, &[count, sizes.len()], 0.0, 1.0)?.to_vec()?;
    let index = |(x, &d): (&f64, &usize)| ((x * d as f64) as usize).min(d - 1);
    let point = |draws: &[f64]| draws.iter().zip(sizes).map(index).collect();
    Ok(draws.chunks_exact(sizes.len()).map(point).collect())
}
